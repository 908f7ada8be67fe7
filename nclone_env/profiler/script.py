"""Scripts and functions of a user, run to be profiled."""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from nclone_env.errors import ConfigError, shortened


def runner(path: str, arguments: Sequence[str] = ()) -> Callable[[], int]:
    """Return what runs a script, or calls a function given as MODULE:FUNCTION, and returns the exit status.

    Raises:
        ConfigError: if there is no such file, or no such function.
    """
    if ":" in path:
        return partial(_call, function_of(path))
    if not Path(path).is_file():
        raise ConfigError(f"path: expected a script or MODULE:FUNCTION, got {shortened(path)}, which is no file")
    return partial(run_script, path, arguments)


def function_of(path: str) -> Callable[[], object]:
    """Return the function of MODULE:FUNCTION.

    Raises:
        ConfigError: if there is no such module, or no such function in it.
    """
    module, _, name = path.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:  # ValueError: an empty name
        raise ConfigError(f"path: expected MODULE:FUNCTION that can be imported, got {path!r}: {error}") from error
    if not callable(function):
        raise ConfigError(f"path: expected a function, got {path!r}, which is {shortened(function)}")
    found: Callable[[], object] = function
    return found


def _call(function: Callable[[], object]) -> int:
    function()
    return 0


def run_script(path: str, arguments: Sequence[str]) -> int:
    """Run a file as the interpreter runs a script; its ``sys.exit()`` ends the script alone. Return its exit status."""
    before, sys.argv = sys.argv, [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code:
            sys.stdout.write(f"{path} exited with {end.code}\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)  # a text is an error
    finally:
        sys.argv = before
        del sys.path[0]
    return 0
