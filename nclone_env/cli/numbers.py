"""Whole numbers of the command line: also as people write large ones, 1e6 and 2_000_000."""

from __future__ import annotations

from typing import Any

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

NUMBERS = ConstructorRegistry()


@NUMBERS.primitive_rule
def whole_number(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
    """Return how an ``int`` is read; None for other types."""
    if info.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: read_whole_number(words[0]),
        is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


def read_whole_number(word: str) -> int:
    """Return the whole number that a word stands for.

    Raises:
        ValueError: if it stands for none.
    """
    try:
        return int(word)
    except ValueError:
        value: Any = float(word)
        if not value.is_integer() or abs(value) > 2**53:
            raise ValueError(f"expected a whole number, such as 1000000 or 1e6, got {word!r}") from None
        return int(value)
