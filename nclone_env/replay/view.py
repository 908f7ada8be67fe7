"""A level while it is played, as people see it: the part that it uses, and a bar that tells how the run stands."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from nclone_env.config import Theme
from nclone_env.game import CELEBRATING, DEAD, FRAMES_PER_SECOND, GOLD
from nclone_env.level import Level, everything
from nclone_env.render import used_area_of, world_picture, zoom_of
from nclone_env.replay.recording import shown_name
from nclone_env.replay.text import BAD, BRIGHT, DIM, GOOD, Colour, bar_height, write_bar
from nclone_env.replay.text import GOLD as YELLOW
from nclone_env.sim import Session

_APART = 16  # frames between two snapshots
_MOST_BRANCHES = 32


def natural_size(level: Level) -> tuple[float, float]:
    """Return width and height of the picture of a level at scale 1, pixels: of the part that it uses, enlarged."""
    area = used_area_of(level.raw)
    zoom = zoom_of(area)
    return area.width * zoom, area.height * zoom


def view_size(levels: Iterable[Level], scale: float) -> tuple[int, int]:
    """Return width and height of the smallest view that has room for each of some levels, pixels."""
    sizes = [natural_size(level) for level in levels]
    width, height = (round(scale * max(side)) for side in zip(*sizes))
    return width, height + bar_height(width)


class View:
    """One run on a level.

    Args:
        scale: size of the picture: at 1 the world is 1056 x 600 pixels, and a level that uses a part of it is enlarged,
            at most twice, to this width or height.

    Attributes:
        level: the level.
        frames: frames played until the run was over.
        width: of the picture, pixels.
    """

    def __init__(self, level: Level, scale: float = 1.0, theme: Theme = "light"):
        self.level, self.frames = level, 0
        self._session, self._theme = Session(level), theme
        self._area = used_area_of(level.raw)
        self._scale = scale * zoom_of(self._area)
        self.width, _ = view_size([level], scale)
        self._gold = int(np.count_nonzero(self._session.entities()["type"] == GOLD))
        self._code = 0

    @property
    def over(self) -> bool:
        """Whether the ninja is dead or has won."""
        return bool(self._session.over[0])

    @property
    def state(self) -> int:
        """State of the ninja, 0..9."""
        return int(self._session.ninja["state"])

    def tick(self, code: int) -> None:
        """Play one frame with an input byte."""
        self.frames += not self.over
        self._code = 0 if self.over else code
        self._session.tick(code)

    def snapshot(self) -> bytes:
        """Return all state of the run, for :meth:`restore`."""
        return self._session.snapshot()

    def restore(self, snapshot: bytes, frames: int) -> None:
        """Return to a snapshot of this run, taken after so many frames."""
        self._session.restore(snapshot)
        self.frames, self._code = frames, 0

    def picture(self, ghosts: Iterable[np.void] = ()) -> np.ndarray:
        """Return the picture without the bar, (h, w, 3) uint8, RGB; ``ghosts`` as of ``world_picture``."""
        session = self._session
        return world_picture(session.levels, session.worlds, 0, self._scale, self._area, ghosts, self._theme)

    def bar(
        self, label: str = "", code: int | None = None, notes: Sequence[tuple[str, Colour]] = (), width: int = 0
    ) -> np.ndarray:
        """Return the bar (see ``write_bar``): the level, the time, gold, how the run stands and the keys held.

        Args:
            label: what is written instead of title and name of the level.
            code: input byte of the keys; that of the last frame if None.
            width: of the bar, pixels; that of the picture if 0.
        """
        shown = self._code if code is None else code
        return write_bar(width or self.width, label or shown_name(self.level), [*self._texts(), *notes], shown)

    def _texts(self) -> list[tuple[str, Colour]]:
        time = f"{self.frames / FRAMES_PER_SECOND:.2f} s"
        gold = [(f"gold {self._session.ninja['gold']}/{self._gold}", YELLOW)] if self._gold else []
        if self.state == DEAD:
            return [(time, BRIGHT), *gold, ("dead", BAD)]
        if self.state == CELEBRATING:
            return [(f"won {time}", GOOD), *gold, (f"{self.frames} frames", DIM)]
        return [(time, BRIGHT), *gold, ("playing" if self.frames else "ready", DIM)]


def compile_kernels() -> None:
    """Compile the kernels of a level that is played and shown, or load them."""
    view = View(everything())
    view.tick(0)
    view.picture()


class Take:
    """The inputs of a run on a level, and a view that stands after some of them.

    Going back is quick: a snapshot is taken every 16 frames. The inputs after the frame stay until another one is
    played there; then the run that is left becomes a branch. The view begins at the start of its level.

    Attributes:
        view: the view, after ``frame`` inputs.
        inputs: all inputs.
        frame: number of inputs that are played.
        branches: inputs of runs that were left, the latest last.
    """

    def __init__(self, view: View):
        self.view, self.inputs, self.frame = view, bytearray(), 0
        self.branches: list[bytes] = []
        self._snapshots = [view.snapshot()]

    @property
    def rest(self) -> int:
        """Number of inputs after the frame."""
        return len(self.inputs) - self.frame

    def play(self, code: int) -> None:
        """Play a frame; after the end of the run nothing."""
        if self.view.over:
            return
        if self.rest and self.inputs[self.frame] != code:
            self._keep()
            self._cut(self.frame)
        if not self.rest:
            self.inputs.append(code)
        self._advance()

    def go_on(self) -> None:
        """Play the next of the inputs that are there."""
        if self.rest and not self.view.over:
            self._advance()

    def seek(self, frame: int) -> None:
        """Stand after so many frames, as far as there are inputs."""
        target = min(max(frame, 0), len(self.inputs))
        if target < self.frame:
            number = min(target // _APART, len(self._snapshots) - 1)
            self.frame = number * _APART
            self.view.restore(self._snapshots[number], self.frame)
        while self.frame < target and not self.view.over:
            self._advance()

    def load(self, inputs: Sequence[int], frame: int) -> None:
        """Take other inputs, and stand after so many of them; the ones before become a branch unless they go on."""
        wanted = bytes(inputs)
        if not wanted.startswith(bytes(self.inputs)):
            self._keep()
        both = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(self.inputs, wanted))
        common = sum(1 for _ in both)
        self.seek(min(self.frame, common))
        self._cut(common)
        self.inputs[:] = wanted
        self.seek(frame)

    def swap(self) -> bool:
        """Take the oldest branch, at the same frame; return False if there is none."""
        if not self.branches:
            return False
        self.load(self.branches.pop(0), self.frame)
        return True

    def _cut(self, frame: int) -> None:
        """Forget the inputs from a frame on, with the snapshots behind it, which they led to."""
        del self.inputs[frame:]
        del self._snapshots[frame // _APART + 1 :]

    def _keep(self) -> None:
        left = bytes(self.inputs)
        if left and left not in self.branches:
            self.branches = [*self.branches, left][-_MOST_BRANCHES:]

    def _advance(self) -> None:
        """Play the next input."""
        self.view.tick(self.inputs[self.frame])
        self.frame += 1
        if self.frame == len(self._snapshots) * _APART:
            self._snapshots.append(self.view.snapshot())
