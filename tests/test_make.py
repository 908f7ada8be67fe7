"""What ``make`` installs for whom; nothing is run."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TRAINING, DEVELOPMENT = '-e ".[train,human,video]"', '-e ".[all,dev]"'

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def clone(tmp_path):
    """A folder as after a clone, without an environment."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def commands(folder, target):
    """Return the commands that make would run."""
    done = subprocess.run(["make", "-n", target], cwd=folder, capture_output=True, text=True, check=True)
    return [line.strip() for line in done.stdout.splitlines()]


def installed(folder, target):
    """Return what pip would install, in order."""
    return [extras for line in commands(folder, target) for extras in (TRAINING, DEVELOPMENT) if extras in line]


def stamp(folder, *names):
    (folder / ".venv").mkdir(exist_ok=True)
    for name in names:
        (folder / ".venv" / name).touch()


def test_training_installs_what_it_needs_and_tests_the_rest(clone):
    assert installed(clone, "train") == [TRAINING]
    for target in ("warmup", "lint", "types", "contract"):  # tests begin with the first
        assert installed(clone, target) == [TRAINING, DEVELOPMENT]
    stamp(clone, ".trains")
    assert installed(clone, "train") == []
    assert installed(clone, "lint") == [DEVELOPMENT]
    stamp(clone, ".trains", ".installed")
    assert installed(clone, "lint") == []


def test_without_a_gpu_pytorch_is_the_build_for_processors(clone):
    lines = commands(clone, "train")
    (pinned,) = (line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
    places = [place for place, line in enumerate(lines) if f'"{pinned}+cpu"' in line]
    command = "".join(lines[places[0] - 1 : places[-1] + 1])
    assert command.startswith("nvidia-smi -L > /dev/null 2>&1 || ls .venv/lib/python*/site-packages/torch ")
    assert lines[places[-1]].endswith("|| true"), "without such a build the other one is installed"
    assert places[-1] < next(place for place, line in enumerate(lines) if TRAINING in line)
