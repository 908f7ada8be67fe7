"""Evaluation on a toy environment: unbiased counts, action modes, the episode to show; a policy that plays ahead in
copies wins more, and what it has planned is what happens."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import torch

from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError
from nclone_env.game import CELEBRATING
from nclone_env.level.build import build_room
from nclone_env.level.level import Level
from nclone_env.sim.trajectory import simulate
from nclone_env.train.collect import evaluate as module
from nclone_env.train.collect.environments import make_environments, make_resting_environments
from nclone_env.train.collect.evaluate import LevelResult, best_episode, episode_inputs, evaluate
from nclone_env.train.policies.network import ActorCritic

from ..stub import LineWorld

ENVIRONMENT = EnvironmentConfig(levels=("east",), observations=("game_state",), max_frames=80)


def walker(scale):
    """Return a policy that prefers to walk towards the goal: east for a goal at +0.75, west for -0.75."""
    policy = ActorCritic({"game_state": (30,)}, hidden_size=8)
    with torch.no_grad():
        for parameter in (*policy.trunk.parameters(), *policy.actor.parameters()):
            parameter.zero_()
        for unit, sign in enumerate((1, -1)):  # one for each side of the goal
            policy.trunk[0].weight[unit, 1] = sign / 0.75
            policy.trunk[2].weight[unit, unit] = 1.0
            policy.actor.weight[1, unit], policy.actor.weight[2, unit] = -sign * scale, sign * scale
    return policy


def test_argmax_of_a_good_policy_always_wins():
    results = evaluate(walker(1.0), ENVIRONMENT, "argmax", 30, make_envs=LineWorld)
    assert [(r.level, r.mode, r.episodes, r.success_rate) for r in results] == [
        ("east", "argmax", 30, 1.0),
        ("west", "argmax", 30, 1.0),
    ]
    # from -2..2 strides off the middle to 6 strides: 4 to 8 steps of 4 frames
    assert all(16 < result.mean_frames < 32 for result in results)
    assert [result.best_frames for result in results] == [16, 16]


def test_sampled_lies_between_argmax_and_random():
    played = []
    policy, rest = walker(1.0), {"make_envs": LineWorld, "on_level": lambda *call: played.append(call)}
    modes = ("sampled", "argmax", "random")
    results = {mode: evaluate(policy, ENVIRONMENT, mode, 200, **rest) for mode in modes}
    rates = {mode: np.mean([r.success_rate for r in rows]) for mode, rows in results.items()}
    assert rates["random"] + 0.1 < rates["sampled"] < rates["argmax"]
    assert {r.mode for rows in results.values() for r in rows} == {*modes}
    assert played == [(f"levels played, {mode} actions", 2, 2) for mode in modes]


def test_counts_the_first_episode_of_each_environment():
    """Half of the walkers finish immediately, and repeatedly while the others play their first episode."""

    class Unequal(LineWorld):
        def _start(self, indices):
            super()._start(indices)
            again = self.step_count[indices] > 0
            self.walkers["position"][indices] = np.where(indices % 2, -0.875, np.where(again, 0.5, 0.625))

        def reset(self, **options):
            self.step_count = np.zeros(self.num_envs, int)
            return super().reset(**options)

        def step(self, actions, *, out=None):
            self.step_count += 1
            return super().step(actions, out=out)

    east, _ = evaluate(walker(100.0), ENVIRONMENT, "sampled", 40, make_envs=Unequal)
    assert east.success_rate == 1.0
    assert east.mean_frames == 4 * (1 + 13) / 2
    assert len(east.actions) == 1


def test_actions_replay_a_win():
    results = evaluate(None, ENVIRONMENT, episodes_per_level=60, seed=5, make_envs=LineWorld)
    for result in results:
        assert result.mode == "random"
        assert result.won == (result.success_rate > 0)
    won = next(result for result in results if result.won)
    moves = np.array([0, -1, 1])[won.actions % 3].sum()
    goal = 6 if won.level == "east" else -6
    assert abs(goal - moves) <= 2, "the sum of moves leads from the start, -2..2, to the goal"


def test_inputs_end_with_the_win_or_at_the_limit_of_frames():
    environment = ENVIRONMENT.replace(max_frames=10)  # of 3 actions, held for 4 frames
    won = LevelResult("east", "argmax", 1, 1.0, 0.0, 1.0, 9.0, 9, True, np.array([2, 5, 0], np.int8))
    assert won.inputs(environment).tolist() == [2, 2, 2, 2, 3, 3, 3, 3, 0]
    lost = replace(won, won=False, best_frames=None)
    assert lost.inputs(environment).tolist() == [2, 2, 2, 2, 3, 3, 3, 3, 0, 0]
    assert lost.inputs(environment).dtype == np.uint8


@pytest.mark.parametrize("mode", ["sampled", "argmax"])
@pytest.mark.parametrize(
    ("together", "make_envs"), [(1, make_resting_environments), (8, make_environments), (17, make_resting_environments)]
)
def test_episodes_do_not_depend_on_those_that_are_played_together(monkeypatch, mode, together, make_envs):
    torch.manual_seed(0)
    policy = ActorCritic({"game_state": (30,)}, hidden_size=8)
    environment = EnvironmentConfig(levels=("first-steps", "jumps"), observations=("game_state",), max_frames=240)
    expected, other = (told(evaluate(policy, environment, mode, 6, seed=seed)) for seed in (3, 4))
    monkeypatch.setattr(module, "_TOGETHER", together)
    assert told(evaluate(policy, environment, mode, 6, seed=3, make_envs=make_envs)) == expected
    assert (expected == other) == (mode == "argmax")


@pytest.mark.parametrize("mode", ["sampled", "random"])
@pytest.mark.parametrize("candidates", [1, 2])
def test_results_are_those_of_one_thread(monkeypatch, mode, candidates):
    """Three batches of a level each, played at once."""
    torch.manual_seed(0)
    policy, made = ActorCritic({"game_state": (30,)}, hidden_size=8), []

    def make(config, count):
        made.append(count)
        return make_resting_environments(config, count)

    environment = EnvironmentConfig(levels=LEVELS_OF_THREADS, observations=("game_state",), max_frames=160)
    monkeypatch.setattr(module, "_TOGETHER" if candidates == 1 else "_TOGETHER_AHEAD", 6)
    one, three = (
        told(evaluate(policy, environment, mode, 6, 3, make, candidates=candidates, num_threads=threads))
        for threads in (1, 3)
    )
    assert one == three
    assert made == [1, 6, 1, 6, 6, 6]


LEVELS_OF_THREADS = ("jumps/01-stairs", "jumps/02-wide-gap", "jumps/03-islands")


def told(results):
    return [(result.level, result.mean_return, result.mean_frames, result.actions.tolist()) for result in results]


@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_best_episode_is_a_win_if_there_is_one(scale):
    results = {
        mode: evaluate(walker(scale), ENVIRONMENT, mode, 10, make_envs=LineWorld) for mode in ("argmax", "random")
    }
    best = best_episode(results)
    assert best.mode == "argmax"
    assert best.won == (scale > 0)
    assert len(best.actions) > 0


def test_levels_of_equal_names_are_all_played():
    class Namesakes(LineWorld):
        level_names = ("one", "one")

        def _goal(self):
            return np.where(self.walkers["level"] == 0, 0.75, 5.0)  # the second one has no goal in reach

    first, second = evaluate(walker(1.0), ENVIRONMENT, "argmax", 10, make_envs=Namesakes)
    assert (first.level, second.level) == ("one", "one")
    assert (first.success_rate, second.success_rate) == (1.0, 0.0)


def test_random_actions_do_not_simulate_what_no_one_sees():
    made = []

    def make_envs(environment, num_envs):
        made.append((environment.observations, num_envs))
        return LineWorld(ENVIRONMENT, num_envs)

    plain, seeing = (
        evaluate(None, ENVIRONMENT.replace(observations=names), "random", 20, make_envs=make_envs)
        for names in (("game_state",), ("game_state", "action_outcomes", "action_mask"))
    )
    evaluate(None, ENVIRONMENT.replace(observations=("action_outcomes",)), "random", 2, make_envs=make_envs)
    state, outcomes = ("game_state",), ("action_outcomes",)
    assert made == [(state, 1), (state, 40), (state, 1), (state, 40), (outcomes, 1), (outcomes, 4)]
    assert [result.success_rate for result in plain] == [result.success_rate for result in seeing]


HOP = Level(build_room("mine 80 58", "exit 140 58", "exit_switch 110 58").raw, "hop")
"""Who runs to the right without a jump dies."""
ALONE = EnvironmentConfig(levels=(HOP,), observations=("game_state",), max_frames=400)


def policy_of(*probabilities):
    """Return a policy with the same distribution of actions everywhere, and a value of 0."""
    policy = ActorCritic({"game_state": (30,)}, hidden_size=8)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        policy.actor.bias[:] = torch.tensor(probabilities).clamp(min=1e-9).log()
    return policy


MOSTLY_RIGHT = policy_of(0.01, 0.01, 0.9, 0.01, 0.01, 0.06)


def result_of(policy=MOSTLY_RIGHT, environment=ALONE, episodes=8, seed=0, candidates=16):
    (result,) = evaluate(policy, environment, "sampled", episodes, seed, candidates=candidates)
    return result


def test_a_policy_that_plays_ahead_wins_more():
    alone, ahead = result_of(episodes=64, candidates=1), result_of()
    assert alone.success_rate < 0.7
    assert alone.death_rate > 0.3
    assert ahead.success_rate == 1.0


def test_what_is_planned_happens():
    result = result_of(episodes=1)
    assert simulate(HOP, result.inputs(ALONE)).state[-1] == CELEBRATING
    inputs = list(episode_inputs(MOSTLY_RIGHT, ALONE, HOP, "sampled", 0, 16))
    assert inputs == result.inputs(ALONE).tolist()


@pytest.mark.parametrize("candidates", [1, 4])
def test_the_episode_that_is_shown_is_the_one_that_was_played(candidates):
    """Also where steps repeat the action before them: what is kept are the actions taken."""
    policy, sticky = policy_of(0.1, 0.05, 0.5, 0.05, 0.05, 0.25), ALONE.replace(action_repeat_probability=0.4)
    result = result_of(policy, sticky, 32, candidates=candidates)
    assert simulate(HOP, result.inputs(sticky)).state[-1] == CELEBRATING
    first = result_of(policy, sticky, 1, candidates=candidates)
    shown = list(episode_inputs(policy, sticky, HOP, "sampled", 0, candidates))
    assert shown != list(episode_inputs(policy, ALONE, HOP, "sampled", 0, candidates))
    assert (simulate(HOP, shown).state[-1] == CELEBRATING) == first.won
    assert len(shown) == first.mean_frames


def test_equal_seeds_give_equal_episodes_and_others_do_not(monkeypatch):
    first = result_of(episodes=5)
    assert result_of(episodes=5).actions.tolist() == first.actions.tolist()
    assert result_of(episodes=5).mean_frames == first.mean_frames
    assert result_of(episodes=5, seed=1).mean_frames != first.mean_frames
    monkeypatch.setattr(module, "_MOST_COPIES", 48)  # three episodes at a time
    assert result_of(episodes=5).mean_frames == first.mean_frames


@pytest.mark.parametrize("candidates", [1, 4])
def test_the_network_of_a_single_episode_computes_on_one_thread(candidates):
    """Its batches are small: waking other threads for each took 15 times as long on a busy machine."""
    threads = []

    class Noting(ActorCritic):
        def forward(self, observations):
            threads.append(torch.get_num_threads())
            return super().forward(observations)

    policy, before = Noting({"game_state": (30,)}, hidden_size=8), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        next(episode_inputs(policy, ALONE, HOP, "sampled", 0, candidates))
        assert set(threads) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("chance", [0.0, 0.4])
def test_candidates_do_not_foresee_which_steps_repeat(chance):
    """Also a plan that wins in the copies is taken to its end only where nothing is left to chance."""
    environment = ALONE.replace(action_repeat_probability=chance)
    with closing(make_resting_environments(environment, 2)) as envs:
        envs.reset(seed=3)
        search = module.CandidateSearch(policy_of(0.01, 0.01, 0.88, 0.01, 0.01, 0.08), environment, envs, 16, seed=0)
        search(None, np.ones(2, np.bool_), 0)
        seeds, own = (each._batch.episodes["seed"].tolist() for each in (search._copies, envs))
        is_foreseen = chance == 0.0
        assert len({*seeds}) == (2 if is_foreseen else 32)
        assert bool({*seeds} & {*own}) == is_foreseen
        assert (search._left.max() > module.TAKEN_FRAMES) == is_foreseen
        search.close()


def test_the_most_probable_actions_have_no_candidates():
    (alone,) = evaluate(MOSTLY_RIGHT, ALONE, "argmax", 1)
    (ahead,) = evaluate(MOSTLY_RIGHT, ALONE, "argmax", 1, candidates=16)
    assert ahead.actions.tolist() == alone.actions.tolist()
    assert ahead.death_rate == 1.0


def test_of_deaths_the_last_is_chosen():
    """Without a jump every candidate dies; a hotter one waits before it does."""
    never_jumps = policy_of(0.05, 0, 0.95, 0, 0, 0)
    assert result_of(never_jumps, candidates=1).mean_frames < result_of(never_jumps, candidates=16).mean_frames


@pytest.mark.parametrize("masked", [True, False])
def test_masked_actions_are_not_sampled(masked):
    policy = ActorCritic({"game_state": (30,), "action_mask": (6,)} if masked else {"game_state": (30,)}, hidden_size=8)
    environment = ALONE.replace(observations=("game_state", "action_mask"))
    uniforms = np.full(6, 0.999, np.float32)
    observations = {"game_state": np.zeros((6, 30), np.float32), "action_mask": np.ones((6, 6), np.int8)}
    observations["action_mask"][:, 3:] = 0
    with closing(make_resting_environments(environment, 1)) as envs:
        search = module.CandidateSearch(policy, environment, envs, 6, 0)
        assert (search._sample(observations, uniforms) < 3).all() == masked
        search.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes_per_level": 0}, "episodes_per_level: expected a whole number from 1 to 1000000, got 0"),
        ({"candidates": 0}, "candidates: expected a whole number from 1 to 4096, got 0"),
        ({"candidates": 5000}, "candidates: expected a whole number from 1 to 4096, got 5000"),
        ({"mode": "argmaks"}, "got 'argmaks'; did you mean 'argmax'"),
        ({"num_threads": 0}, "num_threads: expected a whole number from 1 to 1024, got 0"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, got -1"),
    ],
)
def test_impossible_arguments_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        evaluate(walker(1), ENVIRONMENT, make_envs=LineWorld, **options)
