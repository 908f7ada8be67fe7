"""Demonstrations: recordings and solutions become trajectories of the environment that win."""

import numpy as np
import pytest

from nclone_env.errors import ConfigError, RecordingError, UnknownLevelError
from nclone_env.game import CELEBRATING, INPUT_OF_ACTION
from nclone_env.level.load import load_level
from nclone_env.level.solutions import known_solutions
from nclone_env.replay.recording import Recording
from nclone_env.sim.trajectory import simulate
from nclone_env.train.config import TrainConfig
from nclone_env.train.learn.demonstrations import (
    demonstrate,
    held_actions,
    most_frequent_actions,
    play_actions,
    read_demonstrations,
)

LEVELS = ("first-steps/02-step", "hazards/04-mine-pit", "jumps/03-islands", "jumps/05-tower")
CONFIG = TrainConfig().unstacked_environment


def late(level, frames):
    """Return a winning recording whose inputs change at no multiple of 4: a solution that begins some frames later."""
    inputs = np.frombuffer(bytes(frames) + known_solutions()[level], np.uint8)
    wins = np.flatnonzero(simulate(level, inputs).state == CELEBRATING)
    return inputs[: wins[0] + 1]


def wins_with(level, actions, frame_skip):
    inputs = np.repeat(np.array(INPUT_OF_ACTION, np.uint8)[actions], frame_skip)
    return bool((simulate(level, inputs).state == CELEBRATING).any())


@pytest.mark.parametrize("frame_skip", [2, 4])
@pytest.mark.parametrize("level", LEVELS)
def test_held_actions_win(level, frame_skip):
    inputs = late(level, 1)
    actions = held_actions(load_level(level), inputs, frame_skip)
    assert wins_with(level, actions, frame_skip)
    assert abs(len(actions) * frame_skip - len(inputs)) < 20 * frame_skip


def test_the_most_frequent_actions_alone_do_not_win():
    """Negative control: without the search, holding what a recording does most of the time loses its way."""
    lost = [level for level in LEVELS if not wins_with(level, most_frequent_actions(late(level, 1), 4), 4)]
    assert "jumps/05-tower" in lost


def test_recordings_that_can_be_held_are_followed_exactly():
    for level in LEVELS:
        inputs = np.frombuffer(known_solutions()[level], np.uint8)
        actions = held_actions(load_level(level), inputs, 4)
        held = np.repeat(np.array(INPUT_OF_ACTION, np.uint8)[actions], 4)
        runs = [simulate(level, codes) for codes in (inputs, held[: len(inputs)])]
        np.testing.assert_array_equal(runs[0].x, runs[1].x)
        np.testing.assert_array_equal(runs[0].y, runs[1].y)


def test_most_frequent_actions():
    inputs = np.array([2, 2, 3, 2, 6, 4, 7, 1, 1], np.uint8)  # left wins over right
    assert most_frequent_actions(inputs, 4).tolist() == [2, 1, 3]


def test_a_run_on_mirror_images_demonstrates_the_level_itself():
    (trajectory,) = demonstrate((LEVELS[0],), CONFIG.replace(mirrored=True)).trajectories
    (expected,) = demonstrate((LEVELS[0],), CONFIG).trajectories
    np.testing.assert_array_equal(trajectory.observations["game_state"], expected.observations["game_state"])


def test_trajectories_are_those_of_the_environment():
    (trajectory,) = demonstrate((LEVELS[0],), CONFIG).trajectories
    steps = len(trajectory.actions)
    assert trajectory.observations["game_state"].shape == (steps + 1, 30)
    assert trajectory.terminated
    assert trajectory.rewards[-1] > 9, "the exit"
    assert len(np.unique(trajectory.observations["game_state"], axis=0)) == steps + 1


def test_masks_allow_every_label():
    masked = CONFIG.replace(observations=("game_state", "action_mask"))
    for trajectory in demonstrate(LEVELS, masked).trajectories:
        masks = trajectory.observations["action_mask"][:-1]
        assert masks[np.arange(len(masks)), trajectory.actions].all()


@pytest.mark.parametrize("frame_skip", [4, 6])
def test_planned_demonstrations_are_made_for_the_frame_skip(frame_skip):
    config = CONFIG.replace(levels=("first-steps/02-step", "hazards/04-mine-pit"), frame_skip=frame_skip)
    made = demonstrate(("planned",), config)
    assert made.sources == ["first-steps/02-step", "hazards/04-mine-pit"]
    for level, trajectory in zip(made.sources, made.trajectories, strict=True):
        assert wins_with(level, trajectory.actions, frame_skip)
        known = len(known_solutions()[level]) / frame_skip
        assert len(trajectory.actions) < 1.1 * known + 2
        assert np.count_nonzero(np.diff(trajectory.actions)) < 12


def test_recordings_come_before_plans():
    config = CONFIG.replace(levels=("first-steps/02-step",))
    assert demonstrate(("planned", "jumps/03-islands"), config).sources == ["jumps/03-islands", "first-steps/02-step"]


def test_files(tmp_path):
    winning, losing = tmp_path / "win.replay", tmp_path / "lose.replay"
    Recording.of(LEVELS[0], late(LEVELS[0], 2)).save(winning)
    Recording.of(LEVELS[0], bytes(50)).save(losing)
    made = demonstrate((losing, str(winning), "jumps"), CONFIG)
    assert made.sources[0] == str(winning)
    assert len(made.trajectories) == 1 + 5
    assert made.skipped == {str(losing): "it does not finish its level"}
    short = demonstrate((winning,), CONFIG.replace(max_frames=100))
    assert short.skipped == {str(winning): "it takes more than max_frames = 100 frames"}


def test_faults(tmp_path):
    damaged = tmp_path / "damaged.replay"
    Recording.of(LEVELS[0], bytes(9)).save(damaged)
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(RecordingError, match=r"damaged\.replay"):
        demonstrate((damaged,), CONFIG)
    with pytest.raises(UnknownLevelError, match="nowhere"):
        demonstrate(("nowhere",), CONFIG)


def test_levels_without_a_known_solution_are_named(monkeypatch):
    monkeypatch.setattr("nclone_env.train.learn.demonstrations.known_solutions", dict)
    with pytest.raises(ConfigError, match="got 'jumps/05-tower'; record one with"):
        list(read_demonstrations((LEVELS[3],)))


def test_a_demonstration_repeats_no_action_at_random():
    level = LEVELS[1]
    actions = held_actions(load_level(level), late(level, 1), 4)
    plain, sticky = (
        play_actions(load_level(level), actions, CONFIG.replace(action_repeat_probability=chance))
        for chance in (0.0, 0.5)
    )
    assert sticky.actions.tolist() == plain.actions.tolist() == actions.tolist()


def test_actions_that_do_not_win_give_no_trajectory():
    assert play_actions(load_level(LEVELS[0]), np.zeros(5, np.int64), CONFIG) is None
