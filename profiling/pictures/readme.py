"""Draw the picture of the README: a level in play and the agent's two views of it."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env import EnvironmentConfig, create_environment
from nclone_env.actions import INPUT_OF_ACTION
from nclone_env.level.load import load_level
from nclone_env.level.solutions import known_solutions
from nclone_env.render.picture import used_area_of
from profiling.pictures.scenes import write_picture

LEVEL, FRAMES = "hazards/05-slalom", 150
PAPER = 255
GAP = 12


def main(path: Positional[Path] = Path("docs/overview.png")) -> None:
    """Play the first frames of the known solution, then put the picture of the used part above the agent's views.

    Args:
        path: the picture to write.
    """
    env = create_environment(EnvironmentConfig(levels=LEVEL, frame_skip=1, render_mode="rgb_array"))
    observation, _ = env.reset(seed=0)
    actions = {int(code): action for action, code in enumerate(INPUT_OF_ACTION)}
    for code in known_solutions()[LEVEL][:FRAMES]:
        observation, *_ = env.step(actions[code])
    picture = env.render()
    assert picture is not None
    left, top, width, height = used_area_of(load_level(LEVEL).raw)
    world = picture[top : top + height, left : left + width]
    frame = cv2.resize(observation["player_frame"], (232, 232), interpolation=cv2.INTER_AREA)
    view = cv2.resize(observation["global_view"], (464, 232), interpolation=cv2.INTER_AREA)
    canvas = np.full((len(world) + GAP + 232, width, 3), PAPER, np.uint8)
    canvas[: len(world)] = world
    middle = (width - 232 - GAP - 464) // 2
    canvas[-232:, middle : middle + 232] = frame[..., None]
    canvas[-232:, middle + 232 + GAP :][:, :464] = view[..., None]
    write_picture(canvas, path)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
