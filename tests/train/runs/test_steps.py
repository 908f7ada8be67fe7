"""Updates and vector steps of the fast path allocate no arrays: traced memory is flat and its peaks are small."""

import gc
import tracemalloc

import pytest

from nclone_env.train.config import TrainConfig
from nclone_env.train.runs.begin import begun_run
from nclone_env.train.runs.steps import collect_rollout, compute_returns, update_policy

SMALL = {"num_envs": 32, "num_steps": 16, "num_minibatches": 1, "update_epochs": 2, "hidden_size": 16, "max_frames": 60}


@pytest.fixture
def run(tmp_path):
    """A run of the real environments with one thread, warmed up."""
    config = TrainConfig.of(num_threads=1, output=tmp_path, total_timesteps=10**9, **SMALL)
    with begun_run(config) as run:
        for _ in range(10):
            one_update(run)
        yield run


def one_update(run):
    collect_rollout(run)
    compute_returns(run)
    update_policy(run)


def traced_growth_and_peak(task, count):
    """Return the growth of traced memory over calls of a task, and the largest peak of a call, in bytes."""
    peak = 0
    gc.collect()
    tracemalloc.start()
    try:
        task()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(count):
            level = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            task()
            peak = max(peak, tracemalloc.get_traced_memory()[1] - level)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before, peak
    finally:
        tracemalloc.stop()


def test_updates_allocate_nothing(run):
    """The smallest object of Python takes 16 bytes, so that one kept of each update would show."""
    growth, peak = traced_growth_and_peak(lambda: one_update(run), 300)
    smallest_array = run.config.minibatch_size // 4 * 16 * 4  # hidden outputs of a quarter of a minibatch
    assert growth < 4096, growth
    assert peak < smallest_array, peak


def test_an_array_would_be_noticed(run):
    """Negative control: one array of a minibatch in an update, or a few bytes kept of each, fail the test above."""
    kept = []

    def leaky():
        one_update(run)
        kept.append(bytes(100))

    growth, _ = traced_growth_and_peak(leaky, 50)
    assert growth > 4096
    from numpy import zeros

    _, peak = traced_growth_and_peak(lambda: (one_update(run), zeros((run.config.minibatch_size, 16), "f4")), 3)
    assert peak > run.config.minibatch_size * 16 * 4
