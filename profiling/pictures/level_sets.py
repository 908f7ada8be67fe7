"""Draw the levels of built-in sets on one sheet, a set after another."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import tyro

from nclone_env.level.load import load_levels
from nclone_env.render.picture import level_picture
from profiling.pictures.scenes import write_picture

MOTIFS = tuple(f"motifs-{number}" for number in range(1, 11))
_SIZE = (264, 150)
"""Width and height of a level, pixels."""


def main(sets: tuple[str, ...] = MOTIFS, columns: int = 5, path: Path = Path("runs/level_sets.png")) -> None:
    """Write the sheet.

    Args:
        sets: names of sets, or anything else that denotes levels.
        columns: levels in a row.
        path: the picture to write.
    """
    pictures = [cv2.resize(level_picture(each.raw), _SIZE, interpolation=cv2.INTER_AREA) for each in load_levels(sets)]
    framed = [np.pad(picture, ((2, 2), (2, 2), (0, 0)), constant_values=255) for picture in pictures]
    framed += [np.full_like(framed[0], 255)] * (-len(framed) % columns)
    rows = [np.hstack(framed[first : first + columns]) for first in range(0, len(framed), columns)]
    write_picture(np.vstack(rows), path)
    print(f"{path}: {len(pictures)} levels")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
