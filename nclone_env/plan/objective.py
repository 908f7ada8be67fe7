"""What a solution costs: frames, and a price for each piece of gold that is left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nclone_env.constants import CELEBRATING, FRAMES_PER_SECOND
from nclone_env.errors import ConfigError
from nclone_env.level import LevelSet
from nclone_env.sim import Session, WorldArrays, copy_world

PRICES = {"time": 0, "score": 2 * FRAMES_PER_SECOND, "all-gold": 1_000_000}
"""Frames that a piece of gold left behind costs, by objective. The game's clock gains two seconds with each piece. The
price of ``all-gold`` is more than any solution has frames: first as many pieces as possible, then as few frames."""
CLOCK = 90 * FRAMES_PER_SECOND
"""Frames on the game's clock at the start of a level."""


def price_of(objective: str) -> int:
    """Return the price of an objective.

    Raises:
        ConfigError: if there is no such objective.
    """
    if objective not in PRICES:
        raise ConfigError(f"objective: expected one of {', '.join(PRICES)}, got {objective!r}")
    return PRICES[objective]


@dataclass(frozen=True, eq=False)
class Replayed:
    """Inputs that win in their last frame, as ``simulate`` replays them.

    Attributes:
        inputs: (T,) uint8, one input byte a frame.
        gold: pieces collected.
        cost: frames, and the price of the gold that is left.
    """

    inputs: np.ndarray
    gold: int
    cost: int


def replay(levels: LevelSet, origin: WorldArrays, inputs: np.ndarray, price: int) -> Replayed:
    """Replay the inputs of a solution.

    Args:
        levels: level set of one level.
        origin: the world in which it begins, as the only one.
        inputs: (T,) uint8.
        price: of a piece of gold.

    Raises:
        RuntimeError: if they do not win in their last frame.
    """
    session = Session(levels)
    copy_world(origin, 0, session.worlds, 0)
    played = session.record(inputs, entities=False).ninjas
    if not len(played) or played["state"][-1] != CELEBRATING or (played["state"][:-1] == CELEBRATING).any():
        name = levels.levels[0].name
        raise RuntimeError(f"solve: a replay of {len(inputs)} frames on {name!r} does not win at the end")
    gold = int(played["gold"][-1])
    return Replayed(inputs, gold, len(inputs) + price * (int(levels.arrays.header[0]["gold_count"]) - gold))
