"""No input, tile or entity makes the simulator fail, leave its arrays or produce a number that is none."""

import pytest

from nclone_env.errors import LevelFormatError
from nclone_env.level.level import RawLevel
from nclone_env.level.load import load_level

from ..shared import SHARED
from ..sim import robustness

PACKS = sorted(str(path) for path in (SHARED / "maps").glob("*.txt")) if SHARED else []


@pytest.mark.parametrize("frames", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_real_and_fuzzed_levels(frames, capsys):
    robustness.main(200, frames, PACKS)
    _, levels, _, played, _, *left = capsys.readouterr().out.split()
    assert int(levels) > (970 if PACKS else 0) + 20
    assert int(played) == frames * int(levels)
    assert len(left) <= 0.005 * int(levels)


def test_records_that_no_reader_has_checked_are_checked():
    with pytest.raises(LevelFormatError, match="record 1: expected the exit_switch of this exit in record 2"):
        load_level(RawLevel([[0] * 42] * 23, [(0, 6, 6, 0, 0), (3, 9, 9, 0, 0)]))
