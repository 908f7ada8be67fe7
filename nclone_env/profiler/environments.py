"""Environments as targets of the profiler, in every form in which people run them, and what would save memory."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env._table import format_bytes
from nclone_env.config import EnvironmentConfig
from nclone_env.env import ENVIRONMENT_ID, NPlusPlusVectorEnv, create_environment, measure_phases
from nclone_env.errors import optional_module
from nclone_env.game import NUM_ACTIONS
from nclone_env.memory import (
    Advice,
    MemoryNode,
    OwnedNode,
    Subject,
    Target,
    array_group,
    array_node,
    copies,
    merged,
    of_kept_results,
)
from nclone_env.obs import frame_specs

Form = Literal["vector", "single", "gym", "sync", "async", "sb3"]
Contract = Literal["default", "out"]
Mode = Literal["next-step", "same-step", "disabled"]
AUTORESET = {
    "next-step": AutoresetMode.NEXT_STEP,
    "same-step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}
_FACTS = ("levels", "observations", "frame_skip", "max_frames", "action_space")
_SPARE_ACTIONS = 1024
_SMALL, _SMALLEST = 64, 16  # pixels


class RandomActions:
    """Seeded uniform actions of which a step allocates nothing: a window that moves over one array."""

    def __init__(self, num_envs: int, seed: int):
        generator = np.random.default_rng(seed)
        self.actions = generator.integers(0, NUM_ACTIONS, num_envs + _SPARE_ACTIONS, dtype=np.int8)
        self._num_envs, self._first = num_envs, 0

    def next(self) -> np.ndarray:
        """Return (num_envs,) int8 actions."""
        self._first = (self._first + 389) % _SPARE_ACTIONS  # coprime, so that all windows come up
        return self.actions[self._first : self._first + self._num_envs]

    def memory(self) -> MemoryNode:
        """Return the bytes of the array."""
        return array_node("random actions", self.actions, shared=False)


@dataclass(frozen=True)
class EnvironmentTarget(Target):
    """Environments of a configuration, in the form in which people run them."""

    config: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    """What to build."""
    seed: int = 0
    """Seed of the environments and of the random actions."""
    form: Form = "vector"
    """The native vector environment, a list of single environments or of those of ``gymnasium.make``, a vector
    environment of Gymnasium in this process or with workers, or Stable-Baselines3's ``VecEnv``."""
    contract: Contract = "default"
    """Who owns the observations of the native vector environment: ``default`` or ``out`` (arrays of the caller)."""
    autoreset: Mode = "next-step"
    """When the next episode begins in the native vector environment."""

    def __post_init__(self) -> None:
        """Take name, unit and limits from the form."""
        for name in ("name", "unit", "most_envs", "makes_objects"):
            object.__setattr__(self, name, getattr(_FORMS[self.form], name))

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return what defines the environments."""
        native = (("contract", self.contract), ("autoreset", self.autoreset)) if self.form == "vector" else ()
        found = [(name.replace("_", " "), _text(getattr(self.config, name))) for name in _FACTS]
        options = self.config.observation
        found += [("vectors", options.dtype), ("frame stack", str(options.frame_stack))]
        if {"player_frame", "global_view"} & set(self.config.observations):
            render = self.config.render
            found.append(("pictures", f"{render.player_frame_size} pixels, {_text(render.view_shape)} pixels"))
        return (*native, *found, ("actions", f"uniform random, seed {self.seed}"))

    def advice(self, owners: Sequence[OwnedNode], num_envs: int, unreported: float) -> Iterator[Advice]:
        """Yield what would save memory, with sizes of observations and contracts in mind."""
        yield from of_observations(self.config, owners, num_envs, unreported)
        if self.form == "vector":
            yield from of_kept_results(owners)

    def phases(self, num_envs: int, steps: int) -> Mapping[str, float]:
        """Return the time of the compiled step and of its parts, in one thread and without stacks."""
        if self.form != "vector":
            return {}
        return measure_phases(self.config, num_envs, AUTORESET[self.autoreset], steps, self.seed)

    def make(self, num_envs: int) -> Subject:
        """Make environments and reset them."""
        return _FORMS[self.form].make(self, num_envs)


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def compile_kernels() -> None:
    """Compile the kernels of the profiler, or load them."""
    EnvironmentTarget().phases(num_envs=1, steps=1)


class WrappedSubject:
    """A vector environment with the interface of another library, and random actions."""

    def __init__(self, env: Any, seed: int):
        self._env, self._actions = env, RandomActions(env.num_envs, seed)

    def step(self) -> None:
        """Step every environment."""
        self._env.step(self._actions.next())

    def memory(self) -> MemoryNode:
        """Return the bytes of the environments in this process; those of worker processes cannot be asked."""
        if hasattr(self._env, "memory"):
            trees = (self._env.memory(),)
        else:
            trees = tuple(env.unwrapped.memory() for env in getattr(self._env, "envs", ()))
        envs = (merged(trees),) if trees else ()
        return MemoryNode("all", children=(*envs, self._actions.memory()))

    def close(self) -> None:
        """Close the environments and their processes."""
        self._env.close()


class VectorSubject(WrappedSubject):
    """A native vector environment with random actions."""

    def __init__(self, env: NPlusPlusVectorEnv, seed: int, with_out: bool):
        super().__init__(env, seed)
        self._out: dict[str, np.ndarray] = {}
        if with_out:
            spaces: Mapping[str, Any] = env.observation_space.spaces  # type: ignore[attr-defined]
            self._out = {name: np.full(space.shape, 1, space.dtype) for name, space in spaces.items()}
        self._arguments: dict[str, Any] = {"out": self._out} if with_out else {}
        self._waits = env.autoreset_mode is AutoresetMode.DISABLED
        env.reset(seed=seed, **self._arguments)

    def step(self) -> None:
        """Step every environment; reset those that ended where they do not do so themselves."""
        _, _, terminated, truncated, _ = self._env.step(self._actions.next(), **self._arguments)
        if self._waits:
            ended = terminated | truncated
            if ended.any():
                self._env.reset(options={"reset_mask": ended}, **self._arguments)

    def memory(self) -> MemoryNode:
        """Return the bytes of environment, actions and the caller's arrays."""
        caller = array_group("arrays of the caller", self._out, shared=False)
        parts = (self._env.memory(), caller, self._actions.memory())
        return MemoryNode("all", children=tuple(part for part in parts if part.total_bytes))


