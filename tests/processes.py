"""Run programs of the tests in fresh processes, and in copies of a process that has imported Numba and nothing of ours.

Half a second of a fresh process is the import of Numba. The copies are of two processes in turn, which hash texts
differently and have other addresses, so that what one copy wrote is read in another order of everything.
"""

import atexit
import itertools
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


def run_module(module: str, *arguments: str, **environment: str) -> list[str]:
    """Return the words printed by ``python -m module arguments`` with additional environment variables."""
    command = [sys.executable, "-m", module, *arguments]
    variables = {**os.environ, **environment}
    done = subprocess.run(command, cwd=REPOSITORY, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


class Numbers:
    """Makes numbers in worker processes, fast; each is noted as a file in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, number: int) -> int:
        (self.folder / f"{number}-{os.getpid()}").touch()
        time.sleep(0.02)
        return number

    def tasks(self) -> Iterator[partial[int]]:
        """Yield the work for each number."""
        return (partial(self, number) for number in range(1000))


class Origin:
    """A process with Numba that is copied for each program."""

    def __init__(self, seed: int):
        variables = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=REPOSITORY,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._process.communicate)  # it ends with its input
        self._folder = tempfile.TemporaryDirectory()
        self._files = [Path(self._folder.name, name) for name in ("output", "errors")]

    def begin(self, path: Path, *arguments: object, terminal: str = "", **environment: str) -> None:
        """Start a copy that runs a file, from whose folder it imports, too; the terminal shows what it says."""
        for file in self._files:
            file.write_text("")
        output, errors = map(str, self._files)
        request = [os.fspath(path), [*map(str, arguments)], {**os.environ, **environment}, output, terminal or errors]
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()

    def end(self) -> tuple[str, str]:
        """Return what it has printed and said on stderr, once it has ended."""
        status = self._process.stdout.readline()
        printed, said = (file.read_text() for file in self._files)
        assert status == "0\n", said
        return printed, said


@cache
def origins() -> Iterator[Origin]:
    """Return processes of two seeds in turn."""
    return itertools.cycle([Origin(1), Origin(2)])


def run_copy(path: Path, *arguments: object, terminal: str = "", **environment: str) -> tuple[str, str]:
    """Return what a file prints and says on stderr in a copy of the next process; see :meth:`Origin.begin`."""
    origin = next(origins())
    origin.begin(path, *arguments, terminal=terminal, **environment)
    return origin.end()


def in_copy(path: str, arguments: list[str], variables: dict[str, str], output: str, errors: str) -> int:
    """Run a program in a copy of this process; return its status."""
    import numba

    copy = os.fork()
    if copy:
        return os.waitpid(copy, 0)[1]
    for number, file in ((1, output), (2, errors)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_NOCTTY), number)
    os.environ.clear()
    os.environ.update(variables)
    numba.core.config.reload_config()
    sys.argv = [path, *arguments]
    sys.path[:0] = [os.path.dirname(path), os.fspath(REPOSITORY)]
    status = 1
    try:
        runpy.run_path(path, run_name="__main__")
        status = 0
    except BaseException:  # noqa: BLE001 - as an interpreter that ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def in_fresh_process(path: str, arguments: list[str], variables: dict[str, str], output: str, errors: str) -> int:
    """Run a program where a process with the libraries of the system cannot be copied; return its status."""
    own = {name: os.environ[name] for name in ("PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE")}
    environment = {**variables, **own, "PYTHONPATH": os.fspath(REPOSITORY)}
    with open(output, "w") as printed, open(errors, "w") as said:
        command = [sys.executable, path, *arguments]
        return subprocess.run(command, env=environment, stdout=printed, stderr=said, check=False).returncode


def answer() -> None:
    """Run the programs that are asked for, one after the other, and print their statuses."""
    copies = sys.platform == "linux"
    if copies:
        import gymnasium  # noqa: F401
        import numba

        numba.njit(lambda value: value + 1)(1)  # loads what Numba knows, which takes as long as to import it
        sys.path.remove(os.fspath(REPOSITORY))
    for line in sys.stdin:
        status = (in_copy if copies else in_fresh_process)(*json.loads(line))
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    answer()


@contextmanager
def flushing() -> Iterator[None]:
    """Make denormal numbers 0 in this thread, and in those that it starts, as libraries of fast-math code do."""
    torch = pytest.importorskip("torch")
    assert torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
