"""The notebook of the tutorial runs from its first cell to its last, and is kept small."""

import importlib.util
import json
import os
import runpy
import subprocess
import sys
import tomllib

import pytest

from .pages import ROOT

NOTEBOOK = ROOT / "docs" / "tutorial" / "tutorial.ipynb"
CELLS = json.loads(NOTEBOOK.read_text())["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]


@pytest.mark.slow
def test_the_cells_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(os.environ, "MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "notebook.py"
    script.write_text("\n".join("".join(cell["source"]) for cell in CODE))
    variables = runpy.run_path(str(script))
    assert variables["info"]["outcome"] == "won"
    assert len(variables["results"]) == 6
    pyplot = variables["plt"]
    shown = [pyplot.figure(number).axes[0] for number in pyplot.get_fignums()]
    paths = [(axes, axes.lines[0].get_xydata()) for axes in shown if axes.images and axes.lines]
    assert len(paths) == 2
    for axes, path in paths:
        left, right, bottom, top = *axes.get_xlim(), *axes.get_ylim()
        assert ((left, top) < path).all(), "the path is drawn on the level"
        assert (path < (right, bottom)).all()


@pytest.mark.parametrize("is_there", [True, False])
def test_the_package_is_installed_where_it_is_not(monkeypatch, is_there):
    """As in a hosted notebook, which has only its own packages."""
    commands = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: is_there or None)
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command))
    exec("".join(CODE[0]["source"]), {})
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = f"{project['name']}[train] @ git+{project['urls']['Source'].partition('/blob/')[0]}"
    assert commands == ([] if is_there else [[sys.executable, "-m", "pip", "install", "--quiet", source]])


def test_outputs_are_small_and_no_errors():
    assert NOTEBOOK.stat().st_size < 100_000
    outputs = [output for cell in CODE for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
