"""Film each entity on a small level of its own, as a video and as a sheet of six frames.

The levels, inputs and descriptions are in ``profiling/pictures/clips``. Next to each picture is the agent's grey frame
at the same time.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.config import EnvironmentConfig
from nclone_env.game import CELL_SIZE, FRAMES_PER_SECOND
from nclone_env.level import Level, load_level, parse_inputs
from nclone_env.level.level_set import LevelArrays
from nclone_env.render import picture_arrays, world_picture, write_player_frame
from nclone_env.replay.video import write_video
from nclone_env.sim.session import Session
from nclone_env.sim.state import WorldArrays
from profiling.pictures.scenes import write_picture

FOLDER = Path(__file__).parent / "clips"
SCALE = 1.5
FRAME = 128  # side of the agent's frame, pixels
PAPER, GAP = 255, 6


class Clip(NamedTuple):
    """A level in play: (T,) input bytes, the six frames of its sheet, and a description."""

    name: str
    level: Level
    inputs: bytes
    frames: tuple[int, ...]
    what: str


def clips() -> dict[str, Clip]:
    """Return the clips by name."""
    table = tomllib.loads((FOLDER / "clips.toml").read_text())
    return {
        name: Clip(
            name,
            load_level(FOLDER / f"{name}.toml"),
            parse_inputs(entry["inputs"], name),
            tuple(entry["frames"]),
            entry["what"],
        )
        for name, entry in table.items()
    }


def play(clip: Clip) -> Iterator[tuple[int, LevelArrays, WorldArrays]]:
    """Yield (frame, levels, worlds) at the start, frame 0, and after each frame; the worlds change in place."""
    session = Session(clip.level)
    yield 0, session.levels, session.worlds
    for frame, code in enumerate(clip.inputs, start=1):
        session.tick(code)
        yield frame, session.levels, session.worlds


def surroundings(level: Level) -> tuple[slice, slice]:
    """Return the rows and columns of a picture that show the free cells of a level and half a cell of wall."""
    free = np.argwhere(level.raw.tiles != 1)
    (top, left), (bottom, right) = free.min(0) + 0.5, free.max(0) + 2.5  # the ring of full blocks is not in the tiles
    rows, columns = (
        slice(int(a * CELL_SIZE * SCALE), int(b * CELL_SIZE * SCALE)) for a, b in ((top, bottom), (left, right))
    )
    return rows, columns


def agents_frame(levels: LevelArrays, worlds: WorldArrays) -> np.ndarray:
    """Return the grey frame of the agent as (128, 128, 3) uint8."""
    frame = np.zeros((FRAME, FRAME, 1), np.uint8)
    pictures = picture_arrays(EnvironmentConfig(observations=("player_frame",)), levels)
    write_player_frame(levels, worlds, 0, pictures, frame)
    return np.repeat(frame, 3, axis=2)


def panel(picture: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Return a picture with the agent's frame, enlarged to its height, on its right."""
    height = len(picture)
    enlarged = cv2.resize(frame, (height, height), interpolation=cv2.INTER_NEAREST)
    return np.hstack([picture, np.full((height, GAP, 3), PAPER, np.uint8), enlarged])


def sheet(panels: list[np.ndarray]) -> np.ndarray:
    """Return pictures of one size in two columns."""
    framed = [np.pad(item, ((0, GAP), (0, GAP), (0, 0)), constant_values=PAPER) for item in panels]
    return np.vstack([np.hstack(framed[row : row + 2]) for row in range(0, len(framed), 2)])


def film(clip: Clip, folder: Path) -> None:
    """Write NAME.mp4 and NAME.png."""
    window, pictures, panels = surroundings(clip.level), [], []
    for frame, levels, worlds in play(clip):
        picture = world_picture(levels, worlds, 0, SCALE)[window]
        pictures.append(picture)
        if frame in clip.frames:
            panels.append(panel(picture, agents_frame(levels, worlds)))
    pictures += pictures[-1:] * FRAMES_PER_SECOND
    write_video(pictures, folder / f"{clip.name}.mp4", FRAMES_PER_SECOND)
    write_picture(sheet(panels), folder / f"{clip.name}.png")


def main(folder: Positional[Path], names: Positional[tuple[str, ...]] = ()) -> None:
    """Film clips.

    Args:
        folder: videos and pictures are written here.
        names: clips to film, all by default.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, clip in clips().items():
        if not names or name in names:
            film(clip, folder)
            print(f"{folder / name}.mp4, .png: {len(clip.inputs)} frames, {clip.what}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
