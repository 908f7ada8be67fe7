"""A progress bar as text; a file of its own, since every kernel is compiled again when it changes."""

from __future__ import annotations

_LENGTH = 20


def bar(share: float) -> str:
    """Return a bar that is filled to a share, 0..1."""
    return f"[{'#' * round(share * _LENGTH):<{_LENGTH}}]"
