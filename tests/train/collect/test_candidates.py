"""Candidates: a policy that plays ahead in copies wins more, and what it has planned is what happens."""

from contextlib import closing

import numpy as np
import pytest
import torch

from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError
from nclone_env.game import CELEBRATING
from nclone_env.level.build import build_room
from nclone_env.level.level import Level
from nclone_env.sim.trajectory import simulate
from nclone_env.train.collect import candidates as module
from nclone_env.train.collect.environments import make_resting_environments
from nclone_env.train.collect.evaluate import episode_inputs, evaluate
from nclone_env.train.network.policy import ActorCritic

HOP = Level(build_room("mine 80 58", "exit 140 58", "exit_switch 110 58").raw, "hop")
"""Who runs to the right without a jump dies."""
ENVIRONMENT = EnvironmentConfig(levels=(HOP,), observations=("game_state",), max_frames=400)


def policy_of(*probabilities):
    """Return a policy with the same distribution of actions everywhere, and a value of 0."""
    policy = ActorCritic({"game_state": (30,)}, hidden_size=8)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        policy.actor.bias[:] = torch.tensor(probabilities).clamp(min=1e-9).log()
    return policy


MOSTLY_RIGHT = policy_of(0.01, 0.01, 0.9, 0.01, 0.01, 0.06)


def result_of(policy=MOSTLY_RIGHT, environment=ENVIRONMENT, episodes=8, seed=0, candidates=16):
    (result,) = evaluate(policy, environment, "sampled", episodes, seed, candidates=candidates)
    return result


def test_a_policy_that_plays_ahead_wins_more():
    alone, ahead = result_of(episodes=64, candidates=1), result_of()
    assert alone.success_rate < 0.7
    assert alone.death_rate > 0.3
    assert ahead.success_rate == 1.0


def test_what_is_planned_happens():
    result = result_of(episodes=1)
    assert simulate(HOP, result.inputs(ENVIRONMENT)).state[-1] == CELEBRATING
    inputs = list(episode_inputs(MOSTLY_RIGHT, ENVIRONMENT, HOP, "sampled", 0, 16))
    assert inputs == result.inputs(ENVIRONMENT).tolist()


def test_equal_seeds_give_equal_episodes_and_others_do_not(monkeypatch):
    first = result_of(episodes=5)
    assert result_of(episodes=5).actions.tolist() == first.actions.tolist()
    assert result_of(episodes=5).mean_frames == first.mean_frames
    assert result_of(episodes=5, seed=1).mean_frames != first.mean_frames
    monkeypatch.setattr(module, "_TOGETHER", 48)  # three episodes at a time
    assert result_of(episodes=5).mean_frames == first.mean_frames


def test_the_network_of_a_single_episode_computes_on_one_thread():
    """Its batches are small: waking other threads for each took 15 times as long on a busy machine."""
    threads = []

    class Noting(ActorCritic):
        def forward(self, observations):
            threads.append(torch.get_num_threads())
            return super().forward(observations)

    policy, before = Noting({"game_state": (30,)}, hidden_size=8), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        next(episode_inputs(policy, ENVIRONMENT, HOP, "sampled", 0, 4))
        assert set(threads) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_most_probable_actions_have_no_candidates():
    (alone,) = evaluate(MOSTLY_RIGHT, ENVIRONMENT, "argmax", 1)
    (ahead,) = evaluate(MOSTLY_RIGHT, ENVIRONMENT, "argmax", 1, candidates=16)
    assert ahead.actions.tolist() == alone.actions.tolist()
    assert ahead.death_rate == 1.0


def test_of_deaths_the_last_is_chosen():
    """Without a jump every candidate dies; a hotter one waits before it does."""
    never_jumps = policy_of(0.05, 0, 0.95, 0, 0, 0)
    assert result_of(never_jumps, candidates=1).mean_frames < result_of(never_jumps, candidates=16).mean_frames


@pytest.mark.parametrize("masked", [True, False])
def test_masked_actions_are_not_sampled(masked):
    policy = ActorCritic({"game_state": (30,), "action_mask": (6,)} if masked else {"game_state": (30,)}, hidden_size=8)
    environment = ENVIRONMENT.replace(observations=("game_state", "action_mask"))
    uniforms = np.full(6, 0.999, np.float32)
    observations = {"game_state": np.zeros((6, 30), np.float32), "action_mask": np.ones((6, 6), np.int8)}
    observations["action_mask"][:, 3:] = 0
    with closing(make_resting_environments(environment, 1)) as envs:
        search = module.CandidateSearch(policy, environment, envs, 6, 0)
        assert (search._sample(observations, uniforms) < 3).all() == masked
        search.close()


@pytest.mark.parametrize("candidates", [0, -3, 5000, 2.5])
def test_impossible_numbers_of_candidates_are_refused(candidates):
    with pytest.raises(ConfigError, match="candidates: expected a whole number from 1 to 4096, got"):
        result_of(candidates=candidates)
