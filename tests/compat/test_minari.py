"""Data sets of Minari: exported ones and collected ones give back what the environment returned, bit for bit."""

import runpy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("minari")

import minari

from nclone_env.benchmark import export_dataset, played
from nclone_env.cli.app import main
from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError

from ..benchmark.bases import TRACK, honest

SETS = ("first-steps", "jumps", "hazards")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(dataset: Any, options: bool = True) -> int:
    """Play all episodes in the recovered environment; return how many differ from each other."""
    env, returns = dataset.recover_environment(), set()
    metadata = dataset.storage.get_episode_metadata(range(dataset.total_episodes))
    for episode, stored in zip(dataset.iterate_episodes(), metadata, strict=True):
        seen, _ = env.reset(seed=stored.get("seed"), options=stored["options"] if options else None)
        for step, action in enumerate(episode.actions):
            check_equal(seen, episode.observations, step)
            seen, reward, terminated, truncated, _ = env.step(action)
            assert reward == episode.rewards[step]
            assert (terminated, truncated) == (episode.terminations[step], episode.truncations[step])
        check_equal(seen, episode.observations, len(episode))
        returns.add(float(np.sum(episode.rewards)))
    env.close()
    return len(returns)


def check_equal(seen: Any, stored: Any, step: int) -> None:
    assert seen.keys() == stored.keys()
    for name, array in seen.items():
        assert stored[name].dtype == array.dtype
        assert stored[name][step].tobytes() == array.tobytes()


def test_a_submission_becomes_a_data_set_of_all_its_attempts(folder, capsys):
    honest().save("right.zip")
    assert main(["data", "export", "right.zip", "--name", "nplusplus/right-v0", "--max-frames", "8"]) == 0
    out = capsys.readouterr().out
    assert 'load it with minari.load_dataset("nplusplus/right-v0")' in out
    dataset = minari.load_dataset("nplusplus/right-v0")
    assert dataset.total_episodes == 2 * 16 * 16
    assert dataset.total_steps == sum(run.sampled.steps.sum() for run in honest().runs)
    assert dataset.recover_environment().unwrapped.config.max_frames == TRACK.max_frames
    assert check(dataset) > 100
    lost = [not episode.terminations[-1] for episode in dataset.iterate_episodes()]
    assert any(lost)
    assert not all(lost)


def test_reference_scores_are_those_of_random_play_and_of_the_best_episodes():
    config = EnvironmentConfig(observations=("game_state", "action_mask"), max_frames=1200)
    dataset = export_dataset("nplusplus/planner-v0", played(SETS, config), "known solutions")
    returns = np.array([episode.rewards.sum() for episode in dataset.iterate_episodes()])
    assert check(dataset) == len(returns) == 16
    with pytest.raises(AssertionError):  # of other levels
        check(dataset, options=False)
    assert dataset.storage.metadata["ref_max_score"] == pytest.approx(returns.mean())
    scores = minari.get_normalized_score(dataset, np.array([dataset.storage.metadata["ref_min_score"], returns.mean()]))
    np.testing.assert_allclose(scores, (0.0, 1.0), atol=1e-6)


def test_pictures_are_stored_exactly():
    config = EnvironmentConfig(observations=("player_frame", "global_view"), max_frames=1200)
    dataset = export_dataset("nplusplus/pictures-v0", played(["first-steps/01-walk"], config), "pictures")
    assert check(dataset) == 1


def test_what_minari_collects_is_recovered():
    fields = {"levels": "hazards", "observations": ("game_state", "locals"), "max_frames": 200}
    collector = minari.DataCollector(gymnasium.make("nclone_env:nclone/NPlusPlus-v0", **fields))
    collector.action_space.seed(0)
    for seed in range(6):
        collector.reset(seed=seed)
        over = False
        while not over:
            over = any(collector.step(collector.action_space.sample())[2:4])
    dataset = collector.create_dataset("nplusplus/collected-v0")
    assert check(dataset, options=False) == 6


def test_a_name_is_used_once_and_a_failure_leaves_nothing(folder):
    given = played(["first-steps"], EnvironmentConfig(observations=("game_state",), max_frames=1200))
    cut = given._replace(actions=[*given.actions[:-1], given.actions[-1][:-1]])
    with pytest.raises(ConfigError, match="expected episodes that end with their last action, unlike 5"):
        export_dataset("nplusplus/first-v0", cut, "cut short")
    assert minari.list_local_datasets() == {}
    for name in ("..", "../minari", "nplusplus", "no version", ""):
        with pytest.raises(ConfigError, match="name: expected one such as nplusplus/expert-v0, got"):
            export_dataset(name, given, "malformed")
    export_dataset("nplusplus/first-v0", given, "whole")
    with pytest.raises(ConfigError, match="name: expected one that is free, got nplusplus/first-v0"):
        export_dataset("nplusplus/first-v0", given, "again")
    assert minari.load_dataset("nplusplus/first-v0").total_episodes == 6


@pytest.mark.parametrize("algorithm", ["cloning", "iql"])
def test_the_offline_example_learns_from_a_data_set(algorithm):
    config = EnvironmentConfig(observations=("game_state",), max_frames=1200)
    export_dataset("nplusplus/known-v0", played(SETS, config), "known solutions")
    names = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "offline.py"))
    lost, learned = (
        names["main"](names["Args"]("nplusplus/known-v0", algorithm, updates=updates)).probable.ends["won"].mean()
        for updates in (1, 400)
    )
    assert learned > lost + 0.2
