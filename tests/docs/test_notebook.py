"""The notebook of the tutorial runs from its first cell to its last, and is kept small."""

import json
import os
import runpy

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


def test_outputs_are_small_and_no_errors():
    assert NOTEBOOK.stat().st_size < 100_000
    outputs = [output for cell in CODE for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
