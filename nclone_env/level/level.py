"""A level and its name."""

from __future__ import annotations

from dataclasses import dataclass

from nclone_env.constants import MAP_UNIT
from nclone_env.level.raw import RawLevel


@dataclass(frozen=True, eq=False)
class Level:
    """One level as loaded, cheap to keep; :func:`nclone_env.level.compile.compile_level` computes its arrays.

    Attributes:
        raw: contents of the level file.
        name: ``set/level`` for a built-in level, the file name for another file, else the title.
    """

    raw: RawLevel
    name: str

    @classmethod
    def of(cls, raw: RawLevel) -> Level:
        """Return a level named after its title, or after its source if it has no title."""
        return cls(raw, raw.title or raw.source)

    @property
    def spawn(self) -> tuple[float, float]:
        """Start of the ninja, pixels."""
        _, x, y, _, _ = self.raw.records[0].tolist()
        return x * MAP_UNIT, y * MAP_UNIT
