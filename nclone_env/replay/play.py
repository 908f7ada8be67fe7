"""Play levels with the keyboard in a window. Requires pygame-ce."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing, suppress
from functools import reduce
from operator import or_

import numpy as np

from nclone_env.config import Theme
from nclone_env.errors import NcloneError
from nclone_env.game import CELEBRATING, DEAD, FRAMES_PER_SECOND, KEYS
from nclone_env.jit import NotCompiledError, only_compiled
from nclone_env.level import Level
from nclone_env.plan import Solution, solve
from nclone_env.render import Window
from nclone_env.replay.recording import Recording
from nclone_env.replay.text import BAD, DIM, GOOD, GROUND, draw_message, draw_progress, draw_table
from nclone_env.replay.view import Take, View, compile_kernels, view_size
from nclone_env.replay.watch import HELP_KEY, PAUSE, QUIT, STEP
from nclone_env.sim import Session

BACK, FORWARD = "backspace", "]"
HELP = (
    ("arrows or A D", "move"),
    ("space, Z, W or up", "jump"),
    ("R", "restart"),
    ("N  P", "next, previous level"),
    ("S", "save the run as a recording"),
    ("G", "show or hide the ghost"),
    ("T", "slow motion"),
    ("Enter", "pause; again: go on"),
    (".   ]", "paused: a frame with the keys held; one of the run"),
    ("Backspace", "one frame back; held: rewind"),
    ("F5  F9", "keep this frame; return to it"),
    ("B", "the branch left before"),
    ("F   E", "solve from here; only the next second of it"),
    ("H", "show or hide these keys"),
    ("Esc", "quit"),
)
"""Keys and what they do."""
_WELCOME = "arrows: move    space: jump    H: all keys"  # until the first key that moves the ninja
_SEARCH_SECONDS = 3.0  # of the planner, compilation not included
_SLOWNESS = 4  # pictures for each frame in slow motion
_MESSAGE_PICTURES = 150  # for which a message stays
_REWIND_AFTER = 12  # pictures for which Backspace is held before it rewinds
_LEAST_SIZE = 720, 450  # of a window at scale 1, pixels: the list of keys fits
_SLOW_RATE = 0.95 * FRAMES_PER_SECOND
_PREPARE = "from nclone_env.replay.view import compile_kernels; compile_kernels()"
_PREPARATION = 25.0  # seconds of a processor that compiling takes


def input_byte(keys: Iterable[str]) -> int:
    """Return the input byte for a set of pressed keys."""
    return reduce(or_, (KEYS.get(key, 0) for key in keys), 0)


def _track(recording: Recording) -> np.ndarray:
    """Return the ``NINJA_RECORD`` after each frame of a run, (T,)."""
    return Session(recording.level).record(recording.inputs, entities=False).ninjas


def window_size(levels: Sequence[Level], scale: float) -> tuple[int, int]:
    """Return width and height of a window for some levels, pixels, with room for the list of keys."""
    width, height = view_size(levels, scale)
    return max(width, round(_LEAST_SIZE[0] * min(scale, 1))), max(height, round(_LEAST_SIZE[1] * min(scale, 1)))


class Play:
    """Levels that are played in a window, a frame for each picture.

    The first key that moves the ninja starts a run. After death or victory it stands still until a restart, or until
    it goes back. Where the run has gone back, its old inputs go on until a key is held.

    Args:
        save: saves the recording of a run; returns what the window says then.
        window: the window; closed at the end of :meth:`run`, also by an error.
        scale: size of the pictures, as of ``View``.
        ghosts: recordings whose ninjas are shown at first, the last one of each level.
        begin: inputs of the first level, and the frame after which the game stands still at first; None: a new run.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        save: Callable[[Recording], str],
        window: Window,
        scale: float = 1.0,
        ghosts: Sequence[Recording] = (),
        theme: Theme = "light",
        begin: tuple[Sequence[int], int] | None = None,
    ):
        self._levels, self._save, self._window, self._scale, self._theme = levels, save, window, scale, theme
        self._tracks = {recording.level.digest: _track(recording) for recording in ghosts}
        self._shows_ghost, self._shows_help, self._slow, self._paused = bool(ghosts), False, False, False
        self._beat = self._back = 0
        self._taps: set[str] = set()  # pressed since the last frame
        self._message, self._message_left = "", 0
        self._best: dict[str, int] = {}
        self._search: Assistant | None = None
        self._actions: dict[str, Callable[[], None]] = {
            "r": self._restart,
            "s": self._save_run,
            "n": lambda: self._open(self._number + 1),
            "p": lambda: self._open(self._number - 1),
            "g": self._toggle_ghost,
            "f5": self._keep,
            "f9": self._return,
            "b": self._swap,
            "f": lambda: self._ask(None),
            "e": lambda: self._ask(FRAMES_PER_SECOND),
        }
        self._open(0)
        self._say(_WELCOME)
        if begin is not None:
            self._take.load(*begin)
            self._paused = True
            self._say(f"frame {self._take.frame} of {len(self._take.inputs)}    Enter: go on    H: all keys")

    def run(self) -> None:
        """Play until the window is closed."""
        with closing(self._window):
            try:
                while self._window.show(self.picture()):
                    self._respond(self._window.pressed)
            finally:
                self._drop_search()

    def _respond(self, pressed: Collection[str]) -> None:
        """Do what the keys pressed since the last picture ask for, and play a frame if it is time."""
        self._message_left -= self._message != _WELCOME
        self._slow ^= "t" in pressed
        self._paused ^= PAUSE in pressed
        self._shows_help ^= HELP_KEY in pressed
        for key, act in self._actions.items():
            if key in pressed:
                act()
        self._follow_search()
        if self._paused or self._shows_help:
            self._taps.clear()  # else they would all be played at once when the game goes on
        else:
            self._taps.update(pressed)
        if self._rewinds(BACK in pressed):
            return
        if self._paused and FORWARD in pressed and not self._shows_help:
            self._take.go_on()
        elif self._is_time(STEP in pressed):
            self._tick()

    def picture(self) -> np.ndarray:
        """Return what the window shows, (h, w, 3) uint8, RGB."""
        bar = self._bar()
        width, height = self._window.size
        whole = np.full((height - len(bar), width, 3), GROUND, np.uint8)
        picture: np.ndarray = self._take.view.picture(self._ghost())
        top, left = max(0, (len(whole) - len(picture)) // 2), max(0, (width - picture.shape[1]) // 2)
        part = whole[top : top + len(picture), left : left + picture.shape[1]]
        part[:] = picture[: len(part), : part.shape[1]]
        text = self._message if self._message_left > 0 else self._ending()
        if self._shows_help:
            draw_table(whole, HELP)
        elif text:
            draw_message(whole, text)
        return np.vstack([whole, bar])

    def _bar(self) -> np.ndarray:
        take, notes = self._take, []
        best = self._best.get(take.view.level.raw.digest)
        if best is not None:
            notes.append((f"best {best / FRAMES_PER_SECOND:.2f} s", GOOD))
        if take.rest:
            notes.append((f"frame {take.frame}/{len(take.inputs)}", DIM))
        if self._paused:
            notes.append(("paused, Enter: go on", DIM))
        if self._slow:
            notes.append(("slow motion", DIM))
        if 0 < self._window.rate < _SLOW_RATE:
            notes.append((f"slow: {self._window.rate:.0f} of {FRAMES_PER_SECOND} frames/s", BAD))
        return take.view.bar(code=input_byte(self._window.held), notes=notes, width=self._window.size[0])

    def _ending(self) -> str:
        """Return what is said when the run is over, else an empty text."""
        view = self._take.view
        if view.state == DEAD:
            return "dead    R: restart    Backspace: back"
        if view.state == CELEBRATING:
            return f"won in {view.frames} frames{self._difference()}    R: restart    N: next level    S: save"
        return ""

    def _difference(self) -> str:
        """Return how a win compares with the one of the ghost, if there is one that wins."""
        track = self._tracks.get(self._take.view.level.raw.digest)
        if track is None or not self._shows_ghost or CELEBRATING not in track["state"]:
            return ""
        wins = np.flatnonzero(track["state"] == CELEBRATING)
        later = self._take.view.frames - int(wins[0]) - 1
        return f", {abs(later)} {'after' if later > 0 else 'before'} the ghost" if later else ", as the ghost"

    def _open(self, number: int) -> None:
        """Begin a level; numbers wrap around."""
        self._drop_search()
        self._number = number % len(self._levels)
        level = self._levels[self._number]
        self._take = Take(View(level, self._scale, self._theme))
        self._kept: bytes | None = None
        self._message_left = 0
        title = "" if level.raw.title in ("", level.name) else f" - {level.raw.title}"
        self._window.set_title(f"{level.name}{title}")

    def _restart(self) -> None:
        self._take.load(b"", 0)
        self._message_left = 0

    def _save_run(self) -> None:
        played = bytes(self._take.inputs[: self._take.frame])
        if not played:
            self._say("nothing to save yet: move first")
            return
        level = self._take.view.level
        recording = Recording.of(level, played, {"level": level.name})
        self._say(self._save(recording))
        self._tracks[level.raw.digest] = _track(recording)

    def _toggle_ghost(self) -> None:
        if self._take.view.level.raw.digest not in self._tracks:
            self._say("no ghost of this level yet: save a run with S")
            return
        self._shows_ghost = not self._shows_ghost
        self._say(f"ghost {'on' if self._shows_ghost else 'off'}")

    def _keep(self) -> None:
        self._kept = bytes(self._take.inputs[: self._take.frame])
        self._say(f"frame {self._take.frame} kept    F9: return to it")

    def _return(self) -> None:
        if self._kept is None:
            self._say("no frame is kept yet: F5 keeps one")
            return
        self._take.load(self._kept, len(self._kept))
        self._paused = True
        self._say(f"frame {self._take.frame}    Enter: go on")

    def _swap(self) -> None:
        found = self._take.swap()
        self._paused |= found
        said = f"another branch, {len(self._take.inputs)} frames; {len(self._take.branches)} more"
        self._say(said if found else "there is no branch yet")

    def _rewinds(self, pressed: bool) -> bool:
        """Go a frame back if the key is pressed, or has been held for a while; return whether it is down."""
        down = BACK in self._window.held
        self._back = self._back + 1 if down else 0
        if pressed or self._back > _REWIND_AFTER:
            self._take.seek(self._take.frame - 1)
            self._message_left = 0
            self._paused = True
        return pressed or down

    def _ask(self, frames: int | None) -> None:
        """Ask the planner for inputs that win from here, or for so many frames of them."""
        self._drop_search()
        if self._take.view.over:
            self._say("the run is over: go back with Backspace first")
            return
        self._search, self._asked = (
            Assistant(self._take.view.level, bytes(self._take.inputs[: self._take.frame])),
            frames,
        )
        self._paused = True

    def _follow_search(self) -> None:
        """Say how a search stands; take what it has found at its end."""
        search = self._search
        if search is None:
            return
        found = search.found
        if search.running:
            length = len(search.inputs) + len(found) if found else 0
            self._say(f"searching ...{f' won in {length} frames' if found else ''}")
            return
        self._search = None
        if found is None:
            self._say(search.error or "found no way to win from here")
            return
        inputs = search.inputs + found[: self._asked]
        self._take.load(inputs, len(search.inputs))
        what = f"won in {len(search.inputs) + len(found)} frames" if self._asked is None else "the next second"
        self._say(f"{what}    Enter: play it    ]: a frame of it    B: back to yours")

    def _drop_search(self) -> None:
        if self._search is not None:
            self._search.stop()
            self._search = None

    def _say(self, text: str) -> None:
        self._message, self._message_left = text, _MESSAGE_PICTURES

    def _is_time(self, step: bool) -> bool:
        """Return whether a frame is played now."""
        if self._shows_help:
            return False
        if self._paused:
            return step
        self._beat = (self._beat + 1) % _SLOWNESS
        return not self._slow or self._beat == 0

    def _tick(self) -> None:
        """Play one frame with the keys that are held, and those pressed and released since the last one."""
        take, code = self._take, input_byte(self._window.held | self._taps)
        self._taps.clear()
        if take.rest and not code and not self._paused:
            take.go_on()
        elif code or take.inputs:
            if self._message == _WELCOME:
                self._message_left = 0
            take.play(code)
        if take.view.state == CELEBRATING:
            digest = take.view.level.raw.digest
            self._best[digest] = min(take.view.frames, self._best.get(digest, take.view.frames))

    def _ghost(self) -> Sequence[np.void]:
        """Return where the ghost is now: nowhere before the first frame, and where it ended after its last."""
        track = self._tracks.get(self._take.view.level.raw.digest)
        if not self._shows_ghost or track is None or not len(track) or not self._take.frame:
            return ()
        return (track[min(self._take.frame, len(track)) - 1],)


def play_in_window(
    levels: Sequence[Level],
    save: Callable[[Recording], str],
    scale: float,
    ghosts: Sequence[Recording] = (),
    theme: Theme = "light",
    begin: tuple[Sequence[int], int] | None = None,
) -> None:
    """Open a window and play levels in it until it is closed; arguments as of :class:`Play`."""
    Window.check()
    window = Window(window_size(levels, scale), levels[0].name, closing_key=QUIT)
    if prepare(window):
        Play(levels, save, window, scale, ghosts, theme, begin).run()


def prepare(window: Window) -> bool:
    """Load the kernels; what is not compiled is compiled by another process, while the window says so and hears keys.

    Return whether the window is still open.
    """
    with suppress(NotCompiledError), only_compiled():
        compile_kernels()
        return True
    began = time.monotonic()
    environment = os.environ | {"NCLONE_ENV_QUIET": "1"}
    with subprocess.Popen([sys.executable, "-c", _PREPARE], env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None:
                if not window.show(_waiting(window.size, time.monotonic() - began)):
                    return False
        finally:
            process.kill()
    compile_kernels()  # reads them; compiles where no cache is kept
    return True


def _waiting(size: tuple[int, int], seconds: float) -> np.ndarray:
    """Return what a window of some size shows after so many seconds of compilation."""
    picture = np.full((size[1], size[0], 3), GROUND, np.uint8)
    draw_message(picture, f"compiling the game, once: {seconds:.0f} s    Esc: quit")
    draw_progress(picture, min(0.97, seconds / _PREPARATION))
    return picture


class Assistant:
    """A search for inputs that win from a frame of a run.

    Attributes:
        inputs: those up to that frame.
        found: the best inputs from the frame on so far.
        error: why the search failed; empty if it did not.
    """

    def __init__(self, level: Level, inputs: bytes):
        self.inputs, self.error = inputs, ""
        self.found: bytes | None = None
        self._level, self._stopped = level, threading.Event()
        self._thread = threading.Thread(target=self._run, name="nclone-assistant", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ask the search to end, and wait for it."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        session = Session(self._level)
        session.play(self.inputs)

        def take(solution: Solution) -> None:
            self.found = bytes(solution.inputs)

        try:
            solve(self._level, seconds=_SEARCH_SECONDS, start=(session, 0), on_solution=take, stop=self._stopped.is_set)
        except NcloneError as error:
            self.error = str(error)
