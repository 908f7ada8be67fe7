"""Rewards and observations by functions of users."""

import dataclasses
import functools
import pickle
import unittest.mock

import numba
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode

from nclone_env import EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv, ObservationFunction, errors
from nclone_env.env.compiled import passes
from nclone_env.env.compiled.passes import _compiled
from nclone_env.env.compiled.records import DIED, WON

from ...shared import each_value
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


@pytest.mark.parametrize(
    ("mode", "num_threads"), each_value([AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], [1, 2])
)
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


PAID = np.zeros(2)
PAIR = (np.zeros(2000), 1)


def made_of_globals(event, more=0.0):
    return PAID[0] + PAIR[0][1000] + more


def test_environments_share_what_is_compiled_until_something_that_it_reads_changes(monkeypatch):
    made, real = [], passes.plain_dispatcher
    monkeypatch.setattr(passes, "plain_dispatcher", lambda *arguments: made.append(1) or real(*arguments))

    def paid(function):
        env = make(1, levels="first-steps/01-walk", reward_function=function)
        env.reset(seed=1)
        return float(env.step([2])[1][0]), len(made)

    assert [paid(made_of_globals), paid(made_of_globals), paid(numba.njit(made_of_globals))] == [(0, 1), (0, 1), (0, 2)]
    assert paid(functools.partial(made_of_globals, more=3)) == (3, 3)
    assert paid(functools.partial(made_of_globals, more=4.0)) == (4, 4)
    assert paid(functools.partial(made_of_globals, more=3)) == (3, 4)
    PAID[0] = 5
    assert paid(made_of_globals) == (5, 5)
    PAIR[0][1000] = 2  # in the middle of a long array in a tuple, which its text leaves out
    assert paid(made_of_globals) == (7, 6)
    monkeypatch.setitem(made_of_globals.__globals__, "PAID", np.ones(2))
    assert paid(made_of_globals) == (3, 7)


def wrapped(function):
    @functools.wraps(function)
    def call(*values, **named):
        return function(*values, **named)

    return call


NOT_COMPILED = r"reward_function: expected a function of one event that Numba can compile and that returns a number"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (3, rf"{NOT_COMPILED}, got 3: it cannot be called; an event"),
        (Weighted(2.0).of, NOT_COMPILED),
        (Weighted(2.0), NOT_COMPILED),
        (functools.lru_cache(distance), NOT_COMPILED),
        (np.sum, NOT_COMPILED),
        (functools.partial(weighted, factor=2.0), NOT_COMPILED),  # the event would be the factor
        (functools.partial(by_name, factor=2.0), rf"{NOT_COMPILED}.*only be given by name: factor"),
        (functools.partial(Weighted.of, Weighted(2.0)), NOT_COMPILED),
        (functools.partial(weighted, 2.0, more={}), NOT_COMPILED),
        (
            lambda event: event["nothing"],
            rf"{NOT_COMPILED}, .*: Field 'nothing' was not found .*test_passes.py\", line \d+; an event has x_before",
        ),
        (lambda event, more: 0.0, r".*: it takes the arguments \(event, more\); an event"),
        (
            lambda event: "much",
            r".*: No implementation of function .*setitem.* signature: setitem\(Record, .*; an event",
        ),
        (lambda event: __import__("time").time(), NOT_COMPILED),
        (wrapped(distance), NOT_COMPILED),
        (unittest.mock.MagicMock(), NOT_COMPILED),
    ],
)
def test_what_is_no_reward_function_is_refused(function, message):
    with pytest.raises(errors.ConfigError, match=f"^{message}") as failure:
        make(reward_function=function)
    assert "\n" not in str(failure.value)


TABLE = np.arange(5.0)


def paid(event, more=0):
    return TABLE[event["frames"] + more]


@pytest.mark.parametrize(
    ("function", "num_threads"), each_value([paid, numba.njit(paid), numba.njit(cache=False, nogil=True)(paid)], [1, 2])
)
def test_an_index_out_of_range_in_a_reward_is_an_error_of_its_name(function, num_threads):
    envs = make(4, reward_function=functools.partial(function, more=0), num_threads=num_threads)
    envs.reset(seed=1)
    assert envs.step([0] * 4)[1].tolist() == [4.0] * 4
    envs = make(4, reward_function=functools.partial(function, more=1), num_threads=num_threads)
    envs.reset(seed=1)
    with pytest.raises(IndexError, match=r"reward_function: expected indices within their arrays in paid, got another"):
        envs.step([0] * 4)
    env = NPlusPlusEnv(levels="first-steps/01-walk", reward_function=functools.partial(function, more=1000))
    env.reset(seed=1)
    with pytest.raises(IndexError, match="in paid"):
        env.step(0)


def test_checks_of_indices_are_left_out_where_the_function_says_so():
    told = _compiled(numba.njit(boundscheck=False, error_model="python")(paid)).targetoptions
    assert (told["boundscheck"], told["error_model"]) == (False, "python")
    for function in (paid, numba.njit(paid)):
        assert _compiled(function).targetoptions["boundscheck"] is True


def behind(world, out):
    out[world.entity_states.size] = 1.0


def before_the_first(world, out):
    out[0] = world.entity_states[-world.entity_states.size - 1]


def of_movers(world, out):
    out[0] = world.movers[world.movers.size]["x"]


