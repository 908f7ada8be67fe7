"""Episodes of submissions and recordings as data, without Minari: ``tests/compat/test_minari.py`` writes data sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nclone_env import create_environment
from nclone_env.benchmark import played
from nclone_env.benchmark.datasets import observed
from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError
from nclone_env.level import known_solutions
from nclone_env.replay import Recording

from .bases import TRACK, honest

CONFIG = EnvironmentConfig(observations=("game_state", "entity_states"), max_frames=1200)


def test_all_attempts_of_a_submission_are_played_by_the_rules_of_its_track(tmp_path):
    honest().save(tmp_path / "right.zip")
    found = played([tmp_path / "right.zip"], CONFIG.replace(frame_skip=1, max_frames=7))
    assert (found.config.frame_skip, found.config.max_frames) == (TRACK.frame_skip, TRACK.max_frames)
    assert found.levels == 2 * [level for level in range(16) for _ in range(16)]
    assert sum(map(len, found.actions)) == sum(run.sampled.steps.sum() for run in honest().runs)
    won = np.concatenate([run.sampled.ends["won"] for run in honest().runs])
    ends = [episode["terminations"][-1] and episode["rewards"][-1] > 5 for episode in observed(found)]
    np.testing.assert_array_equal(ends, won)


def test_episodes_are_those_of_a_single_environment():
    found = played(["hazards", "jumps/05-tower"], CONFIG)
    env = create_environment(found.config)
    for level, actions, episode in zip(found.levels, found.actions, observed(found), strict=True):
        seen, _ = env.reset(options={"level": level})
        for step, action in enumerate(actions):
            assert {name: array.tobytes() for name, array in seen.items()} == {
                name: rows[step].tobytes() for name, rows in episode["observations"].items()
            }
            seen, reward, terminated, _, _ = env.step(action)
            assert reward == episode["rewards"][step]
        assert terminated
        assert episode["observations"]["game_state"][-1].tobytes() == seen["game_state"].tobytes()
        assert len(episode["observations"]["game_state"]) == len(actions) + 1


def test_recordings_join_the_levels_of_a_track(tmp_path):
    honest().save(tmp_path / "right.zip")
    level = TRACK.levels[3].reference
    inputs = np.frombuffer(known_solutions()[level], np.uint8)
    Recording.of(level, inputs, {}).save(tmp_path / "known.replay")
    Recording.of(level, inputs[:20], {}).save(tmp_path / "short.replay")
    (tmp_path / "bad.replay").write_bytes((tmp_path / "known.replay").read_bytes()[:-9])
    found = played([tmp_path / name for name in ("right.zip", "bad.replay", "known.replay", "short.replay")], CONFIG)
    assert len(found.config.levels) == 16
    assert found.levels[512:] == [3]
    assert [*found.skipped] == [str(tmp_path / name) for name in ("bad.replay", "short.replay")]
    for name, reason in (("bad", "bad.replay: .*: expected .*, got"), ("short", "it does not finish its level")):
        with pytest.raises(ConfigError, match=f"expected submissions, or recordings that finish their .*{reason}"):
            played([tmp_path / f"{name}.replay"], CONFIG)


def test_episodes_that_end_elsewhere_are_refused():
    found = played(["first-steps"], CONFIG)
    longer = found._replace(actions=[*found.actions[:2], np.append(found.actions[2], 0), *found.actions[3:]])
    with pytest.raises(ConfigError, match="sources: expected episodes that end with their last action, unlike 2"):
        list(observed(longer))


def test_submissions_of_several_tracks_are_refused(tmp_path, monkeypatch):
    other = replace(honest(), track="Generated-v1")
    found = {"right": honest(), "other": other}
    monkeypatch.setattr("nclone_env.benchmark.datasets.read_submission", lambda file: found[file.stem])
    with pytest.raises(ConfigError, match="expected submissions of one track, got Builtin-v1, Generated-v1"):
        played([tmp_path / "right.zip", tmp_path / "other.zip"], CONFIG)
