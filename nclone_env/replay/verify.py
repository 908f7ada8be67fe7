"""Whether a recording of the game and the simulator agree.

A recording says how it ended, not where the ninja was (physics 03, section 5). Without input bit 3, the ninja must be
dead after the last byte and not before. Else the first byte with bit 3, at frame a, is where the player gave up: the
ninja must be playing after byte a - 1, and dead after byte a + 1. Frames count from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nclone_env.constants import DEAD, IMMOBILE, INPUT_SUICIDE
from nclone_env.level.formats.attract import AttractFile, read_attract
from nclone_env.level.formats.reader import read_bytes
from nclone_env.sim.simulate import Trajectory, simulate

STATE_NAMES = (
    "immobile",
    "running",
    "sliding",
    "jumping",
    "falling",
    "wall sliding",
    "dead",
    "dying",
    "won",
    "disabled",
)
"""The states of the ninja (physics 01, section 5)."""


@dataclass(frozen=True)
class Verdict:
    """What came out when a recording was played again."""

    agrees: bool
    """Whether the simulator does what the recording says."""
    reason: str
    """Why, in words."""
    frames: int
    """Frames of the recording."""
    state: int
    """State of the ninja after the last frame, 0..9."""
    gold: int
    """Pieces of gold collected."""


def verify(file: AttractFile | str | Path) -> Verdict:
    """Play an attract file and say whether it ends as the game says it ended.

    Raises:
        UnknownLevelError: if there is no file at the path.
        LevelFormatError: if the file is malformed.
    """
    if not isinstance(file, AttractFile):
        path = Path(file)
        file = read_attract(read_bytes(path), str(path))
    flags = np.flatnonzero(file.inputs & INPUT_SUICIDE)
    first_flag = int(flags[0]) if len(flags) else None
    one_more = first_flag is not None and first_flag == len(file.inputs) - 1  # dead one frame after the flag
    run = simulate(file.level, np.append(file.inputs, np.uint8(0)) if one_more else file.inputs)
    states = [IMMOBILE, *run.state.tolist()]
    agrees, reason = _death(states) if first_flag is None else _surrender(states, first_flag)
    return verdict(agrees, reason, run, len(file.inputs))


def verdict(agrees: bool, reason: str, run: Trajectory, frames: int) -> Verdict:
    """Return a verdict with the facts of a run."""
    state, gold = (int(run.state[-1]), int(run.gold[-1])) if len(run) else (IMMOBILE, 0)
    return Verdict(agrees, reason, frames, state, gold)


def _death(states: list[int]) -> tuple[bool, str]:
    """Judge a recording without bit 3; ``states[n]`` is the state after n frames."""
    last = len(states) - 1
    if states[last] != DEAD:
        return False, f"expected death in the last frame, got {STATE_NAMES[states[last]]}"
    died = states.index(DEAD)
    if died < last:
        return False, f"expected death in the last frame, got it {last - died} frames before"
    return True, "dead after the last frame, not before"


def _surrender(states: list[int], flag: int) -> tuple[bool, str]:
    """Judge a recording whose first byte with bit 3 is that of frame ``flag``."""
    before, after = states[flag], states[flag + 2]
    if before >= DEAD:
        return False, f"expected a living ninja before the player gave up in frame {flag}, got {STATE_NAMES[before]}"
    if after != DEAD:
        return False, f"expected death after the player gave up in frame {flag}, got {STATE_NAMES[after]}"
    return True, f"alive until the player gave up in frame {flag}, then dead"
