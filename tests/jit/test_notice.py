"""What is said while kernels are compiled: a line, a bar on a terminal, nothing where nothing takes long."""

import os
import pty

import pytest

from nclone_env.jit.dispatcher import IS_PLAIN

from ..processes import run_copy

COUNT = 30
LINE = f"nclone_env: compiling part_{COUNT - 1} and {COUNT - 1} functions in it, once: about 3 s"
PARTS = "\n".join(
    f"@kernel\ndef part_{number}(value):\n    return {f'part_{number - 1}(value) + 1' if number else 'value'}\n"
    for number in range(COUNT)
)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "parts.py"
    path.write_text(f"from nclone_env.jit import kernel\n{PARTS}\nprint(part_{COUNT - 1}(0))\nprint(part_3(0))\n")
    return path


def run(path, quiet="0", terminal=""):
    """Return what the program prints and what is said on stderr."""
    own = {"NCLONE_ENV_QUIET": quiet, "NCLONE_ENV_CACHE_DIR": str(path.parent / "cache")}
    return run_copy(path, terminal=terminal, **own)


def test_a_line_before_a_compilation_and_none_for_cached_code(program):
    printed = f"{COUNT - 1}\n3\n"
    assert run(program) == (printed, f"{LINE}\n")  # nothing about part_3, which takes a moment
    assert run(program) == (printed, "")


def test_quiet(program):
    assert run(program, quiet="1")[1] == ""


@pytest.mark.skipif(IS_PLAIN, reason="Numba's own way of compiling does not tell how far it is")
def test_a_bar_on_a_terminal(program):
    terminal, other = pty.openpty()
    run(program, terminal=os.ttyname(other))
    os.close(other)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the process has ended
            break
    first, *bars = shown.decode().split("\r\x1b[K")
    assert first.strip() == LINE
    shares = [int(bar.partition("]")[2].partition("%")[0]) for bar in bars]
    assert len(shares) > 2
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert max(shares[:-1]) <= 75  # the rest is the optimiser's
