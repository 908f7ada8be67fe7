"""The text format of level files, with its tiles and entities."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.errors import LevelFormatError
from nclone_env.game import KINDS, MAX_TILE
from nclone_env.level import TILES, read_map, validate, write_map
from nclone_env.level.formats.text import KEYS, TILE_CHARACTERS, format_entity, format_text, parse_entities, parse_text
from nclone_env.level.level import Record

from ..level_bases import levels, make_level, same

TEXT = format_text(make_level(author="me", level_id=7))
LINES = TEXT.split("\n")
FIRST_TILES = LINES.index('tiles = """') + 2  # lines are counted from 1
FIRST_ENTITY = LINES.index('entities = """') + 2

DOCUMENT = (Path(__file__).parents[3] / "docs/levels/README.md").read_text()
BYTES = st.integers(0, 255)


@settings(max_examples=60)
@given(levels())
def test_text_bytes_and_levels_are_the_same_thing(raw):
    text = format_text(raw)
    assert same(parse_text(text), raw)
    assert format_text(parse_text(text)) == text
    data = write_map(parse_text(text))
    assert data == write_map(raw)
    assert format_text(read_map(data)) == text


def test_canonical_text_is_for_people():
    assert LINES[:5] == ["format = 1", 'title = "a level"', 'author = "me"', "level_id = 7", 'game_mode = "solo"']
    assert LINES[FIRST_TILES - 1] == "." * 42
    assert LINES[FIRST_TILES + 2] == ".#^>_<abcdefghijklmnopqrstABCDEFGH1234...."
    assert LINES[FIRST_ENTITY - 1] == "ninja 66 26"
    assert "one_way 60 60 6" in LINES
    assert "zap_drone 70 70 4 3" in LINES
    assert "type_39 90 90 1 1" in LINES
    assert TEXT.endswith('"""\n')


def test_unpublished_levels_have_no_id():
    text = format_text(make_level())
    assert "level_id" not in text
    assert same(parse_text(text), make_level())


def test_quotes_and_backslashes_in_titles():
    raw = make_level(title='say "no" \\ or \'yes\' """')
    assert same(parse_text(format_text(raw)), raw)


def test_optional_keys_comments_and_line_ends():
    lines = [line for line in LINES if not re.match("author|level_id|game_mode", line)]
    lines.insert(lines.index("ninja 66 26"), "# the start\n")
    text = "# my level\n" + "\n".join(lines).replace("ninja 66 26", "  ninja   66 26 # here")
    assert same(parse_text(text), make_level())
    assert same(parse_text(text.replace("\n", "\r\n")), make_level())


def changed(line: int, new: str) -> str:
    """Return the text with one line (from 1) replaced."""
    return "\n".join([*LINES[: line - 1], new, *LINES[line:]])


TILES_ROW = "." * 42


