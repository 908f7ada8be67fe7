"""Snapshots of environments, damaged, forged, with other headers, and from parts of two; what loads is played on."""

from __future__ import annotations

import random
import struct
import zlib
from functools import lru_cache

import numpy as np

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.errors import SnapshotError
from nclone_env.level.build import everything, moving

from ..env import peek
from .accidents import EDGES, damaged
from .playing import check_finite, check_worlds
from .target import Target

_HEADER = 48
_STEPS = 5
_FIELDS = {
    "levels": (everything(), moving(), "hazards", "first-steps/03-drop"),
    "observations": (
        "game_state",
        "entity_states",
        "locals",
        "reachability",
        "free_motion",
        "action_outcomes",
        "action_mask",
    ),
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
    if share < 0.4:
        return damaged(rng, data)
    if share < 0.6:
        return sealed(damaged(rng, data[:_HEADER], most=1) + data[_HEADER:])
    if share < 0.7:
        return sealed(data[: rng.randrange(len(data))] + bytes(rng.choice((4, 8, 400))))
    return sealed(_joined(rng, data, rng.choice(snapshots())))


def sealed(data: bytes) -> bytes:
    """Return a snapshot whose checksum is right."""
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def _joined(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a snapshot with some numbers of another one, or with numbers that may be impossible."""
    changed, place = bytearray(data), _HEADER
    arrays = list(peek.rows(environments()[0]).values())
    forged = rng.choices(range(len(arrays)), k=2)
    for number, array in enumerate(arrays):
        rows = np.frombuffer(changed, array.dtype, array[0].size, place)
        others = np.frombuffer(other, array.dtype, array[0].size, place)
        name = rng.choice(array.dtype.names) if array.dtype.names else None
        values, given = (rows, others) if name is None else (rows[name], others[name])
        chosen = rng.randrange(len(values))
        if number in forged:
            values[chosen] = given[chosen] if rng.random() < 0.3 else _number(rng, values.dtype)
        place += array[0].nbytes
    return bytes(changed)


def _number(rng: random.Random, dtype: np.dtype) -> float:
    """Return a number of a dtype, often an extreme one."""
    if dtype.kind == "f":
        return rng.choice((np.nan, np.inf, -np.inf, 1e300, -1e9, 2.0**29, 0.0, 5e-324, rng.uniform(-2000, 2000)))
    if dtype.kind == "b":
        return rng.random() < 0.5
    limits = np.iinfo(dtype)
    edges = (limits.min, limits.max, limits.min + 1, *(edge for edge in EDGES if limits.min <= edge <= limits.max))
    return rng.choice(edges) if rng.random() < 0.6 else rng.randint(limits.min, limits.max)


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
    check_worlds(env.worlds)
    for action in range(_STEPS):
        if peek.step_arrays(env).episodes["over"][0]:
            env.reset()
        observation, reward, *_ = env.step(action)
        _check(observation)
        check_finite("reward", np.array(reward))


def _check(observations: dict[str, np.ndarray]) -> None:
    for name, array in observations.items():
        check_finite(name, array)


TARGETS = (Target("snapshot", snapshots, snapshot, read, (SnapshotError,), source="state"),)
