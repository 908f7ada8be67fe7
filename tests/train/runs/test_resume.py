"""A run that was stopped and resumed ends bit for bit as one that was not, whatever the threads and environments."""

import pytest

from nclone_env.train import make_environments, train
from nclone_env.train.runs import resume

from ..runs import config, contents, until, untimed
from ..stub import LineWorld

pytestmark = pytest.mark.usefixtures("at_once")
CASES = pytest.mark.parametrize(
    ("make_envs", "fields"),
    [
        (LineWorld, {}),
        (LineWorld, {"num_envs": 80, "total_timesteps": 80 * 16 * 4, "shared_trunk": False}),
        pytest.param(LineWorld, {"frame_stack": 3}, marks=pytest.mark.slow),
        pytest.param(
            LineWorld, {"recurrent_size": 8, "num_envs": 80, "total_timesteps": 80 * 16 * 4}, marks=pytest.mark.slow
        ),
        (make_environments, {"recurrent_size": 8, "frame_stack": 2, "shared_trunk": False}),
        (make_environments, {"levels": ("first-steps", "hazards"), "frame_skip": 8}),
        (make_environments, {"frame_stack": 2, "num_envs": 8}),
        (LineWorld, {"curriculum": "progress", "held_out": 0.33, "evaluation_interval": 1}),
        (
            make_environments,
            {
                "levels": ("first-steps/06-hop", "first-steps/02-step", "hazards/02-minefield"),
                "max_frames": 400,
                "num_steps": 64,
                "total_timesteps": 32 * 64 * 4,
                "starts": ("known",),
                "curriculum": "progress",
                "held_out": 0.34,
                "evaluation_interval": 3,
            },
        ),
    ],
    ids=["toy", "groups", "stacks", "memory", "memory and stacks", "real", "real stacks", "curriculum", "starts"],
)


def stopped_after(updates, settings, make_envs, source=None):
    return train(settings, until(updates), resume=source, make_envs=make_envs)


@CASES
def test_a_resumed_run_is_the_whole_run(tmp_path, make_envs, fields):
    whole = train(config(tmp_path, name="whole", num_threads=1, **fields), make_envs=make_envs)
    other = train(config(tmp_path, name="other", num_threads=1, seed=1, **fields), make_envs=make_envs)
    assert whole.counters.episodes > 10
    part = stopped_after(1, config(tmp_path, name="part", num_threads=2, **fields), make_envs)
    assert part.interrupted
    assert part.counters.updates == 1
    part = stopped_after(2, config(tmp_path, num_threads=1, **fields), make_envs, part.checkpoint)
    assert part.counters.updates == 3
    ended = train(config(tmp_path, num_threads=2, **fields), resume=part.checkpoint.parent, make_envs=make_envs)
    assert not ended.interrupted
    assert ended.checkpoint == part.checkpoint == tmp_path / "part" / "checkpoint.pt"
    assert contents(ended.checkpoint) == contents(whole.checkpoint)
    assert untimed(ended.curve) == untimed(whole.curve)
    chosen = [name for name in ("held_out", "selection") if contents(whole.checkpoint)[name]]
    assert bool(chosen) == ("curriculum" in fields)
    assert (tmp_path / "part" / "levels.csv").read_text() == (tmp_path / "whole" / "levels.csv").read_text()
    for part_of_it in ("policy", "episodes", "observations", "environments", *chosen):
        assert contents(other.checkpoint)[part_of_it] != contents(whole.checkpoint)[part_of_it]


def test_a_run_can_be_resumed_before_its_first_update(tmp_path):
    whole = train(config(tmp_path, name="whole"), make_envs=LineWorld)
    part = stopped_after(0, config(tmp_path, name="part"), LineWorld)
    assert part.counters.updates == 0
    assert contents(part.checkpoint)["curve"] == []
    ended = train(config(tmp_path), resume=part.checkpoint, make_envs=LineWorld)
    assert contents(ended.checkpoint) == contents(whole.checkpoint)


def test_a_complete_run_is_not_continued(tmp_path):
    whole = train(config(tmp_path, name="whole"), make_envs=LineWorld)
    before = whole.checkpoint.read_bytes()
    again = train(config(tmp_path), resume=whole.checkpoint, make_envs=LineWorld)
    assert not again.interrupted
    assert whole.checkpoint.read_bytes() == before


@pytest.mark.parametrize("part", ["_restore_environments", "_restore_episodes"])
def test_a_resume_that_forgets_something_is_noticed(tmp_path, monkeypatch, part):
    whole = train(config(tmp_path, name="whole"), make_envs=LineWorld)
    stopped = stopped_after(2, config(tmp_path, name="part"), LineWorld)
    monkeypatch.setattr(resume, part, lambda run, state: None)
    ended = train(config(tmp_path), resume=stopped.checkpoint, make_envs=LineWorld)
    assert contents(ended.checkpoint) != contents(whole.checkpoint)
