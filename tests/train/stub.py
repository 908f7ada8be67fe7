"""A toy vector environment with the interface of the real one: walk along a line to the goal."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.records import DIED, PLAYING, WON
from nclone_env.memory_tree import MemoryNode

STRIDE = 0.125
SHAPES = {"game_state": (30,), "player_frame": (128, 128, 1), "global_view": (128, 256, 1)}


class LineWorld:
    """N walkers on [-1, 1]; level ``east`` has its goal at +0.75, ``west`` at -0.75.

    Restarts in the same step. Leaving the line ends the episode without success; the time limit truncates.
    ``seeds`` keeps the seeds of resets for the tests.
    """

    level_names = ("east", "west")

    def __init__(self, config: EnvironmentConfig, num_envs: int):
        self.config, self.num_envs = config, num_envs
        self.limit = -(-config.max_frames // config.frame_skip)
        self.single_observation_space = spaces.Dict(
            {
                name: spaces.Box(-1, 1, (30,), np.float32)
                if name == "game_state"
                else spaces.Box(0, 255, SHAPES[name], np.uint8)
                for name in config.observations
            }
        )
        self.position, self.returns = np.zeros(num_envs), np.zeros(num_envs)
        self.level, self.length = np.zeros(num_envs, np.int32), np.zeros(num_envs, np.int64)
        self.only: int | None = None
        self.random = np.random.default_rng()
        self.seeds: list[int | None] = []
        self.closed = False

    def reset(self, *, seed=None, options=None, out=None):
        self.seeds.append(seed)
        if seed is not None:
            self.random = np.random.default_rng(seed)
        name = (options or {}).get("level")
        self.only = None if name is None else self.level_names.index(name)
        self._start(np.arange(self.num_envs))
        return self._observe(out), {}

    def step(self, actions, *, out=None):
        assert actions.shape == (self.num_envs,)
        assert np.issubdtype(actions.dtype, np.integer)
        goal = self._goal()
        before = np.abs(self.position - goal)
        self.position += STRIDE * np.array([0, -1, 1])[actions % 3]
        self.length += 1
        success = np.abs(self.position - goal) < STRIDE / 2
        terminated = success | (np.abs(self.position) > 1)
        truncated = ~terminated & (self.length >= self.limit)
        rewards = before - np.abs(self.position - goal) + 1.0 * success - 0.01
        self.returns += rewards
        info = self._finish(terminated | truncated, success)
        return self._observe(out), rewards, terminated, truncated, info

    def memory(self):
        levels = MemoryNode("levels", 5000, shared=True)
        return MemoryNode("line world", children=(levels, MemoryNode("walkers", 2048 * self.num_envs)))

    def close(self):
        self.closed = True

    def _finish(self, done, success):
        info = {
            "level": self.level.copy(),
            "outcome": np.where(success, WON, np.where(done, DIED, PLAYING)),
            "episode_frames": self.length * self.config.frame_skip,
            "episode_steps": self.length.copy(),
            "episode_return": self.returns.copy(),
        }
        if done.any():
            info |= {"final_info": dict(info), "final_obs": self._observe(None)}
            info |= {"_final_info": done, "_final_obs": done}
            self._start(np.flatnonzero(done))
        return info

    def _start(self, indices):
        self.position[indices] = self.random.integers(-2, 3, len(indices)) * STRIDE
        self.returns[indices], self.length[indices] = 0, 0
        levels = self.random.integers(0, 2, len(indices))
        self.level[indices] = levels if self.only is None else self.only

    def _goal(self):
        return np.where(self.level == 0, 0.75, -0.75)

    def _observe(self, out):
        names = self.single_observation_space.spaces
        if out is None:
            out = {n: np.zeros((self.num_envs, *box.shape), box.dtype) for n, box in names.items()}
        assert sorted(out) == sorted(names)
        for name in names:
            target = out[name]
            assert target.flags.c_contiguous
            assert target.flags.writeable
            if name == "game_state":
                target[:] = 0
                target[:, 0], target[:, 1] = self.position, self._goal()
                target[:, 2] = self._goal() - self.position
            else:
                target[:] = ((self.position + 1) * 100).astype(np.uint8)[:, None, None, None]
        return {name: out[name] for name in names}
