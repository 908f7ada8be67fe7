from __future__ import annotations

import copy
import json

import pytest

from nclone_env.errors import ConfigError
from nclone_env.memory.changes import compare, comparison_text, different_settings, load_profile
from nclone_env.memory.report import json_text
from nclone_env.memory.stats import compute_stats

from .by_hand import measurements


@pytest.fixture
def written():
    return json.loads(json_text(compute_stats(measurements())))


def test_equal_profiles_have_no_changes(written):
    changes = compare(written, written)
    assert {change.row for change in changes} >= {
        "measured for each further environment",
        "environment / state, per environment",
        "environment / levels, shared",
        "allocated and freed by a vector step, at most",
    }
    assert not any(change.increase for change in changes)
    assert comparison_text(changes, 5, 64).startswith("no row changed by more than 5 % and 64 B")
    assert not list(different_settings(written, written))


def test_a_larger_row_is_found_and_a_smaller_one_is_shown(written):
    later = copy.deepcopy(written)
    later["owners"][2]["environment_bytes"] += 4 * 200
    later["owners"][1]["shared_bytes"] -= 1000
    exceeded = [change for change in compare(written, later) if change.exceeds(5, 64)]
    assert [change.row for change in exceeded] == ["environment / state, per environment"]
    assert exceeded[0].increase == 200
    text = comparison_text(compare(written, later), 5, 64)
    assert "environment / state, per environment" in text
    assert "-1,000 B" in text


def test_both_tolerances_must_be_exceeded(written):
    later = copy.deepcopy(written)
    later["owners"][2]["environment_bytes"] += 4 * 60  # 6 %, 60 B
    later["per_environment"]["measured"] += 40  # 4 %
    assert not any(change.exceeds(5, 64) for change in compare(written, later))
    assert sum(change.exceeds(3, 30) for change in compare(written, later)) == 2


def test_new_growth_exceeds(written):
    later = json.loads(json_text(compute_stats(measurements(traced_per_step=100))))
    assert any("traced" in change.row and change.exceeds(5, 64) for change in compare(written, later))


def test_different_settings_are_named(written):
    later = copy.deepcopy(written)
    later["facts"][0] = ["levels", "two"]
    later["settings"]["num_envs"] = 8
    assert list(different_settings(written, later)) == ["levels: one -> two", "environments: 4 -> 8"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"format": "other"}',
        '{"format": "nclone_env memory profile", "version": 3}',
        '{"format": "nclone_env memory profile", "version": 3, "per_environment": 3}',
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"x\.json: expected .* write one with nclone-env profile"):
        load_profile(path)


@pytest.mark.parametrize("version", [1, 2, 4, None, "3"])
def test_other_versions_are_refused(tmp_path, written, version):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(written | {"version": version}))
    expected = (
        rf"x\.json: expected version 3 of the format, got {version!r}, whose fields have other meanings; write one with"
    )
    with pytest.raises(ConfigError, match=expected):
        load_profile(path)
    path.write_text(json.dumps(written))
    assert load_profile(path) == written
