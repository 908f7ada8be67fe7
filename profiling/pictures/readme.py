"""Draw the loop of the README: one policy on three levels with its paths, and the views of the last one."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env import TrainConfig, create_environment, load_policy, train
from nclone_env.game import CELEBRATING, FRAMES_PER_SECOND, INPUT_OF_ACTION
from nclone_env.level.load import load_levels
from nclone_env.render.picture import used_area_of, with_path, world_picture
from nclone_env.replay.text import BRIGHT, GROUND, write_text
from nclone_env.replay.video import write_video
from nclone_env.sim.session import Session
from nclone_env.train import evaluate

LEVELS = ("first-steps/06-hop", "jumps/03-islands", "hazards/05-slalom")
WIDTH, VIEW, LINE, GAP = 640, 112, 20, 6  # pixels
FRAMES, RATE = 360, 20
COLOUR = (224, 92, 24)
VIEWS = (  # name, left edge and width, pixels, and lines of the caption at the right of it
    ("player_frame", GAP, VIEW, ("an agent can see", "its surroundings")),
    ("global_view", 270, 2 * VIEW, ("and all of", "the level")),
)


def main(path: Positional[Path] = Path("docs/overview.gif"), run: Path | None = None) -> None:
    """Take the fastest of 50 sampled wins on each level; draw six seconds.

    Args:
        path: the GIF to write.
        run: a run on these levels; one of four million steps is trained without it.
    """
    with tempfile.TemporaryDirectory() as folder:
        if run is None:
            train(TrainConfig.of(levels=LEVELS, total_timesteps=4_000_000, output=folder, name="shown"))
        policy = load_policy(run or Path(folder) / "shown", LEVELS)
        results = evaluate(policy.network, policy.environment, "sampled", 50)
    inputs = [result.inputs(policy.environment)[:FRAMES] for result in results]
    write_loop(LEVELS, inputs, path, FRAMES)
    print(f"wrote {path} ({path.stat().st_size / 1e3:.0f} KB)")


def write_loop(levels: Sequence[str], inputs: Sequence[np.ndarray], path: Path, frames: int) -> None:
    """Write the first frames of runs, one above the other, and of the views of the last one."""
    columns = [level_pictures(name, codes) for name, codes in zip(levels, inputs, strict=True)]
    columns.append(agent_pictures(levels[-1], inputs[-1]))
    shown = range(0, frames, FRAMES_PER_SECOND // RATE)
    write_video((np.vstack([column[min(n, len(column) - 1)] for column in columns]) for n in shown), path, RATE)


def level_pictures(name: str, inputs: np.ndarray) -> list[np.ndarray]:
    """Return a picture after each frame of a run, with its path so far, and a caption."""
    (level,) = load_levels((name,))
    session, area = Session(level), used_area_of(level.raw)
    scale, places, pictures = WIDTH / area.width, [], []
    for code in inputs:
        session.tick(code)
        places.append((session.ninja["x"], session.ninja["y"]))
        picture = world_picture(session.levels, session.worlds, 0, scale, area)
        drawn = with_path(picture, np.array(places), scale, area, COLOUR)
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
