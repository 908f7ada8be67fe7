"""Policies of every kind are played alike."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from nclone_env.benchmark import evaluate, evaluation
from nclone_env.benchmark.evaluation import player_of
from nclone_env.errors import ActionError, ConfigError
from nclone_env.level.load import load_level
from nclone_env.sim.trajectory import simulate

from .bases import STATE, TRACK, RightWithJumps, played


class AlwaysRight(torch.nn.Module):
    def forward(self, observations):
        logits = torch.zeros(len(observations), 6)
        logits[:, 2] = 50.0
        return logits


class Model:
    """Holds right in the manner of Stable-Baselines3, and checks how its memory is passed on."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        count = len(observation["game_state"])
        assert episode_start.shape == (count,)
        assert episode_start.all() == (state is None)
        steps = np.zeros(count, int) if state is None else state
        return np.full(count, 2), steps + 1


class Remembering:
    """Acts by the sum of all that its row has seen."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        seen = observation["game_state"][:, 0] + observation["game_state"][:, 1]
        memory = seen if state is None else state + seen
        return np.where(np.floor(3 * memory) % 2, 5, 2), memory


def right(observations):
    return np.full(len(observations["game_state"]), 2)


def run_of(policy):
    return evaluate(policy, TRACK, environment=STATE)


def test_function_module_and_model_that_do_the_same_have_the_same_episodes():
    runs = [run_of(policy) for policy in (right, AlwaysRight(), Model())]
    for run in runs[1:]:
        for one, other in zip(runs[0].sampled, run.sampled):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(run.probable.ends["won"], runs[0].sampled.ends["won"].reshape(16, 16)[:, 0])
    assert runs[0].probable is None
    assert 0 < runs[0].sampled.ends["won"].mean() < 1


def test_policies_of_the_package_compute_on_one_thread():
    before = torch.get_num_threads()
    with player_of("builtin").computing():
        assert torch.get_num_threads() == 1
    with player_of(right).computing():
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before


def test_threads_play_the_same_episodes(monkeypatch):
    """A policy of the package, whose sampled actions follow from a sequence that each batch has for itself."""
    monkeypatch.setattr(evaluation, "BATCH", 40)
    alone = evaluate("builtin", TRACK, seed=3)
    with ThreadPoolExecutor(4) as executor:
        together = evaluate("builtin", TRACK, seed=3, executor=executor)
    assert together.sampled.actions.tobytes() == alone.sampled.actions.tobytes()
    assert together.probable.actions.tobytes() == alone.probable.actions.tobytes()
    assert alone.sampled.actions.tobytes() != evaluate("builtin", TRACK, seed=4).sampled.actions.tobytes()


def test_ends_are_those_of_the_simulator():
    run = played(0)
    actions = np.split(run.sampled.actions, np.cumsum(run.sampled.steps)[:-1])
    codes = np.array([0, 4, 2, 1, 5, 3], np.uint8)
    for number in (0, 3, 100, 255):
        end = run.sampled.ends[number]
        inputs = codes[actions[number]].repeat(4)[: end["frames"]]
        states = simulate(load_level(TRACK.levels[number // 16].reference), inputs).state
        assert (states[-1] == 8) == end["won"]
        assert not np.isin(states[:-1], (6, 8)).any()


def test_sampled_episodes_are_functions_of_the_seed():
    again, other = evaluate(RightWithJumps(), TRACK, environment=STATE), played(1)
    assert again.sampled.actions.tobytes() == played(0).sampled.actions.tobytes()
    assert again.sampled.actions.tobytes() != other.sampled.actions.tobytes()


def test_the_memory_of_a_model_belongs_to_its_episode():
    run = run_of(Remembering())
    steps = run.sampled.steps.reshape(16, 16)
    assert (steps == run.probable.steps[:, None]).all()
    assert len(np.unique(steps[:, 0])) > 3


@pytest.mark.parametrize(
    ("policy", "error", "message"),
    [
        (lambda seen: np.zeros((1, 2)), ActionError, r"policy: expected integers of shape \(256,\).* got float64"),
        (lambda seen: np.full(256, 6), ActionError, "policy: expected actions from 0 to 5, got 6 to 6"),
        (7, ConfigError, "policy: expected a function .* got 7"),
    ],
)
def test_other_policies_are_refused(policy, error, message):
    with pytest.raises(error, match=message):
        run_of(policy)
