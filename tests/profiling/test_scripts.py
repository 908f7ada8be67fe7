"""Every script is listed, and describes itself and its arguments."""

import importlib
import re

import pytest
import tyro

from profiling.__main__ import scripts

from ..processes import REPOSITORY, run_module

SCRIPTS = scripts()


def test_the_list_names_every_module_that_is_run():
    folder = REPOSITORY / "profiling"
    run = {f"{path.parent.name}.{path.stem}" for path in folder.glob("*/*.py") if "__main__" in path.read_text()}
    assert set(SCRIPTS) == run
    printed = " ".join(run_module("profiling"))
    for name, summary in SCRIPTS.items():
        assert f"{name} {summary}" in printed


@pytest.mark.parametrize(("name", "summary"), SCRIPTS.items(), ids=SCRIPTS)
def test_a_script_describes_itself_and_its_arguments(name, summary, capsys):
    module = importlib.import_module(f"profiling.{name}")
    with pytest.raises(SystemExit, match=r"^0$"):
        tyro.cli(module.main, description=module.__doc__, args=["--help"])
    text = re.sub(r"[\s│]+", " ", capsys.readouterr().out)
    assert summary.split(":")[0].replace("``", "`").split("`")[0].strip() in text
    for line in re.findall(r"^ {8}\w+: (.*)$", module.main.__doc__, re.MULTILINE):
        assert line.split(";")[0].rstrip(".")[:40] in text
