"""Dask: its executor makes the files of one process; so does the block of the page on jobs."""

import subprocess
import sys

import pytest

pytest.importorskip("distributed")

from nclone_env.jobs import Generating, Solving, run
from tests.docs.pages import ROOT
from tests.docs.test_examples import blocks


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_files_are_those_of_one_process(tmp_path, monkeypatch):
    from distributed import Client

    (recipe,) = (block for block in blocks(ROOT / "docs/levels/jobs.md", "python") if "distributed" in block)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.py").write_text(recipe)
    subprocess.run([sys.executable, "recipe.py"], check=True)
    run(Solving(("first-steps",), frames=20_000), "one")
    assert contents(tmp_path / "solutions") == contents(tmp_path / "one")
    assert len(contents(tmp_path / "one")) == 7
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        run(Generating(count=3, families=("slopes",)), "dask/pack.txt", client.get_executor())
    run(Generating(count=3, families=("slopes",)), "alone/pack.txt")
    assert contents(tmp_path / "dask") == contents(tmp_path / "alone")
