"""Snapshots of environments, damaged and forged; what loads is played on."""

from __future__ import annotations

import random
import struct
import zlib
from functools import lru_cache

import numpy as np

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.errors import SnapshotError
from nclone_env.level.scenes import moving

from .accidents import EDGES, FLOATS, WHOLE, damaged
from .playing import check_finite, check_worlds
from .target import Target

_HEADER = 48
_STEPS = 5
_FIELDS = {
    "levels": (moving(), "hazards", "first-steps/03-drop"),
    "observations": ("game_state", "entity_states", "locals", "reachability", "action_mask"),
    "max_frames": 160,
}


@lru_cache(maxsize=1)
def environments() -> tuple[NPlusPlusEnv, NPlusPlusVectorEnv]:
    """Return a single and a vector environment with the same levels, begun."""
    env, envs = NPlusPlusEnv(**_FIELDS), NPlusPlusVectorEnv(None, 2, autoreset_mode="SameStep", **_FIELDS)
    env.reset(seed=0)
    envs.reset(seed=0)
    return env, envs


@lru_cache(maxsize=1)
def snapshots() -> list[bytes]:
    """Return the states of an environment in the middle of episodes."""
    env, _ = environments()
    actions, found = random.Random(1), []
    for seed in range(12):
        env.reset(seed=seed)
        for _ in range(seed):
            if any(env.step(actions.randrange(6))[2:4]):
                break
        found.append(env.get_state())
    return found


def snapshot(rng: random.Random) -> bytes:
    data = rng.choice(snapshots())
    share = rng.random()
    if share < 0.3:
        return damaged(rng, data)
    if share < 0.5:  # the header, or where the rows of two states meet
        return sealed(damaged(rng, data[:_HEADER], most=1) + data[_HEADER:])
    if share < 0.6:
        return sealed(damaged(rng, data[:-4]) + bytes(4))
    return sealed(forged(rng, data))


def sealed(data: bytes) -> bytes:
    """Return a snapshot whose checksum is right."""
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def forged(rng: random.Random, data: bytes) -> bytes:
    """Return a snapshot with other numbers in some fields."""
    changed, place = bytearray(data), _HEADER
    batch = environments()[0]._batch
    dtypes = [(array.dtype, array[0].size) for array in batch._rows().values()]
    for dtype, count in dtypes:
        rows = np.frombuffer(changed, dtype, count, place)
        for _ in range(rng.choice((0, 0, 1, 2))):
            name = rng.choice(dtype.names) if dtype.names else ...
            column = rows[name]
            value = rng.choice(FLOATS) if column.dtype.kind == "f" else _fitting(rng, column.dtype)
            column[rng.randrange(count)] = value
        place += rows.nbytes
    return bytes(changed)


def _fitting(rng: random.Random, dtype: np.dtype) -> int:
    if dtype.kind == "b":
        return rng.randrange(2)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return max(least, min(most, rng.choice((-1, *EDGES, *WHOLE))))


def read(data: bytes) -> None:
    env, envs = environments()
    env.set_state(data)
    _play(env)
    for use in (lambda: envs.set_state(1, data), lambda: env.reset(options={"state": data})):
        try:
            use()
        except SnapshotError:
            continue  # an episode that is over
        _play(env)
        for _ in range(_STEPS):
            observations, rewards, *_ = envs.step([2, 5])
            _check(observations)
            check_finite("rewards", rewards)


def _play(env: NPlusPlusEnv) -> None:
    check_worlds(env._batch.worlds)
    for action in range(_STEPS):
        if env._batch.episodes["over"][0]:
            env.reset()
        observation, reward, *_ = env.step(action)
        _check(observation)
        check_finite("reward", np.array(reward))


def _check(observations: dict[str, np.ndarray]) -> None:
    for name, array in observations.items():
        check_finite(name, array)


TARGETS = (Target("snapshot", snapshots, snapshot, read, (SnapshotError,), source="state"),)
