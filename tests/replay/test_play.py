"""Keyboard play, with posted keyboard events."""

import numpy as np
import pytest

from nclone_env.constants import DEAD
from nclone_env.render.window import Window
from nclone_env.replay.play import KEYS, input_byte, play, watch
from nclone_env.replay.recording import Recording
from nclone_env.replay.video import recording_pictures

from .bases import DEADLY, RIGHT

SCALE = 0.1
SIZE = (106, 60)


@pytest.fixture
def pygame(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    return pytest.importorskip("pygame")


class ScriptedWindow(Window):
    """A window that posts scripted events.

    Args:
        pygame: the module.
        events: events posted before each picture, by its number: ``+left`` presses a key, ``-left`` releases it,
            ``quit`` closes the window.
    """

    def __init__(self, pygame, events: dict[int, str]):
        super().__init__(SIZE, frames_per_second=0)
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


def played(pygame, events):
    """Return the window, and the recordings saved."""
    window, saved = ScriptedWindow(pygame, events), []
    play(DEADLY, saved.append, window, SCALE)
    assert not window.is_open
    return window, saved


def test_keys_make_inputs(pygame):
    events = {3: "+right", 10: "+space", 14: "-space", 20: "-right +a", 25: "-a", 30: "+s", 31: "quit"}
    _, (recording,) = played(pygame, events)
    wanted = [2] * 7 + [3] * 4 + [2] * 6 + [4] * 5 + [0] * 5
    assert recording.inputs.tolist() == wanted
    assert recording.verify().agrees
    assert recording.level.digest == DEADLY.raw.digest


@pytest.mark.parametrize(("key", "code"), KEYS.items())
def test_every_key(pygame, key, code):
    _, (recording,) = played(pygame, {0: f"+{key}", 1: f"-{key}", 2: "+s", 3: "+escape"})
    assert recording.inputs.tolist() == [code, 0]


def test_a_tap_within_one_frame_counts(pygame):
    _, (recording,) = played(pygame, {0: "+up -up", 1: "+s -s", 2: "quit"})
    assert recording.inputs.tolist() == [1]


def test_restart_discards_the_run(pygame):
    window, (recording,) = played(pygame, {0: "+right", 20: "-right +r", 30: "+left", 33: "+s", 34: "quit"})
    assert recording.inputs.tolist() == [4] * 3
    assert (window.pictures[21] == window.pictures[0]).all()
    assert (window.pictures[20] != window.pictures[0]).any()


def test_nothing_is_recorded_after_death(pygame):
    _, (recording,) = played(pygame, {0: "+right", 300: "+s", 301: "quit"})
    assert recording.verify().state == DEAD
    assert len(recording.inputs) < 290


def test_saving_twice_and_saving_without_frames(pygame):
    _, saved = played(pygame, {0: "+s -s", 5: "+right", 10: "+s -s", 12: "+s", 15: "quit"})
    assert [len(recording.inputs) for recording in saved] == [5, 7]


def test_keys_together():
    assert input_byte(["left", "d", "w", "q", "left shift"]) == 7
    assert input_byte([]) == 0


def test_losing_the_focus_releases_all_keys(pygame):
    window = ScriptedWindow(pygame, {0: "+right"})
    window.show(np.zeros((60, 106, 3), np.uint8))
    assert window.held == {"right"}
    pygame.event.post(pygame.event.Event(pygame.WINDOWFOCUSLOST))
    window.show(np.zeros((60, 106, 3), np.uint8))
    assert window.held == window.pressed == set()
    window.close()


@pytest.mark.parametrize(("events", "shown"), [({}, 11), ({4: "quit"}, 4), ({4: "+escape"}, 4)])
def test_watching(pygame, events, shown):
    window = ScriptedWindow(pygame, events)
    assert watch(recording_pictures(Recording.of(DEADLY, [RIGHT] * 10), SCALE), window) == shown
    assert not window.is_open
