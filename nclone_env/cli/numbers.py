"""Whole numbers of the command line: also as people write large ones, 1e6 and 2_000_000."""

from __future__ import annotations

from contextlib import suppress

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from nclone_env.errors import shortened

_LARGEST = 2**53  # larger numbers with a decimal exponent are not exact

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
    with suppress(ValueError):
        return int(word)
    with suppress(ValueError):
        value = float(word)
        if value.is_integer() and abs(value) <= _LARGEST:
            return int(value)
    raise ValueError(f"expected a whole number, such as 1000000 or 1e6, got {shortened(word)}")
