"""Configuration of a training run: one flat frozen dataclass that is also the command line."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from nclone_env.config import EnvironmentConfig, ObservationConfig, RewardConfig, build
from nclone_env.errors import ConfigError

PolicyObservation = Literal["game_state", "player_frame", "global_view"]

# Field name to (type, lowest, highest); both ends are allowed.
_RANGES: dict[str, tuple[type, float, float]] = {
    "seed": (int, 0, 2**31 - 1),
    "num_envs": (int, 1, 65536),
    "rollout_length": (int, 1, 65536),
    "total_steps": (int, 1, 10**12),
    "epochs": (int, 1, 100),
    "minibatches": (int, 1, 65536),
    "hidden_size": (int, 1, 4096),
    "success_window": (int, 1, 10**6),
    "checkpoint_interval": (int, 1, 10**9),
    "torch_threads": (int, 1, 1024),
    "learning_rate": (float, 0.0, 1.0),
    "gae_lambda": (float, 0.0, 1.0),
    "clip": (float, 1e-6, 1.0),
    "entropy_weight": (float, 0.0, 10.0),
    "value_weight": (float, 0.0, 100.0),
    "max_grad_norm": (float, 1e-6, 1e6),
    "stop_at_success": (float, 0.0, 1.0),
}


@dataclass(frozen=True)
class TrainConfig:
    """Everything that defines a training run; the discount factor is ``reward.gamma``."""

    levels: tuple[str, ...] = ("first-steps",)
    """Built-in sets or levels by name, or level files by path; each episode plays one of them."""
    observations: tuple[PolicyObservation, ...] = ("game_state",)
    """What the policy sees; pictures bring a small convolutional network."""
    frame_stack: int = 1
    """Last moments that make one observation; each is stored once and stacks are gathered in time; 1: no stacks."""
    frame_skip: int = 4
    """Frames simulated per step with the same action."""
    max_frames: int = 1200
    """Frames after which an episode is truncated (60 per second)."""
    reward: RewardConfig = field(default_factory=RewardConfig)
    """Weights of the reward and the discount factor."""

    seed: int = 0
    """Fixes the initial policy, the sampled actions, the minibatches and the environments."""
    num_envs: int = 256
    """Environments stepped together."""
    rollout_length: int = 64
    """Steps of each environment between two updates."""
    total_steps: int = 2_000_000
    """Steps of all environments together after which training ends."""
    stop_at_success: float | None = None
    """Ends training once every level's recent success rate reaches this; None trains to the last step, which
    also makes the most probable actions reliable."""
    success_window: int = 100
    """Episodes of each level that count as recent."""

    hidden_size: int = 128
    """Units of each of the two hidden layers of the policy and of the value function."""
    epochs: int = 3
    """Passes over a rollout in each update."""
    minibatches: int = 4
    """Parts a rollout is split into for one pass; must divide num_envs * rollout_length."""
    learning_rate: float = 1e-3
    """Step size of Adam at the start."""
    anneal: bool = True
    """Lowers the learning rate linearly to 0 at total_steps."""
    gae_lambda: float = 0.95
    """Weight of longer returns in the advantage estimate."""
    clip: float = 0.2
    """How far the probability ratio may move from 1 before its gradient is cut off."""
    entropy_weight: float = 0.01
    """Weight of the entropy bonus."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    """Longest gradient; longer ones are scaled down."""

    torch_threads: int = 1
    """Threads of the learner; more than the cores that are really free make it many times slower."""
    output: Path = Path("runs")
    """Folder under which each run gets its own."""
    name: str = ""
    """Folder of this run; made from levels and seed if empty."""
    checkpoint_interval: int = 50
    """Updates between two checkpoints."""

    def __post_init__(self) -> None:
        """Normalise sequences and paths and refuse values that make no sense."""
        for name in ("levels", "observations"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        object.__setattr__(self, "output", Path(self.output))
        if isinstance(self.reward, dict):
            object.__setattr__(self, "reward", build(RewardConfig, self.reward, "reward"))
        if not all(isinstance(level, str) for level in self.levels):
            raise ConfigError(f"levels: expected names or paths as text, got {self.levels!r}")
        for name, limits in _RANGES.items():
            _check_range(name, getattr(self, name), *limits)
        if self.batch_size % self.minibatches:
            raise ConfigError(
                f"minibatches: expected a divisor of num_envs * rollout_length = {self.batch_size}, "
                f"got {self.minibatches}; choose a power of two"
            )
        if not isinstance(self.anneal, bool):
            raise ConfigError(f"anneal: expected True or False, got {self.anneal!r}")
        if Path(self.name).name != self.name:
            raise ConfigError(f"name: expected a folder name without separators, got {self.name!r}")
        self.environment()
        for name in self.observations:
            if name not in get_args(PolicyObservation):
                valid = ", ".join(get_args(PolicyObservation))
                raise ConfigError(f"observations: the policy of the trainer sees {valid}, got {name!r}")

    def environment(self) -> EnvironmentConfig:
        """Return the configuration of what the policy plays, which also checks the fields that go into it."""
        return EnvironmentConfig(
            levels=self.levels,
            observations=self.observations,
            observation=ObservationConfig(frame_stack=self.frame_stack),
            frame_skip=self.frame_skip,
            max_frames=self.max_frames,
            reward=self.reward,
        )

    def unstacked_environment(self) -> EnvironmentConfig:
        """Return the same with single moments: what the trainer steps, whose storage makes the stacks."""
        return self.environment().replace(observation=ObservationConfig())

    @property
    def batch_size(self) -> int:
        """Steps of one rollout over all environments."""
        return self.num_envs * self.rollout_length

    @property
    def minibatch_size(self) -> int:
        """Steps of one minibatch."""
        return self.batch_size // self.minibatches

    @property
    def updates(self) -> int:
        """Updates until total_steps are reached, the last rollout in full."""
        return math.ceil(self.total_steps / self.batch_size)

    @property
    def run_folder(self) -> Path:
        """Folder of everything this run writes."""
        levels = "+".join(Path(level).name or "level" for level in self.levels[:3])
        return self.output / (self.name or f"{levels}-seed{self.seed}")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values that a checkpoint can hold."""
        return plain(dataclasses.asdict(self))


def plain(value: Any) -> Any:
    """Return ``value`` with tuples turned into lists and paths into text, recursively."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _check_range(name: str, value: object, kind: type, low: float, high: float) -> None:
    if value is None and name == "stop_at_success":
        return
    accepted = (int,) if kind is int else (int, float)
    number = isinstance(value, accepted) and not isinstance(value, bool)
    if not number or not low <= value <= high:  # type: ignore[operator]
        noun = "a whole number" if kind is int else "a number"
        raise ConfigError(f"{name}: expected {noun} from {low:g} to {high:g}, got {value!r}")
