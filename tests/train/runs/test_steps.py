"""The steps of an iteration: they allocate no arrays, and name what is not finite."""

import gc
import tracemalloc

import numpy as np
import pytest

from nclone_env.errors import NonFiniteError
from nclone_env.train import TrainConfig, begun_run, loop, train
from nclone_env.train.policies.mlp import MLP
from nclone_env.train.runs.steps import collect_rollout, compute_returns, update_policy

from ..runs import config, contents, until
from ..stub import LineWorld

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
    """Return how much traced memory grows over so many calls of a task, and the largest peak of a call, in bytes.

    The growth is the least of three series: what is kept of each call grows in all of them, and what Python or a test
    before this one makes room for, such as a free list, in one.
    """
    growths, peak = [], 0
    tracemalloc.start()
    try:
        task()
        for _ in range(3):
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(count):
                level = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                task()
                peak = max(peak, tracemalloc.get_traced_memory()[1] - level)
            gc.collect()
            growths.append(tracemalloc.get_traced_memory()[0] - before)
        return min(growths), peak
    finally:
        tracemalloc.stop()


def test_updates_allocate_nothing(run):
    """The smallest object of Python takes 16 bytes, so that one kept of each update would show."""
    growth, peak = traced_growth_and_peak(lambda: one_update(run), 100)
    smallest_array = run.config.minibatch_size // 4 * 16 * 4  # hidden outputs of a quarter of a minibatch
    assert growth < 100 * 16, growth
    assert peak < smallest_array, peak


def test_an_array_would_be_noticed(run):
    """Negative control: one array of a minibatch in an update, or a few bytes kept of each, fail the test above."""
    kept = []

    def leaky():
        one_update(run)
        kept.append(bytes(100))

    growth, _ = traced_growth_and_peak(leaky, 20)
    assert growth > 20 * 16
    from numpy import zeros

    _, peak = traced_growth_and_peak(lambda: (one_update(run), zeros((run.config.minibatch_size, 16), "f4")), 1)
    assert peak > run.config.minibatch_size * 16 * 4


BAD_UPDATE = 3
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in matmul:RuntimeWarning")


def poisoned(change):
    """Return what makes toys, of which the second group changes its results in step 5 of the third update."""
    made = []

    class Poisoned(LineWorld):
        def reset(self, **arguments):
            self.steps = 0  # the preparation of a run plays a rollout first
            return super().reset(**arguments)

        def step(self, actions, *, out=None):
            results = super().step(actions, out=out)
            self.steps += 1
            if self is made[1] and self.steps == 16 * (BAD_UPDATE - 1) + 6:
                change(*results)
            return results

    def make(*arguments):
        made.append(Poisoned(*arguments))
        return made[-1]

    return make


def stopped(tmp_path, make_envs=LineWorld, **fields):
    """Train until the error; return its message and the updates of the checkpoint that is left."""
    settings = config(tmp_path, name="run", checkpoint_interval=1, **fields)
    path = tmp_path / "run" / "checkpoint.pt"
    with pytest.raises(NonFiniteError) as failure:
        train(settings, make_envs=make_envs)
    message = str(failure.value)
    updates = contents(path)["counters"]["updates"]
    assert f"the run stopped without saving, {path} holds its state after update {updates}" in message
    assert not list(path.parent.glob(".*.pt"))
    whole = train(config(tmp_path, name="healthy", **fields), until(updates), make_envs=LineWorld)
    assert whole.interrupted
    assert contents(path) == contents(whole.checkpoint), "no trace of the nan"
    return message, updates


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_rewards(tmp_path, value):
    def change(observations, rewards, *others):
        rewards[5] = value

    message, updates = stopped(tmp_path, poisoned(change))
    assert updates == BAD_UPDATE - 1
    assert message.startswith("update 3: expected finite numbers, got nan or infinity in: rewards; the run stopped")


@pytest.mark.parametrize(("value", "fields"), [(np.inf, {}), (np.nan, {"frame_stack": 3})])
def test_observations(tmp_path, value, fields):
    def change(observations, *others):
        observations["game_state"][5, 7] = value

    message, updates = stopped(tmp_path, poisoned(change), **fields)
    assert updates == BAD_UPDATE - 1
    assert "update 3: expected finite numbers, got nan or infinity in: observation 'game_state';" in message


def test_final_observations(tmp_path):
    class Poisoned(LineWorld):
        def reset(self, **arguments):
            self.steps = 0  # the preparation of a run plays a rollout first
            return super().reset(**arguments)

        def step(self, actions, *, out=None):
            *results, info = super().step(actions, out=out)
            self.steps += 1
            if self.steps > 32 and results[3].any():
                info["final_obs"]["game_state"][results[3][info["_final_obs"]], 4] = np.nan
            return *results, info

    message, updates = stopped(tmp_path, Poisoned)
    assert updates >= BAD_UPDATE - 1
    assert "in: values of final observations;" in message


@pytest.mark.parametrize(("name", "said"), [("critic.weight", "in: values;"), ("actor.bias", "actor.bias")])
def test_parameters(tmp_path, monkeypatch, name, said):
    """With one of the actor values stay finite, and sampling treats actions with a logit of nan as masked."""

    def poison(run):
        if run.counters.updates == BAD_UPDATE - 1:
            run.parameters.views(run.parameters.vector)[name].flat[1] = np.nan
        collect_rollout(run)

    monkeypatch.setattr(loop, "collect_rollout", poison)
    message, updates = stopped(tmp_path)
    assert updates == BAD_UPDATE - 1
    assert said in message


def test_gradients(tmp_path, monkeypatch):
    """A gradient that is not finite although everything it is computed from is."""
    monkeypatch.setattr(MLP, "pass_arrays", lambda network, seat: None)  # so that Python sees each gradient

    def poison(run):
        real = run.network.gradient

        def gradient(seat, rows, scaling, out, sums):
            real(seat, rows, scaling, out, sums)
            if run.counters.updates == BAD_UPDATE:
                run.parameters.views(out)["trunk.0.bias"][3] = np.inf

        if run.counters.updates == 0:
            monkeypatch.setattr(run.network, "gradient", gradient)
        collect_rollout(run)

    monkeypatch.setattr(loop, "collect_rollout", poison)
    message, updates = stopped(tmp_path)
    assert updates == BAD_UPDATE - 1
    assert message.startswith("update 3: ")
    assert "grad_norm;" in message


def test_a_healthy_run_is_not_stopped(tmp_path):
    """Rewards as large as float32 can tell apart from infinity are fine."""

    class Large(LineWorld):
        def step(self, actions, *, out=None):
            observations, rewards, *others = super().step(actions, out=out)
            return observations, rewards * 1e12, *others

    assert train(config(tmp_path), make_envs=Large).counters.updates == 4
