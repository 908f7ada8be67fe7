"""``nclone-env profile script``: a user's own program, run as the interpreter runs it."""

import _thread
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TextIO

import tyro

from nclone_env._table import format_bytes
from nclone_env.errors import ConfigError
from nclone_env.memory import Watch, page_template, resident_bytes, summary, text_of, write_reports
from nclone_env.profiler import Program

OutputFolder = Annotated[Path, tyro.conf.arg(name="output", aliases=["--output-dir"])]
GROWING, UNDECIDED = 1, 2
"""Exit statuses with ``--fail-on-growth``."""
_PROGRESS = 10.0  # seconds between two lines on stderr
_AGAIN = 2.0  # seconds after which a program that has not stopped is interrupted again


@dataclass(frozen=True)
class ScriptOptions:
    """What to measure of a program, and what to write."""

    output_dir: OutputFolder = Path(".")
    """Folder of the reports."""
    json: bool = False
    """Also write the statistics as JSON."""
    html: bool = False
    """Also write a page of HTML with pictures, which needs no network."""
    fail_on_growth: bool = False
    """Exit with status 1 if memory grows, with 2 if there is too little to tell."""
    seconds: float | None = None
    """Interrupt the program after this time, as Ctrl-C does, and report; by default it runs to its end."""
    trace: bool = True
    """Find the source lines by tracemalloc, which slows down code that makes many small objects."""


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
    if options.html:
        page_template()  # missing: now, not after the measurements
    folder = options.output_dir.absolute()  # the program may change the working directory
    program, output, clock = Program(path, arguments), _Output(), _Clock(options.seconds)
    watch = Watch(path, None, 0, None, options.trace, clock)
    with program, watch:
        status = program.run()
        clock.stopped = True
    output.restore()
    assert watch.stats is not None
    paths = write_reports(watch.stats, folder, options.json, options.html)
    output.write(f"\n{text_of([summary(watch.stats)])}\nwrote {', '.join(map(str, paths))}\n")
    if status and not (clock.interrupted and status == _INTERRUPTED):
        return status
    verdicts = {"growing": GROWING, "undecided": UNDECIDED}
    return verdicts.get(watch.stats.verdict, 0) if options.fail_on_growth else 0


_INTERRUPTED = 130


class _Clock:
    """Prints a line every ten seconds, and interrupts the program when its time is over."""

    def __init__(self, seconds: float | None):
        self._seconds, self._next, self._stderr = seconds, _PROGRESS, sys.stderr
        self.interrupted = self.stopped = False

    def __call__(self, now: float) -> None:
        """Look at the clock.

        Args:
            now: seconds since the program began.
        """
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
