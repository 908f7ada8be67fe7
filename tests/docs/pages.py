"""The documentation pages of the repository."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = (*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md")))


def prose(text: str) -> str:
    """Return Markdown without fenced code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
