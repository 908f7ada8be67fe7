"""A package without sources, as frozen applications have it, shows the same names and never runs stale code."""

import compileall
import shutil
from pathlib import Path

import pytest
from numba import config

import nclone_env

from .processes import run_copy

PACKAGE = Path(nclone_env.__file__).parent
PROGRAM = """
from pathlib import Path
import nclone_env
from nclone_env.sim.trigonometry import wrap

assert not list(Path(nclone_env.__file__).parent.rglob("*.py"))
assert {"NPlusPlusEnv", "simulate"} <= set(dir(nclone_env))
print(nclone_env.Action.JUMP, nclone_env.NPlusPlusEnv.__name__, wrap(4.0), sum(wrap.stats.cache_hits.values()))
"""


ROOMS = ("gallery", "generate", "train", "cli", "replay", "plan", "profiler", "benchmark", "jobs")
LEFT_OUT = ("__pycache__", "policies", "recipes", "_levels", *ROOMS)


def remove_sources(folder: Path) -> None:
    """Put compiled modules into the places of the sources in a folder."""
    compileall.compile_dir(folder, quiet=2, legacy=True)
    for file in folder.rglob("*.py"):
        file.unlink()


def run(folder: Path) -> list[str]:
    (folder / "program").write_text(PROGRAM)
    return run_copy(folder / "program", NCLONE_ENV_CACHE_DIR=str(folder / "cache"))[0].split()


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")
def test_a_package_without_sources(tmp_path):
    left_out = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(PACKAGE, tmp_path / "nclone_env", ignore=left_out)
    remove_sources(tmp_path)
    first, second = run(tmp_path), run(tmp_path)
    assert first[-1] == "0"
    assert second[-1] == "1"
    assert first[:-1] == second[:-1]
    path = Path("sim") / "trigonometry.py"  # with another constant, which kernels read
    (tmp_path / "nclone_env" / path).write_text((PACKAGE / path).read_text() + "\n\nTWO_PI = 1.0\n")
    remove_sources(tmp_path)
    edited = run(tmp_path)
    assert edited[-1] == "0"
    assert edited[-2] != first[-2]
