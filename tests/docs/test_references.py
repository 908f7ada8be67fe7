"""Files, names and commands in the documentation exist, and pages named in docstrings."""

import importlib
import re
from pathlib import Path

import pytest

from .pages import PAGES, ROOT

_LISTS = re.findall(r"^(?:\.PHONY:|COMPAT :=) (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
MAKE_TARGETS = set(" ".join(_LISTS).split())


PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")


def missing_files(text: str, page: Path) -> list[str]:
    """Return the paths of source files in code spans that exist neither at the top, in the package nor by the page."""
    paths = re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.(?:py|toml|txt|md))`", text)
    homes = (ROOT, ROOT / "nclone_env", page.parent)
    return [path for path in paths if not any((home / path).is_file() for home in homes)]


def missing_names(text: str) -> list[str]:
    """Return the constants in code spans, as ``game.KINDS``, that are in no module of the package."""
    missing = []
    for name in re.findall(r"`(?:nclone_env\.)?([a-z][a-z_.]*\.[A-Z][A-Z_0-9]+)`", text):
        module, _, constant = name.rpartition(".")
        if not hasattr(imported(f"nclone_env.{module}"), constant):
            missing.append(name)
    return missing


def imported(name: str) -> object:
    """Return a module, None if there is none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def missing_commands(text: str) -> list[str]:
    """Return the scripts under ``profiling`` and the make targets that are named as commands and do not exist."""
    scripts = re.findall(r"python -m profiling\.(\w+(?:\.\w+)*)", text)
    targets = re.findall(r"(?:`|^)make ([a-z][\w-]*)", text, flags=re.MULTILINE)
    missing = [name for name in scripts if not (ROOT / "profiling" / f"{name.replace('.', '/')}.py").is_file()]
    return missing + [name for name in targets if name not in MAKE_TARGETS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_names_and_commands_exist(page):
    text = page.read_text()
    assert missing_files(text, page) + missing_names(text) + missing_commands(text) == []


def test_pages_that_docstrings_name_exist():
    named = {name for source in (ROOT / "nclone_env").rglob("*.py") for name in PAGE.findall(source.read_text())}
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_what_is_missing_is_found():
    files = "`nclone_env/config.py`, `env/vector.py`, `docs/README.md`, `env/missing.py`, `a.py`"
    commands = (
        "`python -m profiling.memory.allocation`, `python -m profiling.memory.lost`\n"
        "make train\n`make compat-sb3` `make money`"
    )
    assert missing_files(files, ROOT / "docs" / "environments" / "memory.md") == ["env/missing.py"]
    assert missing_commands(commands) == ["memory.lost", "money"]
    names = "`game.KINDS`, `nclone_env.game.LOST_KINDS`, `constants.ENTITY_NAMES`, `benchmark.scores`"
    assert missing_names(names) == ["game.LOST_KINDS", "constants.ENTITY_NAMES"]
