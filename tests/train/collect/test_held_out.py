"""Evaluation on held-out levels during training: what is measured, and that training does not notice."""

import csv
import shutil

import pytest
import torch

from nclone_env.config import EnvironmentConfig
from nclone_env.env.threads import Workers
from nclone_env.errors import ConfigError
from nclone_env.level.catalog import level_sets, levels_folder
from nclone_env.level.load import load_levels
from nclone_env.train.collect.environments import make_environments
from nclone_env.train.collect.evaluate import evaluate
from nclone_env.train.collect.held_out import HeldOutLevels
from nclone_env.train.hooks import Hooks
from nclone_env.train.levels.sources import level_digests, split_levels
from nclone_env.train.loop import train
from nclone_env.train.policies.checkpoint import load_checkpoint
from nclone_env.train.runs.run import group_sizes, held_out_environments

from ..runs import config, contents, untimed
from ..stub import LineWorld
from .test_evaluate import walker

ENVIRONMENT = EnvironmentConfig(levels=("east",), observations=("game_state",), max_frames=80)
HELD_OUT = {"held_out": 0.4, "evaluation_interval": 2, "evaluation_attempts": 5}
COLUMNS = {"held_out_success", "held_out_any", "evaluation_seconds"}


class PolicyNetwork:
    """The policy as a network, which counts the rows of its calls."""

    def __init__(self, policy):
        self.policy, self.rows = policy, []

    def outputs(self, seat, observations, states=None):
        self.rows.append(len(observations["game_state"]))
        with torch.inference_mode():
            logits, values = self.policy({"game_state": torch.from_numpy(observations["game_state"])})
        return logits.numpy().copy(), values.numpy()


def held_out(policy, *, attempts=40, threads=1, size=16, seed=0, make_envs=LineWorld):
    """Return the toy's two levels as held-out levels, and their threads."""
    network = PolicyNetwork(policy)
    envs = [make_envs(ENVIRONMENT, size) for _ in range(threads)]
    settings = {"attempts": attempts, "seed": seed, "most_steps": ENVIRONMENT.max_steps}
    levels = HeldOutLevels(envs, ("first", "second"), network, **settings)
    return levels, Workers(10**6, threads, min_chunk=1), network


def play(*arguments, updates=1, **options):
    levels, workers, _ = held_out(*arguments, **options)
    row = levels.play(workers, updates)
    workers.close()
    return row, levels.results.tolist()


def test_the_means_are_those_of_an_evaluation():
    row, results = play(walker(1.0), attempts=400, size=128)
    expected = evaluate(walker(1.0), ENVIRONMENT, "sampled", 400, make_envs=LineWorld)
    assert row["held_out_any"] == 1.0
    for (attempts, wins, total, frames), level in zip(results, expected, strict=True):
        assert attempts == 400
        assert wins / attempts == pytest.approx(level.success_rate, abs=0.1)
        assert total == pytest.approx(level.mean_return, abs=0.1)
        assert frames == pytest.approx(level.mean_frames, rel=0.1)
    assert row["held_out_success"] == sum(wins for _, wins, *_ in results) / 800
    assert 0.1 < row["held_out_success"] < 0.99


def test_each_attempt_is_counted_once_and_belongs_to_its_level():
    """Walkers who always go east win on one level and lose on the other, in two steps from the goal or more."""
    policy = walker(0.0)
    with torch.no_grad():
        policy.actor.bias[2] = 50.0
    row, results = play(policy, attempts=11)
    assert [result[:2] for result in results] == [(11, 11), (11, 0)]
    assert row == {"held_out_success": 0.5, "held_out_any": 0.5}
    # four to eight steps of four frames to the goal at +0.75; two more to the end of the line
    assert 16 <= results[0][3] <= 32
    assert results[0][3] < results[1][3]


def test_threads_do_not_matter_and_seed_and_update_do():
    one = play(walker(1.0), attempts=12)
    assert play(walker(1.0), attempts=12, threads=3) == one
    others = [play(walker(1.0), attempts=12, **change) for change in ({"seed": 1}, {"updates": 2})]
    assert one not in others
    assert others[0] != others[1]


def test_the_network_sees_fewer_rows_as_episodes_end():
    levels, workers, network = held_out(walker(1.0), attempts=8, size=16)
    levels.play(workers, 1)
    assert network.rows[0] == 16
    assert network.rows == sorted(network.rows, reverse=True)
    assert network.rows[-1] < 16
    assert all(rows & (rows - 1) == 0 for rows in network.rows)


def test_batches_are_no_larger_than_what_the_network_takes(tmp_path):
    for num_envs in (1, 8, 400):
        settings = config(tmp_path, num_envs=num_envs, num_minibatches=1)
        assert held_out_environments(settings, num_envs, 50) <= max(group_sizes(num_envs))
    assert held_out_environments(config(tmp_path, evaluation_attempts=3), 256, 2) == 6