class ListSubject:
    """Single environments, each stepped in turn and reset when its episode is over."""

    def __init__(self, envs: list[Any], seed: int):
        self._envs, self._actions = envs, RandomActions(len(envs), seed)
        for number, env in enumerate(envs):
            env.reset(seed=seed + number)

    def step(self) -> None:
        """Step every environment."""
        for env, action in zip(self._envs, self._actions.next()):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    def memory(self) -> MemoryNode:
        """Return the bytes of all environments."""
        envs = merged([env.unwrapped.memory() for env in self._envs])
        return MemoryNode("all", children=(envs, self._actions.memory()))

    def close(self) -> None:
        """Close all environments."""
        for env in self._envs:
            env.close()


class _Form(NamedTuple):
    """A form of environments."""

    name: str
    make: Callable[[EnvironmentTarget, int], Subject]
    most_envs: int = 4096
    unit: str = "vector step"
    makes_objects: bool = False


def _native(target: EnvironmentTarget, num_envs: int) -> Subject:
    env = NPlusPlusVectorEnv(target.config, num_envs, autoreset_mode=AUTORESET[target.autoreset])
    return VectorSubject(env, target.seed, with_out=target.contract == "out")


def _list(make: Callable[[EnvironmentConfig], Any], target: EnvironmentTarget, num_envs: int) -> Subject:
    return ListSubject([make(target.config) for _ in range(num_envs)], target.seed)


def _made_by_gymnasium(config: EnvironmentConfig) -> Any:
    return gymnasium.make(ENVIRONMENT_ID, config=config)


def _vectorised(mode: str, target: EnvironmentTarget, num_envs: int) -> Subject:
    env = gymnasium.make_vec(ENVIRONMENT_ID, num_envs, vectorization_mode=mode, config=target.config)
    env.reset(seed=target.seed)
    return WrappedSubject(env, target.seed)


