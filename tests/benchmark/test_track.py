"""Tracks are what their digests say, and their modes allow what they should."""

import hashlib
from dataclasses import replace

import pytest

from nclone_env.benchmark import load_track
from nclone_env.benchmark import track as track_module
from nclone_env.benchmark.track import DIGESTS, FOLDER, TRACK_NAMES, track_levels
from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError


@pytest.mark.parametrize("name", TRACK_NAMES)
def test_files_never_change(name):
    """A change to a track is a new track, under a name with another version."""
    track = load_track(name)
    assert hashlib.sha256((FOLDER / f"{name.lower()}.toml").read_bytes()).hexdigest() == DIGESTS[name] == track.digest
    assert len({level.digest for level in track.levels}) == len(track.levels)
    assert len(track.levels) % track.bands == 0
    assert all(0 < level.frames <= track.max_frames for level in track.levels)
    assert track.modes
    assert track.budgets


def test_every_file_is_a_track():
    assert {path.stem for path in FOLDER.glob("*.toml")} == {name.lower() for name in TRACK_NAMES}


def test_a_changed_file_is_refused(tmp_path, monkeypatch):
    text = (FOLDER / "builtin-v1.toml").read_text().replace("max_frames = 1200", "max_frames = 2400")
    (tmp_path / "builtin-v1.toml").write_text(text)
    monkeypatch.setattr(track_module, "FOLDER", tmp_path)
    track_module._read_track.cache_clear()
    with pytest.raises(ConfigError, match=r"track: expected Builtin-v1 with digest ee16\w+, got \w+"):
        load_track("Builtin-v1")


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match=r"track: expected .* got 'builtin-v1'; did you mean 'Builtin-v1'"):
        load_track("builtin-v1")
    with pytest.raises(ConfigError, match="mode: expected one of state, pixels, look-ahead, got 'statse'"):
        load_track("Builtin-v1").environment("statse")


def test_a_mode_sets_the_rules_and_allows_its_observations():
    track = load_track("Builtin-v1")
    given = EnvironmentConfig(observations=("locals",), frame_skip=1, max_frames=10, mirrored=True)
    config = track.environment("state", given.replace(action_repeat_probability=0.25))
    rules = config.frame_skip, config.max_frames, config.mirrored, config.action_repeat_probability
    assert rules == (4, 1200, False, 0.0)
    assert config.observations == ("locals",)
    assert track.environment("pixels").observations == ("player_frame", "global_view")
    with pytest.raises(ConfigError, match=r"observations: expected those of mode 'state' \(.*\), got action_outcomes"):
        track.environment("state", EnvironmentConfig(observations=("game_state", "action_outcomes")))


def test_built_in_levels():
    levels = track_levels(load_track("Builtin-v1"))
    assert len(levels) == 16
    assert levels[0].name == "first-steps/01-walk"


@pytest.mark.parametrize(("name", "count"), [("Generated-v1", 1000), ("Planning-v1", 100)])
def test_generated_levels_are_part_of_the_package(name, count):
    track = load_track(name)
    levels = track_levels(track)
    assert [level.raw.digest[:16] for level in levels] == [level.digest for level in track.levels]
    assert len(levels) == count


def test_another_level_is_refused():
    track = load_track("Planning-v1")
    other = replace(track, levels=(track.levels[0]._replace(digest="0" * 16), *track.levels[1:]))
    with pytest.raises(ConfigError, match=r"levels: expected \w+/\d+ with digest 0{16}, got \w{16}"):
        track_levels(other)