@pytest.mark.parametrize(
    ("make_envs", "fields"),
    [
        (LineWorld, {}),
        (LineWorld, {"recurrent_size": 8}),
        (make_environments, {"frame_stack": 2, "num_envs": 8, "total_timesteps": 8 * 16 * 4}),
    ],
    ids=["toy", "memory", "real stacks"],
)
def test_training_is_the_same_with_and_without_evaluation(tmp_path, make_envs, fields):
    """The levels are split in all of them; only the evaluations differ."""
    often, seldom, never = (
        train(config(tmp_path, name=str(n), **{**HELD_OUT, "evaluation_interval": n}, **fields), make_envs=make_envs)
        for n in (1, 3, 0)
    )
    other = train(config(tmp_path, name="other", **HELD_OUT, seed=1, **fields), make_envs=make_envs)
    assert contents(other.checkpoint)["policy"] != contents(often.checkpoint)["policy"]
    for part in ("policy", "optimiser", "episodes", "observations", "environments"):
        same = [contents(result.checkpoint)[part] for result in (often, seldom, never)]
        assert same[0] == same[1] == same[2]
    evaluated = [
        [n for n, row in enumerate(result.curve, 1) if COLUMNS & set(row)] for result in (often, seldom, never)
    ]
    assert evaluated == [[1, 2, 3, 4], [3, 4], []]
    assert often.curve[2]["held_out_success"] == seldom.curve[2]["held_out_success"]
    rows = [[{k: v for k, v in row.items() if k not in COLUMNS} for row in untimed(r.curve)] for r in (often, never)]
    assert rows[0] == rows[1]


def test_the_held_out_levels_are_not_trained_on(tmp_path):
    made = []

    def make(environment, count):
        made.append((tuple(level.name for level in load_levels(environment.levels)), count))
        return make_environments(environment, count)

    settings = config(tmp_path, levels=("first-steps", "hazards"), total_timesteps=1, split_seed=3, **HELD_OUT)
    result = train(settings, make_envs=make)
    training, out = split_levels(settings.environment.levels, 0.4, 3)
    assert made == [(training, 16), (training, 16), *[(out, 16)] * settings.num_threads]
    assert list(result.held_out) == level_digests(out)
    assert load_checkpoint(result.checkpoint).held_out["digests"] == level_digests(out)
    table = list(csv.DictReader((tmp_path / "first-steps+hazards-seed0" / "levels.csv").open()))
    assert [row["level"] for row in table if row["held_out"] == "no"] == list(training)
    assert [row["level"] for row in table if row["held_out"] == "yes"] == list(out)
    assert {row["attempts"] for row in table if row["held_out"] == "yes"} == {"5"}


def test_rows_without_an_evaluation_leave_its_cells_empty(tmp_path):
    train(config(tmp_path, name="run", **HELD_OUT), make_envs=LineWorld)
    table = list(csv.DictReader((tmp_path / "run" / "learning_curve.csv").open()))
    assert [row["held_out_success"] == "" for row in table] == [True, False, True, False]
    assert all(0 <= float(row["held_out_any"]) <= 1 for row in table[1::2])


@pytest.mark.usefixtures("at_once")
def test_a_resumed_run_may_be_evaluated_otherwise(tmp_path):
    half = train(config(tmp_path, total_timesteps=512, **HELD_OUT), make_envs=LineWorld)
    train(config(tmp_path, **{**HELD_OUT, "evaluation_attempts": 3}), resume=half.checkpoint, make_envs=LineWorld)


def test_a_share_that_leaves_no_level_is_refused(tmp_path):
    settings = config(tmp_path, levels=("first-steps/01-walk",), held_out=0.5)
    with pytest.raises(ConfigError, match=r"held_out: 0\.5 of 1 levels"):
        train(settings, make_envs=LineWorld)
    assert list(tmp_path.iterdir()) == [], "the folder of the run is removed again"


def test_names_tell_training_levels_and_held_out_ones_apart(tmp_path):
    """Both folders have files of the same names."""
    files = [tmp_path / folder / name for folder in "ab" for name in ("one.toml", "two.toml")]
    for path, level in zip(files, level_sets()["first-steps"]):
        path.parent.mkdir(exist_ok=True)
        shutil.copy(levels_folder() / f"{level}.toml", path)
    made = []

    def make_envs(environment, num_envs):
        made.append([level.name for level in load_levels(environment.levels)])
        return LineWorld(environment, num_envs)

    settings = config(tmp_path, levels=tuple(map(str, files)), held_out=0.5, num_threads=1)
    train(settings, Hooks(stop=lambda: True), make_envs=make_envs)
    trained, measured = made[0], made[-1]
    assert sorted(trained + measured) == ["a/one.toml", "a/two.toml", "b/one.toml", "b/two.toml"]
