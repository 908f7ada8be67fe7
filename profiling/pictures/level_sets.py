"""Draw the levels of built-in sets with their titles on one sheet, a set after another."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import tyro

from nclone_env.level import RawLevel, load_levels
from nclone_env.render.picture import level_picture
from nclone_env.replay.text import BRIGHT, GROUND, write_text
from profiling.pictures.scenes import write_picture

MOTIFS = tuple(f"motifs-{number}" for number in range(1, 11))
WIDTH, HEIGHT, GAP, LINE = 240, 150, 6, 14  # pixels


def main(sets: tuple[str, ...] = MOTIFS, columns: int = 5, path: Path = Path("runs/level_sets.png")) -> None:
    """Write the sheet.

    Args:
        sets: names of sets, or anything else that denotes levels.
        columns: levels in a row.
        path: the picture to write.
    """
    cells = [cell(each.raw) for each in load_levels(sets)]
    cells += [np.full_like(cells[0], GROUND)] * (-len(cells) % columns)
    write_picture(np.vstack([np.hstack(cells[n : n + columns]) for n in range(0, len(cells), columns)]), path)
    print(f"{path}: {len(cells)} levels")


def cell(level: RawLevel) -> np.ndarray:
    """Return the used part of a level as large as it fits, (HEIGHT, WIDTH, 3) uint8, and its title below."""
    picture = level_picture(level, crop=True)
    scale = min((WIDTH - 2 * GAP) / picture.shape[1], (HEIGHT - LINE - 2 * GAP) / picture.shape[0])
    small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    whole = np.full((HEIGHT, WIDTH, 3), GROUND, np.uint8)
    top, left = (HEIGHT - LINE - small.shape[0]) // 2, (WIDTH - small.shape[1]) // 2
    whole[top : top + small.shape[0], left : left + small.shape[1]] = small
    write_text(whole, level.title, GAP, HEIGHT - LINE, 9, BRIGHT)
    return whole


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
