"""Tiles and entities as text, and the document that explains the tile characters to people."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.errors import LevelFormatError
from nclone_env.game import KINDS, MAX_TILE
from nclone_env.level.formats.lines import TILE_CHARACTERS, TILES, format_entity, parse_entities
from nclone_env.level.formats.text import KEYS, format_text, parse_text
from nclone_env.level.level import Record
from nclone_env.level.validation import validate

DOCUMENT = (Path(__file__).parents[3] / "docs/levels/README.md").read_text()
BYTES = st.integers(0, 255)


def test_every_tile_has_its_own_character():
    assert len(TILES) == MAX_TILE + 1
    assert len(set(TILE_CHARACTERS)) == MAX_TILE + 1
    assert TILE_CHARACTERS.isascii()
    assert not set(TILE_CHARACTERS) & set("\"'\\ ")


def test_known_tiles():
    assert TILES[4] == ("_", "half block, bottom")
    assert TILES[8] == ("c", "45 degree slope, bottom-right")
    assert TILES[17] == ("l", "quarter pipe, bottom-left")
    assert TILES[33] == ("H", "raised steep slope, bottom-left")
    assert TILES[34] == ("1", "glitched, top edge only")


def test_legend_in_the_document_agrees():
    legend = re.findall(r"^\| (\d+) \| `(.)` \| (.+) \|$", DOCUMENT, re.MULTILINE)
    assert [(int(number), character, text) for number, character, text in legend] == [
        (number, *tile) for number, tile in enumerate(TILES)
    ]


def test_names_and_keys_in_the_document_agree():
    names = re.findall(r"^\| (\d+) \| `(\w\w+)` \| [\d,]+ \|$", DOCUMENT, re.MULTILINE)
    assert all(f"| `{kind.name}` | {kind.most:,} |" in DOCUMENT for kind in KINDS)
    assert [name for _, name in names] == [kind.name for kind in KINDS]
    assert [int(number) for number, _ in names] == list(range(len(KINDS)))
    keys = re.search(r"\| key \| content \|\n\|---\|---\|\n(.*?)\n\n", DOCUMENT, re.DOTALL)[1]
    assert re.findall(r"^\| `(\w+)` \|", keys, re.MULTILINE) == list(KEYS)


def test_example_in_the_document_is_a_canonical_level():
    text = re.search(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)[1]
    raw = parse_text(text)
    assert format_text(raw) == text
    assert validate(raw) == []


def test_orientation_and_mode_may_be_left_out():
    records = parse_entities(["ninja 1 2", "gold 3 4", "thwump 5 6 2", "zap_drone 7 8 4 3"], "text")
    assert records.tolist() == [[0, 1, 2, 0, 0], [2, 3, 4, 0, 0], [20, 5, 6, 2, 0], [14, 7, 8, 4, 3]]


def test_trailing_zeros_are_not_written():
    assert format_entity(Record(14, 7, 8)) == "zap_drone 7 8"
    assert format_entity(Record(14, 0, 0)) == "zap_drone 0 0"
    assert format_entity(Record(14, 7, 8, 4)) == "zap_drone 7 8 4"
    assert format_entity(Record(14, 7, 8, 0, 3)) == "zap_drone 7 8 0 3"


@settings(deadline=None)
@given(st.sampled_from([1, 2, 16, 17, 20, 25, 27, 39]), BYTES, BYTES, BYTES, BYTES)
def test_a_line_that_is_written_is_read(kind, x, y, orientation, mode):
    record = Record(kind, x, y, orientation, mode)
    assert parse_entities(["ninja 0 0", format_entity(record)], "text")[1].tolist() == list(record)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["ninja 1 2", "", "gold 1"], r"text: row 7: expected name x y \[orientation\] \[mode\], got 'gold 1'"),
        (["ninja 1 2", "golf 1 1"], r"text: row 6: expected the name of an entity \(did you mean gold\?\), got 'golf'"),
        (["ninja 1 2", "gold 1 256"], "text: row 6: expected a whole number of 0..255 for y, got '256'"),
        (
            ["ninja 1 2", "# nothing", "trap_door 1 1", "gold 1 1"],
            "text: row 8: expected trap_door_switch, .* in row 7,",
        ),
        (["gold 1 1"], "text: row 5: expected the ninja as the first record, got gold"),
        ([], "text: row 5: expected a ninja record"),
    ],
)
def test_errors_name_the_line(lines, message):
    with pytest.raises(LevelFormatError, match=message):
        parse_entities(lines, "text", first=5, word="row")
