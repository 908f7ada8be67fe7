"""Runs that begin with the policy of another run."""

import pytest
import torch

from nclone_env.errors import CheckpointError, ConfigError
from nclone_env.train.config import TrainConfig
from nclone_env.train.hooks import Hooks
from nclone_env.train.loop import train
from nclone_env.train.policies.checkpoint import initial_policy, load_checkpoint

from ..train.runs import config
from ..train.stub import LineWorld


def parameters_at_the_start(tmp_path, name, shared, **options):
    """Return the parameters of a run before its first update, from its checkpoint."""
    settings = config(tmp_path, name=name, seed=7, shared_trunk=shared)
    result = train(settings, Hooks(stop=lambda: True), make_envs=LineWorld, **options)
    return load_checkpoint(result.checkpoint)


@pytest.mark.parametrize("shared", [False, True])
def test_a_run_begins_from_it_with_new_counters_and_a_new_value_function(tmp_path, shared):
    first = train(config(tmp_path, name="first", shared_trunk=shared), make_envs=LineWorld)
    begun = parameters_at_the_start(tmp_path, "second", shared, init=tmp_path / "first")
    fresh = parameters_at_the_start(tmp_path, "third", shared)
    saved = load_checkpoint(first.checkpoint)
    assert begun.counters == {"timesteps": 0, "updates": 0, "episodes": 0}
    assert begun.optimiser["count"] == 0
    assert not begun.optimiser["mean"].any()
    assert not len(begun.curve["values"])
    for name, value in begun.policy.items():
        assert torch.equal(value, (fresh if name.startswith("critic") else saved).policy[name])
    first_layer = "trunk.0.weight" if shared else "actor.0.weight"
    assert not torch.equal(fresh.policy[first_layer], saved.policy[first_layer])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hidden_size": 16}, "expected a policy with hidden_size 16, got 32; pass --hidden-size 32$"),
        ({"shared_trunk": False}, "expected a policy with shared_trunk False, got True; pass --shared-trunk$"),
        ({"frame_stack": 2}, "expected a policy with frame_stack 2, got 1"),
        ({"local_position": True}, "expected a policy with local_position True, got False; pass --no-local-position$"),
        ({"paths": "doors"}, "expected a policy with paths doors, got tiles; pass --paths tiles$"),
        ({"locals_planes": 2}, "expected a policy with locals_planes 2, got 1; pass --locals-planes 1$"),
        (
            {"observations": ("game_state", "player_frame")},
            "expected a policy with observations game_state player_frame, got game_state; pass --obs.* game_state$",
        ),
    ],
)
def test_another_network_or_other_observations_are_refused(tmp_path, fields, message):
    first = train(config(tmp_path, name="first", total_timesteps=1), make_envs=LineWorld)
    with pytest.raises(CheckpointError, match=f"first/checkpoint.pt: {message}"):
        initial_policy(config(tmp_path, **fields), first.checkpoint)


def test_a_missing_file_and_a_resumed_run_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="expected a checkpoint file"):
        train(config(tmp_path), init=tmp_path / "nothing", make_envs=LineWorld)
    first = train(config(tmp_path, name="first", total_timesteps=1), make_envs=LineWorld)
    with pytest.raises(ConfigError, match="init: expected none with resume"):
        train(TrainConfig(), resume=first.checkpoint, init=first.checkpoint, make_envs=LineWorld)
