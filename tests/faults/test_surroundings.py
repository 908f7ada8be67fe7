"""Commands end in one line where they cannot write, and work where they need not: no space, HOME or open streams."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir

import pytest

from ..processes import REPOSITORY, run_module

ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("surroundings")
    for path in (folder, *folder.parents):
        if Path(gettempdir()) in path.parents:
            path.chmod(0o755)  # for the other users
    run_module("tests.faults.surroundings", str(folder))
    return json.loads((folder / "results.json").read_text())


def last(result):
    return result["said"].splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "file", "reason"),
    [("full disk", "level.png", "File too large"), ("read-only", "level.map", "Permission denied")],
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


def test_a_pipe_to_head_ends_quietly():
    command = f"{sys.executable} -m nclone_env levels list | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "first-steps (6 levels)"
    assert done.stdout.splitlines()[1] in ("0", "141"), "0 if all of it was in the pipe"
