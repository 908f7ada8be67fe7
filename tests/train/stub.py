"""A toy vector environment with the interface of the real one: walk along a line to the goal."""

import numpy as np
from gymnasium import spaces

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.records import DIED, PLAYING, WON
from nclone_env.memory.measure.tree import MemoryNode

STRIDE = 0.125
WALKER = np.dtype([("seed", "u8"), ("episode", "i8"), ("position", "f8"), ("total", "f8"), ("length", "i8"),
                   ("level", "i4"), ("only", "i4"), ("own", "i4")])  # fmt: skip


class LineWorld:
    """N walkers on [-1, 1]; level ``east`` has its goal at +0.75, ``west`` at -0.75.

    Restarts in the same step. Leaving the line ends the episode without success; the time limit truncates. Start and
    level of an episode depend on the seed of the walker and the number of the episode alone.
    """

    level_names = ("east", "west")

    def __init__(self, config: EnvironmentConfig, num_envs: int):
        self.config, self.num_envs = config, num_envs
        self.limit = -(-config.max_frames // config.frame_skip)
        assert config.observations == ("game_state",)
        self.single_observation_space = spaces.Dict({"game_state": spaces.Box(-1, 1, (30,), np.float32)})
        self.walkers = np.zeros(num_envs, WALKER)
        self.walkers["own"] = -1
        self.weights = np.ones(2)
        self.seed: int | None = None
        self.closed = False

    def reset(self, *, seed=None, options=None, out=None):
        if seed is not None:
            self.seed = seed
            self.walkers["seed"], self.walkers["episode"] = seed + np.arange(self.num_envs), 0
        number = (options or {}).get("level")
        self.walkers["only"] = -1 if number is None else number
        self._start(np.arange(self.num_envs))
        return self._observe(out), {}

    def step(self, actions, *, out=None):
        assert actions.shape == (self.num_envs,)
        assert np.issubdtype(actions.dtype, np.integer)
        walkers, goal = self.walkers, self._goal()
        before = np.abs(walkers["position"] - goal)
        walkers["position"] += STRIDE * np.array([0, -1, 1])[actions % 3]
        walkers["length"] += 1
        success = np.abs(walkers["position"] - goal) < STRIDE / 2
        terminated = success | (np.abs(walkers["position"]) > 1)
        truncated = ~terminated & (walkers["length"] >= self.limit)
        rewards = before - np.abs(walkers["position"] - goal) + 1.0 * success - 0.01
        walkers["total"] += rewards
        info = self._finish(terminated | truncated, success)
        return self._observe(out), rewards, terminated, truncated, info

    def set_level_weights(self, weights=None):
        self.weights = np.ones(2) if weights is None else np.array(weights)

    def assign_levels(self, levels=None):
        self.walkers["own"] = -1 if levels is None else levels

    def get_state(self, index):
        return self.walkers[index].tobytes()

    def set_state(self, index, state):
        self.walkers[index] = np.frombuffer(state, WALKER)[0]

    def memory(self):
        levels = MemoryNode("levels", 5000, shared=True)
        return MemoryNode("line world", children=(levels, MemoryNode("walkers", 2048 * self.num_envs)))

    def close(self):
        self.closed = True

    def _finish(self, done, success):
        info = {
            "level": self.walkers["level"].copy(),
            "start": np.full(self.num_envs, -1),
            "outcome": np.where(success, WON, np.where(done, DIED, PLAYING)),
            "episode_frames": self.walkers["length"] * self.config.frame_skip,
            "episode_steps": self.walkers["length"].copy(),
            "episode_return": self.walkers["total"].copy(),
        }
        if done.any():
            final_obs = {name: array[done] for name, array in self._observe(None).items()}
            info |= {"final_info": dict(info), "final_obs": final_obs}
            info |= {"_final_info": done, "_final_obs": done}
            self._start(np.flatnonzero(done))
        return info

    def _start(self, indices):
        walkers = self.walkers[indices]
        dice = (walkers["seed"] * 1_000_003 + walkers["episode"].astype(np.uint64)) * 0x9E3779B97F4A7C15
        walkers["position"] = ((dice >> 40) % 5).astype(float) * STRIDE - 2 * STRIDE
        draw = (dice >> 60) % 2 * 8 + (dice >> 61)  # 0 to 15
        drawn = draw / 16 >= self.weights[0] / self.weights.sum()
        drawn = np.where(walkers["own"] < 0, drawn, walkers["own"])
        walkers["level"] = np.where(walkers["only"] < 0, drawn, walkers["only"])
        walkers["total"], walkers["length"] = 0, 0
        walkers["episode"] += 1
        self.walkers[indices] = walkers

    def _goal(self):
        return np.where(self.walkers["level"] == 0, 0.75, -0.75)

    def _observe(self, out):
        out = {"game_state": np.zeros((self.num_envs, 30), np.float32)} if out is None else out
        (target,) = out.values()
        assert target.flags.c_contiguous
        assert target.flags.writeable
        position, target[:] = self.walkers["position"], 0
        target[:, 0], target[:, 1], target[:, 2] = position, self._goal(), self._goal() - position
        return {"game_state": target}
