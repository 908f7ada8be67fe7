"""The page of results keeps what authors write in its place."""

import warnings
from dataclasses import replace
from functools import lru_cache
from html.parser import HTMLParser

import pytest

from nclone_env.benchmark import verify
from nclone_env.benchmark.results import page, write_results

from .bases import honest

TITLES = [
    "a | 100.0 | <b>[*`_",
    'ppo { onmouseover="alert(1)" }',
    "ppo {: style=position:fixed;inset:0 onclick=alert(1) }",
    "ppo { #results .hidden hidden }",
    "a `b` { onclick=alert(1) }",
    "![a](http://evil.example/)",
    "<img src=x onerror=alert(1)>",
    "&lt;script>",
    '--8<-- "README.md"',
    "_mine_ ~~x~~ ==y== ^z^ :smile: [^1]",
    "# heading",
    "- item",
]
EXTENSIONS = ["attr_list", "md_in_html", "tables"]
"""Those of mkdocs.yml that could make something of a title."""


@lru_cache(maxsize=1)
def verified():
    return verify(honest())


def rows_of(title, command="a command"):
    """Return the rows of the page whose title or command is foreign, and those of the honest one."""
    texts = [page([(entry, verified())], {}) for entry in (replace(honest(), title=title, command=command), honest())]
    return [[line for line in text.splitlines() if line.startswith("| ")] for text in texts]


class Cells(HTMLParser):
    """Collects tags with what is not their alignment, and the text of the cells."""

    def __init__(self):
        super().__init__()
        self.found, self.text = [], []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, [pair for pair in attributes if pair != ("style", "text-align: right;")]))

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("title", TITLES)
def test_a_title_is_text_on_the_page(title):
    markdown = pytest.importorskip("markdown")
    seen = []
    for rows in rows_of(title, f"x {title}"):
        cells = Cells()
        cells.feed(markdown.markdown("\n".join(rows[:3]) + "\n\n" + "\n".join(rows[3:]), extensions=EXTENSIONS))
        seen.append(cells)
    assert seen[0].found == seen[1].found, "no more tags, cells or attributes than those of an honest title"
    assert "".join(seen[0].text).count(title) >= 1
    assert "right" in "".join(seen[1].text)


def test_a_command_stays_in_its_cell():
    forged, plain = rows_of("right", "x `|\n\n# y\x1b[31m" + "z" * 5000)
    assert forged[-1].startswith(r"| right | state | `x '\| # y\x1b[31mzzz")
    assert forged[-1].endswith("z ...` |")
    assert len(forged[-1]) < 1100
    assert len(forged) == len(plain)


def test_a_page_without_plots_where_they_cannot_be_made(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("libfreetype.so: no such file")

    monkeypatch.setattr("nclone_env.benchmark.results.optional_module", fail)
    with pytest.warns(RuntimeWarning, match="r-builtin-v1.png is left out: OSError: libfreetype.so: no such file"):
        write_results([(honest(), verified())], tmp_path / "r.md", plots=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r.md"]
    assert "![" not in (tmp_path / "r.md").read_text()


def test_a_page_links_to_a_guide_that_is_there(tmp_path):
    pages = []
    for _ in range(2):
        write_results([(honest(), verified())], tmp_path / "r.md", plots=False)
        pages.append((tmp_path / "r.md").read_text())
        (tmp_path / "benchmark.md").touch()
    assert ["](benchmark.md)" in page for page in pages] == [False, True]
    assert "](https://github.com/nclone-env/nclone-env/blob/main/docs/benchmark.md)" in pages[0]


@pytest.mark.parametrize("title", [r"ppo $\frac$", "$x_{", "_mine", "\N{PILE OF POO}", "a" * 100, "%s {0} \\"])
def test_any_title_is_plotted(tmp_path, title):
    pytest.importorskip("matplotlib")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entries = [(entry, verified()) for entry in (honest(), replace(honest(), title=title))]
        write_results(entries, tmp_path / "r.md", plots=True)
    assert (tmp_path / "r-builtin-v1.png").read_bytes().startswith(b"\x89PNG")
