"""Native environment for PufferLib; the only module that imports it."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env.config import EnvironmentConfig, config_from
from nclone_env.env import OUTCOMES, WON, NPlusPlusVectorEnv, check_seed
from nclone_env.errors import MissingExtraError
from nclone_env.memory import MemoryNode

try:
    import pufferlib
except ImportError as error:
    raise MissingExtraError("pufferlib is not installed; run: pip install pufferlib") from error

_PufferEnv: Any = pufferlib.PufferEnv


class NPlusPlusPufferEnv(_PufferEnv):
    """A PufferLib ``PufferEnv`` of ``num_envs`` agents, one for each environment of a native vector environment.

    Calls write observations, rewards (float32), terminals and truncations into the arrays that PufferLib provides, in
    place. An episode that ends is followed by the next one in the same step. Infos are a list with a dict for each
    episode that ended: ``episode_return``, ``episode_length`` (steps), ``won`` (0 or 1), ``outcome`` and ``level``.

    Args:
        config: configuration; the defaults of :class:`EnvironmentConfig` with ``game_state`` if None. Observations are
            never dicts.
        num_envs: number of environments.
        num_threads: number of threads; by default one per core, fewer for small batches.
        buf: arrays by name, as PufferLib passes them; None: new ones.
        seed: of the first ``reset``, unless that has one.
        **fields: fields of :class:`EnvironmentConfig`, which replace those of ``config``.
    """

    def __init__(
        self,
        config: EnvironmentConfig | None = None,
        num_envs: int = 1,
        *,
        num_threads: int | None = None,
        buf: Any = None,
        seed: int | None = 0,
        **fields: Any,
    ):
        if config is None:
            fields = {"observations": "game_state", **fields}
        self.native = NPlusPlusVectorEnv(
            config_from(config, {**fields, "dict_observations": False}),
            num_envs,
            autoreset_mode=AutoresetMode.SAME_STEP,
            num_threads=num_threads,
        )
        self.single_observation_space = self.native.single_observation_space
        self.single_action_space = self.native.single_action_space
        self.num_agents = self.native.num_envs
        self.render_mode = self.native.render_mode
        self._seed = seed
        super().__init__(buf)

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, list[dict[str, Any]]]:
        """Begin new episodes; return the observations and no infos.

        The seeds of the agents are drawn from ``seed``. PufferLib gives objects neighbouring seeds: if agents counted
        up from them, all but one agent of an object would have the seeds of agents of the next.
        """
        chosen, self._seed = self._seed if seed is None else seed, None
        self.native.reset(seed=None if chosen is None else agent_seeds(chosen, self.num_agents), out=self._out())
        self.masks[:] = True
        return self.observations, []

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step every environment once.

        Returns:
            Observations (n, ...), rewards (n,) float32, terminals (n,) bool, truncations (n,) bool and infos.
        """
        info = self.native.step(actions, out=self._out())[4]
        return self.observations, self.rewards, self.terminals, self.truncations, self._ended(info)

    def render(self) -> np.ndarray | None:
        """Return the picture of the first environment, (height, width, 3) uint8, or show it in ``human`` mode."""
        if self.render_mode == "rgb_array":
            return self.native.pictures([0])[0]
        self.native.render()
        return None

    def memory(self) -> MemoryNode:
        """Return the memory tree of the environments; it does not include the arrays of PufferLib."""
        return self.native.memory()

    def close(self) -> None:
        """Stop the threads and close the window; idempotent."""
        self.native.close()

    def _out(self) -> dict[str, np.ndarray]:
        """Return the arrays of PufferLib, which may exchange them at any time, by the names of ``out``."""
        return {
            self.native.config.observations[0]: self.observations,
            "rewards": self.rewards,
            "terminations": self.terminals,
            "truncations": self.truncations,
        }

    def _ended(self, info: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the infos of the episodes that ended."""
        if "final_info" not in info:
            return []
        final, names = info["final_info"], self.native.level_names
        return [
            {
                "episode_return": float(final["episode_return"][index]),
                "episode_length": int(final["episode_steps"][index]),
                "won": int(final["outcome"][index] == WON),
                "outcome": OUTCOMES[final["outcome"][index]],
                "level": names[final["level"][index]],
            }
            for index in np.flatnonzero(info["_final_info"]).tolist()
        ]


def agent_seeds(seed: int, num_agents: int) -> list[int]:
    """Return the seed of each agent, 64 bits drawn from ``seed``; those of different seeds do not overlap."""
    return np.random.SeedSequence(check_seed(seed)).generate_state(num_agents, np.uint64).tolist()
