"""Location of the reference data, and totals of the conformance tests that use them."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest


def shared_folder() -> Path | None:
    """Return the folder of reference data (``NCLONE_SHARED``, else next to the repository), None without one."""
    folder = Path(os.environ.get("NCLONE_SHARED", Path(__file__).parents[2] / "shared"))
    return folder if folder.is_dir() else None


SHARED = shared_folder()
needs_shared = pytest.mark.skipif(SHARED is None, reason="the reference data are not here (set NCLONE_SHARED)")


def each_value(*axes: Sequence[Any]) -> list[Any]:
    """Return the product of axes for ``parametrize``: each value of each in as few cases as the first has values, the
    other cases as slow tests.
    """
    before = [math.prod(map(len, axes[1:place])) for place in range(len(axes))]  # so that others do not go together
    quick = {tuple(n // step % len(axis) for step, axis in zip(before, axes)) for n in range(len(axes[0]))}
    return [
        pytest.param(*values, marks=[] if numbers in quick else pytest.mark.slow)
        for numbers, values in (zip(*numbered) for numbered in itertools.product(*map(enumerate, axes)))
    ]


@dataclass
class Comparison:
    """Totals of a comparison with recorded traces; traces with entities that are not modelled are skipped."""

    traces: int = 0
    frames: int = 0
    values: int = 0
    differing: int = 0
    skipped: int = 0

    def add(self, other: Comparison) -> None:
        """Add the totals of another comparison to these."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def __str__(self) -> str:
        total = f"traces {self.traces}, frames {self.frames}, values compared {self.values}, differing {self.differing}"
        return f"{total}, skipped {self.skipped}" if self.skipped else total


COMPARISONS = pytest.StashKey[dict[str, Comparison]]()
