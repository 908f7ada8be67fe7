"""The room and its tests use nothing else of the package, so that they can run with any version of Numba."""

import json
import subprocess
import sys
from pathlib import Path

from ..processes import REPOSITORY

ALLOWED = ("_faces", "_files", "_table", "_version", "env", "env.ids", "errors", "jit", "machine")
"""The ground floor, and what importing the package imports."""


def test_the_tests_import_nothing_else():
    modules = [
        f"tests.jit.{path.stem}" for path in sorted(Path(__file__).parent.glob("*.py")) if path.stem != "__init__"
    ]
    program = f"import json, sys, {', '.join(modules)}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("nclone_env.") for name in json.loads(done.stdout) if name.startswith("nclone_env.")}
    assert {name for name in loaded if not name.startswith("jit.")} <= set(ALLOWED)
    assert "jit.inner" in loaded or "jit.dispatcher" in loaded
