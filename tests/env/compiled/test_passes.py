"""Rewards by functions of users."""

from __future__ import annotations

import dataclasses
import functools

import numba
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv, errors
from nclone_env.env.compiled.records import DIED, WON

from ..bases import choices


def distance(event):
    """Return how far the ninja got to the right."""
    return event["x"] - event["x_before"]


def weighted(factor, event, more=0.0):
    return factor * (event["x"] - event["x_before"]) + more * 1e-9


def by_name(event, *, factor):
    return factor * event["x"]


class Weighted:
    def __init__(self, factor):
        self.factor = factor

    def of(self, event):
        return self.factor * event["x"]

    __call__ = of


WEIGHTS = dataclasses.asdict(EnvironmentConfig().reward)


@numba.njit
def compiled(event):
    return event["x"] - event["x_before"]


def run(envs, steps=80):
    envs.reset(seed=2)
    found = []
    for actions in choices(steps, envs.num_envs):
        _, rewards, terminations, truncations, info = envs.step(actions)
        found.append((rewards, terminations, truncations, info["episode_return"], info["frames"]))
    return [np.array(column) for column in zip(*found, strict=True)]


def make(num_envs=6, **options):
    fields = {"levels": ("hazards", "first-steps"), "max_frames": 80, "observations": "game_state"}
    return NPlusPlusVectorEnv(None, num_envs, **fields | options)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_the_default_written_as_a_function_gives_the_same(mode, num_threads):
    time, completion, death, switch, gold = (WEIGHTS[k] for k in ("time", "completion", "death", "switch", "gold"))
    shaping, gamma = WEIGHTS["shaping"], WEIGHTS["gamma"]

    def same(event):
        total = time * event["frames"] + gold * event["gold"] + switch * event["switches"]
        if event["outcome"] == WON:
            total += completion
        elif event["outcome"] == DIED:
            total += death
        return total + shaping * (gamma * event["potential"] - event["potential_before"])

    expected = run(make(autoreset_mode=mode))
    for left, right in zip(run(make(autoreset_mode=mode, num_threads=num_threads, reward_function=same)), expected):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    "function",
    [
        distance,
        compiled,
        functools.partial(weighted, 2.0),
        functools.partial(weighted, np.float64(2.0), more=0.0),
        functools.partial(functools.partial(weighted, 2.0), more=0.0),
        functools.partial(numba.njit(weighted), 2.0),
        functools.partial(distance),
    ],
)
def test_a_function_of_the_way(function):
    envs = make(2, levels="first-steps/01-walk", reward_function=function, max_frames=5400)
    envs.reset(seed=1)
    total = np.zeros(2)
    for _ in range(10):
        _, rewards, *_, info = envs.step([2, 0])
        total += rewards
        assert rewards[0] > 0 == rewards[1]
        np.testing.assert_array_equal(info["episode_return"], total)


def test_arguments_of_a_partial_function_are_constants():
    once, twice = (run(make(2, reward_function=functools.partial(weighted, factor, more=0.5))) for factor in (1.0, 2.0))
    played = once[4] > 0
    np.testing.assert_allclose(2 * once[0] - 0.5e-9 * played, twice[0], rtol=1e-12)  # rounded in another order
    assert np.abs(once[0]).max() > 0


def test_returns_are_the_sums_of_the_rewards_of_each_episode():
    rewards, _, _, returns, frames = run(make(reward_function=distance), 300)
    for i in range(rewards.shape[1]):
        total, ends = 0.0, 0
        for t in range(len(rewards)):
            if frames[t, i] == 0:
                total, ends = 0.0, ends + 1
                assert rewards[t, i] == returns[t, i] == 0.0
            else:
                total += rewards[t, i]
                assert returns[t, i] == total
        assert ends > 3


def test_a_single_environment_takes_a_function_too():
    env = NPlusPlusEnv(levels="first-steps/01-walk", observations="game_state", reward_function=distance)
    env.reset(seed=1)
    assert env.step(2)[1] > 0
    assert env.clone().step(2)[1] > 0


NOT_COMPILED = r"reward_function: expected a function of one event that Numba can compile and that returns a number"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (3, rf"{NOT_COMPILED}, got 3; .* cannot be called"),
        (Weighted(2.0).of, NOT_COMPILED),
        (Weighted(2.0), NOT_COMPILED),
        (functools.lru_cache(distance), NOT_COMPILED),
        (np.sum, NOT_COMPILED),
        (print, NOT_COMPILED),
        (functools.partial(weighted, 1.0, 2.0, 3.0, 4.0, 5.0), NOT_COMPILED),
        (functools.partial(weighted, factor=2.0), NOT_COMPILED),  # the event would be the factor
        (functools.partial(by_name, factor=2.0), rf"{NOT_COMPILED}.*only be given by name: factor"),
        (functools.partial(Weighted.of, Weighted(2.0)), NOT_COMPILED),
        (functools.partial(weighted, 2.0, more={}), NOT_COMPILED),
        (lambda event: event["nothing"], rf"{NOT_COMPILED}, .* has the fields x_before, y_before, x, y"),
        (lambda event, more: 0.0, NOT_COMPILED),
        (lambda event: "much", NOT_COMPILED),
    ],
)
def test_what_is_no_reward_function_is_refused(function, message):
    with pytest.raises(errors.ConfigError, match=message):
        make(reward_function=function)
