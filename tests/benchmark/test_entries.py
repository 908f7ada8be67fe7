"""Learning curves of runs that are entered: whole, or refused with one line."""

import os

import pytest

from nclone_env.benchmark.entries import read_curve
from nclone_env.errors import FormatError

GOOD = b"timesteps,steps_per_second,success_rate\n1000,500,0.1\n3000,1000,0.5\n"


@pytest.mark.parametrize(
    ("data", "seconds"),
    [
        (GOOD, 4.0),
        (b"", None),
        (b"\n\n", None),
        (bytes(5000), None),
        (GOOD[:-11], None),
        (b"timesteps,success_rate\n1,1\n", None),
        (GOOD.replace(b"500", b"nan"), None),
        (GOOD.replace(b"500", b"0"), None),
        (GOOD.replace(b"3000", b"1e308").replace(b"500", b"1e-308"), None),
        (GOOD.replace(b"\n", b"\r\n"), 4.0),
        (b"timesteps,steps_per_second\n" + b"1,1\n" * 200_000, 1.0),
    ],
)
def test_curves_that_are_whole(tmp_path, data, seconds):
    path = tmp_path / "learning_curve.csv"
    path.write_bytes(data)
    assert read_curve(path) == (data, seconds)


@pytest.mark.parametrize(
    "data",
    [
        GOOD + b"\xe9\n",
        GOOD.decode().encode("utf-16"),
        GOOD.replace(b"500", b"x"),
        GOOD[:-9],
        b"timesteps\n" + b"1" * 200_000,
        GOOD + b"\x1b[31m,5,5\n",
    ],
)
def test_damaged_curves_are_refused(tmp_path, data):
    path = tmp_path / "learning_curve.csv"
    path.write_bytes(data)
    with pytest.raises(
        FormatError, match=r"learning_curve\.csv: table: expected the table that training wrote; remove"
    ) as e:
        read_curve(path)
    assert "\x1b" not in str(e.value)


def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "learning_curve.csv")
    with pytest.raises(OSError, match="expected a file, got a device or pipe"):
        read_curve(tmp_path / "learning_curve.csv")
