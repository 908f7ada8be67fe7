"""The examples of the README and of the pages run; tables match the code."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig
from nclone_env.obs.spec import ENTITY_STATE, GAME_STATE, REACHABILITY, observation_specs

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_example_runs(block, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})


def test_the_first_example_prints_what_stands_below_it(capsys):
    below = re.search(r"```python\n.*?```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    exec(compile(BLOCKS[0], "README.md", "exec"), {})
    assert capsys.readouterr().out == below[1]


def test_the_planning_example_wins(capsys):
    text = (ROOT / "docs" / "snapshots.md").read_text()
    block, *_ = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(compile(block, "snapshots.md", "exec"), {})
    assert capsys.readouterr().out.startswith("won ")


@pytest.mark.parametrize(
    "name", ["gallery.md", "levels.md", "memory.md", "planning.md", "snapshots.md", "trajectories.md", "vector.md"]
)
def test_examples_of_a_page_run_one_after_another(name, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / name).read_text(), flags=re.DOTALL)
    assert blocks
    script = tmp_path / "examples.py"  # kernels are compiled from files
    script.write_text("\n".join(blocks))
    runpy.run_path(str(script))


def test_there_are_examples():
    assert len(BLOCKS) == 3
    assert all(len(block.splitlines()) <= 13 for block in BLOCKS)


def test_table_of_observations_is_the_codes():
    rows = [
        f"| {index} | `{feature.name}` | {feature.low:g} | {feature.high:g} | {feature.meaning} |"
        for features in (GAME_STATE, ENTITY_STATE, REACHABILITY)
        for index, feature in enumerate(features)
    ]
    text = (ROOT / "docs" / "observations.md").read_text()
    assert re.findall(r"^\| \d+ \|.*$", text, flags=re.MULTILINE) == rows
    config = EnvironmentConfig(observations=OBSERVATION_NAMES)
    for name in OBSERVATION_NAMES:
        for spec in observation_specs(config.replace(observations=name)):
            shape = "(K,)" if spec.name == "graph_entities" else spec.shape  # by the levels
            assert f"| `{spec.name}` | {shape} | {spec.dtype} | " in text, spec
