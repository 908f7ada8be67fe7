"""Shards that are killed end with the results of one process."""

import random

import pytest

from nclone_env.jobs import Solving, merge, run
from profiling.checks import shards
from profiling.checks.shards import contents, kill_shards


@pytest.mark.slow
def test_killed_shards_are_merged_to_the_files_of_one_process(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_LONGEST", 2.5)
    job = Solving(("first-steps", "jumps") * 4, frames=60_000)
    kill_shards(job, tmp_path / "parts", 6, random.Random(0))
    merge([tmp_path / "parts"], tmp_path / "merged")
    run(job, tmp_path / "one")
    assert contents(tmp_path / "merged") == contents(tmp_path / "one")
    assert len(contents(tmp_path / "one")) > 20
