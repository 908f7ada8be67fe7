"""A sample of the sweep of ``python -m tests.faults``, and wrong ways to write that it must find."""

import subprocess
import sys

import pytest

from ..processes import REPOSITORY
from . import injector

pytestmark = pytest.mark.skipif(bool(injector.unavailable()), reason=injector.unavailable() or "strace is there")

SAMPLE = {"text, table", "level library", "generated pack"}
CONTROLS = {"control: in place", "control: removal", "control: regardless"}


@pytest.fixture(scope="module")
def swept():
    """Exit status, rows of the table, and the lines that tell damages."""
    command = [sys.executable, "-m", "tests.faults", "--most", "3", "--only", *SAMPLE, *CONTROLS]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    table = {row[0]: dict(zip(rows[0][1:], map(int, row[1:]))) for row in rows[1:]}
    return done.returncode, table, [line for line in lines if line.startswith("  ")]


@pytest.mark.slow
def test_every_kind_of_file_is_old_or_new_after_a_kill(swept):
    _, table, damages = swept
    assert not [text for text in damages if "control" not in text]
    for name in SAMPLE:
        row = table[name]
        assert row["kills"] == row["hits"] == row["old"] + row["new"] + row["between"]
        assert row["errors"] == row["refused"] + row["survived"] > 0
        assert row["points"] >= 7
        assert row["swept"] > 0, "some kills leave a temporary file"
        assert row["damaged"] == 0


@pytest.mark.slow
def test_wrong_ways_to_write_are_found(swept):
    status, table, damages = swept
    assert status == 1
    text = "\n".join(damages)
    assert "control: in place: killed at Point(call='write'" in text
    assert "neither the old nor the new one" in text
    assert "control: removal: killed" in text
    assert "file is lost" in text
    assert "control: regardless: ENOSPC" in text
    assert "the failure is not reported" in text
    assert all(table[name]["damaged"] > 0 for name in CONTROLS)


LOG = """\
1 openat(AT_FDCWD</>, "/f/old", O_RDONLY) = 3</f/old>
1 write(3</f/new>, ""..., 9) = 9
1 write(3</f/new>, ""..., 9 <unfinished ...>
2 write(1</out>, ""..., 9) = {other}
1 <... write resumed>) = {own}
{end}
"""


@pytest.mark.parametrize(
    ("other", "own", "end", "expected"),
    [
        ("9", "?", "1 +++ killed by SIGKILL +++", (True, 0, 0)),
        ("?", "9", "1 +++ killed by SIGKILL +++\n2 +++ killed by SIGKILL +++", (False, 0, 0)),
        ("9", "-1 ENOSPC (No space left on device) (INJECTED)", "1 +++ exited with 1 +++", (False, 1, 0)),
        ("-1 EIO (Input/output error) (INJECTED)", "9", "1 +++ exited with 0 +++", (False, 0, 1)),
    ],
)
def test_a_log_tells_what_was_hit(other, own, end, expected):
    lines = LOG.format(other=other, own=own, end=end).splitlines()
    outcome = injector.parsed(lines, "/f", injector.Outcome(0, "", []))
    assert [(point.call, point.number) for point in outcome.points] == [("write", 1), ("write", 2)]
    assert (outcome.hit, outcome.failed, outcome.astray) == expected
