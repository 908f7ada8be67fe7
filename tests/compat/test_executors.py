"""Dask and mpi4py: their executors make the files of one process; so does the block of the page on jobs."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("mpi4py")

from nclone_env.jobs import Generating, Showing, Solving, run
from tests.docs.pages import ROOT
from tests.docs.test_examples import blocks
from tests.shared import contents

JOBS = {
    "solutions/x": Solving(("first-steps",), frames=20_000),
    "pack/pack.txt": Generating(count=3, families=("slopes",)),
    "gallery/x": Showing(("first-steps",)),
}
SCRIPT = """
from mpi4py.futures import MPIPoolExecutor
from tests.compat.test_executors import JOBS, run

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        assert executor.num_workers == 2
        for output, job in JOBS.items():
            run(job, f"shared/{output}", executor)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with the files that one process makes in ``one``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for output, job in JOBS.items():
        run(job, f"one/{output}")
    return tmp_path


def test_dask_makes_the_files_of_one_process(folder):
    from distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        for output, job in JOBS.items():
            run(job, f"shared/{output}", client.get_executor())
    assert contents(folder / "shared") == contents(folder / "one")
    assert len(contents(folder / "one")) > 40


def test_mpi_makes_the_files_of_one_process(folder):
    (folder / "script.py").write_text(SCRIPT)
    mpiexec = Path(sys.executable).with_name("mpiexec")
    subprocess.run([mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", "script.py"], check=True)
    assert contents(folder / "shared") == contents(folder / "one")


def test_the_block_of_the_page_runs(folder):
    (recipe,) = (block for block in blocks(ROOT / "docs/levels/jobs.md", "python") if "distributed" in block)
    (folder / "recipe.py").write_text(recipe)
    subprocess.run([sys.executable, "recipe.py"], check=True)
    assert contents(folder / "solutions") == contents(folder / "one/solutions/x")
