import itertools
import logging
import re
import warnings
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial

import gymnasium
import numpy as np
import pytest

from nclone_env.errors import ConfigError
from nclone_env.memory import GrowthError, assert_flat, flat_profile

pytestmark = pytest.mark.usefixtures("frozen_heap", "few_snapshots")


class Leaky(gymnasium.Wrapper):
    """Keeps every observation, as 3 KB."""

    def __init__(self, env):
        super().__init__(env)
        self.history = []

    def step(self, action):
        result = super().step(action)
        self.history.append({"observation": np.tile(result[0], 200)})
        return result


def stepper(env):
    env.reset(seed=0)

    def step():
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()

    return step


def test_an_environment_of_gymnasium_is_flat():
    watch = assert_flat(stepper(gymnasium.make("CartPole-v1")), steps=400)
    assert watch.stats is not None
    assert 400 <= watch.stats.measurements.snapshots[-1].step <= 800  # more where memory was taken once
    assert re.search(r"FLAT: more than .* per 1,000 steps would have shown", str(watch))


def test_a_leak_is_named_with_line_and_rate():
    with pytest.raises(GrowthError) as failure:
        assert_flat(stepper(Leaky(gymnasium.make("CartPole-v1"))), steps=400)
    first, second, *others = str(failure.value).splitlines()
    assert (first, second) == ("memory grows", "Memory profile: stepper.<locals>.step")
    line = Leaky.step.__code__.co_firstlineno + 2
    assert any(re.search(rf"test_flat\.py:{line} \+[0-9.]+ MB per 1,000 steps", text) for text in others), others
    assert isinstance(failure.value, AssertionError)


async def awaited():
    raise AssertionError


def generated():
    yield 1 / 0


async def both():
    yield 1 / 0


@pytest.mark.parametrize(
    "function",
    [
        *(awaited, generated, both, partial(awaited), partial(map, abs, [1])),
        *(contextmanager(generated), asynccontextmanager(both)),
        *(partial(zip, [1]), partial(itertools.starmap, divmod, [(1, 0)])),
    ],
)
def test_a_call_that_does_nothing_yet_is_no_pass(function):
    with pytest.raises(ConfigError, match=r"^function: expected one that does its work when called, got .* yet to run"):
        assert_flat(function)


@pytest.mark.parametrize("steps", [0, -5, 10.5, "100"])
def test_the_number_of_steps_is_checked(steps):
    with pytest.raises(ConfigError, match=r"^steps: expected a whole number .*, got "):
        assert_flat(int, steps=steps)


def test_too_few_steps_are_no_pass():
    with pytest.raises(GrowthError, match=r"too little to tell whether memory grows\n.*\n.*UNDECIDED: .*more steps"):
        assert_flat(int, steps=3, name="nothing")


@pytest.mark.parametrize(("taken", "fails"), [((60,), False), ((60, 110), True), ((30,), False)])
def test_steps_follow_that_tell_memory_taken_once_from_a_leak(taken, fails, monkeypatch):
    monkeypatch.setattr("nclone_env.memory.watch._CAPACITY", 64)  # fewer are too far apart to tell when it was taken
    kept, calls = [], []

    def step():
        calls.append(None)
        if len(calls) in taken:
            kept.append(bytearray(10_000_000))

    with pytest.raises(GrowthError, match="too little to tell") if fails else nullcontext():
        assert_flat(step, steps=100, trace=False)
    assert len(calls) == 100 if taken == (30,) else 120 <= len(calls) <= 150 + 50 * fails


def test_a_block_is_named_and_judged():
    kept = []

    def leak():
        with flat_profile("my loop") as watch:
            for _ in range(100):
                kept.append(bytearray(3000))
                watch.step()

    with pytest.raises(GrowthError, match=r"Memory profile: my loop\n.*GROWING: traced"):
        leak()


def test_a_block_without_steps_is_told_to_count_them():
    profile = flat_profile(trace=False)
    profile.__enter__()
    with pytest.raises(GrowthError, match=r"^too little to tell .*; call step\(\) of the profile where the block"):
        profile.__exit__(None, None, None)


def test_an_error_of_the_block_is_not_hidden():
    def fail():
        raise ValueError("of the test")

    with pytest.raises(ValueError, match="of the test"):
        assert_flat(fail)


def test_what_pytest_records_is_no_growth(caplog):
    def step():
        warnings.warn("old" * 300, DeprecationWarning, stacklevel=1)
        logging.getLogger("noisy").warning("bad" * 300)

    shown = warnings.showwarning
    with pytest.warns(DeprecationWarning, match="old") as recorded:
        assert_flat(step, steps=100)
    assert len(recorded) == len(caplog.records) == 1
    assert warnings.showwarning is shown
    logging.getLogger("noisy").warning("again")
    assert len(caplog.records) == 2


def test_reports_are_written(tmp_path):
    assert_flat(int, steps=50, output_dir=tmp_path, trace=False)
    assert (tmp_path / "memory_profiling_report.json").exists()
