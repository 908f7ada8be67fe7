"""The page of the built-in sets against the levels."""

import re

from nclone_env.level.catalog import level_sets
from nclone_env.level.load import load_level
from nclone_env.level.solutions import known_solutions

from .pages import ROOT

PAGE = (ROOT / "docs" / "levels" / "sets.md").read_text()


def test_the_table_of_motifs_has_titles_and_par_times():
    known, rows = known_solutions(), re.findall(r"^\| (\d\d) \| (.*) \|$", PAGE, re.MULTILINE)
    names = [sorted(names) for set_name, names in level_sets().items() if set_name.startswith("motifs")]
    assert len(rows) == 10
    for row, (number, cells) in enumerate(rows):
        for several, cell in zip(names, cells.split(" | "), strict=True):
            name = several[row]
            assert name.partition("/")[2].startswith(number)
            assert cell == f"{load_level(name).raw.title} {len(known[name])}"


def test_the_page_counts_levels_and_sets():
    sets = level_sets()
    assert f"{sum(map(len, sets.values()))} original levels in eight sets" in PAGE
    assert len(sets) == 8
