"""Verification of the simulator against attract files of the game and recordings of nclone.

An attract file determines how its run ended, but not the positions in between (physics 03, section 5). Without input
bit 3, the ninja must die exactly in the frame of the last byte. Otherwise the player gave up at the first byte with
bit 3, frame a: the ninja must be alive after byte a - 1 and dead after byte a + 1. Frames are counted from 0.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nclone_env.errors import checked
from nclone_env.game import CELEBRATING, DEAD, IMMOBILE, INPUT_SUICIDE
from nclone_env.level import AttractFile, PeerFile, read_attract, read_bytes
from nclone_env.sim import Trajectory, simulate

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
    """Result of replaying a recording."""

    agrees: bool
    """Whether the simulator reproduces the recording."""
    reason: str
    """Explanation in words."""
    frames: int
    """Frames of the recording."""
    state: int
    """State of the ninja after the last frame, 0..9."""
    gold: int
    """Number of gold pieces collected."""
    end: int
    """Frames until the ninja won or died; all of them if neither."""


@checked()
def verify(file: AttractFile | str | Path) -> Verdict:
    """Replay an attract file and check that it ends as in the game.

    Raises:
        UnknownLevelError: if the file does not exist.
        LevelFormatError: if the file is malformed.
    """
    if not isinstance(file, AttractFile):
        file = read_attract(read_bytes(file), str(file))
    flags = np.flatnonzero(file.inputs & INPUT_SUICIDE)
    first_flag = int(flags[0]) if len(flags) else None
    one_more = first_flag is not None and first_flag == len(file.inputs) - 1  # death comes one frame after the flag
    run = simulate(file.level, np.append(file.inputs, np.uint8(0)) if one_more else file.inputs)
    states = [IMMOBILE, *run.state.tolist()]
    agrees, reason = _death(states) if first_flag is None else _suicide(states, first_flag)
    return verdict(agrees, reason, run, len(file.inputs))


def verify_peer(file: PeerFile) -> Verdict:
    """Replay a recording of nclone and check that it reaches the exit as its file states, or as its kind implies."""
    run = simulate(file.level, file.inputs)
    won = len(run) > 0 and int(run.state[-1]) == CELEBRATING
    expected = file.won is not False
    end = "reaches the exit" if won else "does not reach the exit"
    wanted = "as the file states" if file.won is not None else "as all files of this kind do"
    reason = f"{end}, {wanted}" if won == expected else f"{end}, not {wanted}"
    return verdict(won == expected, reason, run, len(file.inputs))


def verdict(agrees: bool, reason: str, run: Trajectory, frames: int) -> Verdict:
    """Return the verdict on a run."""
    state, gold = (int(run.state[-1]), int(run.gold[-1])) if len(run) else (IMMOBILE, 0)
    end = int((run.state == state).argmax()) + 1 if state in (CELEBRATING, DEAD) else frames
    return Verdict(agrees, reason, frames, state, gold, min(end, frames))


def _death(states: list[int]) -> tuple[bool, str]:
    """Check a recording without input bit 3; ``states[n]`` is the state after n frames."""
    last = len(states) - 1
    if states[last] != DEAD:
        return False, f"expected death in the last frame, got {STATE_NAMES[states[last]]}"
    died = states.index(DEAD)
    if died < last:
        return False, f"expected death in the last frame, got death {last - died} frames earlier"
    return True, "death in the last frame"


def _suicide(states: list[int], flag: int) -> tuple[bool, str]:
    """Check a recording whose first byte with input bit 3 is that of frame ``flag``."""
    before, after = states[flag], states[flag + 2]
    if before >= DEAD:
        expected = f"expected the ninja to be alive when the player gave up in frame {flag}"
        return False, f"{expected}, got {STATE_NAMES[before]}"
    if after != DEAD:
        return False, f"expected death after the player gave up in frame {flag}, got {STATE_NAMES[after]}"
    return True, f"alive until the player gave up in frame {flag}, then dead"
