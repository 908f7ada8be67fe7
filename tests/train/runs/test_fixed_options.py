"""Options that a resumed run keeps: another value is refused by name, before anything is built."""

from dataclasses import replace

import pytest

from nclone_env.errors import CheckpointError
from nclone_env.options import flat
from nclone_env.train.loop import train
from nclone_env.train.runs.checkpoint import load_checkpoint, save_checkpoint
from nclone_env.train.runs.fixed_options import OF_RUN, check_resumable, option

from ..runs import config
from ..stub import LineWorld


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the configuration of a short run, and its checkpoint."""
    settings = config(tmp_path_factory.mktemp("runs"), name="first", total_timesteps=32 * 16 * 2)
    return settings, train(settings, make_envs=LineWorld).checkpoint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_steps": 32}, "num_steps: expected 16, as in the run to resume, got 32; leave out --num-steps, or begin"),
        ({"num_envs": 16}, "num_envs: expected 32, .* got 16; leave out --num-envs"),
        ({"curriculum": "progress"}, "curriculum: expected even, .* got progress; leave out --curriculum"),
        ({"starts": ("known", "a/b.replay")}, "starts: expected none, .* got known a/b.replay; leave out --starts"),
        ({"levels": ("jumps", "hazards")}, "levels: expected first-steps, .* got jumps hazards; leave out --levels"),
        ({"held_out": 0.3}, "held_out: expected 0.0, .* got 0.3; leave out --held-out"),
        ({"mirrored": True}, "mirrored: expected False, .* got True; leave out --mirrored"),
        ({"hidden_size": 8}, "hidden_size: expected 32, .* got 8; leave out --hidden-size"),
        ({"frame_stack": 2}, "frame_stack: expected 1, .* got 2; leave out --frame-stack"),
        ({"warm_start": ("jumps",), "clone_kl_coef": 0.0}, "warm_start: expected none, .* got jumps"),
    ],
)
def test_other_values_are_refused_by_name(run, changes, message):
    settings, checkpoint = run
    with pytest.raises(CheckpointError, match=f"first/checkpoint.pt: {message}"):
        train(settings.replace(**changes), resume=checkpoint, make_envs=LineWorld)


def test_all_other_options_may_change(run):
    settings, checkpoint = run
    others = {
        "total_timesteps": 32 * 16 * 3,
        "learning_rate": 1e-4,
        "num_minibatches": 2,
        "update_epochs": 1,
        "max_frames": 100,
        "clone_kl_coef": 0.1,
        "levels": ("./elsewhere/first-steps",),  # the same names in another folder
        "name": "second",
    }
    assert not {"total_timesteps", "learning_rate", "max_frames", "seed"} & set(OF_RUN)
    check_resumable(settings.replace(**others), load_checkpoint(checkpoint), checkpoint)
    ended = train(settings.replace(**others), resume=checkpoint, make_envs=LineWorld)
    assert ended.counters.timesteps == others["total_timesteps"]


def test_the_clone_of_a_warm_start_stays(run, tmp_path):
    settings, _ = run
    warm = settings.replace(warm_start=("jumps",), output=tmp_path)
    saved = saved_with(run, warm, tmp_path)
    content = load_checkpoint(saved)
    check_resumable(warm.replace(clone_kl_coef=0.1), content, saved)
    with pytest.raises(CheckpointError, match=r"clone_kl_coef: expected 0.3, .* got 0.0; leave out --clone-kl-coef"):
        check_resumable(warm.replace(clone_kl_coef=0.0), content, saved)


def test_names_are_those_of_options():
    assert option("shared_trunk", False) == "--no-shared-trunk"
    assert option("shared_trunk", True) == "--shared-trunk"
    assert option("observations", ("game_state", "locals")) == "--observations game_state locals"
    assert option("locals_size", 21) == "--locals-size 21"


def saved_with(run, settings, folder):
    """Write the checkpoint of a run as if it had these options; return its path."""
    path = folder / "checkpoint.pt"
    save_checkpoint(path, replace(load_checkpoint(run[1]), train_config=flat(settings)))
    return path
