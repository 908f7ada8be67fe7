"""Run a module of the tests in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def run_module(module: str, *arguments: str, **environment: str) -> list[str]:
    """Return the words printed by ``python -m module arguments`` with additional environment variables."""
    command = [sys.executable, "-m", module, *arguments]
    variables = {**os.environ, **environment}
    done = subprocess.run(command, cwd=REPOSITORY, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
