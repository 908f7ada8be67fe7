"""Play levels with the keyboard, and watch moving pictures, in a window. Requires pygame-ce."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing

import numpy as np

from nclone_env.actions import KEYS
from nclone_env.constants import CELEBRATING, DEAD, FRAMES_PER_SECOND, INPUT_JUMP, INPUT_LEFT, INPUT_RIGHT
from nclone_env.level.level import Level
from nclone_env.render import Window, check_display
from nclone_env.replay.recording import Recording
from nclone_env.sim.session import Session

RESTART, SAVE, NEXT, PREVIOUS, GHOST, HELP_KEY, QUIT = "r", "s", "n", "p", "g", "h", "escape"
SLOW, PAUSE, STEP = "t", "return", "."
HELP = (
    ("arrows or A D", "move"),
    ("space, Z, W or up", "jump"),
    ("R", "restart"),
    ("N  P", "next, previous level"),
    ("S", "save the run as a recording"),
    ("G", "show or hide the ghost"),
    ("T", "slow motion"),
    ("Enter", "pause; again: go on"),
    (".", "one frame, while paused"),
    ("H", "show or hide these keys"),
    ("Esc", "quit"),
)
"""Keys and what they do."""
WATCH_PAUSE = frozenset({"space", PAUSE})
WATCH_HELP = (
    ("space or Enter", "pause; again: go on"),
    (".", "one frame, while paused"),
    ("H", "show or hide these keys"),
    ("Esc", "quit"),
)
"""Keys and what they do while pictures are watched."""
_WELCOME = "arrows: move    space: jump    H: all keys"  # until the first key that moves the ninja
_SLOWNESS = 4  # pictures for each frame in slow motion
_MESSAGE_PICTURES = 150  # for which a message stays
_SLOW_RATE = 0.95 * FRAMES_PER_SECOND

Ghosts = dict[str, np.ndarray]
"""Digest of a level to the ``NINJA_RECORD`` after each frame of a run on it, (T,)."""


def input_byte(keys: Iterable[str]) -> int:
    """Return the input byte for a set of pressed keys."""
    code = 0
    for key in keys:
        code |= KEYS.get(key, 0)
    return code


def open_window(title: str, size: tuple[int, int]) -> Window:
    """Return a window of width and height, pixels, that runs at 60 frames per second and that Esc closes.

    Raises:
        MissingExtraError: if pygame-ce is not installed.
    """
    return Window(size, title, FRAMES_PER_SECOND, closing_key=QUIT)


def ghosts_of(recordings: Iterable[Recording]) -> Ghosts:
    """Return the ghosts of recordings, the last one of each level."""
    return {recording.level.digest: _track(recording) for recording in recordings}


def _track(recording: Recording) -> np.ndarray:
    return Session(recording.level).record(recording.inputs, entities=False).ninjas


class Play:
    """Levels that are played in a window, a frame for each picture.

    The first key that moves the ninja starts a run. After death or victory it stands still until a restart.

    Args:
        levels: the levels, of which the first comes first.
        save: saves the recording of a run; returns what the window says then.
        window: the window; closed at the end of :meth:`run`, also by an error.
        scale: size of the window as a multiple of 1056 x 600 pixels.
        ghosts: runs that are shown at first.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        save: Callable[[Recording], str],
        window: Window,
        scale: float = 1.0,
        ghosts: Mapping[str, np.ndarray] | None = None,
    ):
        self._levels, self._save, self._window, self._scale = levels, save, window, scale
        self._ghosts: Ghosts = dict(ghosts or {})
        self._shows_ghost, self._shows_help, self._slow, self._paused = bool(ghosts), False, False, False
        self._beat = 0
        self._taps: set[str] = set()  # pressed since the last frame
        self._message, self._message_left = "", 0
        self._inputs = bytearray()
        self._actions: dict[str, Callable[[], None]] = {
            RESTART: self._restart,
            SAVE: self._save_run,
            NEXT: lambda: self._open(self._number + 1),
            PREVIOUS: lambda: self._open(self._number - 1),
            GHOST: self._toggle_ghost,
            SLOW: self._toggle_slow,
            PAUSE: self._toggle_pause,
            HELP_KEY: self._toggle_help,
        }
        self._open(0)
        self._say(_WELCOME)

    def run(self) -> None:
        """Play until the window is closed."""
        with closing(self._window):
            while self._window.show(self.picture()):
                self._respond(self._window.pressed)

    def _respond(self, pressed: Collection[str]) -> None:
        """Do what the keys pressed since the last picture ask for, and play a frame if it is time."""
        self._message_left -= self._message != _WELCOME
        for key, act in self._actions.items():
            if key in pressed:
                act()
        if self._paused or self._shows_help:
            self._taps.clear()  # else they would all be played at once when the game goes on
        else:
            self._taps.update(pressed)
        if self._is_time(STEP in pressed):
            self._tick()

    def picture(self) -> np.ndarray:
        """Return what the window shows, (h, w, 3) uint8, RGB."""
        from nclone_env.render import draw_message, draw_table  # OpenCV is only needed to draw

        picture = self._view.picture(self._ghost())
        text = self._message if self._message_left > 0 else self._ending()
        if self._shows_help:
            draw_table(picture, HELP)
        elif text:
            draw_message(picture, text)
        return np.vstack([picture, self._bar()])

    def _bar(self) -> np.ndarray:
        from nclone_env.render import BAD, DIM, draw_keys, empty_bar, write_right

        bar = empty_bar(self._window.size[0])
        code = input_byte(self._window.held)
        held = [bool(code & bit) for bit in (INPUT_LEFT, INPUT_RIGHT, INPUT_JUMP)]
        right: float = draw_keys(bar, held, bar.shape[1] - 6) - 12
        if self._paused:
            right = write_right(bar, "paused", right, DIM)
        if self._slow:
            right = write_right(bar, "slow motion", right, DIM)
        if 0 < self._window.rate < _SLOW_RATE:
            right = write_right(bar, f"slow: {self._window.rate:.0f} of {FRAMES_PER_SECOND} frames/s", right, BAD)
        self._view.describe(bar, right)
        return bar

    def _ending(self) -> str:
        """Return what is said when the run is over, else an empty text."""
        if self._view.state == DEAD:
            return "dead    R: restart"
        if self._view.state == CELEBRATING:
            return f"won in {self._view.frames} frames    R: restart    N: next level    S: save"
        return ""

    def _open(self, number: int) -> None:
        """Begin a level; numbers wrap around."""
        from nclone_env.replay.view import View

        self._number = number % len(self._levels)
        level = self._levels[self._number]
        self._view = View(level, self._scale)
        self._inputs.clear()
        self._message_left = 0
        title = "" if level.raw.title in ("", level.name) else f" - {level.raw.title}"
        self._window.set_title(f"{level.name}{title}")

    def _restart(self) -> None:
        self._view.start()
        self._inputs.clear()
        self._message_left = 0

    def _save_run(self) -> None:
        if not self._inputs:
            self._say("nothing to save yet: move first")
            return
        level = self._view.level
        recording = Recording.of(level, bytes(self._inputs), {"level": level.name})
        self._say(self._save(recording))
        self._ghosts[level.raw.digest] = _track(recording)

    def _toggle_ghost(self) -> None:
        if self._view.level.raw.digest not in self._ghosts:
            self._say("no ghost of this level yet: save a run with S")
            return
        self._shows_ghost = not self._shows_ghost
        self._say(f"ghost {'on' if self._shows_ghost else 'off'}")

    def _toggle_slow(self) -> None:
        self._slow = not self._slow

    def _toggle_pause(self) -> None:
        self._paused = not self._paused

    def _toggle_help(self) -> None:
        self._shows_help = not self._shows_help

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
        code = _input_of(self._window.held, self._taps)
        self._taps.clear()
        if (code or self._inputs) and not self._view.over:
            if self._message == _WELCOME:
                self._message_left = 0
            self._view.tick(code)
            self._inputs.append(code)

    def _ghost(self) -> Sequence[np.void]:
        """Return where the ghost is now: nowhere before the first frame, and where it ended after its last."""
        track = self._ghosts.get(self._view.level.raw.digest)
        if not self._shows_ghost or track is None or not len(track) or not self._inputs:
            return ()
        return (track[min(len(self._inputs), len(track)) - 1],)


