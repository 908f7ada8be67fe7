"""Adapter to Stable-Baselines3; the only module that imports it."""

import json
import zipfile
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig
from nclone_env.env import OUTCOMES, REGISTERED, WON, NPlusPlusEnv, NPlusPlusVectorEnv, flat_masks
from nclone_env.errors import ConfigError, ResetNeededError, optional_module, plain
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.memory import MemoryNode
from nclone_env.replay import WatchedRun

_VecEnv: Any = optional_module("stable_baselines3.common.vec_env", "sb3").VecEnv
_Monitor: Any = optional_module("stable_baselines3.common.monitor", "sb3").Monitor
_MASK = "action_mask"
_MODELS = {
    "stable_baselines3.common.policies": ("stable_baselines3", "PPO"),  # of A2C as well: both predict alike
    "stable_baselines3.dqn.policies": ("stable_baselines3", "DQN"),
    "sb3_contrib.common.maskable.policies": ("sb3_contrib", "MaskablePPO"),
    "sb3_contrib.common.recurrent.policies": ("sb3_contrib", "RecurrentPPO"),
    "sb3_contrib.qrdqn.policies": ("sb3_contrib", "QRDQN"),
}
"""Library and class that load a model, by the module of its policy."""


class NPlusPlusVecEnv(_VecEnv):
    """A Stable-Baselines3 ``VecEnv`` backed by one native vector environment in one process.

    Observations are a dict of arrays (num_envs, ...) for ``MultiInputPolicy``; with ``dict_observations=False`` they
    are one array, for ``MlpPolicy`` or, if it is a picture, ``CnnPolicy``. They are safe to keep, but Stable-Baselines3
    copies them into its rollout or replay buffer anyway: budget memory for both.

    The info dict of an environment is empty while its episode continues. When the episode ends it contains ``level``
    (name), ``outcome``, ``gold``, ``frames``, ``episode_frames``, ``episode_steps`` and ``episode_return`` of that
    episode, ``terminal_observation``, ``TimeLimit.truncated``, ``is_success``, from which ``EvalCallback`` logs the
    success rate, and ``episode`` (return ``r`` and length ``l``), which Stable-Baselines3 logs without ``VecMonitor``.

    Args:
        config: environment configuration; the defaults of :class:`EnvironmentConfig` if None.
        num_envs: number of environments.
        env: the native environment to use, in same-step mode, instead of making one from the other arguments.
        **options: as of :class:`NPlusPlusVectorEnv`, but for ``autoreset_mode`` and ``gymnasium_infos``.

    Raises:
        MissingExtraError: on import of this module, if Stable-Baselines3 is not installed.
        ConfigError: if ``env`` has another autoreset mode or Gymnasium's infos, or is not the only argument.
        ConfigError, UnknownLevelError, LevelFormatError, UnsupportedLevelError: as for the native environment.
    """

    def __init__(
        self,
        config: EnvironmentConfig | None = None,
        num_envs: int = 1,
        *,
        env: NPlusPlusVectorEnv | None = None,
        **options: Any,
    ):
        if env is None:
            for name in options.keys() & {"autoreset_mode", "gymnasium_infos"}:
                raise ConfigError(f"{name}: expected none, as Stable-Baselines3 needs one of its own; leave it out")
            env = NPlusPlusVectorEnv(config, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options)
        elif config is not None or num_envs != 1 or options:
            raise ConfigError("env: expected no other argument beside it; give them to the environment itself")
        elif env.metadata["autoreset_mode"] != AutoresetMode.SAME_STEP or env.gymnasium_infos:
            raise ConfigError("env: expected one with autoreset_mode='SameStep' and without gymnasium_infos")
        self.native = env
        self._actions: Any = None
        self._masks: np.ndarray | None = None
        # Copies: wrappers such as VecNormalize change the spaces of what they wrap.
        spaces = deepcopy((self.native.single_observation_space, self.native.single_action_space))
        super().__init__(self.native.num_envs, *spaces)

    def reset(self) -> Any:
        """Start new episodes with the seeds of ``seed()`` and the options of ``set_options()``, then clear both.

        Raises:
            ConfigError: if the options differ between environments, or one is unknown.
        """
        seeds = None if all(seed is None for seed in self._seeds) else self._seeds
        if any(options != self._options[0] for options in self._options):
            raise ConfigError(f"set_options: expected the same options for all environments, got {self._options!r}")
        observations, info = self.native.reset(seed=seeds, options=self._options[0])
        self.reset_infos = [{"level": self.native.level_names[level]} for level in info["level"]]
        self._reset_seeds()
        self._reset_options()
        self._note_masks(observations)
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions for ``step_wait``."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step every environment once; finished environments are reset in the same step.

        Returns:
            Observations, rewards (n,) float64, dones (n,) bool, and one info dict per environment.

        Raises:
            ActionError, ResetNeededError, ClosedError: as for the native environment.
        """
        observations, rewards, terminated, truncated, info = self.native.step(self._actions)
        self._note_masks(observations)
        ended = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for place, index in enumerate(np.flatnonzero(ended).tolist()):
            infos[index] = self._final_info(info, index, bool(truncated[index] and not terminated[index]))
            last = info["final_obs"]
            infos[index]["terminal_observation"] = (
                {name: array[place].copy() for name, array in last.items()}
                if self.native.config.dict_observations
                else last[place].copy()
            )
        return observations, rewards, ended, infos

    def action_masks(self) -> np.ndarray:
        """Return which actions the next step may take, for ``MaskablePPO``.

        Returns:
            (num_envs, 6) bool; with ``multi_discrete`` actions (num_envs, 5), the directions and the two of jump that
            any action uses. Needs ``"action_mask"`` among the observations, from which it is taken.

        Raises:
            ConfigError: if there is no such observation.
            ResetNeededError: before ``reset``.
        """
        if self._masks is None:
            if _MASK not in self.native.config.observations:
                raise ConfigError(
                    f"action_masks: expected {_MASK!r} among the observations, got "
                    f"{', '.join(self.native.config.observations)}; add it"
                )
            raise ResetNeededError("action_masks() was called before reset(); call reset() first")
        return flat_masks(self._masks, self.native.config.action_space)

    def has_attr(self, attr_name: str) -> bool:
        """Return whether an attribute can be read: of this object, or of the native environment."""
        return hasattr(self, attr_name) or hasattr(self.native, attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of this object, or of the native environment, once per index.

        Raises:
            AttributeError: if there is none of this name.
        """
        owner = self.native if hasattr(self.native, attr_name) else self
        return [getattr(owner, attr_name)] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Not supported: one object holds all environments.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            f"set_attr: expected no attribute, as one object holds all environments, got {attr_name!r}; "
            f"create the environment with other fields, or set it on .native"
        )

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Render environments, or return their action masks.

        Args:
            method_name: ``"render"`` or ``"action_masks"``.
            *args: none.
            indices: environments; all by default.
            **kwargs: none.

        Raises:
            ConfigError: for any other method; as :meth:`action_masks`.
        """
        chosen = self._chosen(indices)
        if method_name == "action_masks":
            return list(self.action_masks()[chosen])
        if method_name != "render":
            raise ConfigError(
                f"env_method: expected 'render' or 'action_masks', as one object holds all environments, got "
                f"{method_name!r}; call the methods of .native, which take an index"
            )
        if self.native.render_mode == "rgb_array":
            return list(self.native.pictures(chosen))
        self.native.render()
        return [None] * len(chosen)

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return True for ``Monitor``, whose ``episode`` the infos have, else False, for every environment."""
        return [issubclass(wrapper_class, _Monitor)] * len(self._chosen(indices))

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return the picture of each environment, (height, width, 3) uint8; none in other modes than ``rgb_array``."""
        return list(self.native.render() or ())

    def memory(self) -> MemoryNode:
        """Return the memory tree of the environments; it does not include the buffers of Stable-Baselines3."""
        return self.native.memory()

    def close(self) -> None:
        """Stop the threads and close the window; idempotent."""
        self.native.close()

    def _note_masks(self, observations: Any) -> None:
        if _MASK in self.native.config.observations:
            masks = observations[_MASK] if self.native.config.dict_observations else observations
            self._masks = masks.copy()  # a reference would keep the whole batch of observations from being reused

    def _final_info(self, info: dict[str, Any], index: int, only_truncated: bool) -> dict[str, Any]:
        columns = info["final_info"]
        row = {name: column[index].item() for name, column in columns.items() if not name.startswith("_")}
        row["is_success"] = row["outcome"] == WON
        row["level"], row["outcome"] = self.native.level_names[row["level"]], OUTCOMES[row["outcome"]]
        row["TimeLimit.truncated"] = only_truncated
        row["episode"] = {"r": row["episode_return"], "l": row["episode_steps"]}
        return row

    def _chosen(self, indices: Any) -> list[int]:
        return list(self._get_indices(indices))


def load_model(path: Path, levels: Sequence[str] = ()) -> tuple[Any, EnvironmentConfig]:
    """Read a model that Stable-Baselines3 saved; return it with a configuration of environments for it.

    Its file has the space of its observations, and no further options: these are the defaults, or those of the id of
    which the space is. Reading it executes code from it.
    """
    with zipfile.ZipFile(path) as archive:
        kind = json.loads(archive.read("data")).get("policy_class", {}).get("__module__", "")
    if kind not in _MODELS:
        raise ConfigError(f"{plain(path)}: expected a model of {', '.join(n for _, n in _MODELS.values())}, got {kind}")
    library, name = _MODELS[kind]
    model = getattr(optional_module(library, "sb3"), name).load(path, device="cpu")
    kinds = {"action_space": "multi_discrete" if hasattr(model.action_space, "nvec") else "discrete"}
    if levels:
        kinds["levels"] = tuple(levels)  # type: ignore[assignment]
    for config in _candidates(model.observation_space):
        chosen = config.replace(**kinds)
        env = NPlusPlusEnv(chosen)
        try:
            model.predict(env.reset(seed=0)[0])
        except (ValueError, KeyError):  # of other observations
            continue
        return model, chosen
    raise ConfigError(
        f"{plain(path)}: expected a model of observations with default sizes, got one of {model.observation_space}; "
        "record its episodes by nclone_env.replay.EpisodeRecorder"
    )


def _candidates(space: Any) -> Iterator[EnvironmentConfig]:
    """Yield configurations whose observations may have a space."""
    names = list(getattr(space, "spaces", ()))
    if names and set(names) <= set(OBSERVATION_NAMES):
        yield EnvironmentConfig(observations=tuple(names))
    if not names:
        yield from (EnvironmentConfig(**fields) for fields in REGISTERED.values() if "dict_observations" in fields)


def model_runs(model: Any, config: EnvironmentConfig, argmax: bool, seed: int, label: str = "") -> list[WatchedRun]:
    """Return an episode of a model on each level, played as its inputs are taken."""
    env = NPlusPlusEnv(config)
    model.set_random_seed(seed)
    inputs = partial(_inputs, model, config, argmax)
    return [WatchedRun(level, inputs(number), f"{label}{level.name}") for number, level in enumerate(env.levels)]


def _inputs(model: Any, config: EnvironmentConfig, argmax: bool, number: int) -> Iterator[int]:
    """Play an episode on a level; yield its inputs, one a frame."""
    env = NPlusPlusEnv(config)
    observation, _ = env.reset(seed=0, options={"level": number})
    state, begins, ended = None, np.ones(1, np.bool_), False
    while not ended:
        action, state = model.predict(observation, state, begins, deterministic=argmax)
        observation, _, terminated, truncated, info = env.step(action)
        ended, begins = terminated or truncated, np.zeros(1, np.bool_)
        yield from [INPUT_OF_ACTION[env.taken_actions[0]]] * info["frames"]
