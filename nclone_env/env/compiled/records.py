"""Records of the compiled step: the state of an episode, the result of a step, its event, and the settings."""

import dataclasses
from functools import lru_cache

import numpy as np

from nclone_env.config import EnvironmentConfig, ObservationConfig, RewardConfig


def _record(*fields: tuple[str, str]) -> np.dtype:
    """Return the dtype of a record, by types and the names of the fields that have them."""
    return np.dtype([(name, kind) for kind, names in fields for name in names.split()], align=True)


EPISODE = _record(
    ("u8", "seed"),
    ("f8", "episode_return potential"),
    ("i4", "number steps next_level own_level start"),
    ("u1", "over action"),
)
"""State of an environment's episode: seed of the random levels, return and steps so far, potential of the current
state, number of episodes begun, level requested for the next episode and level assigned to every episode (-1: none),
number of the start state in which the episode began (-1: none), 1 once the episode is over, and the action of the step
before where steps may repeat it."""

RESULT = _record(
    ("f8", "reward episode_return"),
    ("i4", "frames episode_frames episode_steps level start"),
    ("i2", "gold"),
    ("i1", "outcome"),
    ("?", "terminated truncated"),
)
"""Result of an environment's last step, about the episode that the step belongs to; ``frames`` counts the frames of
the step."""

EVENT = _record(
    ("f8", "x_before y_before x y vx vy potential_before potential return_before"),
    ("i4", "frames gold switches outcome"),
)
"""A step as custom reward functions see it: ninja position before and after (pixels) and velocity after (pixels per
frame), potential before and after (minus the path length to the exit, in multiples of the initial one; 0 once the
episode has terminated), return of the episode before the step, frames simulated, pieces of gold and exit switches
collected in the step, and the outcome code."""

PLAYING, WON, DIED, TIMED_OUT = range(4)
OUTCOMES = ("playing", "won", "died", "timed_out")
"""Names of the ``outcome`` codes."""

NEXT_STEP, SAME_STEP, DISABLED = range(3)

_RULES = ("frame_skip", "max_frames", "autoreset")
_REWARD = tuple(field.name for field in dataclasses.fields(RewardConfig))
_SEEN = tuple(field.name for field in dataclasses.fields(ObservationConfig) if isinstance(field.default, int))
_CHANCE = "action_repeat_probability"
SETTINGS = _record(("f8", " ".join((*_REWARD, _CHANCE))), ("i4", " ".join(_RULES + _SEEN)))
"""The fields of ``RewardConfig``, the rules of a step, and the numbers among the fields of ``ObservationConfig``."""


def make_settings(config: EnvironmentConfig, autoreset: int) -> np.ndarray:
    """Return the (1,) ``SETTINGS`` record of a configuration, one array for equal settings."""
    rules = config.frame_skip, config.max_frames, autoreset
    return _settings(config.reward, config.observation, rules, config.action_repeat_probability)


@lru_cache(maxsize=64)
def _settings(reward: RewardConfig, seen: ObservationConfig, rules: tuple[int, ...], chance: float) -> np.ndarray:
    given = {**vars(reward), **vars(seen), **dict(zip(_RULES, rules, strict=True)), _CHANCE: chance}
    return np.array([tuple(given[name] for name in SETTINGS.names or ())], SETTINGS)
