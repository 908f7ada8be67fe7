"""Configuration of a training run: one flat frozen dataclass, from which the command line is generated."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from nclone_env.config import (
    EnvironmentConfig,
    ObservationConfig,
    PathsName,
    RenderConfig,
    RewardConfig,
    VectorDtype,
    build,
    check_integer,
)
from nclone_env.errors import ConfigError, shortened
from nclone_env.generate.difficulty import LEAST, MOST, read_range
from nclone_env.generate.families import NAMES

CurriculumName = Literal["even", "progress"]
DeviceName = Literal["auto", "cpu", "cuda"]
PolicyObservation = Literal[
    "game_state",
    "player_frame",
    "global_view",
    "entity_states",
    "locals",
    "reachability",
    "action_outcomes",
    "action_mask",
]
PictureSize = Literal[128, 84, 64]

GENERATED, VARIED = "generated", "varied"
"""Stands among ``TrainConfig.levels`` for levels that are made while the run goes on."""

_LONGEST_NAME = 100  # characters of the levels in the name of a run folder
# Field name to (type, minimum, maximum), both inclusive.
_RANGES: dict[str, tuple[type, float, float]] = {
    "seed": (int, 0, 2**31 - 1),
    "num_envs": (int, 1, 65536),
    "num_steps": (int, 1, 65536),
    "total_timesteps": (int, 1, 10**12),
    "update_epochs": (int, 1, 100),
    "num_minibatches": (int, 1, 65536),
    "hidden_size": (int, 1, 4096),
    "success_window": (int, 1, 10**6),
    "held_out": (float, 0.0, 0.99),
    "split_seed": (int, 0, 2**31 - 1),
    "generated_count": (int, 1, 65536),
    "generated_interval": (int, 1, 10**9),
    "evaluation_interval": (int, 0, 10**9),
    "evaluation_attempts": (int, 1, 10**6),
    "checkpoint_interval": (int, 1, 10**9),
    "keep_last": (int, 0, 10**6),
    "learning_rate": (float, 0.0, 1.0),
    "gae_lambda": (float, 0.0, 1.0),
    "clip_coef": (float, 1e-6, 1.0),
    "entropy_coef": (float, 0.0, 10.0),
    "value_coef": (float, 0.0, 100.0),
    "max_grad_norm": (float, 1e-6, 1e6),
    "stop_at_success": (float, 0.0, 1.0),
    "clone_kl_coef": (float, 0.0, 100.0),
    "clone_kl_steps": (int, 1, 10**12),
}

_CHOICES: dict[str, tuple[str | int, ...]] = {
    "curriculum": get_args(CurriculumName),
    "device": get_args(DeviceName),
    "paths": get_args(PathsName),
    "picture_size": get_args(PictureSize),
}


@dataclass(frozen=True)
class TrainConfig:
    """All settings of a training run; the discount factor is ``reward.gamma``."""

    levels: tuple[str, ...] = ("first-steps",)
    """Built-in sets or levels by name, level files by path; generated for new levels without end, varied for variants
    of the others. Each episode is played on one of them."""
    mirrored: bool = False
    """Also train on the mirror image of each level, with left and right exchanged."""
    observations: tuple[PolicyObservation, ...] = ("game_state",)
    """Observations of the policy; ``action_mask`` is no input but keeps redundant actions from being sampled."""
    picture_size: PictureSize = 128
    """Side of ``player_frame`` in pixels; all three show the same part of the world."""
    max_entities: int = 32
    """Number of nearest entities listed in ``entity_states``."""
    local_position: bool = False
    """Give x and y in game_state within the ninja's tile, and no remaining time, so that learning carries over."""
    locals_size: int = 21
    """Side of ``locals`` in squares of 12 pixels; odd. Fewer carry over better to levels not trained on."""
    locals_planes: int = 1
    """Planes of ``locals``, 1 to 3: solid, deadly, how much nearer to the objective."""
    outcome_frames: int = 60
    """Frames for which ``action_outcomes`` holds each action."""
    vector_dtype: VectorDtype = "float32"
    """Dtype of stored vectors; ``float16`` takes half the memory, and PyTorch in place of the hand-written network."""
    frame_stack: int = 1
    """Number of recent observations per stack, gathered on demand from observations stored once; 1 disables stacks."""
    frame_skip: int = 4
    """Frames simulated per step, all with the same action."""
    max_frames: int = 1200
    """Time limit in frames (60 per second), after which an episode is truncated."""
    paths: PathsName = "tiles"
    """Paths that the shaping reward and game_state follow: between tiles, or by the switches of closed doors too."""
    reward: RewardConfig = field(default_factory=RewardConfig)
    """Reward weights and the discount factor."""

    held_out: float = 0.0
    """Share of the levels to hold out: they are not trained on, and success on them is measured; 0: none."""
    split_seed: int = 0
    """Seed that selects the held-out levels."""
    evaluation_interval: int = 100
    """Updates between evaluations on the held-out levels, besides the last update; 0: no evaluations."""
    evaluation_attempts: int = 16
    """Episodes of each held-out level in an evaluation."""
    curriculum: CurriculumName = "even"
    """Levels played: even, as many environments for each (if there are enough, else drawn evenly for each episode);
    progress, most episodes on those that are being learned."""
    starts: tuple[str, ...] = ()
    """Recordings of solutions, known or planned (by the planner, before the run): episodes begin along them, at first
    near the exit, then ever earlier."""
    generated_count: int = 64
    """Generated levels and variants that are trained on at a time."""
    generated_interval: int = 50
    """Updates after which the next ones take their place."""
    generated_families: tuple[str, ...] = NAMES
    """Families that take turns: rooms, caves, shafts, mazes, minefields, patrols, turrets, pads, slopes."""
    generated_difficulty: str = f"{LEAST}..{MOST}"
    """Least and greatest measured difficulty, 0..100."""

    seed: int = 0
    """Seed of the initial policy, sampled actions, minibatch order, environments, generated levels and variants."""
    num_envs: int = 256
    """Number of parallel environments."""
    num_steps: int = 128
    """Steps per environment in each rollout."""
    total_timesteps: int = 2_000_000
    """Total environment steps of the run, over all environments."""
    stop_at_success: float | None = None
    """Stop early at this recent success rate on every level; None trains to the end, which helps argmax."""
    success_window: int = 100
    """Number of recent episodes per level over which success rates are averaged."""

    hidden_size: int = 96
    """Units of each of the two hidden layers."""
    shared_trunk: bool = False
    """Share the hidden layers between policy and value function; otherwise each has its own."""
    learner: str = "ppo"
    """Algorithm by its name in ``train.learn.learners``."""
    update_epochs: int = 3
    """Epochs over the rollout per update."""
    num_minibatches: int = 8
    """Minibatches per epoch; must divide num_envs * num_steps."""
    learning_rate: float = 1e-3
    """Initial learning rate of the Adam optimiser."""
    anneal_lr: bool = True
    """Anneal the learning rate linearly to 0 at total_timesteps."""
    gae_lambda: float = 0.95
    """The lambda of generalised advantage estimation."""
    clip_coef: float = 0.2
    """The epsilon of the clipped surrogate objective."""
    entropy_coef: float = 0.02
    """Initial coefficient of the entropy bonus."""
    anneal_entropy: bool = True
    """Anneal the coefficient linearly to 0 at total_timesteps."""
    value_coef: float = 0.5
    """Coefficient of the value loss."""
    max_grad_norm: float = 0.5
    """Maximum norm of the gradient; larger gradients are scaled down."""

    warm_start: tuple[str, ...] = ()
    """Recordings, built-in levels whose known solutions are played, or planned for solutions by the planner; the policy
    begins as a clone of them."""
    clone_kl_coef: float = 0.3
    """Initial coefficient of the KL divergence of the policy from that clone; 0 does without it."""
    clone_kl_steps: int = 500_000
    """Timesteps over which that coefficient decreases linearly to 0."""

    device: DeviceName = "cpu"
    """Where the policy is computed. Auto: a GPU if there is one, except for policies without pictures, which the
    hand-written network computes faster on the processor."""
    amp: bool = False
    """On a GPU, compute layers in bfloat16 by automatic mixed precision; ignored where auto finds none to use."""
    compile: bool = False
    """On a GPU, compile the update by torch.compile, about a minute at the start; ignored where auto finds none."""
    num_threads: int | None = None
    """Threads that collect and learn; by default one per core. The results do not depend on it."""
    output: Path = Path("runs")
    """Folder that contains the run folders."""
    name: str = ""
    """Name of the run folder. If empty: from levels and seed, numbered from 2 on where that holds another run."""
    checkpoint_interval: int = 50
    """Updates between checkpoints."""
    keep_last: int = 0
    """Number of older checkpoints to keep, as checkpoint-UPDATES.pt, beside the latest and the best."""

    def __post_init__(self) -> None:
        """Normalise sequences and paths and validate every field.

        Raises:
            ConfigError: if a value is invalid.
        """
        for name in ("levels", "observations", "starts", "warm_start", "generated_families"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        object.__setattr__(self, "output", Path(self.output))
        if isinstance(self.reward, dict):
            object.__setattr__(self, "reward", build(RewardConfig, self.reward, "reward"))
        for name in ("levels", "starts", "warm_start"):
            if not all(isinstance(item, str) for item in getattr(self, name)):
                raise ConfigError(f"{name}: expected names or paths as text, got {getattr(self, name)!r}")
        for name, limits in _RANGES.items():
            _check_range(name, getattr(self, name), *limits)
        if self.batch_size % self.num_minibatches:
            raise ConfigError(
                f"num_minibatches: expected a divisor of num_envs * num_steps = {self.batch_size}, "
                f"got {self.num_minibatches}; choose a power of two"
            )
        for name in (item.name for item in dataclasses.fields(self) if item.type == "bool"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name}: expected True or False, got {getattr(self, name)!r}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"{name}: expected one of {', '.join(map(str, choices))}, got {getattr(self, name)!r}"
                )
        for name in ("amp", "compile"):
            if getattr(self, name) and self.device == "cpu":
                raise ConfigError(f"{name}: expected False with device cpu, got True; use it with device cuda or auto")
        if self.num_threads is not None:
            check_integer("num_threads", self.num_threads, low=1, high=1024)
        if Path(self.name).name != self.name or self.name == "..":
            raise ConfigError(
                f"name: expected a folder name without separators, neither . nor .., got {shortened(self.name)}"
            )
        self.environment()
        _check_generated(self)
        for name in self.observations:
            if name not in get_args(PolicyObservation):
                valid = ", ".join(get_args(PolicyObservation))
                raise ConfigError(
                    f"observations: the trainer supports {valid}, got {shortened(name)}; "
                    "'graph' varies in size between levels"
                )
        if self.observations == ("action_mask",):
            raise ConfigError("observations: expected something to see beside action_mask; add game_state")

    def environment(self) -> EnvironmentConfig:
        """Return the environment configuration as the policy sees it; validates the fields it is built from."""
        return EnvironmentConfig(
            levels=self.levels,
            observations=self.observations,
            observation=ObservationConfig(
                dtype=self.vector_dtype,
                frame_stack=self.frame_stack,
                max_entities=self.max_entities,
                local_position=self.local_position,
                locals_size=self.locals_size,
                locals_planes=self.locals_planes,
                outcome_frames=self.outcome_frames,
            ),
            render=RenderConfig.preset(self.picture_size),
            frame_skip=self.frame_skip,
            max_frames=self.max_frames,
            paths=self.paths,
            reward=self.reward,
        )

    def unstacked_environment(self) -> EnvironmentConfig:
        """Return the configuration without frame stacks, for rollouts: the rollout storage builds the stacks."""
        environment = self.environment()
        return environment.replace(observation=dataclasses.replace(environment.observation, frame_stack=1))

    @property
    def generates(self) -> bool:
        """Whether new levels are generated."""
        return GENERATED in self.levels

    @property
    def varies(self) -> bool:
        """Whether variants of the fixed levels are made."""
        return VARIED in self.levels

    @property
    def streams(self) -> bool:
        """Whether levels are made while the run goes on: new ones, or variants."""
        return self.generates or self.varies

    @property
    def fixed_levels(self) -> tuple[str, ...]:
        """The levels that stay for the whole run."""
        return tuple(level for level in self.levels if level not in (GENERATED, VARIED))

    @property
    def batch_size(self) -> int:
        """Steps per rollout over all environments."""
        return self.num_envs * self.num_steps

    @property
    def minibatch_size(self) -> int:
        """Steps per minibatch."""
        return self.batch_size // self.num_minibatches

    @property
    def keeps_clone(self) -> bool:
        """Whether the policy is kept close to the clone of a warm start."""
        return bool(self.warm_start) and self.clone_kl_coef > 0

    @property
    def num_updates(self) -> int:
        """Number of updates of the run; the last rollout is completed."""
        return math.ceil(self.total_timesteps / self.batch_size)

    @property
    def run_folder(self) -> Path:
        """Output folder of this run, before ``train.runs.folder`` numbers it."""
        levels = "+".join(Path(level).name or "level" for level in self.levels[:3])
        return self.output / (self.name or f"{levels[:_LONGEST_NAME]}-seed{self.seed}")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for a checkpoint."""
        return plain(dataclasses.asdict(self))


def plain(value: Any) -> Any:
    """Convert tuples to lists and paths to strings, recursively."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _check_generated(config: TrainConfig) -> None:
    """Check the fields about generated levels."""
    families, fields = config.generated_families, dataclasses.fields(config)
    named = [item for item in fields if item.name.startswith("generated_")]
    for item in named:
        of_both = item.name in ("generated_count", "generated_interval")
        used, given = config.streams if of_both else config.generates, getattr(config, item.name)
        if not used and given != item.default:
            words = f"{GENERATED!r} or {VARIED!r}" if of_both else repr(GENERATED)
            raise ConfigError(
                f"{item.name}: expected the default without generated levels, got {shortened(given)}; "
                f"add {words} to levels"
            )
    if config.varies and not config.fixed_levels:
        raise ConfigError(f"levels: expected levels to vary beside {VARIED!r}, got none; name a set, a file or a pack")
    unknown = [family for family in families if family not in NAMES]
    if unknown or not families:
        got = shortened(unknown[0]) if unknown else "none"
        raise ConfigError(f"generated_families: expected some of {', '.join(NAMES)}, got {got}")
    read_range("generated_difficulty", config.generated_difficulty)
    if config.streams and config.stop_at_success is not None:
        raise ConfigError(
            f"stop_at_success: expected None with generated levels, which take turns, got {config.stop_at_success}"
        )
    steps = config.environment().max_steps
    if config.streams and config.generated_interval * config.num_steps < steps:
        raise ConfigError(
            f"generated_interval: expected at least {math.ceil(steps / config.num_steps)} updates of "
            f"{config.num_steps} steps, the longest episode, got {config.generated_interval}"
        )


def _check_range(name: str, value: object, kind: type, low: float, high: float) -> None:
    if value is None and name == "stop_at_success":
        return
    accepted = (int,) if kind is int else (int, float)
    number = isinstance(value, accepted) and not isinstance(value, bool)
    if not number or not low <= value <= high:  # type: ignore[operator]
        noun = "a whole number" if kind is int else "a number"
        raise ConfigError(f"{name}: expected {noun} from {low:g} to {high:g}, got {value!r}")
