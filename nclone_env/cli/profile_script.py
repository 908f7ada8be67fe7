"""``nclone-env profile script``: a user's own program, run as the interpreter runs it."""

import _thread
import atexit
import importlib
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Annotated, Any, TextIO

import tyro

from nclone_env._table import format_bytes
from nclone_env.errors import ConfigError, optional_module, shortened
from nclone_env.memory import Stats, Watch, resident_bytes, write_report

OutputFolder = Annotated[Path, tyro.conf.arg(name="output", aliases=["--output-dir"])]
GROWING, UNDECIDED = 1, 2
"""Exit statuses with ``--fail-on-growth``."""
_PROGRESS = 10.0  # seconds between two lines on stderr
_AGAIN = 2.0  # seconds after which a program that has not stopped is interrupted again
_INTERRUPTED = 130


@dataclass(frozen=True)
class WriteOptions:
    """What to write, and with which status to exit."""

    output_dir: OutputFolder = Path(".")
    """Folder of the reports."""
    json: bool = False
    """Also write the statistics as JSON, which ``nclone-env profile compare`` reads."""
    html: bool = False
    """Also write a page of HTML with pictures, which needs no network."""
    fail_on_growth: bool = False
    """Exit with status 1 if memory grows, with 2 if there is too little to tell."""

    def check(self) -> None:
        """Raise an error if the page cannot be made: now, not after the measurements."""
        if self.html:
            optional_module("jinja2", "profile")

    def write(self, stats: Stats, folder: Path) -> str:
        """Write the reports to a folder; return the answer and their paths."""
        return write_report(stats, folder, self.json, self.html)

    def status(self, stats: Stats) -> int:
        """Return the exit status."""
        return {"growing": GROWING, "undecided": UNDECIDED}.get(stats.verdict, 0) if self.fail_on_growth else 0


@dataclass(frozen=True)
class ScriptOptions(WriteOptions):
    """What to measure of a program, and what to write."""

    seconds: float | None = None
    """Interrupt the program after this time, as Ctrl-C does, and report; by default it runs to its end."""
    trace: bool = True
    """Find the source lines by tracemalloc, which slows down code that makes many small objects; it ends after 20 s in
    which nothing grew."""


_OPTIONS = ScriptOptions()


def script(
    path: tyro.conf.Positional[str],
    arguments: tyro.conf.Positional[tuple[str, ...]] = (),
    options: Annotated[ScriptOptions, tyro.conf.arg(name="")] = _OPTIONS,
) -> int:
    """Profile a script, a module, or a function without arguments given as MODULE:FUNCTION.

    Snapshots are taken by time. For growth per step, call ``nclone_env.memory.profile`` in the script instead. The
    exit status is that of the script.

    Args:
        path: file or module to run, or MODULE:FUNCTION to call.
        arguments: of the script; options of the script follow ``--``.
        options: length and reports.
    """
    if options.seconds is not None and not options.seconds > 0:
        raise ConfigError(f"seconds: expected more than 0, got {options.seconds:g}")
    options.check()
    folder = options.output_dir.absolute()  # the program may change the working directory
    program, output, clock = Program(path, arguments), _Output(), _Clock(options.seconds)
    watch = Watch(path, None, 0, None, options.trace, clock)
    with program, watch:
        status = program.run()
        clock.stopped = True
    output.restore()
    assert watch.stats is not None
    output.write(options.write(watch.stats, folder))
    if status and not (clock.interrupted and status == _INTERRUPTED):
        return status
    return options.status(watch.stats)


class _Clock:
    """Prints a line every ten seconds, and interrupts the program when its time is over."""

    def __init__(self, seconds: float | None):
        self._seconds, self._next, self._stderr = seconds, _PROGRESS, sys.stderr
        self.interrupted = self.stopped = False

    def __call__(self, now: float) -> None:
        """Look at the clock: ``now`` is in seconds since the program began."""
        if now >= self._next:
            self._next += _PROGRESS
            with suppress(OSError, ValueError):
                self._stderr.write(f"nclone-env: {now:.0f} s, {format_bytes(resident_bytes().rss)} resident\n")
                self._stderr.flush()
        if self._seconds is not None and now >= self._seconds and not self.stopped:
            self.interrupted, self._seconds = True, now + _AGAIN
            _thread.interrupt_main()


class _Output:
    """Standard output as it was before the program, which may close or replace it."""

    def __init__(self) -> None:
        self._stream: TextIO = sys.stdout
        self._error: TextIO = sys.stderr
        try:
            self._copy = os.dup(1)
        except OSError:
            self._copy = -1

    def restore(self) -> None:
        """Set the streams again."""
        if self._copy >= 0:
            try:
                os.fstat(1)
            except OSError:
                os.dup2(self._copy, 1)
            if self._stream.closed:
                self._stream = open(self._copy, "w", closefd=False)  # noqa: SIM115 - for the rest of the process
            else:
                os.close(self._copy)
        sys.stdout = self._stream
        if self._error is not None and not self._error.closed:
            sys.stderr = self._error

    def write(self, text: str) -> None:
        """Print the answer."""
        sys.stdout.write(text)
        sys.stdout.flush()


class Program:
    """A program of the user: a file, a folder or zip file with ``__main__``, a module, or MODULE:FUNCTION.

    A context in which it can run; its global variables live until the context ends.

    Args:
        arguments: its ``sys.argv`` from 1 on.
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
        else:
            self._folder, self._code = str(Path.cwd()), self._load_module
            sys.path.insert(0, self._folder)  # as ``python -m`` does
            try:
                if ":" in path:
                    self._call = function_of(path)
                elif not _exists(path):
                    raise ConfigError(
                        f"path: expected a script, a module or MODULE:FUNCTION, got {shortened(path)}, which is no file"
                    )
            finally:
                del sys.path[0]

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

    def __enter__(self) -> "Program":
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
    """Return the function of MODULE:FUNCTION."""
    module, _, name = path.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:  # ValueError: an empty name
        raise ConfigError(f"path: expected MODULE:FUNCTION that can be imported, got {path!r}: {error}") from error
    if not callable(function):
        raise ConfigError(f"path: expected a function, got {path!r}, which is {shortened(function)}")
    found: Callable[[], object] = function
    return found


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
