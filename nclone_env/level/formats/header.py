"""The header fields of a level that every format shares: title, author, level id, game mode."""

from __future__ import annotations

from nclone_env.level.raw import UNPUBLISHED, RawLevel

MAX_TITLE, MAX_AUTHOR = 128, 16  # characters
GAME_MODES = {"solo": 0, "co-op": 1, "race": 2, "unset": 4}  # physics 01, section 14.1
GAME_MODE_NAMES = {number: name for name, number in GAME_MODES.items()}


def printable(character: str) -> bool:
    """Return whether a character may stand in a title: Latin-1 and not a control character."""
    code = ord(character)
    return 32 <= code < 127 or 160 <= code < 256


def header_fault(raw: RawLevel) -> tuple[str, str, str] | None:
    """Return (field, expected, got) for the first header field that cannot be written, or None."""
    for field, text, limit in (("title", raw.title, MAX_TITLE), ("author", raw.author, MAX_AUTHOR)):
        if len(text) > limit:
            return field, f"at most {limit} characters", f"{len(text)}"
        strange = next((character for character in text if not printable(character)), None)
        if strange is not None:
            return field, "printable Latin-1 characters", f"{strange!a}"
    if not 0 <= raw.level_id <= UNPUBLISHED:
        return "level_id", f"a number from 0 to {UNPUBLISHED}", str(raw.level_id)
    if raw.game_mode not in GAME_MODE_NAMES:
        modes = ", ".join(f"{number} ({name})" for number, name in GAME_MODE_NAMES.items())
        return "game_mode", f"one of {modes}", str(raw.game_mode)
    return None
