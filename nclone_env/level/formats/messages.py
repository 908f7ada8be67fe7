"""Values of a level file in error messages."""

from __future__ import annotations

_MAX_LENGTH = 60


def shortened(value: object) -> str:
    """Return the ``repr`` of a value, cut if it is long."""
    shown = repr(value)
    return shown if len(shown) <= _MAX_LENGTH else f"{shown[: _MAX_LENGTH - 3]}..."
