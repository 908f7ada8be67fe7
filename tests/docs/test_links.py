"""Relative links of the documentation resolve, and the index reaches every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import INDEX, PAGES, ROOT, prose


def targets(text: str) -> list[str]:
    """Return the targets of all relative links and images of a page."""
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(text)))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub derives from the headings of a page."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", prose(text), flags=re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        number = next(i for i in range(len(found) + 1) if (f"{slug}-{i}" if i else slug) not in found)
        found.add(f"{slug}-{number}" if number else slug)
    return found


def broken(page: Path) -> list[str]:
    """Return the relative links of a page that do not resolve."""
    result = []
    for target in targets(page.read_text()):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            result.append(target)
    return result


def reachable(start: Path) -> set[Path]:
    """Return the pages that can be reached from a page through relative links."""
    seen, queue = {start}, [start]
    while queue:
        page = queue.pop()
        linked = {(page.parent / target.partition("#")[0]).resolve() for target in targets(page.read_text())}
        new = {file for file in linked - seen if file.suffix == ".md" and file.is_file()}
        seen |= new
        queue += new
    return seen


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page):
    assert broken(page) == []


def test_every_page_is_linked_from_the_index():
    assert INDEX in reachable(ROOT / "README.md")
    assert set(PAGES) - reachable(INDEX) == set()


def test_broken_links_are_found(tmp_path):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# Other\n\n## `out=`: your arrays\n\n## Twice\n\n## Twice\n")
    page.write_text(
        "# Page\n[a](other.md) [b](other.md#out-your-arrays) [c](other.md#twice-1) [d](#page) [e](https://x.org/y.md)\n"
        "[f](missing.md) [g](other.md#missing) [h](#missing) `[i](code.md)`\n"
        "```\n[j](code.md)\n# Code\n```\n[k](#code)\n"
    )
    assert broken(page) == ["missing.md", "other.md#missing", "#missing", "#code"]
    assert reachable(page) == {page, other}
