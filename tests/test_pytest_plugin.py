"""The plugin of pytest, in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import unittest
import pytest

KEPT = []


def test_block(memory_profile):
    with memory_profile(trace=False) as watch:
        for _ in range(60):
            watch.step()


def test_leaky_block(memory_profile):
    with memory_profile(name="mine") as watch:
        for _ in range(60):
            KEPT.append(bytearray(5000))
            watch.step()


@pytest.mark.flat_memory(steps=60, trace=False)
def test_repeated(tmp_path):
    assert tmp_path.exists()


@pytest.mark.flat_memory(steps=60)
@pytest.mark.parametrize("size", [5000])
def test_leaky(size):
    KEPT.append(bytearray(size))  # LEAK


@pytest.mark.flat_memory
def test_wrong():
    assert 1 == 2


@pytest.mark.flat_memory
async def test_later():
    pass


class TestCase(unittest.TestCase):
    @pytest.mark.flat_memory(60, trace=False)
    def test_method(self):
        KEPT.append(bytearray(5000))
"""
UNUSED = """
import sys

def test_nothing():
    pass

def pytest_sessionfinish():
    print("imported:", [name for name in ("nclone_env", "gymnasium", "numpy", "numba") if name in sys.modules])
"""


def outcome(folder: Path, *arguments: str) -> str:
    """Return what pytest prints in a folder."""
    command = [sys.executable, "-m", "pytest", "-p", "nclone_env_pytest", "-p", "no:cacheprovider", "-q", *arguments]
    variables = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin", "COLUMNS": "200", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "test_mine.py").write_text(TESTS)
    return outcome(folder, "--strict-markers", "-rA", "-W", "error")


def test_growth_fails_a_test(printed):
    assert {line for line in printed.splitlines() if line.startswith("PASSED")} == {
        "PASSED test_mine.py::test_block",
        "PASSED test_mine.py::test_repeated",
    }
    for name in ("test_leaky_block", "test_leaky[5000]", "test_wrong", "TestCase::test_method"):
        assert f"FAILED test_mine.py::{name} - " in printed, printed


def test_the_message_names_line_and_keeper_without_calls_of_the_profiler(printed):
    line = TESTS.splitlines().index("    KEPT.append(bytearray(size))  # LEAK") + 1
    assert f"test_mine.py:{line} +" in printed
    assert "kept by test_mine.KEPT (list of " in printed
    assert "Memory profile: mine" in printed
    assert ">       with memory_profile(name=" in printed
    assert "assert 1 == 2" in printed
    assert "flat.py:" not in printed
    assert "nclone_env_pytest.py:" not in printed


def test_nothing_is_imported_until_a_test_asks(tmp_path):
    (tmp_path / "conftest.py").write_text(UNUSED)
    (tmp_path / "test_mine.py").write_text(UNUSED)
    assert "imported: []" in outcome(tmp_path)


def test_coroutines_are_refused(printed):
    assert "flat_memory: expected a plain function, got a coroutine function" in printed
