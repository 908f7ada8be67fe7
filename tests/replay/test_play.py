"""Keyboard play, with posted keyboard events."""

import subprocess
from contextlib import closing

import numpy as np
import pytest

from nclone_env.errors import UnsupportedLevelError
from nclone_env.game import CELEBRATING, DEAD, KEYS
from nclone_env.jit import NotCompiledError
from nclone_env.level.level import Level
from nclone_env.render import Window, used_area_of, world_picture, zoom_of
from nclone_env.replay import Recording, play, recording_pictures
from nclone_env.replay.play import Play, input_byte, window_size
from nclone_env.replay.text import GROUND, bar_height
from nclone_env.replay.view import view_size
from nclone_env.replay.watch import watch
from nclone_env.sim.session import Session

from .bases import DEADLY, RIGHT, WINNABLE

SCALE = 0.25
WIDTH, HEIGHT = window_size([DEADLY, WINNABLE], SCALE)
LINES = bar_height(WIDTH)
GAME, BAR = slice(0, HEIGHT - LINES), slice(HEIGHT - LINES, HEIGHT)
MESSAGE = slice(HEIGHT - LINES - 48, HEIGHT - LINES - 16)
KEY_CAPS = WIDTH - 66  # x at which they begin


class ScriptedWindow(Window):
    """A window that posts scripted events.

    Args:
        pygame: the module.
        events: events posted before each picture, by its number: ``+left`` presses a key, ``-left`` releases it,
            ``quit`` closes the window.
    """

    def __init__(self, pygame, events: dict[int, str]):
        super().__init__((WIDTH, HEIGHT), frames_per_second=0, closing_key="escape")
        self._module, self.events, self.pictures = pygame, events, []
        pygame.event.clear()

    def show(self, picture):
        for event in self.events.get(len(self.pictures), "").split():
            self._module.event.post(self._event(event))
        self.pictures.append(picture.copy())
        assert len(self.pictures) < 2000, "the window was never closed"
        return super().show(picture)

    def _event(self, event):
        if event == "quit":
            return self._module.event.Event(self._module.QUIT)
        kind = self._module.KEYDOWN if event[0] == "+" else self._module.KEYUP
        return self._module.event.Event(kind, key=self._module.key.key_code(event[1:]))


def tap(key):
    return f"+{key} -{key}"


def played(pygame, events, levels=(DEADLY,), ghosts=(), answer="saved to x.replay"):
    """Return the pictures, and the recordings saved."""
    window, saved = ScriptedWindow(pygame, events), []

    def save(recording):
        saved.append(recording)
        return answer

    Play(levels, save, window, SCALE, ghosts).run()
    assert not window.is_open
    return window.pictures, saved


def same(left, right, rows=slice(None)):
    return bool((left[rows] == right[rows]).all())


