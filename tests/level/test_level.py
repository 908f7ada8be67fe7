import numpy as np
import pytest

from nclone_env.errors import LevelFormatError
from nclone_env.level.level import Finding, RawLevel, validate

from .level_bases import make_level

NINJA, EXIT, SWITCH = (0, 6, 6, 0, 0), (3, 9, 9, 0, 0), (4, 12, 12, 0, 0)


def texts(*records, tile=0) -> str:
    """Return the findings of a level whose first cell has the given tile, one a line."""
    tiles = np.zeros((23, 42), np.uint8)
    tiles[0, 0] = tile
    raw = RawLevel(tiles, np.array(records, np.uint8))
    return "\n".join(f"{severity}: {text}" for severity, text in validate(raw))


@pytest.mark.parametrize(
    ("tiles", "records", "message"),
    [
        (np.full((23, 42), 301), [NINJA], r"tiles: expected \(23, 42\) whole numbers from 0 to 255, got 301"),
        (np.full((23, 42), np.nan), [NINJA], "from 0 to 255, got nan"),
        (np.full((23, 42), 0.5), [NINJA], "from 0 to 255, got 0.5"),
        (np.zeros((42, 24)), [NINJA], "got cannot reshape array of size 1008"),
        (np.full((23, 42), "a"), [NINJA], "from 0 to 255, got"),
        (np.zeros((23, 42)), [(0, -1, 6, 0, 0)], r"records: expected \(n, 5\) whole numbers from 0 to 255, got -1"),
        (np.zeros((23, 42)), [(0, 2**70, 6, 0, 0)], r"records: expected \(n, 5\) whole numbers from 0 to 255, got"),
        (np.zeros((23, 42)), [NINJA, (0,)], r"records: expected \(n, 5\)"),
    ],
)
def test_numbers_that_are_no_bytes_are_refused(tiles, records, message):
    with pytest.raises(LevelFormatError, match=message):
        RawLevel(tiles, records)


def test_numbers_of_any_type_are_taken():
    for kind in (np.int64, np.float32, bool, object):
        assert RawLevel(np.ones((23, 42), kind), [NINJA]).digest == RawLevel([[1] * 42] * 23, [NINJA]).digest


def test_a_good_level_has_no_findings():
    assert validate(make_level([NINJA, EXIT, SWITCH])) == []


def test_no_exit_is_an_error_and_comes_first():
    raw = make_level([NINJA, (29, 1, 1, 0, 0)])
    assert validate(raw)[0] == Finding("error", "no exit: the level cannot be finished")
    assert [finding.severity for finding in validate(raw)] == ["error", "warning"]


def test_several_exits():
    assert texts(NINJA, EXIT, EXIT, SWITCH, SWITCH).startswith("warning: 2 exits: ")


def test_ignored_tiles_and_entities_are_counted():
    found = texts(NINJA, (27, 1, 1, 0, 0), (29, 1, 1, 0, 0), (29, 2, 2, 0, 0), EXIT, SWITCH, tile=99)
    assert "unknown tile numbers are empty cells: 99 (1)" in found
    assert "entities without behaviour are ignored: unknown_27 (1), type_29 (2)" in found


def test_entities_outside_the_world():
    found = texts(NINJA, (1, 175, 99, 0, 0), (1, 176, 0, 0, 0), (2, 0, 100, 0, 0), (1, 255, 0, 0, 0), EXIT, SWITCH)
    assert found == "warning: entities outside the world: mine (2), gold (1)"


def test_where_the_ninja_starts():
    assert "the ninja starts at (6, 6), inside the full block in column 1, row 1" in texts(NINJA, EXIT, SWITCH, tile=1)
    assert texts(NINJA, EXIT, SWITCH, tile=8) == ""
    assert "(3, 6), outside the playable cells" in texts((0, 3, 6, 0, 0), EXIT, SWITCH)
    assert "(172, 6), outside the playable cells" in texts((0, 172, 6, 0, 0), EXIT, SWITCH)
    assert texts((0, 171, 95, 0, 0), EXIT, SWITCH) == ""
    assert "2 ninja records: only the first is used" in texts(NINJA, NINJA, EXIT, SWITCH)


def test_records_that_cannot_be_converted():
    found = texts(NINJA, EXIT, (1, 1, 1, 0, 0))
    assert "record 2: expected exit_switch, the switch of the exit in record 1, got mine; the level cannot be" in found
