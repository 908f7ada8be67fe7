"""The table of tile characters, and the document that explains it to people."""

import re
from pathlib import Path

from nclone_env.constants import MAX_TILE
from nclone_env.kinds import KINDS
from nclone_env.level.formats.lines import TILE_CHARACTERS, TILES
from nclone_env.level.formats.text import KEYS, format_text, parse_text
from nclone_env.level.validation import validate

DOCUMENT = (Path(__file__).parents[3] / "docs/levels/README.md").read_text()


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
