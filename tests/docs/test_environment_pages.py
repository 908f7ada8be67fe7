"""The page of each id: it is what its script writes, with the measured shares of random play that it has."""

import re

import pytest

from nclone_env.env.ids import REGISTERED
from profiling.pictures import environments

from .pages import ROOT

FOLDER = ROOT / environments.FOLDER


@pytest.mark.parametrize("name", REGISTERED)
def test_the_page_of_an_id_is_that_of_the_registry(name):
    text = (FOLDER / f"{environments.slug(name)}.md").read_text()
    rows = re.findall(r"^\| `([\w/-]+)` \| .* \| ([\d.]+)% \|$", text, flags=re.MULTILINE)
    shares = [(level, float(share) / 100) for level, share in rows]
    (picture,) = re.findall(r"\]\(([\w-]+\.gif)\)", text)
    shown = environments.shown_level([level for level, _ in rows])
    assert text == environments.page(name, shares, picture, shown)
    assert (FOLDER / picture).stat().st_size < 300_000
    assert f"environments/ids/{environments.slug(name)}.md" in (ROOT / "mkdocs.yml").read_text()
    assert f"ids/{environments.slug(name)}.md" in (FOLDER.parent / "versions.md").read_text()


def test_there_is_no_other_page():
    assert {path.stem for path in FOLDER.glob("*.md")} == set(map(environments.slug, REGISTERED))
