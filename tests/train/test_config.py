"""Training configuration: defaults are valid, invalid values are rejected by name."""

import ast
import dataclasses
import inspect
import itertools
from pathlib import Path

import pytest

from nclone_env.config import RewardConfig, build
from nclone_env.errors import ConfigError
from nclone_env.train import config as module
from nclone_env.train.config import TrainConfig


def test_derived_sizes():
    config = TrainConfig(num_envs=10, num_steps=6, num_minibatches=4, total_timesteps=100)
    assert (config.batch_size, config.minibatch_size, config.num_updates) == (60, 15, 2)


def test_environment_follows_the_fields():
    config = TrainConfig(levels="jumps", frame_skip=2, max_frames=300, reward=RewardConfig(gamma=0.9))
    environment = config.environment()
    assert environment.levels == ("jumps",)
    assert (environment.frame_skip, environment.max_frames, environment.reward.gamma) == (2, 300, 0.9)


def test_the_policy_sees_stacks_and_the_environments_return_single_observations():
    config = TrainConfig(frame_stack=4)
    assert config.environment().observation.frame_stack == 4
    assert config.unstacked_environment() == TrainConfig().environment()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_envs": 0}, "num_envs: expected a whole number from 1 to 65536, got 0"),
        ({"frame_stack": 0}, "frame_stack: expected a whole number from 1 to 64, got 0"),
        ({"update_epochs": 2.0}, "update_epochs: expected a whole number from 1 to 100, got 2.0"),
        ({"learning_rate": "x"}, "learning_rate: expected a number from 0 to 1, got 'x'"),
        ({"clip_coef": 0.0}, "clip_coef: expected a number from 1e-06 to 1, got 0.0"),
        ({"stop_at_success": 95}, "stop_at_success: expected a number from 0 to 1, got 95"),
        ({"num_minibatches": 3}, "num_minibatches: expected a divisor of num_envs . num_steps = 32768, got 3"),
        ({"levels": (1,)}, "levels: expected names or paths as text"),
        ({"observations": ("game",)}, "observations: expected one of 'game_state'"),
        ({"name": "a/b"}, "name: expected a folder name without separators, neither . nor .., got 'a/b'"),
        ({"name": ".."}, "name: expected a folder name without separators, neither . nor .., got '..'"),
        ({"name": "."}, "name: expected a folder name without separators, neither . nor .., got '.'"),
        ({"keep_last": -1}, "keep_last: expected a whole number from 0 to 1e.06, got -1"),
        ({"anneal_lr": 1}, "anneal_lr: expected True or False, got 1"),
        ({"mirrored": "no"}, "mirrored: expected True or False, got 'no'"),
        ({"local_position": 1}, "local_position: expected True or False, got 1"),
        ({"picture_size": 100}, "picture_size: expected one of 128, 84, 64, got 100"),
        ({"reward": {"gama": 1}}, "reward: unknown field 'gama'; did you mean 'gamma'. valid fields: .*gamma"),
    ],
)
def test_refuses(fields, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**fields)


def test_stop_at_success_may_be_off():
    assert TrainConfig(stop_at_success=None).stop_at_success is None


def test_round_trip_through_plain_values():
    config = TrainConfig(levels=("a", "b"), reward=RewardConfig(gold=0.5), output=Path("x"))
    assert build(TrainConfig, config.to_dict()) == config


def test_the_folder_of_a_run_has_a_name_that_can_be_one(tmp_path):
    levels = ("pack.txt#" + ",".join(map(str, range(200))),)
    folder = TrainConfig(levels=levels, output=tmp_path).run_folder
    folder.mkdir()
    assert folder.name.startswith("pack.txt#0,1,2,3")
    assert folder.name.endswith("-seed0")


def test_every_field_has_a_line_of_documentation():
    tree = ast.parse(inspect.getsource(module))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "TrainConfig").body
    documented = {
        field.target.id
        for field, after in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr)
    }
    assert documented == {field.name for field in dataclasses.fields(TrainConfig)}
