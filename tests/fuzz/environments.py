"""Environments of mutated levels with any observations: every number that they return is finite."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv
from nclone_env.config import OBSERVATION_NAMES
from nclone_env.errors import LevelFormatError, UnsupportedLevelError
from nclone_env.level.formats.map_bytes import write_map

from .levels import changed, map_of, raw_levels
from .playing import check_finite, check_worlds
from .target import Target

_STEPS = 40
_PICTURES = ("player_frame", "global_view")


def level(rng: random.Random) -> bytes:
    raw = rng.choice(raw_levels())
    return map_of(raw, *changed(rng, raw))


def observed(rng: random.Random) -> Sequence[str]:
    """Return some observations; the slow ones are rarer."""
    names = [name for name in OBSERVATION_NAMES if rng.random() < (0.2 if name in _PICTURES else 0.5)]
    return names or ["game_state"]


def play(data: bytes) -> None:
    rng = random.Random(data)
    config = EnvironmentConfig(
        levels=(data,),
        observations=tuple(observed(rng)),
        mirrored=rng.random() < 0.3,
        paths=rng.choice(("tiles", "doors")),
        frame_skip=rng.choice((1, 4, 20)),
        max_frames=rng.choice((50, 300)),
        observation={
            "dtype": rng.choice(("float32", "float16")),
            "local_position": rng.random() < 0.3,
            "outcome_frames": 12,  # hundreds of movers take long
        },
        reward={"gold": 1.0},
    )
    envs = NPlusPlusVectorEnv(config, 2, num_threads=1, autoreset_mode=rng.choice(("NextStep", "SameStep")))
    try:
        _check(envs.reset(seed=0)[0])
        for _ in range(_STEPS):
            observations, rewards, *_, info = envs.step([rng.randrange(6), rng.randrange(6)])
            _check(observations | {"rewards": rewards, "return": info["episode_return"]})
        check_worlds(envs.worlds)
    finally:
        envs.close()


def _check(arrays: dict[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        check_finite(name, array)


def examples() -> list[bytes]:
    return [write_map(raw) for raw in raw_levels()]


TARGETS = (Target("environment", examples, level, play, (LevelFormatError, UnsupportedLevelError), source=""),)
