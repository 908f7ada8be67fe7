"""What a gallery states about a level."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env.constants import FRAMES_PER_SECOND
from nclone_env.errors import LevelFormatError
from nclone_env.kinds import GOLD, NINJA, kind_name
from nclone_env.level import UNPUBLISHED, RawLevel
from nclone_env.level.formats import read_bytes
from nclone_env.render import Area, used_area_of, zoom_of


@dataclass(frozen=True)
class Facts:
    """Facts of a level.

    Attributes:
        kinds: name of each kind of entity, most frequent first, and how many there are.
        gold: pieces of gold.
        entities: entities in all.
        columns: cells across the part of the level that is not solid.
        rows: cells down.
        area: the part of the world that pictures show.
        zoom: pixels of a picture per pixel of the world, from 1 to 2.
        known: further facts by name, in words.
        difficulty: of a generated level, 0..100.
    """

    kinds: Mapping[str, int]
    gold: int
    entities: int
    columns: int
    rows: int
    area: Area
    zoom: float
    known: Mapping[str, str]
    difficulty: int | None = None

    def size(self, scale: float = 1.0) -> tuple[int, int]:
        """Return width and height of a picture, pixels."""
        return round(self.area.width * self.zoom * scale), round(self.area.height * self.zoom * scale)


def facts_of(raw: RawLevel, row: Mapping[str, Any] | None = None) -> Facts:
    """Return the facts of a level.

    Args:
        row: its row in the table of a generated pack.
    """
    counted = Counter(kind for kind in raw.records[:, 0].tolist() if kind != NINJA)
    kinds = {kind_name(kind).replace("_", " "): count for kind, count in counted.most_common()}
    rows, columns = (np.flatnonzero((raw.tiles != 1).any(axis=axis)) for axis in (1, 0))
    known, row = {}, row or {}
    if raw.level_id != UNPUBLISHED:
        known["Level id"] = str(raw.level_id)
    if isinstance(row.get("family"), str):
        known["Family"] = row["family"]
    difficulty = row.get("difficulty")
    return Facts(
        kinds,
        counted[GOLD],
        sum(counted.values()),
        int(np.ptp(columns)) + 1 if len(columns) else 0,
        int(np.ptp(rows)) + 1 if len(rows) else 0,
        area := used_area_of(raw),
        zoom_of(area),
        known,
        difficulty if type(difficulty) is int else None,
    )


def read_table(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the rows of the table of a generated pack, by the digest of their level.

    Raises:
        LevelFormatError: if the file cannot be read, or a line is no JSON object.
    """
    rows: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(read_bytes(path).splitlines(), start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise LevelFormatError(str(path), f"line {number}", "a JSON object", str(error)[:80]) from error
        if not isinstance(row, dict):
            raise LevelFormatError(str(path), f"line {number}", "a JSON object", type(row).__name__)
        rows[str(row.get("digest"))] = row
    return rows


def seconds(frames: int) -> str:
    """Return frames as seconds, to the millisecond."""
    return f"{frames / FRAMES_PER_SECOND:.3f} s"
