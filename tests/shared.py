"""Location of the reference data, totals of the conformance tests that use them, folders and archives."""

from __future__ import annotations

import io
import itertools
import math
import os
import warnings
import zipfile
from collections.abc import Iterable, Sequence
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
ATTRACT = tuple(path for path in sorted((SHARED / "attract").iterdir()) if path.suffix == "") if SHARED else ()
"""Levels of the game, each with a recording."""


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


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of the files of a folder, and of folders in it, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def members_of(data: bytes) -> dict[str, bytes]:
    """Return the contents of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(members: Iterable[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive of members, of which several may have one name, without their times."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return stream.getvalue()
