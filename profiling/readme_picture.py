"""Draw the picture of the README: a level being played, and what the agent sees of it.

python -m profiling.readme_picture [docs/overview.png]
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np

from nclone_env import EnvironmentConfig, create_environment
from nclone_env.level.solutions import known_solutions

LEVEL, FRAMES = "hazards/05-slalom", 150
PAPER = 255
GAP = 12


def main(path: Path) -> None:
    """Play the known solution for a while, then put the pictures side by side."""
    env = create_environment(EnvironmentConfig(levels=LEVEL, frame_skip=1, render_mode="rgb_array"))
    observation, _ = env.reset(seed=0)
    actions = {0: 0, 4: 1, 2: 2, 1: 3, 5: 4, 3: 5}
    for code in known_solutions()[LEVEL][:FRAMES]:
        observation, *_ = env.step(actions[code])
    picture = env.render()
    assert picture is not None
    world = picture[120:480]
    frame = cv2.resize(observation["player_frame"], (232, 232), interpolation=cv2.INTER_AREA)
    view = cv2.resize(observation["global_view"], (232, 116), interpolation=cv2.INTER_AREA)
    canvas = np.full((len(world), world.shape[1] + GAP + 232, 3), PAPER, np.uint8)
    canvas[:, : world.shape[1]] = world
    canvas[:232, -232:] = frame[..., None]
    canvas[-116:, -232:] = view[..., None]
    cv2.imwrite(str(path), canvas[..., ::-1])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/overview.png"))
