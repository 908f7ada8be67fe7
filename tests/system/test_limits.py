"""What a file may cost: entities of each kind, bytes, and text that parsers take long for."""

import numpy as np
import pytest

from nclone_env.errors import LevelFormatError
from nclone_env.game import DOOR_SWITCHES, EXIT, EXIT_SWITCH, KINDS, NINJA, kind_name
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.formats.pack_text import Pack
from nclone_env.level.formats.reader import MAX_LEVEL_SIZE, LevelFile
from nclone_env.level.formats.text import MAX_SIZE, format_text, parse_text
from nclone_env.level.level import MAX_RECORDS, RawLevel, loading_fault

from ..level.level_bases import make_level, make_pack

LONG = 300_000
BOMBS = {
    "dotted key": ".".join("a" * LONG) + " = 1",
    "quoted dotted key": ".".join(['"a"'] * LONG) + " = 1",
    "spaced dotted key": " . ".join("a" * LONG) + " = 1",
    "table": "[" + ".".join("a" * LONG) + "]",
    "array of tables": "[[" + ".".join("a" * LONG) + "]]",
    "tables": "\n".join(f"[a{number}]" for number in range(LONG // 8)),
    "inline table": "a = {" + ".".join("a" * LONG) + " = 1}",
    "inline tables": "a = " + "{a = " * LONG,
    "array": "a = [" + "1, " * LONG + "]",
    "arrays": "a = " + "[" * LONG,
    "keys": "\n".join(f"a{number} = 1" for number in range(LONG // 8)),
    "one key again and again": "a = 1\n" * (LONG // 6),
    "long key": "a" * LONG + " = 1",
    "long quoted key": f'"{"a" * LONG}" = 1',
    "digits": "level_id = " + "9" * LONG,
    "digits in parts": "level_id = 1" + "_1" * LONG,
    "quotes": "title = " + '"' * LONG,
    "quotes in a string": 'title = """' + '"" ' * LONG,
    "escapes": 'title = "' + "\\\\" * LONG + '"',
    "open string": "title = '''" + "'' " * LONG,
    "spaces": " " * LONG + "a",
    "blank lines": "\n" * LONG,
    "carriage returns": "\r" * LONG,
}


@pytest.mark.parametrize("name", BOMBS)
def test_text_that_parsers_take_long_for(name):
    """A dotted key of this length takes the TOML parser ten minutes."""
    with pytest.raises(LevelFormatError, match=r"^<text>: line ") as raised:
        parse_text(BOMBS[name])
    assert len(str(raised.value)) < 400


def test_size_of_a_text():
    text = format_text(make_level())
    assert parse_text(text + "#" * (MAX_SIZE - len(text))).title == make_level().title
    with pytest.raises(LevelFormatError, match=f"expected at most {MAX_SIZE} characters, got {MAX_SIZE + 1}"):
        parse_text(text + "#" * (MAX_SIZE + 1 - len(text)))


def test_size_of_other_files():
    data = write_map(make_level())
    LevelFile(data.ljust(MAX_LEVEL_SIZE, b"\0")).level()
    with pytest.raises(LevelFormatError, match=f"expected at most {MAX_LEVEL_SIZE} bytes for a level"):
        LevelFile(data.ljust(MAX_LEVEL_SIZE + 1, b"\0")).level()


def test_a_pack_of_ten_thousand_levels():
    """It is as large as those of the generator, and larger than a file with one level may be."""
    line = make_pack(make_level(title="x" * 128)).strip()
    pack = Pack(b"\n\n".join([line] * 10_000) + b"\n")
    assert len(pack) == len(pack.titles) == 10_000
    assert pack.level(9_999).digest == pack.level(0).digest
    with pytest.raises(LevelFormatError, match="line 3: "):
        Pack(line + b"\n\n$broken#\n").level(1)


def records_of(kind: int, count: int) -> np.ndarray:
    """Return the records of a level with so many of a kind."""
    switches = [(EXIT_SWITCH, 8, 8, 0, 0)]
    if kind in (EXIT, EXIT_SWITCH):
        rows = [(EXIT, 8, 8, 0, 0)] * count + switches * count
    elif kind in DOOR_SWITCHES:
        rows = [(kind, 8, 8, 0, 0), (DOOR_SWITCHES[kind], 9, 9, 0, 0)] * count
    elif kind in DOOR_SWITCHES.values():
        door = next(door for door, switch in DOOR_SWITCHES.items() if switch == kind)
        rows = [(door, 8, 8, 0, 0), (kind, 9, 9, 0, 0)] * count
    else:
        rows = [(kind, 8, 8, 0, 0)] * (count - (kind == NINJA))
    return np.array([(NINJA, 6, 6, 0, 0), *rows], np.uint8)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.most < MAX_RECORDS], ids=lambda kind: kind.name)
def test_entities_of_a_kind(kind):
    raw = RawLevel(np.zeros((23, 42)), records_of(kind.number, kind.most))
    assert loading_fault(raw.records) is None
    assert len(read_map(write_map(raw)).records) == len(raw.records)
    fault = loading_fault(records_of(kind.number, kind.most + 1))
    assert fault is not None
    assert f"at most {kind.most} " in fault.expected
    assert fault.got == str(kind.most + 1)
    assert kind_name(records_of(kind.number, kind.most + 1)[fault.record, 0]) in fault.expected


def test_entities_in_all():
    records = np.array([(NINJA, 6, 6, 0, 0)] + [(39, 8, 8, 0, 0)] * MAX_RECORDS, np.uint8)
    assert loading_fault(records[:-1]) is None
    fault = loading_fault(records)
    assert fault is not None
    assert fault.expected == f"at most {MAX_RECORDS} records"
