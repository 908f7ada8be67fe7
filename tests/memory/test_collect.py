from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

from nclone_env.errors import ConfigError, MissingExtraError
from nclone_env.memory import process
from nclone_env.memory.collect import check, collect, drive, random_actions, traced_pass
from nclone_env.memory.process import resident_bytes
from nclone_env.memory.recording import ProfileSettings
from nclone_env.memory.stats import compute

from .stub import StubVectorEnv

pytestmark = pytest.mark.usefixtures("frozen_heap")

SETTINGS = ProfileSettings(16, steps=1000, interval=100)


def stats_of(**options):
    made = []

    def make(count):
        made.append(StubVectorEnv(count, **options))
        return made[-1]

    stats = compute(collect(make, SETTINGS))
    assert made
    assert all(env.closed for env in made)
    return stats


def test_without_a_leak_the_verdict_is_flat():
    stats = stats_of()
    assert stats.verdict == "flat"
    assert [item.step for item in stats.traced] == list(range(0, 1001, 100))
    assert [item.step for item in stats.resident] == list(range(0, 1001, 100))
    assert stats.owners[0].per_env_bytes == 40 * 8 + 30 * 4


def test_a_leak_of_100_bytes_a_step_is_found_with_its_line_and_rate():
    stats = stats_of(leak_bytes=100)
    traced = stats.growths[0]
    assert stats.verdict == traced.verdict == "growing"
    size = bytes(100).__sizeof__()
    assert size * 1000 < traced.slope < (size + 12) * 1000  # the object and its place in a list
    worst = stats.grown_lines[0]
    assert worst.file.endswith("stub.py")
    assert worst.grown_blocks == pytest.approx(800, abs=2)


def test_a_leak_outside_python_is_found_in_resident_memory():
    stats = stats_of(leak_pages=4)
    data = stats.growths[1]
    assert stats.verdict == data.verdict == "growing"
    assert data.slope == pytest.approx(4 * 4096 * 1000, rel=0.1)


def test_a_single_jump_is_not_a_leak():
    assert stats_of(jump_at=600).verdict == "flat"


def test_the_profiler_excludes_its_own_memory():
    steps = ProfileSettings(2, steps=100, interval=2)  # many snapshots, so that any accumulation would show
    traced, first, last = traced_pass(lambda count: StubVectorEnv(count), steps)
    assert len(traced) == 51
    assert max(item.traced_bytes for item in traced[10:]) - traced[10].traced_bytes < 512
    assert not [line for line in (*first, *last) if "nclone_env/memory" in line.file or "fnmatch" in line.file]
    assert not tracemalloc.is_tracing()


def test_tracing_started_before_continues():
    tracemalloc.start()
    try:
        traced_pass(lambda count: StubVectorEnv(count), ProfileSettings(1, steps=4, interval=2))
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_all_passes_play_the_same_actions_and_another_seed_plays_others():
    played = []
    for seed in (1, 1, 2):
        env = StubVectorEnv(3)
        env.record_actions = True
        drive(env, ProfileSettings(3, steps=300, interval=70, seed=seed), lambda step: None)
        played.append(np.array(env.actions))
    assert played[0].shape == (300, 3)
    assert played[0].min() == 0
    assert played[0].max() == 5
    assert np.array_equal(played[0], played[1])
    assert not np.array_equal(played[0], played[2])


def test_actions_are_int64_rows():
    row = next(random_actions(7, seed=0))
    assert row.shape == (7,)
    assert row.dtype == np.int64


def test_snapshots_are_taken_after_exactly_their_steps():
    env, seen = StubVectorEnv(1), []
    env.record_actions = True
    drive(env, ProfileSettings(1, steps=25, interval=10), lambda step: seen.append((step, len(env.actions))))
    assert seen == [(0, 0), (10, 10), (20, 20), (25, 25)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ProfileSettings(0), "num_envs: expected a whole number of at least 1, got 0"),
        (ProfileSettings(1, steps=0), "steps: expected a whole number of at least 1, got 0"),
        (ProfileSettings(1, interval=0), "interval: expected a whole number of at least 1, got 0"),
        (ProfileSettings(1, steps=10), "interval: expected at most the number of steps, 10, got 100"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        check(settings)


def test_resident_memory_is_plausible_and_psutil_agrees(monkeypatch):
    pytest.importorskip("psutil")
    ours = resident_bytes()
    monkeypatch.setattr(process, "_SMAPS", process.Path("/nonexistent"))
    theirs = resident_bytes()
    assert 0 < ours.data < ours.pss <= ours.rss
    assert theirs.rss == pytest.approx(ours.rss, rel=0.05)


def test_without_smaps_and_psutil_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(process, "_SMAPS", process.Path("/nonexistent"))
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(MissingExtraError, match=r"nclone-env\[profile\]"):
        resident_bytes()
