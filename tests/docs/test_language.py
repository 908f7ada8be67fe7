"""Documentation, docstrings, comments and messages avoid unidiomatic words."""

import re
from pathlib import Path

from .pages import ROOT

# Underscores separate words as well, so that names of functions and constants are checked.
WORDS = re.compile(
    r"(?<![^\W_])(anew|whoever|whosoever|somebody|nobody|thereby|wherein|hereby|hearsay|shut"
    r"|lent to|what became of|shared out)(?![^\W_])",
    flags=re.IGNORECASE,
)
FOLDERS = (".ci", "docs", "levels", "nclone_env", "profiling", "tests")
FILES = sorted(
    file
    for pattern in ("*.md", "*.py")
    for file in (*ROOT.glob(pattern), *(file for folder in FOLDERS for file in (ROOT / folder).rglob(pattern)))
    if file != Path(__file__)
)


def unidiomatic(text: str) -> list[str]:
    """Return the unidiomatic words of a text as ``line: word``; a phrase may span two lines."""
    joined = re.sub(r"\s", " ", text)
    return [f"{text.count(chr(10), 0, match.start()) + 1}: {match[0]}" for match in WORDS.finditer(joined)]


def test_no_unidiomatic_words():
    found = {str(file.relative_to(ROOT)): unidiomatic(file.read_text()) for file in FILES}
    assert {file: words for file, words in found.items() if words} == {}


def test_the_documentation_and_the_package_are_covered():
    assert {ROOT / "README.md", ROOT / "docs" / "README.md", ROOT / "nclone_env" / "config.py"} <= set(FILES)


def test_unidiomatic_words_are_found():
    text = "Nobody runs it anew.\nThe door is shut, its key lent\nto the ninja.\nDOOR_SHUT\nshutdown, SHUTTLE\n"
    assert unidiomatic(text) == ["1: Nobody", "1: anew", "2: shut", "2: lent to", "4: SHUT"]
