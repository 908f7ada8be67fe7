"""Draw the loop of the README: a run with its path, and the two views that an agent can observe of it."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env import create_environment
from nclone_env.game import CELEBRATING, FRAMES_PER_SECOND, INPUT_OF_ACTION
from nclone_env.level import known_solutions, load_levels
from nclone_env.render.picture import used_area_of, world_picture
from nclone_env.replay.text import BRIGHT, GROUND, write_text
from nclone_env.replay.video import write_video
from nclone_env.sim.session import Session

WIDTH, VIEW, LINE, GAP = 640, 112, 20, 6  # pixels
RATE = 20  # pictures a second
COLOUR = (224, 92, 24)
VIEWS = (  # name, left edge and width, pixels, and lines of the caption at the right of it
    ("player_frame", GAP, VIEW, ("an agent can see", "its surroundings")),
    ("global_view", 270, 2 * VIEW, ("and all of", "the level")),
)


def main(path: Positional[Path] = Path("docs/overview.gif"), level: str = "motifs-6/02-fangs") -> None:
    """Draw the known solution of a level, with its path and the two views.

    Args:
        path: the GIF to write.
        level: a built-in level.
    """
    write_loop(level, np.frombuffer(known_solutions()[level], np.uint8), path)
    print(f"wrote {path} ({path.stat().st_size / 1e3:.0f} KB)")


def write_loop(level: str, inputs: np.ndarray, path: Path) -> None:
    """Write a run and the views of it, one above the other, and its last picture for a second."""
    pictures = [np.vstack(both) for both in zip(level_pictures(level, inputs), agent_pictures(level, inputs))]
    shown = pictures[:: FRAMES_PER_SECOND // RATE] + [pictures[-1]] * RATE
    write_video(shown, path, RATE)


def level_pictures(name: str, inputs: np.ndarray) -> list[np.ndarray]:
    """Return a picture after each frame of a run, with its path so far, and a caption."""
    (level,) = load_levels((name,))
    session, area = Session(level), used_area_of(level.raw)
    scale, places, pictures = WIDTH / area.width, [], []
    for code in inputs:
        session.tick(code)
        places.append((session.ninja["x"], session.ninja["y"]))
        picture = world_picture(session.levels, session.worlds, 0, scale, area)
        points = ((np.array(places) - (area.left, area.top)) * scale * 16).round().astype(np.int32)  # in sixteenths
        drawn = picture.copy()
        cv2.polylines(drawn, [points[:, None]], False, COLOUR, max(1, round(1.5 * scale)), cv2.LINE_AA, shift=4)
        time = f"{'won ' if session.ninja['state'] == CELEBRATING else ''}{len(places) / FRAMES_PER_SECOND:.2f} s"
        pictures.append(np.vstack([caption(f"{name}    {time}"), drawn]))
    return pictures


def agent_pictures(name: str, inputs: np.ndarray) -> list[np.ndarray]:
    """Return the two views that an agent can observe after each frame of a run, with captions."""
    env = create_environment(levels=name, frame_skip=1, observations=("player_frame", "global_view"))
    env.reset(seed=0)
    by_input = {code: action for action, code in enumerate(INPUT_OF_ACTION)}
    pictures = []
    for code in inputs:
        observation, *_ = env.step(by_input[int(code)])
        row = np.full((VIEW + 2 * GAP, WIDTH, 3), GROUND, np.uint8)
        for view, left, width, texts in VIEWS:
            small = cv2.resize(observation[view][..., 0], (width, VIEW), interpolation=cv2.INTER_AREA)
            row[GAP : GAP + VIEW, left : left + width] = small[..., None]
            for number, text in enumerate((view, *texts)):
                write_text(row, text, left + width + 2 * GAP, 40 + 22 * number, 9, BRIGHT)
        pictures.append(row)
    env.close()
    return pictures


def caption(text: str) -> np.ndarray:
    """Return a line of text, (LINE, WIDTH, 3) uint8."""
    line = np.full((LINE, WIDTH, 3), GROUND, np.uint8)
    write_text(line, text, GAP, LINE / 2, 9, BRIGHT)
    return line


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
