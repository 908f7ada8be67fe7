"""A package without sources, as frozen applications have it, shows the same names and never runs stale code."""

import compileall
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config

import nclone_env

PACKAGE = Path(nclone_env.__file__).parent
PROGRAM = """
import nclone_env
from nclone_env.sim.trigonometry import wrap

assert {"NPlusPlusEnv", "simulate"} <= set(nclone_env.__all__)
print(nclone_env.Action.JUMP, nclone_env.NPlusPlusEnv.__name__, wrap(4.0), sum(wrap.stats.cache_hits.values()))
"""


def copy_without_sources(folder: Path, constant: str) -> None:
    """Write the package compiled, with another constant in a module that kernels read."""
    shutil.rmtree(folder / "nclone_env", ignore_errors=True)
    shutil.copytree(PACKAGE, folder / "nclone_env", ignore=shutil.ignore_patterns("__pycache__", "policies", "_levels"))
    path = folder / "nclone_env" / "sim" / "trigonometry.py"
    path.write_text(path.read_text() + constant)
    compileall.compile_dir(folder, quiet=2, legacy=True)
    for file in folder.rglob("*.py"):
        file.unlink()


def run(folder: Path) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "NCLONE_ENV_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-P", "-c", PROGRAM]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")
def test_a_package_without_sources(tmp_path):
    copy_without_sources(tmp_path, "")
    first, second = run(tmp_path), run(tmp_path)
    assert first[-1] == "0"
    assert second[-1] == "1"
    assert first[:-1] == second[:-1]
    copy_without_sources(tmp_path, "\n\nTWO_PI = 1.0\n")
    edited = run(tmp_path)
    assert edited[-1] == "0"
    assert edited[-2] != first[-2]
