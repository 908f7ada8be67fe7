"""The header fields of a level that every format shares: title, author, level id, game mode."""

from __future__ import annotations

from typing import NamedTuple

from nclone_env.level.raw import UNPUBLISHED, RawLevel

MAX_TITLE, MAX_AUTHOR = 128, 16  # characters
GAME_MODES = {"solo": 0, "co-op": 1, "race": 2, "unset": 4}  # physics 01, section 14.1
GAME_MODE_NAMES = {number: name for name, number in GAME_MODES.items()}


class HeaderFault(NamedTuple):
    """A header field that no level file can hold."""

    field: str
    expected: str
    got: str


def printable(character: str) -> bool:
    """Return whether a title may contain a character: Latin-1 and not a control character."""
    code = ord(character)
    return 32 <= code < 127 or 160 <= code < 256


def header_fault(raw: RawLevel) -> HeaderFault | None:
    """Return the first header field that cannot be written, or None."""
    for field, text, limit in (("title", raw.title, MAX_TITLE), ("author", raw.author, MAX_AUTHOR)):
        if len(text) > limit:
            return HeaderFault(field, f"at most {limit} characters", f"{len(text)}")
        unprintable = next((character for character in text if not printable(character)), None)
        if unprintable is not None:
            return HeaderFault(field, "printable Latin-1 characters", f"{unprintable!a}")
    if not 0 <= raw.level_id <= UNPUBLISHED:
        return HeaderFault("level_id", f"a number from 0 to {UNPUBLISHED}", str(raw.level_id))
    if raw.game_mode not in GAME_MODE_NAMES:
        modes = ", ".join(f"{number} ({name})" for number, name in GAME_MODE_NAMES.items())
        return HeaderFault("game_mode", f"one of {modes}", str(raw.game_mode))
    return None
