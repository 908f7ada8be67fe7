"""What PTX holds: entries and their slots, instructions, and those that would change the bits of a result."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

_OPCODE = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.:]*)", re.MULTILINE)
_FLOAT = r"\bb?f(16|32|64)(x2)?"


def slots_of(ptx: str) -> dict[str, int]:
    """Return the number of slots in the block of each entry."""
    found = re.findall(r"\.entry (\w+)\(\s*\.param \.align 8 \.b8 \w+\[(\d+)\]", ptx)
    return {name: int(size) // 8 for name, size in found}


class Findings(NamedTuple):
    """Counts of instructions and functions that would change results.

    Attributes:
        fused: products fused with sums.
        unrounded: sums, products, quotients and roots without a rounding mode, which the assembler may fuse.
        approximate: approximations, and numbers flushed to zero.
        external: functions declared but not defined.
    """

    fused: int
    unrounded: int
    approximate: int
    external: int


def opcodes(ptx: str) -> Counter[str]:
    """Count the instructions of each kind."""
    return Counter(_OPCODE.findall(ptx))


def find(ptx: str) -> Findings:
    """Count the findings in PTX."""
    counts = opcodes(ptx)

    def count(pattern: str) -> int:
        return sum(number for opcode, number in counts.items() if re.fullmatch(pattern, opcode))

    return Findings(
        fused=count(rf"(fma|mad)\..*{_FLOAT}"),
        unrounded=count(rf"(add|sub|mul|div|sqrt|rcp)\.(?!r[nzmp]\.)(.*\.)?{_FLOAT}"),
        approximate=count(r".*\.(approx|full|ftz)\b.*"),
        external=len(re.findall(r"^\s*\.extern\s+\.func\b", ptx, re.MULTILINE)),
    )
