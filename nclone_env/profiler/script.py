"""Scripts, modules and functions of a user, run as the interpreter runs them, to be profiled."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, TypeVar

from nclone_env.errors import ConfigError, shortened

_INTERRUPTED = 130
Found = TypeVar("Found")


class Program:
    """A program of the user: a file, a folder or zip file with ``__main__``, a module, or MODULE:FUNCTION.

    A context in which it can run; its global variables live until the context ends.

    Args:
        path: of it.
        arguments: its ``sys.argv`` from 1 on.

    Raises:
        ConfigError: if there is no such program.
    """

    def __init__(self, path: str, arguments: Sequence[str] = ()):
        self._arguments = arguments
        self._before = sys.modules["__main__"], sys.argv, list(sys.path), threading.excepthook
        self._module = types.ModuleType("__main__")
        self._call: Callable[[], object] | None = None
        self._path = path
        file = Path(path)
        if file.is_file() or file.is_dir():
            self._folder = str(file.resolve() if _is_archive(file) else file.resolve().parent)
            self._code = self._load
        elif ":" in path:
            self._folder, self._code = str(Path.cwd()), self._load_module
            self._call = _from_here(function_of, path)
        else:
            self._folder, self._code = str(Path.cwd()), self._load_module
            if not _from_here(_exists, path):
                raise ConfigError(
                    f"path: expected a script, a module or MODULE:FUNCTION, got {shortened(path)}, which is no file"
                )

    def run(self) -> int:
        """Run it and return its exit status; an exception is printed as the interpreter prints it."""
        process = os.getpid()
        threading.excepthook = threading.__excepthook__
        try:
            if self._call is not None:
                self._call()
            else:
                exec(self._code(), vars(self._module))
            status = 0
        except SystemExit as end:
            status = _exit_status(end)
        except BaseException as error:  # noqa: BLE001 - of the user's program, not ours
            status = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
            self._show(error)
        if os.getpid() != process:  # a copy that the program made of the process
            _leave(status)
        _join_threads()
        return status

    def __enter__(self) -> Program:
        """Set what the interpreter sets for a program."""
        sys.modules["__main__"], sys.argv = self._module, [self._path, *self._arguments]
        sys.path.insert(0, self._folder)
        return self

    def __exit__(self, *error: object) -> None:
        """Set it back, and drop the global variables."""
        sys.modules["__main__"], sys.argv, sys.path[:], threading.excepthook = self._before
        vars(self._module).clear()

    def _load(self) -> types.CodeType:
        """Return the code of a file, or of ``__main__`` in a folder or a zip file."""
        if _is_archive(Path(self._path)):
            spec = PathFinder.find_spec("__main__", [self._folder])
            if spec is None:
                raise SystemExit(f"can't find '__main__' module in {self._path!r}")
            return self._of(spec)
        name = os.path.abspath(self._path) if sys.version_info >= (3, 14) else self._path
        vars(self._module).update(__file__=name, __builtins__=__builtins__, __cached__=None, __package__=None)
        return compile(Path(self._path).read_bytes(), name, "exec", dont_inherit=True)

    def _load_module(self) -> types.CodeType:
        spec = importlib.util.find_spec(self._path)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{self._path}.__main__")
        if spec is None:
            raise SystemExit(f"No module named {self._path}.__main__; {self._path!r} cannot be run")
        return self._of(spec)

    def _of(self, spec: Any) -> types.CodeType:
        sys.argv[0] = spec.origin
        vars(self._module).update(
            __file__=spec.origin, __builtins__=__builtins__, __spec__=spec, __loader__=spec.loader,
            __package__=spec.parent,
        )  # fmt: skip
        code: types.CodeType = spec.loader.get_code(spec.name)
        return code

    def _show(self, error: BaseException) -> None:
        """Print an exception without the calls of the profiler."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error, trace)


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


def _from_here(find: Callable[[str], Found], name: str) -> Found:
    """Find a module as ``python -m`` does: in the working directory first."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        return find(name)
    finally:
        del sys.path[0]


def _is_archive(file: Path) -> bool:
    import zipfile

    return file.is_dir() or (file.is_file() and file.suffix != ".py" and zipfile.is_zipfile(file))


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _exit_status(end: SystemExit) -> int:
    """Return the status of an exit; a text is an error that is printed."""
    if end.code is None or isinstance(end.code, int):
        return int(end.code or 0)
    if sys.stderr is not None:
        sys.stderr.write(f"{end.code}\n")
    return 1


def _join_threads() -> None:
    """Wait for the threads that keep a program alive."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _leave(status: int) -> None:
    """End a copy of the process without anything that its parent does at its end."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    os._exit(status & 0xFF)
