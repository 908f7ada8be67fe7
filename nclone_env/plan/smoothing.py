"""Solutions with few changes of input, for people and policies to learn from.

What a search finds changes its inputs at random where they do not matter. Here runs of equal inputs are joined with
those before or after them as long as the level is still won in time, and of inputs that do equally well the one with
the lowest number is taken. Every step is determined by the solution alone.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np

from nclone_env.game import CELEBRATING, DEAD
from nclone_env.level import Level, LevelSource, load_level
from nclone_env.plan.kernels import INPUTS
from nclone_env.plan.task import Start, origin_of, play_from
from nclone_env.sim import Session

_SHIFTED = 12
"""Frames by which a joined run may become longer or shorter."""


class _Held(NamedTuple):
    """An input, and the frames that it is held."""

    code: int
    frames: int


def smooth(
    level: LevelSource, inputs: np.ndarray, *, slack: float = 0.05, hold: int = 1, start: Start | None = None
) -> np.ndarray:
    """Return a solution with fewer changes of input, (T,) uint8, that wins in its last frame.

    Args:
        level: the level, in any form that ``load_level`` accepts.
        inputs: (T,) uint8, a solution.
        slack: share of the frames by which the result may be longer.
        hold: inputs change only in frames that are multiples of it; ``inputs`` must do so already.
        start: world in which the solution begins, as for ``solve``; None: the start of the level.

    Raises:
        LevelFormatError, UnknownLevelError: if the level cannot be loaded.
        ValueError: if the inputs do not win, or change elsewhere.
        ConfigError: if ``start`` is not a world of the level.
    """
    changes = np.flatnonzero(np.diff(inputs)) + 1
    if (changes % hold).any():
        raise ValueError(
            f"inputs: expected changes in multiples of {hold} frames, got one in frame {changes[changes % hold > 0][0]}"
        )
    loaded = load_level(level)
    trial = _Trial(loaded, start)
    runs, frames = _runs(inputs), trial.won_after(inputs)
    if frames == 0:
        raise ValueError(f"inputs: expected a solution of {loaded.name!r}, got {len(inputs)} frames that do not win")
    most = int(len(inputs) * (1.0 + slack))
    runs = _joined(trial, runs, hold, most)
    return _inputs(_renamed(trial, runs))


class _Trial:
    """Plays inputs from the world in which a solution begins."""

    def __init__(self, level: Level, start: Start | None):
        self._session = Session(level)
        self._origin = origin_of(self._session.level_set, start)

    def won_after(self, inputs: np.ndarray) -> int:
        """Return the frames after which the inputs win, 0 if they do not."""
        states = play_from(self._session, self._origin, inputs)["state"]
        over = np.flatnonzero(states >= DEAD)
        return int(over[0]) + 1 if len(over) and states[over[0]] == CELEBRATING else 0

    def shortened(self, runs: list[_Held], most: int) -> list[_Held] | None:
        """Return runs up to the frame in which they win, None if that is none of the first ``most`` frames."""
        inputs = _inputs(runs)[:most]
        frames = self.won_after(inputs)
        return _runs(inputs[:frames]) if frames else None


def _joined(trial: _Trial, runs: list[_Held], hold: int, most: int) -> list[_Held]:
    """Join runs until none can be joined."""
    number = unchanged = 0
    while unchanged < len(runs):
        unchanged += 1
        for tried in _joins(runs, number, hold):
            shorter = trial.shortened(tried, most)
            if shorter is not None and len(shorter) < len(runs):
                runs, unchanged = shorter, 0
                break
        number = (number + 1) % len(runs)
    return runs


def _joins(runs: list[_Held], number: int, hold: int) -> Iterator[list[_Held]]:
    """Yield runs without one of them, whose frames its neighbours take over, more or less."""
    for neighbour in (number - 1, number + 1):
        if 0 <= neighbour < len(runs):
            for shift in sorted(range(-(_SHIFTED // hold) * hold, _SHIFTED + 1, hold), key=abs):
                frames = runs[number].frames + shift
                if frames >= 0:
                    yield [*runs[:number], _Held(runs[neighbour].code, frames), *runs[number + 1 :]]


def _renamed(trial: _Trial, runs: list[_Held]) -> list[_Held]:
    """Take for each run the first input that does equally well."""
    frames = sum(run.frames for run in runs)
    for number in range(len(runs)):
        for code in INPUTS:
            if number >= len(runs) or code == runs[number].code:
                break
            shorter = trial.shortened([*runs[:number], _Held(code, runs[number].frames), *runs[number + 1 :]], frames)
            if shorter is not None and len(shorter) <= len(runs):
                runs, frames = shorter, sum(run.frames for run in shorter)
                break
    return runs


def _runs(inputs: np.ndarray) -> list[_Held]:
    return [_Held(code, len(list(held))) for code, held in groupby(inputs.tolist())]


def _inputs(runs: list[_Held]) -> np.ndarray:
    return np.repeat(np.array([run.code for run in runs], np.uint8), [run.frames for run in runs])
