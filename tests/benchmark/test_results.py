"""The page of results keeps what authors write in its place."""

from __future__ import annotations

from dataclasses import replace

from nclone_env.benchmark import verify
from nclone_env.benchmark.results import page

from .bases import honest


def test_a_title_adds_no_cells_and_no_markup():
    plain = page([(honest(), verify(honest()))], None)
    forged = replace(honest(), title="a | 100.0 |\n<b>[*`_", command="x `|\n\n# y")
    text = page([(forged, verify(honest()))], None)
    rows, expected = ([line for line in lines.splitlines() if line.startswith("| ")] for lines in (text, plain))
    assert rows[2].startswith(r"| a \| 100.0 \| \<b\>\[\*\`\_ | ")
    assert " | state | 4m: 1,000 steps | 2 | " in rows[2]
    assert rows[2].replace(r"\|", "").count("|") == expected[2].count("|")
    assert rows[-1].endswith(r" | `x '\| # y` |")
    assert len(text.splitlines()) == len(plain.splitlines())
