"""Episodes of an evaluation, and recordings of the wins of a policy."""

import dataclasses

import numpy as np
import pytest

from nclone_env.cli.app import main
from nclone_env.config import EnvironmentConfig
from nclone_env.game import CELEBRATING, INPUT_OF_ACTION
from nclone_env.level.solutions import known_solutions
from nclone_env.replay.recording import load_recording
from nclone_env.train.collect.evaluate import LevelResult
from nclone_env.train.reports import report
from nclone_env.train.reports.report import default_episodes, write_recordings

LEVELS = ("first-steps/01-walk", "first-steps/02-step")


def won(level, mode="sampled", waiting=0):
    """Return a win by the known solution, after some frames of waiting."""
    inputs = np.concatenate([np.zeros(waiting, np.uint8), np.frombuffer(known_solutions()[level], np.uint8)])
    actions = np.searchsorted(INPUT_OF_ACTION, inputs, sorter=np.argsort(INPUT_OF_ACTION))
    actions = np.argsort(INPUT_OF_ACTION)[actions].astype(np.int8)
    return LevelResult(level, mode, 10, 0.5, 0.5, 1.0, 100.0, len(inputs), True, actions)


def lost(level, mode="argmax"):
    return LevelResult(level, mode, 10, 0.0, 1.0, 0.0, 50.0, None, False, np.zeros(9, np.int8))


def test_the_fastest_win_of_each_level_is_recorded(tmp_path):
    environment = EnvironmentConfig(levels=LEVELS, frame_skip=1)
    results = {
        "argmax": (won(LEVELS[0], "argmax", waiting=1), lost(LEVELS[1])),
        "sampled": (won(LEVELS[0]), lost(LEVELS[1])),
    }
    assert write_recordings(results, environment, tmp_path) == 1
    (file,) = tmp_path.iterdir()
    assert file.name == "000-first-steps-01-walk.replay"
    recording = load_recording(file)
    assert recording.inputs.tobytes() == known_solutions()[LEVELS[0]]
    assert recording.verify().state == CELEBRATING


def test_a_win_that_cannot_be_repeated_is_refused(tmp_path):
    environment = EnvironmentConfig(levels=LEVELS[:1], frame_skip=1)
    broken = dataclasses.replace(won(LEVELS[0]), actions=np.zeros(300, np.int8))
    with pytest.raises(RuntimeError, match="recordings: the win on first-steps/01-walk ends in state"):
        write_recordings({"argmax": (broken,), "sampled": (broken,)}, environment, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("levels", "episodes"), [(1, 100), (100, 100), (400, 25), (625, 16), (5000, 16)])
def test_an_evaluation_of_many_levels_plays_fewer_episodes_on_each(levels, episodes):
    assert default_episodes(levels) == episodes


def test_a_command_without_a_number_of_episodes_plays_the_default(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setattr(report, "_EPISODES_IN_ALL", 6)
    monkeypatch.setattr(report, "_LEAST_EPISODES", 2)
    command = ["evaluate", "builtin", "--no-video", "--output", str(tmp_path), "--levels"]
    assert main([*command, LEVELS[0]]) == 0
    assert "6 episodes per level" in capsys.readouterr().out
    assert main([*command, *LEVELS, "--force"]) == 0
    assert "3 episodes per level" in capsys.readouterr().out
