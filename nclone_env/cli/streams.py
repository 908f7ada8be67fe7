"""What a command does when its files or its own output cannot be written: one line, or none, and an exit status."""

from __future__ import annotations

import errno
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nclone_env._files import naming
from nclone_env.errors import plain

_BROKEN_PIPE = 128 + 13  # as shells report SIGPIPE
_LONGEST_NAME = 300  # characters in messages


def guarded(command: Callable[[], int]) -> int:
    """Call a command and return its exit status.

    It is 1 after an error of the system, which one line on stderr tells. If the reader of the output ends first, as in
    ``nclone-env ... | head``, it is 141 without any line, as for other programs.
    """
    _open_closed_streams()
    _show_everything()
    try:
        with _quiet_threads():
            try:
                return command()
            finally:
                with naming(Path("standard output")):
                    sys.stdout.flush()
    except OSError as error:
        broken = isinstance(error, BrokenPipeError)
        if broken or error.filename == "standard output":
            _drop_output()
        if broken:
            return _BROKEN_PIPE
        if error.filename is None and error.errno == errno.ENOENT and not _has_working_directory():
            error = FileNotFoundError(errno.ENOENT, "the working directory was removed; change to another", os.curdir)
        where = f"{plain(_cut(str(error.filename)))}: " if error.filename else ""
        with suppress(OSError):
            sys.stderr.write(f"nclone-env: {where}{error.strerror or error}\n")
        return 1


def _drop_output() -> None:
    """Send to nowhere what Python flushes at the end."""
    with suppress(OSError):  # of a stream without a number
        number = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _show_everything() -> None:
    """Print escapes for characters that the encoding of standard output or error lacks, and warnings as one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _has_working_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _cut(name: str) -> str:
    """Return the name of a file for a message; one that is too long for the system may have any length."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."


def _open_closed_streams() -> None:
    """Open to nowhere what was closed of standard input, output and error.

    Otherwise a file that the command writes gets the number of the stream, and with it what libraries print there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115


@contextmanager
def _quiet_threads() -> Iterator[None]:
    """Print no errors of the system in threads: TensorBoard's writer raises them again when it is used next."""
    before = threading.excepthook

    def hook(arguments: threading.ExceptHookArgs) -> None:
        if not issubclass(arguments.exc_type, OSError):
            before(arguments)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before
