"""The vector environment interface of the trainer, its default implementation, and the episodes that it plays."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env.config import EnvironmentConfig
from nclone_env.env import DIED, WON, NPlusPlusVectorEnv, PackedStarts
from nclone_env.errors import ConfigError, checked
from nclone_env.memory import MemoryNode
from nclone_env.train.policies.arrays import stacked_shape

if TYPE_CHECKING:
    from nclone_env.env import Device


class VectorEnvironment(Protocol):
    """The part of ``NPlusPlusVectorEnv`` with same-step autoreset that the trainer uses."""

    num_envs: int
    single_observation_space: Any

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels that episodes are played on."""

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        out: Mapping[str, np.ndarray] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments."""

    def step(
        self, actions: np.ndarray, *, out: Mapping[str, np.ndarray] | None = None
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance all environments by one step."""

    @property
    def taken_actions(self) -> np.ndarray:
        """Actions that the last step took, (n,)."""

    def set_level_weights(self, weights: Any = None) -> None:
        """Draw the levels of future episodes by weights (L,)."""

    def assign_levels(self, levels: Any = None) -> None:
        """Assign levels to environments for all future episodes, (n,) indices."""

    def set_starts(self, states: Iterable[bytes] | PackedStarts = (), share: Any = 1.0) -> None:
        """Begin a share of future episodes in snapshots or start states."""

    def set_start_shares(self, share: Any) -> None:
        """Change the share of each of these."""

    def get_state(self, index: int) -> bytes:
        """Return a snapshot of one environment."""

    def set_state(self, index: int, state: bytes) -> Any:
        """Restore one environment from a snapshot."""

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes."""

    def close(self) -> None:
        """Release everything."""


MakeEnvironments = Callable[[EnvironmentConfig, int], VectorEnvironment]


@checked()
def make_environments(config: EnvironmentConfig, num_envs: int) -> VectorEnvironment:
    """Return a vector environment with same-step autoreset; the trainer steps several, each on a thread of its own."""
    return NPlusPlusVectorEnv(config, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, num_threads=1)


def on_device(make_envs: MakeEnvironments, device: "Device") -> MakeEnvironments:
    """Return what makes the same environments on a device."""
    if make_envs is not make_environments:
        raise ConfigError(
            f"device: expected cpu with environments of your own, which are in host memory, got {device.place}"
        )

    from nclone_env.env import NPlusPlusCudaVectorEnv  # the code for GPUs

    def make(config: EnvironmentConfig, num_envs: int) -> VectorEnvironment:
        return NPlusPlusCudaVectorEnv(config, num_envs, device=device, autoreset_mode=AutoresetMode.SAME_STEP)

    return make


def make_resting_environments(config: EnvironmentConfig, num_envs: int) -> VectorEnvironment:
    """Return a vector environment for one episode each: those whose episode is over rest."""
    return NPlusPlusVectorEnv(config, num_envs, autoreset_mode=AutoresetMode.DISABLED, num_threads=1)


def observation_shapes(envs: VectorEnvironment, frame_stack: int = 1) -> dict[str, tuple[int, ...]]:
    """Return the shape of each observation of one environment by name, with stacks of ``frame_stack`` except masks."""
    boxes = envs.single_observation_space.spaces
    return {name: stacked_shape(name, box.shape, frame_stack) for name, box in boxes.items()}


def observation_arrays(envs: VectorEnvironment) -> dict[str, np.ndarray]:
    """Return arrays for the observations of environments by name, (n, ...)."""
    space = envs.single_observation_space.spaces
    return {name: np.zeros((envs.num_envs, *box.shape), box.dtype) for name, box in space.items()}


PLAYED = np.dtype([("success", "?"), ("died", "?"), ("total", "f8"), ("frames", "i8"), ("steps", "i8")])
"""An episode: whether it reached the exit or ended in a death, undiscounted return, simulated frames and steps."""

Choose = Callable[[Any, np.ndarray, int], np.ndarray]
"""Returns actions (n,) for observations, environments whose episode goes on, (n,) bool, and the number of the step."""


def play_episodes(
    envs: VectorEnvironment,
    choose: Choose,
    observations: Any,
    waiting: np.ndarray,
    most_steps: int,
    out: Mapping[str, np.ndarray] | None = None,
    taken: np.ndarray | None = None,
) -> np.ndarray:
    """Play the first episode of each environment until all of these have ended; return (n,) ``PLAYED`` records.

    Args:
        envs: n environments that have been reset, with same-step autoreset or without any.
        choose: chooses the actions; they are arbitrary where no episode is waited for.
        waiting: (n,) bool, the environments whose episode is waited for; all False in the end.
        taken: (most_steps, n), written: the actions that the steps took. Environments without ``taken_actions`` take
            those that are chosen.
    """
    played = np.zeros(envs.num_envs, PLAYED)
    for step in range(most_steps):
        actions = choose(observations, waiting, step)
        observations, _, terminated, truncated, info = envs.step(actions, out=out)
        if taken is not None:
            taken[step] = getattr(envs, "taken_actions", actions)
        ended = np.flatnonzero((terminated | truncated) & waiting)
        if len(ended) == 0:
            continue
        final = info.get("final_info", info)
        played["success"][ended] = final["outcome"][ended] == WON
        played["died"][ended] = final["outcome"][ended] == DIED
        played["total"][ended] = final["episode_return"][ended]
        played["frames"][ended] = final["episode_frames"][ended]
        played["steps"][ended] = step + 1
        waiting[ended] = False
        if not waiting.any():
            break
    return played