@pytest.mark.parametrize(
    ("function", "mode"),
    each_value([behind, numba.njit(behind), before_the_first, of_movers], ["SameStep", "NextStep"]),
)
def test_an_index_out_of_range_in_an_observation_is_an_error_of_its_name(function, mode):
    envs = make(2, observation_function=ObservationFunction(function, 1), autoreset_mode=mode)
    message = rf"observation_function: expected indices within their arrays in {function.__name__}, got another"
    with pytest.raises(IndexError, match=message):
        envs.reset(seed=1)


def way(world, out):
    ninja, total = world.ninja, 0.0
    for mover in world.movers:
        total += mover["x"]
    out[0], out[1], out[2], out[3] = ninja["x"], ninja["frame"], world.entity_states.sum(), total


WAY = ObservationFunction(way, 4, name="way")


def expected_way(worlds, index):
    entities, movers = (worlds.rooms[index][name] for name in ("entities", "movers"))
    states = worlds.entity_states[entities["first"] :][: entities["used"]]
    places = worlds.movers["x"][movers["first"] :][: movers["used"]]
    return np.array([worlds.ninjas["x"][index], worlds.ninjas["frame"][index], states.sum(), sum(places)], np.float32)


def watched(envs, steps=60):
    """Return the own observations of each step, and by step and environment the last one of each episode."""
    seen, last = [envs.reset(seed=2)[0]["way"].copy()], {}
    for step, actions in enumerate(choices(steps, envs.num_envs)):
        observations, _, terminations, truncations, info = envs.step(actions)
        seen.append(observations["way"].copy())
        ended = np.flatnonzero(terminations | truncations)
        rows = info["final_obs"]["way"] if "final_obs" in info else observations["way"][ended]
        last.update({(step, index): row.tolist() for index, row in zip(ended.tolist(), rows.copy())})
    return np.array(seen), last


MOVING = {
    "levels": ("motifs-9", "hazards"),
    "max_frames": 160,
    "observation_function": WAY,
    "observations": ("game_state", "action_outcomes", "reachability"),
}


def test_an_own_observation_is_that_of_the_world_also_at_the_end():
    envs = make(**MOVING)
    assert envs.single_observation_space["way"].shape == (4,)
    envs.reset(seed=2)
    for actions in choices(60, 6):
        observations = envs.step(actions)[0]
        for index in range(6):
            np.testing.assert_array_equal(observations["way"][index], expected_way(envs.worlds, index))
    same_step = {"autoreset_mode": "SameStep", **MOVING}
    seen, last = watched(make(**same_step))
    again, ends = watched(make(**same_step, num_threads=2))
    np.testing.assert_array_equal(again, seen)
    assert ends == last
    env = make(1, **MOVING)
    for index in (0, 3, 5):
        env.reset(seed=2 + index)
        for step, actions in enumerate(choices(60, 6)):
            observations, _, terminated, truncated, _ = env.step(actions[index : index + 1])
            if terminated[0] or truncated[0]:
                assert observations["way"][0].tolist() == last.pop((step, index))
                break
    assert all(number > 0 for number in np.abs(seen).max(axis=(0, 1)))


def test_own_observations_of_single_environments_and_in_stacks():
    fields = {"observations": "game_state", "levels": "first-steps/01-walk", "observation_function": WAY}
    env = NPlusPlusEnv(**fields, observation={"frame_stack": 3})
    observation, _ = env.reset(seed=1)
    assert observation["way"].shape == (3, 4)
    frames = [env.step(2)[0]["way"][:, 1].tolist() for _ in range(4)]
    assert frames == [[0, 0, 4], [0, 4, 8], [4, 8, 12], [8, 12, 16]]
    for other in (env.clone(), pickle.loads(pickle.dumps(env))):
        assert other.step(2)[0]["way"][-1, 1] == 20


def test_numbers_of_an_own_observation_may_be_those_of_numpy():
    given = ObservationFunction(way, np.uint8(4), np.float32(-9), np.array(1e4), name="way")
    assert [type(each) for each in (given.size, given.low, given.high)] == [int, float, float]
    envs = make(2, levels="first-steps/01-walk", observation_function=given)
    assert envs.single_observation_space["way"] == Box(-9, 1e4, (4,), np.float32)
    assert envs.observation_space.contains(envs.reset(seed=1)[0])


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: ObservationFunction(way, 0), "size: expected"),
        (lambda: ObservationFunction(way, np.array([4])), r"size: expected a whole number from 1 to 65536, got array"),
        (lambda: ObservationFunction(way, 4, low="0"), "low: expected a finite number, got '0'"),
        (lambda: ObservationFunction(way, 4, high=np.nan), "high: expected a finite number, got nan"),
        (lambda: ObservationFunction(way, 4, low=2, high=np.int8(1)), "low: expected at most high, 1, got 2"),
        (lambda: ObservationFunction(way, 4, name="locals"), "name: expected a word that names no observation yet"),
        (
            lambda: make(observation_function=ObservationFunction(lambda world: 0, 1)),
            "observation_function: expected a",
        ),
        (lambda: make(observation_function=ObservationFunction(3, 1)), "observation_function: expected a function .*"),
        (lambda: make(observation_function=ObservationFunction(wrapped(way), 4)), "observation_function: expected a"),
        (lambda: make(dict_observations=False, observation_function=WAY), "expected dict_observations=True beside it"),
    ],
)
def test_what_is_no_observation_function_is_refused(made, message):
    with pytest.raises(errors.ConfigError, match=message):
        made()
