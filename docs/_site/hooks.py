"""What the documentation site adds to the Markdown pages: pages from outside of ``docs``, and links that leave it."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ADOPTED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the repository that are pages of the site as well."""
NOTEBOOKS = {"tutorial/notebook.md": "docs/tutorial/tutorial.ipynb"}
"""Pages that are made of notebooks."""
WEIGHTS = {
    "experiments/": 0.4,
    "changelog.md": 0.2,
    "README.md": 0.4,
    "features.md": 0.4,
    "reference/": 0.7,
    "physics/": 0.5,
    "operation/pictures.md": 0.3,
    "environments/ids/": 0.3,
    "levels/play.md": 3,
    "levels/planning.md": 3,
    "levels/README.md": 3,
    "benchmark.md": 3,
    "training/README.md": 3,
    "training/datasets.md": 3,
    "training/runs.md": 2,
    "tutorial/level.md": 4,
    "tutorial/reward.md": 2,
}
"""Weights of pages in the search, by the beginning of their path: the page on a task is found before others."""
GALLERY = (
    '**<a href="gallery/play.html">Play, watch, edit and check runs in the browser</a>**, '
    'with nothing to install: <a href="gallery/index.html">all levels of the package</a>'
)
"""What stands first on the site alone: `make docs` writes the gallery beside its pages."""
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*?\bsrc=\"([^\"]+)|<link\b(?![^>]*canonical)[^>]*?href=\"([^\"]+)"
)
SHIM = re.compile(r'src="https://unpkg\.com/iframe-worker/shim"')
"""What the theme loads for a search in files; ``docs/offline.js`` takes its place."""
ROLE = re.compile(r":(?:class|meth|func|attr|mod|data):(?=<code)")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie outside of ``docs``."""
    from mkdocs.structure.files import File  # only here, so that the tests do without MkDocs

    for source, target in ADOPTED.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text()))
    for target, source in NOTEBOOKS.items():
        files.append(File.generated(config, target, content=notebook_page((ROOT / source).read_text())))
    return files


def notebook_page(text: str) -> str:
    """Return a notebook with its outputs as a page."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                picture = "".join(data["image/png"]).strip()
                parts.append(f'<img alt="output of the cell" src="data:image/png;base64,{picture}">')
            else:
                printed = "".join(output.get("text", data.get("text/plain", "")))
                parts.append(f"```text\n{printed.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Make links that leave ``docs`` lead to the page of the site, or to the file in the repository; weigh the page."""
    weight = next((value for start, value in WEIGHTS.items() if page.file.src_uri.startswith(start)), None)
    if weight is not None:
        page.meta.setdefault("search", {"boost": weight})
    sources = {target: source for source, target in ADOPTED.items()}
    source = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    if page.file.src_uri == "README.md":
        markdown = markdown.replace("**[Install]", f"{GALLERY}\n\n**[Install]", 1)
    return relinked(markdown, source, page.file.src_uri, config["extra"]["repository"])


def relinked(markdown: str, source: str, place: str, repository: str) -> str:
    """Return Markdown whose relative links are those of a page of the site; code blocks are left as they are.

    Args:
        markdown: the page.
        source: its path in the repository.
        place: its path in the site.
        repository: address of the repository.

    Raises:
        FileNotFoundError: if a link leads to a file that the repository does not have.
    """

    def target(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        if path not in ADOPTED and not path.startswith("docs/"):
            if not (ROOT / path).exists():
                raise FileNotFoundError(f"{source}: expected a link to a file of the repository, got {found[1]}")
            return f"{repository}/blob/main/{path}"
        inside = ADOPTED.get(path) or path.removeprefix("docs/")
        return posixpath.relpath(inside, posixpath.dirname(place) or ".")

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(target, part) for part in parts)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Remove the roles of docstrings, which are no Markdown; refuse a page that loads something from another host."""
    from mkdocs.exceptions import PluginError

    output = SHIM.sub(f'src="{posixpath.relpath("offline.js", posixpath.dirname(page.url) or ".")}"', output)
    found = loaded_from_elsewhere(output)
    if found:
        raise PluginError(f"{page.file.src_uri}: expected a page that loads nothing from elsewhere, got {found}")
    return ROLE.sub("", output)


def loaded_from_elsewhere(html: str) -> list[str]:
    """Return the addresses of scripts, style sheets, pictures and frames on other hosts."""
    found = (first or second for first, second in LOADED.findall(html))
    return [address for address in found if re.match(r"(?:https?:)?//", address)]
