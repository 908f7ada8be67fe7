"""Commands end in one line where they cannot write, and work where they need not: no space, HOME or open streams."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir

import pytest
from numba.core import config

from ..processes import REPOSITORY

ROOT = os.geteuid() == 0
compiled_only = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")


def results_of(place, *names):
    for path in (place, *place.parents):
        if Path(gettempdir()) in path.parents:
            path.chmod(0o755)  # for the other users
    command = [sys.executable, "-m", "tests.faults.surroundings", str(place), *names]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((place / "results.json").read_text())


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    names = ("commands",) if config.DISABLE_JIT else ("commands", "caches")
    return results_of(tmp_path_factory.mktemp("surroundings"), *names)


def last(result):
    return result["said"].splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "file", "reason"),
    [
        ("full disk", "level.png", "File too large"),
        ("read-only", "level.map", "Permission denied"),
    ],
)
def test_a_file_that_cannot_be_written_is_named_and_stays(results, name, file, reason):
    result = results[name]
    assert result["status"] == 1
    assert last(result).endswith(f"/{file}: {reason}")
    assert "Traceback" not in result["said"]
    assert result["before"] == result["after"], "the old file stays, and no temporary one"


@pytest.mark.parametrize("name", ["no standard output", "no standard error"])
def test_closed_streams_change_nothing(results, name):
    result = results[name]
    assert result["status"] == 0
    assert result["after"] == results["undisturbed"]["after"], "nothing is printed into the file"


def test_a_reader_that_ends_first_is_no_error(results):
    result = results["no reader"]
    assert (result["status"], result["said"]) == (141, "")


def test_output_that_cannot_be_written_is_one_line(results):
    result = results["full output"]
    assert (result["status"], result["said"]) == (1, "nclone-env: standard output: No space left on device\n")


@pytest.mark.skipif(not ROOT, reason="only root becomes another user")
def test_an_unknown_user_without_home(results):
    result = results["unknown user"]
    assert result["status"] == 0
    assert "jumps (5 levels)" in result["said"]


def hits(result):
    assert result["status"] == 0
    return int(last(result).removeprefix("hits "))


@compiled_only
def test_a_cache_that_can_only_be_read_is_read(results):
    assert (hits(results["first"]), hits(results["second"])) == (0, 1)
    cached, other = results["read-only, cached"], results["read-only, not cached"]
    assert (hits(cached), cached["said"]) == (1, "hits 1\n"), "no warning"
    if ROOT:  # otherwise the owner of the folder has written to it in spite of its mode
        assert hits(other) == 0
        assert ": Permission denied" in other["said"]
        assert other["before"] == other["after"]


@compiled_only
def test_a_damaged_kernel_is_compiled_again(results):
    damaged = results["damaged"]
    assert hits(damaged) == 0
    assert list(damaged["before"]) == list(damaged["after"])
    assert damaged["before"] != damaged["after"]


@compiled_only
@pytest.mark.parametrize(
    ("name", "reason"), [("of others", "can be written by others (chmod go-w)"), ("none", "Not a directory")]
)
def test_a_cache_that_cannot_be_trusted_is_not_read(results, name, reason):
    result = results[name]
    assert hits(result) == 0
    (warning,) = [line for line in result["said"].splitlines() if "RuntimeWarning" in line]
    assert re.search(f"compiled kernels are not cached: /[^ ]*: {re.escape(reason)}; set NCLONE_ENV_CACHE_DIR", warning)
    assert result["before"] == result["after"]


@pytest.mark.slow
def test_a_training_on_a_full_disk_keeps_the_old_checkpoint(tmp_path):
    results = results_of(tmp_path, "trainings")
    for result in (results["full disk, other run"], results["full disk, resumed"]):
        assert result["status"] == 1
        assert last(result).startswith("nclone-env: /")
        assert last(result).endswith("/runs/run/checkpoint.pt: torch cannot write it; the disk may be full")
        assert "Traceback" not in result["said"]
        old, new = result["before"], result["after"]
        assert all(old[file] == new[file] for file in old if file.endswith((".pt", ".txt", ".png", "levels.csv")))
        assert set(old) <= set(new)
        assert not [file for file in new if ".nclone_env-" in file]
    assert results["resumed"]["status"] == 0


def test_a_pipe_to_head_ends_quietly():
    command = f"{sys.executable} -m nclone_env levels list | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "first-steps (6 levels)"
    assert done.stdout.splitlines()[1] in ("0", "141"), "0 if all of it was in the pipe"
