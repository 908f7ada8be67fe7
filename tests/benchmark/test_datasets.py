"""Episodes of submissions and recordings as data, without Minari: ``tests/compat/test_minari.py`` writes data sets."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from nclone_env import create_environment
from nclone_env.benchmark import export_dataset, played
from nclone_env.benchmark.datasets import observed
from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError
from nclone_env.level import known_solutions
from nclone_env.replay import Recording
from nclone_env.train import SILENT, Hooks

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


class Minari:
    """What is used of it: a data set is a folder with a file ``data``."""

    def __init__(self, root, meanwhile=lambda path: None):
        self.root, self.meanwhile, self.storage = root, meanwhile, self

    def optional_module(self, name, extra):
        return self

    def parse_dataset_id(self, name):
        return name

    def get_dataset_path(self, name):
        return str(self.root / name)

    def EpisodeBuffer(self, **fields):
        return fields

    def create_dataset_from_buffers(self, name, buffers, env, **_):
        path = self.root / name
        self.meanwhile(path)
        if path.exists():
            raise ValueError(f"A Minari dataset with ID {name} already exists and it cannot be overridden.")
        path.mkdir(parents=True)
        (path / "data").write_text(str(len(list(buffers))))
        return self

    def get_average_reference_score(self, env, policy, episodes):
        return 0.0

    def update_metadata(self, metadata):
        assert metadata["ref_max_score"] > 0


def export(monkeypatch, minari, name="a/b-v0", hooks=SILENT):
    monkeypatch.setattr("nclone_env.benchmark.datasets.optional_module", minari.optional_module)
    return export_dataset(name, played(["first-steps/01-walk"], CONFIG), "", hooks)


def test_a_data_set_of_another_program_is_never_removed(tmp_path, monkeypatch):
    """It comes into being between the check of the name and the writing."""

    def other(path):
        path.mkdir(parents=True)
        (path / "data").write_text("theirs")

    with pytest.raises(ConfigError, match="name: expected one that is free, got a/b-v0, which appeared just now"):
        export(monkeypatch, Minari(tmp_path, other))
    assert (tmp_path / "a/b-v0/data").read_text() == "theirs"
    with pytest.raises(ConfigError, match="name: expected one that is free, got a/b-v0; 'minari delete a/b-v0'"):
        export(monkeypatch, Minari(tmp_path))


def test_the_second_export_of_a_name_is_told(tmp_path, monkeypatch):
    seen = []

    def second(path):
        with ThreadPoolExecutor(1) as executor:
            same = executor.submit(export, monkeypatch, Minari(tmp_path))
            with pytest.raises(ConfigError, match="another process is writing there; wait for it, or name another"):
                same.result()
            executor.submit(export, monkeypatch, Minari(tmp_path), "a/c-v0").result()
        seen.append(path)

    export(monkeypatch, Minari(tmp_path, second))
    assert len(seen) == 1
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        "a/b-v0/data",
        "a/c-v0/data",
    }


def test_an_export_that_fails_leaves_nothing_of_its_own(tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(monkeypatch, Minari(tmp_path), hooks=Hooks(on_level=fail))
    assert list((tmp_path / "a").iterdir()) == []
