"""What tests share: totals of conformance tests, printed once however many processes counted; cases of products."""

import os
import re
import subprocess
import sys

import pytest

from .processes import REPOSITORY
from .shared import each_value

pytest.importorskip("xdist")

MODULE = """
import os
from tests.shared import COMPARISONS, Comparison

def test_counts(request):
    totals = request.config.stash[COMPARISONS]
    for name in ("all", "in " + os.environ.get("PYTEST_XDIST_WORKER", "one process")):
        totals.setdefault(name, Comparison()).add(Comparison({factor}, {factor}0, {factor}00, {factor}000, {skipped}))
"""
FIRST = "traces 1, frames 10, values compared 100, differing 1000"
SECOND = "traces 2, frames 20, values compared 200, differing 2000, skipped 4"
BOTH = "traces 3, frames 30, values compared 300, differing 3000, skipped 4"


def printed(folder, processes) -> dict[str, str]:
    """Run two modules of tests that count; return the totals by name."""
    (folder / "test_first.py").write_text(MODULE.format(factor=1, skipped=0))
    (folder / "test_second.py").write_text(MODULE.format(factor=2, skipped=4))
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder), "-p", "tests.conftest"]
    command += ["-p", "xdist", "-p", "no:cacheprovider", "-n", str(processes), "--dist", "loadfile", str(folder)]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    done = subprocess.run(command, cwd=REPOSITORY, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    totals = re.findall("^conformance of (.*): (.*)$", done.stdout, re.MULTILINE)
    assert len(dict(totals)) == len(totals)
    return dict(totals)


def test_one_process_prints_its_totals(tmp_path):
    assert printed(tmp_path, 0) == {"all": BOTH, "in one process": BOTH}


def test_the_totals_of_two_processes_are_added_up(tmp_path):
    totals = printed(tmp_path, 2)
    assert totals.pop("all") == BOTH
    assert sorted(totals) == ["in gw0", "in gw1"]
    assert sorted(totals.values()) == [FIRST, SECOND]


def test_each_value_is_in_a_quick_case():
    cases = each_value("abcd", [1, 2], [3, 4])
    assert len({case.values for case in cases}) == len(cases) == 16
    quick = [case.values for case in cases if not case.marks]
    assert [set(values) for values in zip(*quick)] == [set("abcd"), {1, 2}, {3, 4}]
    assert len(quick) == 4
    assert len({values[1:] for values in quick}) == 4, "the others do not go together"
