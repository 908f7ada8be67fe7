"""Files and commands named in the documentation exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import PAGES, ROOT

_LISTS = re.findall(r"^(?:\.PHONY:|COMPAT :=) (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
MAKE_TARGETS = set(" ".join(_LISTS).split())


def missing_files(text: str, page: Path) -> list[str]:
    """Return the paths of source files in code spans that exist neither at the top, in the package nor by the page."""
    paths = re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.(?:py|toml|txt|md))`", text)
    homes = (ROOT, ROOT / "nclone_env", page.parent)
    return [path for path in paths if not any((home / path).is_file() for home in homes)]


def missing_commands(text: str) -> list[str]:
    """Return the scripts under ``profiling`` and the make targets that are named as commands and do not exist."""
    scripts = re.findall(r"python -m profiling\.(\w+(?:\.\w+)*)", text)
    targets = re.findall(r"(?:`|^)make ([a-z][\w-]*)", text, flags=re.MULTILINE)
    missing = [name for name in scripts if not (ROOT / "profiling" / f"{name.replace('.', '/')}.py").is_file()]
    return missing + [name for name in targets if name not in MAKE_TARGETS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_commands_exist(page):
    text = page.read_text()
    assert missing_files(text, page) + missing_commands(text) == []


def test_missing_files_and_commands_are_found():
    files = "`nclone_env/config.py`, `env/vector.py`, `docs/README.md`, `env/missing.py`, `a.py`"
    commands = (
        "`python -m profiling.memory.allocation`, `python -m profiling.memory.lost`\n"
        "make train\n`make compat-sb3` `make money`"
    )
    assert missing_files(files, ROOT / "docs" / "environments" / "memory.md") == ["env/missing.py"]
    assert missing_commands(commands) == ["memory.lost", "money"]
