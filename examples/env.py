"""N++ for LeRobot: the `env.py` of an EnvHub repository.

Upload this file, and LeRobot evaluates its policies here; `nclone_env` must be installed:

    envs = lerobot.envs.factory.make_env("USER/NAME", n_envs=8, trust_remote_code=True)
    envs["jumps"][0]  # a vector environment of 8 on the first level of that set
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from nclone_env import create_environment
from nclone_env.level import level_sets

SETS = "first-steps", "jumps", "hazards"


class LeRobotEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A level with the names that LeRobot expects.

    Observations are ``pixels`` (150, 264, 3) uint8, the picture, and ``agent_pos`` (30,) float32, the ``game_state``.
    An action (2,) float32 moves left below -1/3 and right above 1/3 of its first number, and jumps above 0 of its
    second.
    """

    task = task_description = "touch the exit switch, then reach the exit"

    def __init__(self, level: str):
        render = {"picture_scale": 0.25}
        env = create_environment(levels=(level,), observations=("game_state",), render_mode="rgb_array", render=render)
        super().__init__(env)
        self._max_episode_steps = env.config.max_steps
        pixels, state = Box(0, 255, (150, 264, 3), np.uint8), Box(-1.0, 1.0, (30,), np.float32)
        self.observation_space = Dict(pixels=pixels, agent_pos=state)
        self.action_space = Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode."""
        seen, info = self.env.reset(seed=seed, options=options)
        return self._observed(seen), {**info, "is_success": False}

    def step(self, action: np.ndarray) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Play four frames."""
        aside, up = action
        direction = 2 if aside > 1 / 3 else int(aside < -1 / 3)
        seen, reward, terminated, truncated, info = self.env.step(direction + 3 * int(up > 0))
        info["is_success"] = info["outcome"] == "won"
        return self._observed(seen), float(reward), terminated, truncated, info

    def _observed(self, seen: dict[str, np.ndarray]) -> dict[str, Any]:
        return {"pixels": self.env.render(), "agent_pos": seen["game_state"]}


def make_env(n_envs: int = 1, use_async_envs: bool = False, cfg: Any = None) -> dict[str, dict[int, VectorEnv]]:
    """Return ``n_envs`` environments of each built-in level, by set and number."""
    made = partial(AsyncVectorEnv if use_async_envs else SyncVectorEnv, autoreset_mode=AutoresetMode.SAME_STEP)
    return {
        name: {number: made([partial(LeRobotEnv, level)] * n_envs) for number, level in enumerate(level_sets()[name])}
        for name in SETS
    }
