"""The built site, opened as files with the network refused: pages ask for nothing else, and search finds."""

import json
import re

import pytest

from ..gallery.browser import PROGRAM, Chromium
from .pages import ROOT

SITE = ROOT / "site"

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="needs Chromium"),
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="needs the site: make docs"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    refused = "--host-resolver-rules=MAP * ~NOTFOUND"
    with Chromium(tmp_path_factory.mktemp("profile"), 1280, 900, refused) as browser:
        yield browser


def requested(browser):
    """Return the addresses that a page has asked for."""
    return browser.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")


def found(browser, words):
    """Return the pages that a search finds, in order."""
    browser.evaluate(
        f"(input => {{ input.focus(); input.value = {json.dumps(words)}; input.dispatchEvent(new Event('input',"
        " {bubbles: true})); input.dispatchEvent(new Event('keyup', {bubbles: true})); })"
        "(document.querySelector('.md-search__input'))"
    )
    browser.wait("document.querySelectorAll('.md-search-result__link').length > 0")
    links = "[...document.querySelectorAll('.md-search-result__link')].map(e => e.getAttribute('href'))"
    return [link.rpartition("/site/")[2].partition("?")[0].partition("#")[0] for link in browser.evaluate(links)]


@pytest.mark.parametrize("page", ["index.html", "training/use.html", "reference/training.html", "tutorial/train.html"])
def test_pages_ask_for_nothing_beyond_the_folder(browser, page):
    browser.open(SITE / page)
    browser.wait("document.readyState === 'complete'")
    assert [address for address in requested(browser) if not address.startswith(SITE.as_uri())] == []
    assert browser.evaluate("document.querySelectorAll('article').length") == 1


def test_the_page_of_a_search_is_found(browser):
    browser.open(SITE / "index.html")
    assert found(browser, "install")[0] == "installation.html"


@pytest.mark.parametrize(("page", "default"), [("configuration", "RewardConfig()"), ("training", "= 256")])
def test_the_reference_shows_defaults_and_not_how_they_are_declared(page, default):
    shown = re.sub(r"<[^>]*>", "", (SITE / "reference" / f"{page}.html").read_text())
    assert default in shown
    assert not re.search(r"\b(option|group)\(", shown)
