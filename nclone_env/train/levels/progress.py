"""How far a task is that handles one level after another."""

from __future__ import annotations

from collections.abc import Callable

OnLevel = Callable[[str, int, int], None]
"""Called after each level, or each few: with what is done to levels, to how many so far, and to how many in all."""


def unnoticed(what: str, done: int, count: int) -> None:
    """Take no notice."""