def test_a_window_answers_while_kernels_are_compiled(pygame, monkeypatch):
    """Escape ends the other process; without it the game begins when that is done, and at once where nothing is new."""
    started = []

    class Popen(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            started.append(self)

    def refuse():
        raise NotCompiledError("tick")

    monkeypatch.setattr(subprocess, "Popen", Popen)
    monkeypatch.setattr(play, "compile_kernels", refuse)
    monkeypatch.setattr(play, "_PREPARE", "import time; time.sleep(600)")
    window = ScriptedWindow(pygame, {20: "+escape"})
    assert not play.prepare(window)
    assert started[0].poll() is not None
    assert len(window.pictures) == 21
    assert (window.pictures[0] != GROUND).any()
    monkeypatch.setattr(play, "_PREPARE", "")
    with closing(Window((WIDTH, HEIGHT))) as other:
        with pytest.raises(NotCompiledError):  # what the other process has compiled is read by this one
            play.prepare(other)
        monkeypatch.setattr(play, "compile_kernels", lambda: None)
        assert play.prepare(other)
    assert len(started) == 2


def test_keys_make_inputs(pygame):
    events = {3: "+right", 10: "+space", 14: "-space", 20: "-right +a", 25: "-a", 30: "+s", 31: "quit"}
    _, (recording,) = played(pygame, events)
    wanted = [2] * 7 + [3] * 4 + [2] * 6 + [4] * 5 + [0] * 5
    assert recording.inputs.tolist() == wanted
    assert recording.verify().agrees
    assert recording.level.digest == DEADLY.raw.digest
    assert recording.settings == {"level": DEADLY.name}


@pytest.mark.parametrize(("key", "code"), KEYS.items())
def test_every_key(pygame, key, code):
    _, (recording,) = played(pygame, {0: f"+{key}", 1: f"-{key}", 2: "+s", 3: "+escape"})
    assert recording.inputs.tolist() == [code, 0]


def test_a_tap_within_one_frame_counts(pygame):
    _, (recording,) = played(pygame, {0: "+up -up", 1: "+s -s", 2: "quit"})
    assert recording.inputs.tolist() == [1]


def test_restart_discards_the_run(pygame):
    events = {0: tap("left"), 3: tap("r"), 5: "+right", 20: "-right", 22: tap("r"), 30: "+left", 33: "+s", 34: "quit"}
    pictures, (recording,) = played(pygame, events)
    assert recording.inputs.tolist() == [4] * 3
    assert same(pictures[23], pictures[4])
    assert not same(pictures[22], pictures[4])


def test_death_is_said_and_nothing_is_recorded_after_it(pygame):
    pictures, (recording,) = played(pygame, {0: "+right", 120: "+s", 121: tap("r"), 123: "quit"})
    assert recording.verify().state == DEAD
    died = len(recording.inputs)
    assert died < 110
    assert not same(pictures[died], pictures[died - 1], MESSAGE)
    assert not same(pictures[died], pictures[died - 1], BAR)
    assert same(pictures[died], pictures[119]), "the message stays"
    assert same(pictures[died - 1], pictures[122], MESSAGE), "until a restart"
    assert same(pictures[died - 2], pictures[died - 1], MESSAGE)


def test_victory_is_said(pygame):
    pictures, (recording,) = played(pygame, {0: "+right", 120: "+s", 121: "quit"}, [WINNABLE])
    assert recording.verify().state == CELEBRATING
    won = len(recording.inputs)
    assert not same(pictures[won], pictures[won - 1], MESSAGE)
    lost, (other,) = played(pygame, {0: "+right", 120: "+s", 121: "quit"})
    assert not same(pictures[won], lost[len(other.inputs)], MESSAGE)


def test_saving_is_said_for_a_while(pygame):
    events = {1: "+right", 20: tap("s"), 220: "quit"}
    pictures, saved = played(pygame, {**events, 30: "-right", 100: tap("left")})
    assert len(saved) == 1
    assert not same(pictures[21], pictures[20], MESSAGE)
    assert same(pictures[21], pictures[60], MESSAGE)
    others, _ = played(pygame, events, answer="not saved: the disk is full")
    assert not same(pictures[21], others[21], MESSAGE)


def test_saving_without_a_run_says_why(pygame):
    pictures, saved = played(pygame, {2: tap("s"), 5: tap("right"), 8: tap("s"), 10: "quit"})
    assert [len(recording.inputs) for recording in saved] == [3]
    assert same(pictures[2], pictures[1])
    assert not same(pictures[3], pictures[2], MESSAGE), "nothing to save yet"
    assert not same(pictures[9], pictures[3], MESSAGE), "saved"


def test_the_first_move_ends_the_welcome(pygame):
    pictures, _ = played(pygame, {400: tap("right"), 404: "quit"})
    assert same(pictures[0], pictures[399])
    assert not same(pictures[401], pictures[400], MESSAGE)


def test_keys_are_shown_while_they_are_held(pygame):
    pictures, _ = played(pygame, {1: "+left", 3: "-left +right", 5: "+up", 7: "-right -up", 9: "quit"})
    bars = [picture[BAR, KEY_CAPS:].tobytes() for picture in pictures]
    assert bars[0] == bars[1] == bars[8]
    assert len({bars[2], bars[4], bars[6], bars[8]}) == 4


def test_next_and_previous_level_wrap_around(pygame):
    events = {1: tap("n"), 3: tap("n"), 5: tap("p"), 7: "+right", 9: "+s", 10: "quit"}
    pictures, (recording,) = played(pygame, events, [DEADLY, WINNABLE])
    assert recording.level.digest == WINNABLE.raw.digest
    assert same(pictures[4], pictures[1], BAR)
    assert not same(pictures[2], pictures[1], GAME)
    assert same(pictures[2], pictures[6])


def test_slow_motion_plays_every_fourth_picture(pygame):
    _, (recording,) = played(pygame, {0: tap("t"), 2: "+right", 42: "-right", 60: tap("t"), 70: "+s", 71: "quit"})
    assert recording.inputs.tolist().count(RIGHT) == 10
    assert len(recording.inputs) == 14 + 10 + 1


def test_a_tap_between_frames_of_slow_motion_counts(pygame):
    _, (recording,) = played(pygame, {0: tap("t"), 5: tap("up"), 12: "+s", 13: "quit"})
    assert recording.inputs.tolist().count(1) == 1


def test_pause_and_single_frames(pygame):
    events = {0: "+right", 5: tap("return"), 20: tap("."), 25: tap("."), 30: tap("return"), 33: "+s", 34: "quit"}
    pictures, (recording,) = played(pygame, events)
    assert len(recording.inputs) == 5 + 2 + 3
    assert same(pictures[8], pictures[20])
    assert not same(pictures[20], pictures[21], GAME)
    assert not same(pictures[5], pictures[6], BAR), "paused"


@pytest.mark.parametrize("key", ["return", "h"])
def test_keys_tapped_while_the_game_stands_still_are_not_played_later(pygame, key):
    events = {0: "+right", 5: tap(key), 10: tap("up"), 12: tap("left"), 20: tap(key), 23: "+s", 24: "quit"}
    _, (recording,) = played(pygame, events)
    assert recording.inputs.tolist() == [RIGHT] * 8
    _, (going_on,) = played(pygame, {step: event for step, event in events.items() if event != tap(key)})
    assert sorted(set(going_on.inputs.tolist())) == [RIGHT, RIGHT | 1, RIGHT | 4], "while it moves they are"


def test_a_single_frame_uses_the_keys_that_are_held(pygame):
    events = {0: "+right", 5: tap("return"), 8: tap("up"), 10: tap("."), 12: "+up", 14: tap("."), 16: "-up", 20: "+s"}
    _, (recording,) = played(pygame, {**events, 21: "quit"})
    assert recording.inputs.tolist() == [RIGHT] * 6 + [RIGHT | 1]


def test_an_error_closes_the_window(pygame):
    def failing(recording):
        raise ZeroDivisionError

    window = ScriptedWindow(pygame, {0: "+right", 3: "+s"})
    with pytest.raises(ZeroDivisionError):
        Play([DEADLY], failing, window, SCALE).run()
    assert not window.is_open

    def broken_pictures():
        yield np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        raise ZeroDivisionError

    window = ScriptedWindow(pygame, {})
    with pytest.raises(ZeroDivisionError):
        watch(broken_pictures(), window)
    assert not window.is_open


def test_help_covers_the_game_and_stops_it(pygame):
    pictures, (recording,) = played(pygame, {0: "+right", 5: tap("h"), 20: tap("h"), 23: "+s", 24: "quit"})
    assert len(recording.inputs) == 5 + 3
    assert not same(pictures[5], pictures[6], GAME)
    assert same(pictures[6], pictures[20], GAME)


def ghostly(pictures, others):
    """Return the rectangle (top, bottom, left, right) in which pictures differ, None if they do not."""
    rows, columns = np.nonzero((pictures[GAME] != others[GAME]).any(2))
    return (rows.min(), rows.max(), columns.min(), columns.max()) if len(rows) else None


def test_a_ghost_is_drawn_where_its_recording_is(pygame):
    ghost = Recording.of(DEADLY, [RIGHT] * 30)
    events = {0: tap("left"), 60: "quit"}
    without, _ = played(pygame, events)
    with_ghost, _ = played(pygame, events, ghosts=[ghost])
    area = used_area_of(DEADLY.raw)
    zoom, session = zoom_of(area), Session(DEADLY)
    width, height = view_size([DEADLY], SCALE)
    above, beside = (HEIGHT - LINES - height + bar_height(width)) // 2, (WIDTH - width) // 2
    assert same(without[0], with_ghost[0]), "it starts with the run"
    for frame in range(1, 60):
        if frame <= 30:
            session.tick(RIGHT)
        down, across = (
            (session.ninja[axis] - edge) * zoom * SCALE for axis, edge in (("y", area.top), ("x", area.left))
        )
        middle = above + down, beside + across
        if frame > 10:  # the ninjas no longer overlap
            top, bottom, left, right = ghostly(without[frame], with_ghost[frame])
            assert max(abs(top - middle[0]), abs(bottom - middle[0])) < 12 * zoom * SCALE + 1
            assert max(abs(left - middle[1]), abs(right - middle[1])) < 12 * zoom * SCALE + 1
    ninja = world_picture(session.levels, session.worlds, 0, SCALE * zoom, area)
    shown = with_ghost[59][int(middle[0]), int(middle[1])]
    assert shown.max() > ninja[int(down), int(across)].max() + 40, "translucent"


def test_ghosts_are_switched_by_a_key_and_a_saved_run_becomes_one(pygame):
    events = {
        0: "+right",
        30: "-right",
        31: tap("s"),
        32: tap("r"),
        33: tap("g"),
        34: tap("left"),
        70: tap("g"),
        90: "quit",
    }
    pictures, _ = played(pygame, events)
    plain, _ = played(pygame, {key: word for key, word in events.items() if word != tap("g")})
    top = slice(0, HEIGHT - LINES - 50)  # above the message
    assert not same(pictures[60], plain[60], top)
    assert same(pictures[75], plain[75], top)


def test_without_a_ghost_the_key_says_so(pygame):
    pictures, _ = played(pygame, {3: tap("g"), 6: "quit"}, [DEADLY, WINNABLE], [Recording.of(WINNABLE, [RIGHT])])
    assert not same(pictures[4], pictures[3], MESSAGE)


@pytest.mark.parametrize("before", ["", "+t -t", "+return", "+h", "+right +n"])
def test_escape_ends_at_once(pygame, before):
    """No further frame is drawn or played, whatever is going on."""
    pictures, saved = played(pygame, {3: before, 8: "+escape +s +right"})
    assert len(pictures) == 9
    assert not saved


def test_a_slow_window_says_so(pygame):
    class Slow(ScriptedWindow):
        def show(self, picture):
            self.rate = {3: 41.0, 4: 59.9}.get(len(self.pictures), 0.0)
            return super().show(picture)

    window = Slow(pygame, {8: "quit"})
    Play([DEADLY], lambda recording: "", window, SCALE).run()
    bars = [picture[BAR] for picture in window.pictures]
    assert same(bars[0], bars[3])
    assert not same(bars[4], bars[3]), "slow: 41 of 60 frames/s"
    assert same(bars[5], bars[3]), "fast enough"


def test_names_and_titles_of_any_length_fit(pygame):
    long = Level(DEADLY.raw, "a/level with\na name\u2026 " + "x" * 100_000)
    pictures, _ = played(pygame, {2: tap("right"), 4: "quit"}, [long])
    assert pictures[0].shape == (HEIGHT, WIDTH, 3)


def test_keys_together():
    assert input_byte(["left", "d", "w", "q", "left shift"]) == 7
    assert input_byte([]) == 0


def test_losing_the_focus_releases_all_keys(pygame):
    window = ScriptedWindow(pygame, {0: "+right"})
    window.show(np.zeros((HEIGHT, WIDTH, 3), np.uint8))
    assert window.held == {"right"}
    pygame.event.post(pygame.event.Event(pygame.WINDOWFOCUSLOST))
    window.show(np.zeros((HEIGHT, WIDTH, 3), np.uint8))
    assert window.held == window.pressed == set()
    window.close()


@pytest.mark.parametrize(("events", "shown"), [({}, 11), ({4: "quit"}, 4), ({4: "+escape"}, 4)])
def test_watching(pygame, events, shown):
    window = ScriptedWindow(pygame, events)
    assert watch(recording_pictures(Recording.of(DEADLY, [RIGHT] * 10), SCALE), window) == shown
    assert not window.is_open


def watched(pygame, events):
    """Watch 11 pictures with scripted events; return what the window showed."""
    window = ScriptedWindow(pygame, events)
    assert watch(recording_pictures(Recording.of(DEADLY, [RIGHT] * 10), SCALE), window) == 11
    return window.pictures


@pytest.mark.parametrize("key", ["space", "return"])
def test_watching_pauses_and_goes_on(pygame, key):
    plain = watched(pygame, {})
    paused = watched(pygame, {4: f"{tap(key)}", 9: tap(key)})
    assert len(paused) == len(plain) + 5
    assert all(same(one, other) for one, other in zip(plain[:5], paused[:5], strict=True))
    assert all(same(paused[5], other) for other in paused[5:10])
    assert not same(paused[5], plain[4])  # it says so
    assert same(paused[5], plain[4], slice(HEIGHT - LINES, None))  # above the bar
    assert all(same(one, other) for one, other in zip(plain[5:], paused[10:], strict=True))


def test_single_frames_are_watched_while_paused(pygame):
    plain = watched(pygame, {})
    stepped = watched(pygame, {2: tap("space"), 4: tap("."), 6: tap("space"), 8: tap(".")})
    assert len(stepped) == len(plain) + 3  # the last "." does nothing
    assert not same(stepped[4], stepped[5])
    assert same(stepped[5], stepped[6])
    assert all(same(one, other) for one, other in zip(plain[4:], stepped[7:], strict=True))


def test_the_keys_of_a_watcher_are_shown_and_nothing_moves(pygame):
    plain = watched(pygame, {})
    helped = watched(pygame, {3: tap("h"), 5: tap("."), 7: tap("h")})
    assert len(helped) == len(plain) + 4
    assert all(same(helped[4], other) for other in helped[4:8])
    assert not same(helped[4], plain[3])
    assert all(same(one, other) for one, other in zip(plain[4:], helped[8:], strict=True))


def test_a_paused_window_closes(pygame):
    window = ScriptedWindow(pygame, {4: tap("space"), 8: "+escape"})
    assert watch(recording_pictures(Recording.of(DEADLY, [RIGHT] * 10), SCALE), window) == 5
    assert not window.is_open
    assert len(window.pictures) == 9


def test_backspace_goes_back_a_frame_and_rewinds_while_it_is_held(pygame):
    events = {0: "+right", 20: "-right " + tap("backspace"), 22: "+s -s", 24: "+backspace", 50: "-backspace", 52: "+s"}
    pictures, (first, second) = played(pygame, {**events, 53: "quit"})
    assert first.inputs.tolist() == [RIGHT] * 19
    assert len(second.inputs) == 19 - 1 - (50 - 24 - 12)
    assert first.verify().agrees
    assert second.verify().agrees
    assert not same(pictures[21], pictures[20], BAR), "it pauses"


def test_what_is_played_after_going_back_is_what_is_saved(pygame):
    events = {0: "+right", 20: "-right", 21: "+backspace", 45: "-backspace", 46: "+left", 47: tap("return"), 57: "+s"}
    _, (recording,) = played(pygame, {**events, 58: "quit"})
    assert recording.inputs.tolist()[-10:] == [4] * 10
    assert recording.verify().agrees
    session = Session(DEADLY)
    session.play(recording.inputs)
    assert len(recording.inputs) < 30


def test_a_kept_frame_is_returned_to(pygame):
    events = {0: "+right", 10: tap("f5"), 30: tap("f9"), 40: "+s -s", 45: tap("return"), 50: "+s"}
    _, (first, second) = played(pygame, {**events, 51: "quit"})
    assert len(first.inputs) == 10, "it stands still there"
    assert second.inputs.tolist() == [RIGHT] * 15
    pictures, _ = played(pygame, {3: tap("f9"), 6: "quit"})
    assert not same(pictures[4], pictures[3], MESSAGE), "no frame is kept yet"


def test_old_inputs_go_on_until_a_key_is_held_and_branches_are_kept(pygame):
    back = {0: "+right", 30: "-right", 31: "+backspace", 55: "-backspace", 60: tap("return")}
    _, (along,) = played(pygame, {**back, 65: "+s", 66: "quit"})
    assert set(along.inputs.tolist()) == {RIGHT}
    events = {**back, 62: "+left", 66: "-left " + tap("b"), 67: tap("s"), 68: "quit"}
    _, (other,) = played(pygame, events)
    assert set(other.inputs.tolist()) <= {RIGHT, 0}


def test_it_begins_at_a_frame_of_a_recording(pygame):
    window, saved = ScriptedWindow(pygame, {2: "+s -s", 4: tap("]"), 5: tap("]"), 6: "+s", 7: "quit"}), []
    begin = [RIGHT] * 15 + [4] * 10, 20
    Play([DEADLY], lambda recording: saved.append(recording) or "", window, SCALE, begin=begin).run()
    assert [len(recording.inputs) for recording in saved] == [20, 22]
    assert saved[1].inputs.tolist() == ([RIGHT] * 15 + [4] * 7)
    assert all(recording.verify().agrees for recording in saved)


def test_the_planner_solves_from_a_frame(pygame, monkeypatch):
    found = np.array([RIGHT] * 70, np.uint8)

    def solve(level, *, start, on_solution, **options):
        session, world = start
        assert session.snapshot(world) == expected.snapshot()
        on_solution(type("Found", (), {"inputs": found}))

    expected = Session(WINNABLE)
    expected.play([4] * 10)
    monkeypatch.setattr(play, "solve", solve)
    for key, length in (("f", 80), ("e", 70)):
        events = {0: "+left", 10: "-left " + tap("return"), 12: tap(key), 60: tap("return"), 145: tap("s"), 146: "quit"}
        _, (recording,) = played(pygame, events, [WINNABLE])
        shown = min(length, len(recording.inputs))
        assert shown > 69
        assert recording.inputs.tolist()[:shown] == ([4] * 10 + [RIGHT] * 70)[:shown]
        assert recording.verify().agrees


def test_a_search_that_finds_nothing_says_so(pygame, monkeypatch):
    def solve(level, **options):
        raise UnsupportedLevelError("no exit")

    monkeypatch.setattr(play, "solve", solve)
    pictures, _ = played(pygame, {0: tap("left"), 4: tap("f"), 40: "quit"})
    assert not same(pictures[39], pictures[4], MESSAGE)


def test_the_best_time_and_the_lead_over_the_ghost_are_said(pygame):
    ghost = Recording.of(WINNABLE, [0] * 5 + [RIGHT] * 300)
    events = {0: "+right", 120: tap("r"), 130: "quit"}
    plain, _ = played(pygame, events, [WINNABLE])
    pictures, _ = played(pygame, events, [WINNABLE], [ghost])
    assert not same(plain[119], pictures[119], MESSAGE), "5 before the ghost"
    assert not same(plain[125], plain[2], BAR), "best"