def _for_stable_baselines(target: EnvironmentTarget, num_envs: int) -> Subject:
    optional_module("stable_baselines3", "sb3")
    from nclone_env.train import NPlusPlusVecEnv  # requires Stable-Baselines3, an optional dependency

    env = NPlusPlusVecEnv(target.config, num_envs)
    env.seed(target.seed)
    env.reset()
    return WrappedSubject(env, target.seed)


_EACH = "step of each environment"
_FORMS = {
    "vector": _Form("native vector environment", _native, 16384),
    "single": _Form("list of single environments", partial(_list, create_environment), 1024, _EACH),
    "gym": _Form("list of environments of gymnasium.make", partial(_list, _made_by_gymnasium), 512, _EACH),
    "sync": _Form("Gymnasium's SyncVectorEnv", partial(_vectorised, "sync"), 512),
    # processes are slow to start
    "async": _Form("Gymnasium's AsyncVectorEnv", partial(_vectorised, "async"), 8, makes_objects=True),
    "sb3": _Form("VecEnv for Stable-Baselines3", _for_stable_baselines),
}


def of_observations(
    config: EnvironmentConfig, owners: Sequence[OwnedNode], num_envs: int, unreported: float
) -> Iterator[Advice]:
    """Yield advice on the sizes of observations; whole batches in the bytes ``unreported`` by owners count, too."""
    before = _bytes(config)
    batches = int(unreported // max(1, sum(before.values())))
    used = owners[0].environment_bytes / num_envs + unreported
    for option, variant, more in _variants(config):
        after = _bytes(variant)
        shares = {name: 1 - after[name] / size for name, size in before.items() if size}
        stored = {name: sum(total for _, total in copies(owners, name)) for name in shares}
        each = sum(share * (stored[name] / num_envs + batches * before[name]) for name, share in shares.items())
        saved = int(each * num_envs) - more
        besides = f" and takes {format_bytes(more)} more for what all share" if more > 0 else ""
        yield Advice(
            option,
            saved,
            f"{option} saves {format_bytes(each)} of {format_bytes(used)} for each environment{besides}: "
            f"{format_bytes(saved)} in all.",
        )


def _variants(config: EnvironmentConfig) -> Iterator[tuple[str, EnvironmentConfig, int]]:
    """Yield (option, configuration with smaller observations, bytes more that all environments share)."""
    size = config.render.player_frame_size
    smaller = _SMALL if size > _SMALL else max(_SMALLEST, size // 2)
    if {"player_frame", "global_view"} & set(config.observations) and smaller < size:
        render = replace(config.render, player_frame_size=smaller, player_frame_scale=None)
        resized = config.replace(render=render)
        yield f"--picture-size {smaller}", resized, _shared_bytes(resized) - _shared_bytes(config)
    if config.observation.dtype == "float32":
        halved = config.replace(observation=replace(config.observation, dtype="float16"))
        yield "--vector-dtype float16", halved, 0


def _bytes(config: EnvironmentConfig) -> dict[str, int]:
    """Return the bytes of each observation of an environment; 0 where they depend on the levels."""
    depth = config.observation.frame_stack
    return {
        spec.name: math.prod(spec.shape) * spec.dtype.itemsize * (depth if spec.stacks else 1)
        for spec in frame_specs(config)
    }


def _shared_bytes(config: EnvironmentConfig) -> int:
    """Return the bytes of pictures that all environments share, without mapped files."""
    with closing(NPlusPlusVectorEnv(config.replace(levels=("first-steps",)), 1)) as env:
        return env.memory().bytes_where(shared=True, mapped=False)


def of_more_environments(num_envs: int, one: MemoryNode, two: MemoryNode) -> Iterator[Advice]:
    """Yield advice for a run most of whose memory does not grow, given its tree and that of one of twice as many."""
    once = one.bytes_where(shared=True, mapped=False)
    more = two.bytes_where(mapped=False) - one.bytes_where(mapped=False)
    if once > more:
        yield Advice(
            f"--num-envs {2 * num_envs}",
            -more,
            f"--num-envs {2 * num_envs}, twice as many, takes only {format_bytes(more)} more: most of the run, "
            f"{format_bytes(once)}, is parameters, optimiser and scratch.",
        )
