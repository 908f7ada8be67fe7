"""Configurations with other values and fields, in every way to pass them; environments that are made are played."""

import dataclasses
import random
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from nclone_env import EnvironmentConfig, ObservationConfig, RenderConfig, RewardConfig
from nclone_env.config import OBSERVATION_NAMES, build
from nclone_env.env.ids import ENVIRONMENT_ID
from nclone_env.errors import NcloneError

from .accidents import VALUES, drawn
from .playing import check_finite
from .target import Target

_ODD = (
    *VALUES, 10**5000, -(10**5000), [10**5000], np.float64("nan"), np.int8(3), np.zeros(3), np.zeros((2, 2), object),
    np.array("x"), "x" * 10**5, ["y" * 5000] * 3, Path("/dev/zero"), "/dev/zero", "/", "..", "first-steps/01-walk#3",
    b"\x00" * 1300, {"levels": 1}, lambda: 0, int, Ellipsis, {1, 2}, frozenset("a"), bytearray(b"a"), memoryview(b"a"),
)  # fmt: skip
_GOOD: dict[str, tuple[Any, ...]] = {
    "levels": (
        "first-steps",
        "hazards/02-minefield",
        ("jumps", "first-steps"),
        ["hazards"],
        "nope",
        (),
        "first-steps/",
    ),
    "mirrored": (True, False),
    "observations": (*OBSERVATION_NAMES, OBSERVATION_NAMES, OBSERVATION_NAMES[:3], ("graph", "graph"), ()),
    "action_space": ("discrete", "multi_discrete"),
    "frame_skip": (1, 4, 60, 61, 0, np.int64(3)),
    "max_frames": (1, 2, 7, 600, 1_000_000, 1_000_001),
    "paths": ("tiles", "doors"),
    "reward": ({}, {"gold": 1.0}, {"gamma": 1.0}, {"gamma": 1.1}, {"shaping": 1e308}, {"x": 1}, RewardConfig()),
    "observation": (
        {"dtype": "float16"},
        {"frame_stack": 3},
        {"locals_size": 99},
        {"locals_size": 2},
        ObservationConfig(),
    ),
    "render": ({"player_frame_size": 16}, {"global_view_size": (16, 16)}, {"picture_scale": 0.1}, RenderConfig()),
    "render_mode": (None, "rgb_array"),
    "num_envs": (1, 2, 3, 0, -1, 2**31, 2**70),
    "num_threads": (None, 1, 2, 0, 1025),
    "autoreset_mode": ("NextStep", "SameStep", "Disabled", "Never"),
    "config": (None, EnvironmentConfig()),
}
_VECTOR = ("num_envs", "num_threads", "autoreset_mode")
_NESTED = {"reward": RewardConfig, "observation": ObservationConfig, "render": RenderConfig}

Call = tuple[str, dict[str, Any]]
"""How a configuration is passed, and its arguments."""


def call(rng: random.Random) -> Call:
    kind = rng.choice(("config", "preset", "make", "make_vec"))
    names = [name for name in _GOOD if kind == "make_vec" or name not in _VECTOR]
    fields = {name: rng.choice(_GOOD[name]) for name in rng.sample(names, rng.randint(1, 6))}
    if rng.random() < 0.5:
        for name in rng.sample(list(fields), 1):
            fields[name] = drawn(rng, _ODD)
    if rng.random() < 0.3:
        name = rng.choice(list(_NESTED))
        own = [item.name for item in dataclasses.fields(_NESTED[name])]
        fields[name] = {rng.choice([*own, "x"]): drawn(rng, _ODD) for _ in range(rng.randint(1, 2))}
    if kind == "make" and not isinstance(fields.get("render_mode"), (str, type(None))):
        del fields["render_mode"]  # Gymnasium takes it for text
    if rng.random() < 0.03:
        fields[rng.choice(("x", "level", ""))] = 1
    return kind, fields


def use(given: Call) -> None:
    kind, fields = given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "config":
            build(EnvironmentConfig, {name: value for name, value in fields.items() if name != "config"})
        elif kind == "preset":
            EnvironmentConfig.for_parallel_training(
                **{name: value for name, value in fields.items() if name != "config"}
            )
        elif kind == "make":
            _play(gymnasium.make(ENVIRONMENT_ID, disable_env_checker=True, **fields))
        else:
            _play(gymnasium.make_vec(ENVIRONMENT_ID, **fields))


def _play(env: Any) -> None:
    try:
        env.action_space.seed(0)
        env.reset(seed=0)
        for _ in range(3):
            observation, reward, *_ = env.step(env.action_space.sample())
            check_finite("reward", np.asarray(reward))
            for name, array in observation.items():
                check_finite(name, array)
            env.reset()
        if env.render_mode is not None:
            env.render()
    finally:
        env.close()


def examples() -> list[Call]:
    everything = {"observations": OBSERVATION_NAMES, "render_mode": "rgb_array"}
    single = {"observations": "game_state", "paths": "doors"}
    halves = {"observations": OBSERVATION_NAMES[:-1], "observation": {"dtype": "float16", "frame_stack": 3}}
    vectors = [{**everything, "num_envs": 2, "autoreset_mode": mode} for mode in ("NextStep", "SameStep", "Disabled")]
    return [
        ("config", {}),
        ("make", everything),
        ("make", single),
        *(("make_vec", fields) for fields in (*vectors, halves)),
    ]


TARGETS = (Target("configuration", examples, call, use, (NcloneError, gymnasium.error.Error), source=""),)
