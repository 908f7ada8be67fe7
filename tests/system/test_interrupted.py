"""Runs that are killed or asked to stop at every point end as a run that was not; see ``interrupted.py``."""

import json
import subprocess
import sys

import pytest

from ..processes import REPOSITORY
from .interrupted import POINTS, UPDATES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupted")
    command = [sys.executable, "-m", "tests.system.interrupted", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "results.json").read_text())


def left_by(run):
    """Return what a run leaves behind, as ``interrupted.state`` does."""
    return {name: run[name] for name in ("files", "latest", "best", "csv", "shown")}


def test_a_killed_run_leaves_the_same_files_with_the_same_contents(outcome):
    assert {point for run in outcome["killed"] for point in run["kills"]} >= set(POINTS)
    for run in outcome["killed"]:
        assert len(set(run["kills"])) > 4
        assert run["leftovers"] > 0, "some kills leave a half-written file"
        assert left_by(run) == outcome["reference"]


def test_the_runs_have_something_to_compare(outcome):
    reference = outcome["reference"]
    assert reference["latest"]["counters"]["updates"] == UPDATES
    assert reference["latest"]["counters"]["episodes"] > 50
    assert reference["latest"]["episodes"]["vector_steps"] == 16 * UPDATES
    assert reference["csv"] == 1 + UPDATES
    assert reference["shown"] == [512 * update for update in range(1, 1 + UPDATES)]
    assert not [name for name in reference["files"] if name.startswith(".") and name != ".lock"]
    for part in ("policy", "optimiser", "environments", "episodes", "curve"):
        assert outcome["other"]["latest"][part] != reference["latest"][part], "another seed gives another run"


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_saves_and_says_how_to_go_on(outcome, name, code):
    run = outcome["stopped"][name]
    assert run["code"] == code
    assert run["updates"] == 3, "the update is finished; no checkpoint was due"
    assert "stopping after this update" in run["said"]
    assert "stopped and saved after 1,536 timesteps; continue with\n" in run["said"]
    assert "train --resume " in run["said"].splitlines()[-1]
    assert run["code_after"] == 0
    assert left_by(run) == outcome["reference"]


def test_a_second_signal_ends_at_once_with_the_last_checkpoint_intact(outcome):
    run = outcome["stopped"]["both"]
    assert run["code"] == -2
    assert run["updates"] == 2
    assert "stopped and saved" not in run["said"]
    assert run["code_after"] == 0
    assert run["latest"] == outcome["reference"]["latest"]