@pytest.mark.parametrize(
    ("line", "new", "place", "message"),
    [
        (1, "format = 2", 1, "expected format 1, the only one there is, got 2"),
        (1, "format = true", 1, "expected a whole number for 'format', got True"),
        (1, "", len(LINES), "expected the key 'format' somewhere in the file, got none"),
        (2, "title = 3", 2, "expected a string for 'title', got 3"),
        (2, 'title = "x', 2, "expected TOML of the form key = value, with a string or a number, got 'title = \"x'"),
        (2, f"title = '{'x' * 129}'", 2, "expected title of at most 128 characters, got 129"),
        (2, 'title = "a\\u0001"', 2, r"expected title of printable characters, got '\x01'"),
        (3, "autor = 'me'", 3, "expected one of the keys format, title, author, level_id, game_mode, tiles, entities"),
        (3, "[extra]\nx = 1", 3, "expected TOML of the form key = value, with a string or a number, got '[extra]'"),
        (4, "level_id = -1", 4, "expected level_id of a number from 0 to 4294967295, got -1"),
        (4, f"level_id = 0x{'f' * 9999}", 4, "expected a number of at most 64 bits for 'level_id'"),
        (4, f"level_id = {'9' * 9999}", len(LINES), "expected TOML"),
        (4, f"level_id = {'[' * 9999}", 4, "expected TOML of the form key = value"),
        (4, "level.id = 3", 4, "expected TOML of the form key = value, with a string or a number, got 'level.id = 3'"),
        (5, "game_mode = 'duo'", 5, "expected one of solo, co-op, race, unset, got 'duo'"),
        (5, "game_mode = 'solo'\ntitle = 'again'", 6, "expected TOML"),
        (FIRST_TILES, TILES_ROW[1:], FIRST_TILES, "expected 42 tiles, got 41"),
        (FIRST_TILES + 22, TILES_ROW + " ", FIRST_TILES + 22, "expected 42 tiles, got 43"),
        (FIRST_TILES + 4, "." * 9 + "?" + "." * 32, FIRST_TILES + 4, "in column 10, got '?'"),
        (FIRST_TILES, f"{TILES_ROW}\n{TILES_ROW}", FIRST_TILES + 23, "expected 23 lines of tiles, got 24"),
        (FIRST_ENTITY, "mine 1 2", FIRST_ENTITY, "expected the ninja as the first record, got mine"),
        (FIRST_ENTITY + 1, "min 1 2", FIRST_ENTITY + 1, "the name of an entity (did you mean mine?), got 'min'"),
        (FIRST_ENTITY + 1, "zzz 1 2", FIRST_ENTITY + 1, "the name of an entity (ninja, mine, gold"),
        (FIRST_ENTITY + 1, "mine 1", FIRST_ENTITY + 1, "expected name x y [orientation] [mode], got 'mine 1'"),
        (FIRST_ENTITY + 1, "mine 1 2 3 4 5", FIRST_ENTITY + 1, "expected name x y [orientation] [mode]"),
        (FIRST_ENTITY + 1, "mine 256 2", FIRST_ENTITY + 1, "expected a whole number of 0..255 for x, got '256'"),
        (FIRST_ENTITY + 1, "mine 1 2 ²", FIRST_ENTITY + 1, "0..255 for orientation"),
        (
            FIRST_ENTITY + 5,
            "gold 1 2",
            FIRST_ENTITY + 5,
            f"the switch of the exit in line {FIRST_ENTITY + 3}, got gold",
        ),
        (FIRST_ENTITY + 9, "gold 1 2", FIRST_ENTITY + 9, "expected locked_door_switch, the switch of the locked_door"),
        (FIRST_ENTITY + 8, "gold 1 2", FIRST_ENTITY + 9, "expected a locked_door before this locked_door_switch"),
        (FIRST_ENTITY + 15, "trap_door 1 2", FIRST_ENTITY + 15, "expected the trap_door_switch of this trap_door"),
    ],
)
def test_mistakes_name_their_line(line, new, place, message):
    with pytest.raises(LevelFormatError, match=rf"^my\.toml: line {place}: .*{re.escape(message)}"):
        parse_text(changed(line, new), "my.toml")


def test_missing_rows_of_tiles():
    text = "\n".join(LINES[: FIRST_TILES - 1] + LINES[FIRST_TILES + 1 :])
    with pytest.raises(LevelFormatError, match=f"line {FIRST_TILES + 21}: expected 23 lines of tiles, got 21"):
        parse_text(text)


def test_no_entities():
    text = "\n".join([*LINES[: FIRST_ENTITY - 1], '"""', ""])
    with pytest.raises(LevelFormatError, match=f"line {FIRST_ENTITY}: expected a ninja record, the start of the level"):
        parse_text(text)


def test_too_many_entities():
    text = changed(FIRST_ENTITY + 1, "mine 1 2\n" * 32768)
    with pytest.raises(LevelFormatError, match="expected at most 32767 entities, got 327"):
        parse_text(text)


def test_tiles_above_37_have_no_character():
    tiles = make_level().tiles.copy()
    tiles[2, 4] = 38
    message = r"odd.map: tile in column 5, row 3: expected a tile of 0\.\.37, for which text has .*, got 38"
    with pytest.raises(LevelFormatError, match=message):
        format_text(make_level(tiles=tiles, source="odd.map"))


def test_what_no_file_can_hold_has_no_text():
    with pytest.raises(LevelFormatError, match="title: expected at most 128"):
        format_text(make_level(title="x" * 129))
    with pytest.raises(LevelFormatError, match="record 1: expected a type of"):
        format_text(make_level([(0, 1, 1, 0, 0), (99, 1, 1, 0, 0)]))


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


@given(st.sampled_from([1, 2, 16, 17, 20, 25, 27, 39]), BYTES, BYTES, BYTES, BYTES)
def test_a_line_that_is_written_is_read(kind, x, y, orientation, mode):
    record = Record(kind, x, y, orientation, mode)
    assert parse_entities(["ninja 0 0", format_entity(record)], "text")[1].tolist() == list(record)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["ninja 1 2", "", "gold 1"], r"text: row 7: expected name x y \[orientation\] \[mode\], got 'gold 1'"),
        (
            ["ninja 1 2", "# nothing", "trap_door 1 1", "gold 1 1"],
            "text: row 8: expected trap_door_switch, .* in row 7,",
        ),
    ],
)
def test_errors_name_the_line(lines, message):
    with pytest.raises(LevelFormatError, match=message):
        parse_entities(lines, "text", first=5, word="row")
