"""The header fields of a level that every format shares: title, author, level id, game mode.

Titles and authors are UTF-8, or Latin-1 where only that is short enough. Files of other programs also have control
characters and longer titles: readers take what is not UTF-8 for Latin-1, drop control characters and cut the rest.
"""

from typing import NamedTuple

from nclone_env.errors import LevelFormatError
from nclone_env.level.level import UNPUBLISHED, RawLevel

MAX_TITLE, MAX_AUTHOR = 128, 16  # bytes
GAME_MODES = {"solo": 0, "co-op": 1, "race": 2, "unset": 4}  # physics 01, section 14.1
GAME_MODE_NAMES = {number: name for name, number in GAME_MODES.items()}


class HeaderFault(NamedTuple):
    """A header field that no level file can hold."""

    field: str
    expected: str
    got: str


def printable(character: str) -> bool:
    """Return whether a title may contain a character: one that is no control character, and that UTF-8 has."""
    return character.isprintable() or 160 <= ord(character) < 256


def read_name(data: bytes, limit: int) -> str:
    """Return a title or author from a file of any program, so that ``limit`` bytes of any level file can hold it."""
    name = _decoded(data)[:limit]
    while encoded_name(name, limit) is None:
        name = name[:-1]
    return name


def encoded_name(text: str, limit: int) -> bytes | None:
    """Return the bytes of a title or author, None if there are too many: Latin-1 only where UTF-8 is too long."""
    for encoding in ("utf-8", "latin-1"):
        data = text.encode(encoding, errors="replace")
        if len(data) <= limit and _decoded(data) == text:
            return data
    return None


def _decoded(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return "".join(filter(printable, text))


def header_fault(raw: RawLevel) -> HeaderFault | None:
    """Return the first header field that cannot be written, or None."""
    for field, text, limit in (("title", raw.title, MAX_TITLE), ("author", raw.author, MAX_AUTHOR)):
        unprintable = next((character for character in text if not printable(character)), None)
        if unprintable is not None:
            return HeaderFault(field, "printable characters", f"{unprintable!a}")
        if len(text) > limit:
            return HeaderFault(field, f"at most {limit} characters", f"{len(text)}")
        if encoded_name(text, limit) is None:
            return HeaderFault(field, f"at most {limit} bytes in UTF-8", f"{len(text.encode())}")
    if not 0 <= raw.level_id <= UNPUBLISHED:
        return HeaderFault("level_id", f"a number from 0 to {UNPUBLISHED}", str(raw.level_id))
    if raw.game_mode not in GAME_MODE_NAMES:
        modes = ", ".join(f"{number} ({name})" for number, name in GAME_MODE_NAMES.items())
        return HeaderFault("game_mode", f"one of {modes}", str(raw.game_mode))
    return None


def check_header(raw: RawLevel) -> None:
    """Check the header of a level that is to be written.

    Raises:
        LevelFormatError: at the first field that no level file can hold.
    """
    fault = header_fault(raw)
    if fault:
        raise LevelFormatError(raw.source, fault.field, fault.expected, fault.got)