def show(pictures: Iterable[np.ndarray], title: str, size: tuple[int, int]) -> int:
    """Open a window and show pictures in it as :func:`watch`.

    Args:
        pictures: (height, width, 3) uint8, RGB.
        title: text of the title bar.
        size: width and height of the pictures, pixels.

    Raises:
        DisplayError: if there is no screen.
        MissingExtraError: if pygame-ce is not installed.
    """
    check_display()
    iterator = iter(pictures)
    ready = list(itertools.islice(iterator, 2))  # compiles the kernels while there is no window that would not answer
    return watch(itertools.chain(ready, iterator), open_window(f"{title} - space: pause, H: keys", size))


def watch(pictures: Iterable[np.ndarray], window: Window) -> int:
    """Show pictures until they end or the window is closed; return the number of pictures shown.

    The keys of ``WATCH_HELP`` pause them.
    """
    shown, keys = 0, _WatchKeys()
    with closing(window):
        for picture in pictures:
            is_open = window.show(keys.over(picture))
            shown += is_open
            while is_open and not keys.go_on(window.pressed):
                is_open = window.show(keys.over(picture))
            if not is_open:
                break
    return shown


class _WatchKeys:
    """What the keys have set while pictures are watched."""

    def __init__(self) -> None:
        self._paused = self._shows_help = False

    def go_on(self, pressed: Collection[str]) -> bool:
        """Do what the keys pressed since the last picture ask for; return whether the next picture is shown."""
        self._paused ^= not WATCH_PAUSE.isdisjoint(pressed)
        self._shows_help ^= HELP_KEY in pressed
        return not self._shows_help and (not self._paused or STEP in pressed)

    def over(self, picture: np.ndarray) -> np.ndarray:
        """Return a picture with the keys, or that it stands still, written over it."""
        if not (self._paused or self._shows_help):
            return picture
        from nclone_env.render import BAR_HEIGHT, draw_message, draw_table  # OpenCV is only needed to draw

        picture = picture.copy()
        if self._shows_help:
            draw_table(picture, WATCH_HELP)
        else:
            draw_message(picture[:-BAR_HEIGHT], "paused    space: go on    H: all keys")
        return picture


def _input_of(held: Collection[str], pressed: Collection[str]) -> int:
    """Return the input byte; a key pressed and released within one frame counts."""
    return input_byte({*held, *pressed})
