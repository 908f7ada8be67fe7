"""A run in the making: its inputs up to a frame, what comes after them, and other continuations that are kept."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from nclone_env.replay.view import View

_APART = 16  # frames between two snapshots
_MOST_BRANCHES = 32


class Take:
    """The inputs of a run on a level, and a view that stands after some of them.

    Going back is quick: a snapshot is taken every 16 frames. The inputs after the frame stay until another one is
    played there; then the run that is left becomes a branch.

    Args:
        view: the view, at the start of its level.

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
            del self.inputs[self.frame :]
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
        del self._snapshots[common // _APART + 1 :]
        self.inputs[:] = wanted
        self.seek(frame)

    def swap(self) -> bool:
        """Take the oldest branch, at the same frame; return False if there is none."""
        if not self.branches:
            return False
        self.load(self.branches.pop(0), self.frame)
        return True

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
