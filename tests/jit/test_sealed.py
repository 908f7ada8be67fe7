"""The room and its tests use nothing else of the package, so that they can run with any version of Numba."""

from pathlib import Path

from ..processes import run_copy

ALLOWED = ("_cache", "_faces", "_files", "_table", "_version", "env", "env.ids", "errors", "jit", "machine")
"""The ground floor, and what importing the package imports."""


def test_the_tests_import_nothing_else(tmp_path):
    modules = [
        f"tests.jit.{path.stem}" for path in sorted(Path(__file__).parent.glob("*.py")) if path.stem != "__init__"
    ]
    program = tmp_path / "program.py"
    program.write_text(f"import sys, {', '.join(modules)}\nprint(*sys.modules)")
    names = run_copy(program)[0].split()
    loaded = {name.removeprefix("nclone_env.") for name in names if name.startswith("nclone_env.")}
    assert {name for name in loaded if not name.startswith("jit.")} <= set(ALLOWED)
    assert "jit.inner" in loaded or "jit.dispatcher" in loaded
