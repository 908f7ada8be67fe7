"""The search of the documentation site finds the page on a task first. Needs Node, and the site: ``make docs``."""

import json
import subprocess
from pathlib import Path

import pytest

from ..gallery.scripts import NODE
from .pages import ROOT

SITE = ROOT / "site"
FIRST = {
    "install": "installation.html",
    "own level": "tutorial/level.html",
    "level file": "levels/index.html",
    "resume": "training/runs.html",
    "checkpoint": "training/runs.html",
    "keyboard": "levels/play.html",
    "ghost": "levels/play.html",
    "reward": "tutorial/reward.html",
    "custom reward": "tutorial/reward.html",
    "sticky actions": "environments/vector.html",
    "autoreset": "environments/vector.html",
    "stable-baselines3": "environments/compatibility.html",
    "is_success": "environments/compatibility.html",
    "maskableppo": "environments/compatibility.html",
    "clip": "reference/training.html",
    "slurm": "training/slurm.html",
    "optuna": "training/sweeps.html",
    "snapshot": "environments/snapshots.html",
    "generated levels": "levels/generated.html",
    "difficulty": "levels/generated.html",
    "submit a result": "benchmark.html",
    "benchmark": "benchmark.html",
    "gallery": "levels/gallery.html",
    "minari": "training/datasets.html",
    "memory leak": "operation/testing.html",
    "solve": "levels/planning.html",
    "docker": "installation.html",
    "onnx": "training/use.html",
    "load policy": "training/use.html",
    "gravity": "physics/index.html",
    "own reward": "tutorial/reward.html",
    "send result": "benchmark.html",
}
"""What is asked, and the page that comes first."""


def first_pages(site: Path, queries: list[str]) -> list[list[str]]:
    """Return the first pages that the site finds for each query."""
    command = [NODE, str(Path(__file__).with_name("search.js")), str(site), *queries]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(NODE is None or not (SITE / "search").is_dir(), reason="needs Node and the site: make docs")
def test_the_page_on_a_task_is_found_first():
    found = dict(zip(FIRST, first_pages(SITE, list(FIRST)), strict=True))
    assert {query: pages for query, pages in found.items() if pages[:1] != [FIRST[query]]} == {}
    assert first_pages(SITE, ["nosuchword"]) == [[]]


@pytest.mark.parametrize("page", sorted(set(FIRST.values())))
def test_the_pages_are_those_of_the_sources(page):
    assert (ROOT / "docs" / page.replace("index.html", "README.html").replace(".html", ".md")).is_file()
