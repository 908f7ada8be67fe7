"""The page of the built-in sets against the levels."""

import re

from nclone_env.level.catalog import level_sets
from nclone_env.level.load import load_level
from nclone_env.level.solutions import known_solutions

from .pages import ROOT

PAGE = (ROOT / "docs" / "levels" / "sets.md").read_text()
ROWS = re.findall(r"^\| `(motifs-\d+)` \| (\d+) to (\d+) \| (.*) \|$", PAGE, re.MULTILINE)
"""Set, least and greatest difficulty, and the cells of its levels."""


def test_the_table_of_motifs_has_titles_and_par_times():
    known, sets = known_solutions(), level_sets()
    assert [row[0] for row in ROWS] == [name for name in sets if name.startswith("motifs")]
    for name, _, _, cells in ROWS:
        for level, cell in zip(sets[name], cells.split(" | "), strict=True):
            assert re.sub(r" \(\d+\) ", " ", cell) == f"{load_level(level).raw.title} {len(known[level])}"


def test_the_bands_adjoin_and_hold_five_sorted_difficulties_each():
    assert [(int(low), int(high)) for _, low, high, _ in ROWS] == [
        *((10 * number, 10 * number + 9) for number in range(9)),
        (90, 100),
    ]
    for _, low, high, cells in ROWS:
        found = [int(number) for number in re.findall(r"\((\d+)\)", cells)]
        assert len(found) == 5
        assert found == sorted(found)
        assert int(low) <= found[0] <= found[-1] <= int(high)


def test_the_page_counts_levels_and_sets():
    sets = level_sets()
    assert f"{sum(map(len, sets.values()))} original levels in {len(sets)} sets" in PAGE
