"""The wheel is complete: built, installed into an empty folder, and run from there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("build")
pytest.importorskip("hatchling")

ROOT = Path(__file__).parents[1]
POLICIES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "nclone_env" / "policies").iterdir())
LEVELS = sorted(path.relative_to(ROOT / "levels").as_posix() for path in (ROOT / "levels").rglob("*.toml"))
EXAMPLE = """
import gymnasium
import nclone_env
from pathlib import Path
assert Path(nclone_env.__file__).is_relative_to({folder!r}), nclone_env.__file__
env = gymnasium.make("nclone/NPlusPlus-v0", levels="first-steps")
observation, info = env.reset(seed=1)
for _ in range(10):
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
print(len(env.unwrapped.level_names), info["level"], observation["global_view"].shape)
"""


def run(*command, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_contains_the_package_its_levels_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert LEVELS
    assert {f"nclone_env/_levels/{name}" for name in LEVELS} <= names
    assert POLICIES
    assert set(POLICIES) <= names
    assert {"nclone_env/py.typed", "nclone_env/memory/report.html.jinja"} <= names
    tops = {name.split("/")[0] for name in names}
    assert len(tops) == 3
    assert {top.split("-")[0] for top in tops} == {"nclone_env", "nclone_env_pytest.py"}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "nclone_env").rglob("*.py")}
    assert modules | {"nclone_env_pytest.py"} == {name for name in names if name.endswith(".py")}


def test_the_installed_wheel_runs_from_any_folder(wheel, tmp_path):
    folder, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile")
    run(*pip, "--target", str(folder), str(wheel))
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    told = run(sys.executable, "-c", EXAMPLE.format(folder=str(folder)), cwd=elsewhere, env=environment)
    assert told.split()[0] == str(sum(name.startswith("first-steps/") for name in LEVELS))
    assert told.split()[1].startswith("first-steps/")
    markers = run(sys.executable, "-m", "pytest", "--markers", cwd=elsewhere, env=environment)
    assert "@pytest.mark.flat_memory(steps=100" in markers
