"""Values of a level file in error messages."""

from __future__ import annotations

_MAX_LENGTH = 60


def shortened(value: object) -> str:
    """Return the ``repr`` of a value, cut if it is long."""
    try:
        shown = repr(value)
    except ValueError:  # Python refuses to print numbers of more than 4300 digits
        return f"{type(value).__name__} too long to print"
    return shown if len(shown) <= _MAX_LENGTH else f"{shown[: _MAX_LENGTH - 3]}..."
