"""Training configuration: defaults are valid, invalid values are rejected by name."""

import dataclasses
import json
import pickle
from pathlib import Path

import pytest

from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError
from nclone_env.options import flat
from nclone_env.train.config import PPOConfig, TrainConfig


def test_derived_sizes():
    config = TrainConfig.of(num_envs=10, num_steps=6, num_minibatches=4, total_timesteps=100)
    assert (config.batch_size, config.minibatch_size, config.num_updates) == (60, 15, 2)


def test_options_are_named_as_on_the_command_line():
    config = TrainConfig.of(levels="jumps", frame_skip=2, max_frames=300, reward={"gamma": 0.9}, split_seed=64)
    environment = config.environment
    assert environment.levels == ("jumps",)
    assert (environment.frame_skip, environment.max_frames, environment.reward.gamma) == (2, 300, 0.9)
    assert config.replace(seed=3, levels="hazards").environment == environment.replace(levels="hazards")


def test_a_tree_is_the_same_as_its_options():
    made = TrainConfig(environment={"levels": "jumps"}, ppo=PPOConfig(update_epochs=2), evaluation={"attempts": 3})
    assert made == TrainConfig.of(levels="jumps", update_epochs=2, evaluation_attempts=3)
    assert made.environment == EnvironmentConfig.for_parallel_training(levels="jumps")


RUN = TrainConfig.of(num_envs=16, learning_rate=0.1, reward={"death": -3.0}, held_out=0.5, output="a", name="run")


@pytest.mark.parametrize(
    ("config", "differs"),
    [
        (TrainConfig.of(), {}),
        (TrainConfig.of(total_timesteps=8192), {"total_timesteps": 8192}),
        (TrainConfig.of(learning_rate=1.5e-3), {"learning_rate": 1.5e-3}),  # its default
        (TrainConfig.of(seed=3, output="b").replace(num_envs=256), {"seed": 3, "num_envs": 256, "output": "b"}),
        (pickle.loads(pickle.dumps(TrainConfig.of(reward={"gold": 1.0}))), {"reward": {"gold": 1.0}}),
    ],
)
def test_a_run_goes_on_with_its_own_options_but_for_those_given(config, differs):
    assert config.continuing(RUN) == RUN.replace(**{"output": "runs", "name": "", **differs})


def test_a_run_goes_on_with_all_options_of_a_configuration_that_says_all():
    for config in (TrainConfig(), TrainConfig(seed=3), dataclasses.replace(TrainConfig.of(seed=3), num_steps=8)):
        assert config.continuing(RUN) == config


def test_a_policy_is_evaluated_on_levels_as_they_are():
    config = TrainConfig.of(mirrored=True)
    assert config.evaluated_environment == TrainConfig().environment != config.environment


def test_the_policy_sees_stacks_and_the_environments_return_single_observations():
    config = TrainConfig.of(frame_stack=4)
    assert config.environment.observation.frame_stack == config.frame_stack == 4
    assert config.unstacked_environment == TrainConfig().environment


def test_names_from_before_are_known():
    config = TrainConfig.of(vector_dtype="float16", picture_size=64)
    assert config == TrainConfig.of(dtype="float16", player_frame_size=64)
    assert config.environment.render.view_shape == (64, 128)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_envs": 0}, "num_envs: expected a whole number from 1 to 1048576, got 0"),
        ({"clip_coef": 0.0}, "clip_coef: expected a number from 1e-06 to 1, got 0.0"),
        ({"stop_at_success": 95}, "stop_at_success: expected a number from 0 to 1, got 95"),
        (
            {"num_envs": 7, "num_steps": 3},
            "num_minibatches: expected a divisor of num_envs . num_steps = 21, got 8; choose one of 1, 3, 7, 21$",
        ),
        ({"observations": ("game",)}, "observations: expected one of 'game_state'"),
        ({"name": "a/b"}, "name: expected a folder name without separators, neither . nor .., got 'a/b'"),
        ({"name": ".."}, "name: expected a folder name without separators, neither . nor .., got '..'"),
        ({"observations": ("graph",)}, "observations: expected none that varies in size between levels, got 'graph'"),
    ],
)
def test_refuses(fields, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig.of(**fields)


def test_round_trip_through_plain_values():
    config = TrainConfig.of(levels=("a", "b"), reward={"gold": 0.5}, output=Path("x"))
    values = flat(config)
    assert TrainConfig.of(**values) == config
    assert json.loads(json.dumps(values)) == values


def test_the_folder_of_a_run_has_a_name_that_can_be_one(tmp_path):
    levels = ("pack.txt#" + ",".join(map(str, range(200))),)
    folder = TrainConfig.of(levels=levels, output=tmp_path).run_folder
    folder.mkdir()
    assert folder.name.startswith("pack.txt#0,1,2,3")
    assert folder.name.endswith("-seed0")
