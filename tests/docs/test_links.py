"""Relative links of pages outside the site resolve; MkDocs checks those of the site (``make docs``)."""

import re
from pathlib import Path

import pytest

from .pages import ROOT, prose


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub derives from the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each) for each in headings)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in plain}


def broken(page: Path) -> list[str]:
    """Return the relative links of a page that do not resolve."""
    result = []
    for target in re.findall(r"\]\(((?![a-z]+:)[^)\s]+)\)", prose(page.read_text())):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve()
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            result.append(target)
    return result


@pytest.mark.parametrize("name", ["README.md", "SECURITY.md"])
def test_relative_links_resolve(name):
    assert broken(ROOT / name) == []


def test_broken_links_are_found(tmp_path):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# Other\n\n## `out=`: your arrays\n")
    page.write_text(
        "[a](other.md) [b](other.md#out-your-arrays) [c](https://x.org/y.md) [d](missing.md) [e](other.md#missing)\n"
        "```\n[f](code.md)\n```\n"
    )
    assert broken(page) == ["missing.md", "other.md#missing"]
