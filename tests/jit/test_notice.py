"""What is said while kernels are compiled: a line, a bar on a terminal, nothing where nothing takes long."""

import os
import pty
import subprocess
import sys

import pytest

from nclone_env.jit.dispatcher import IS_PLAIN

COUNT = 30
LINE = f"nclone_env: compiling part_{COUNT - 1} and {COUNT - 1} functions in it, once: about 3 s"
PARTS = "\n".join(
    f"@kernel\ndef part_{number}(value):\n    return {f'part_{number - 1}(value) + 1' if number else 'value'}\n"
    for number in range(COUNT)
)


@pytest.fixture
def command(tmp_path):
    path = tmp_path / "parts.py"
    path.write_text(f"from nclone_env.jit import kernel\n{PARTS}\nprint(part_{COUNT - 1}(0))\nprint(part_3(0))\n")
    return [sys.executable, str(path)]


def run(command, folder, **variables):
    environment = {**os.environ, "NCLONE_ENV_QUIET": "0", "NCLONE_ENV_CACHE_DIR": str(folder), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_a_line_before_a_compilation_and_none_for_cached_code(command, tmp_path):
    first, second = run(command, tmp_path / "cache"), run(command, tmp_path / "cache")
    assert first.stderr.splitlines() == [LINE]  # nothing about part_3, which takes a moment
    assert second.stderr == ""
    assert first.stdout == second.stdout == f"{COUNT - 1}\n3\n"


def test_quiet(command, tmp_path):
    assert run(command, tmp_path / "cache", NCLONE_ENV_QUIET="1").stderr == ""


@pytest.mark.skipif(IS_PLAIN, reason="Numba's own way of compiling does not tell how far it is")
def test_a_bar_on_a_terminal(command, tmp_path):
    environment = {**os.environ, "NCLONE_ENV_QUIET": "0", "NCLONE_ENV_CACHE_DIR": str(tmp_path / "cache")}
    terminal, other = pty.openpty()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=other)
    os.close(other)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the process has ended
            break
    assert process.wait() == 0
    first, *bars = shown.decode().split("\r\x1b[K")
    assert first.strip() == LINE
    shares = [int(bar.partition("]")[2].partition("%")[0]) for bar in bars]
    assert len(shares) > 2
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert max(shares[:-1]) <= 75  # the rest is the optimiser's
