"""Configuration of environments: frozen dataclasses with a docstring per field."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np

from nclone_env.constants import FRAMES_PER_SECOND, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.errors import ConfigError, did_you_mean, shortened

ObservationName = Literal[
    "game_state",
    "player_frame",
    "global_view",
    "entity_states",
    "locals",
    "reachability",
    "action_outcomes",
    "graph",
    "action_mask",
]
OBSERVATION_NAMES: tuple[str, ...] = get_args(ObservationName)
_OF_SEVERAL_ARRAYS = ("entity_states", "graph")
DEFAULT_OBSERVATIONS: tuple[str, ...] = ("game_state", "player_frame", "global_view")
VectorDtype = Literal["float32", "float16"]
MOST_LISTED_ENTITIES = 128
"""Largest ``max_entities``: kernels keep that many on their stack."""
PathsName = Literal["tiles", "doors"]
ActionSpaceName = Literal["discrete", "multi_discrete"]
RenderMode = Literal["rgb_array", "human"]


@dataclass(frozen=True)
class RewardConfig:
    """Weights of the reward; the reward of a step sums the events of its frames.

    Shaping is potential-based (Ng, Harada and Russell, 1999): ``gamma * potential(next) - potential(current)``. The
    potential is the negative remaining path length (to a switch and on to its exit) in multiples of the initial one,
    and 0 once the episode has terminated.
    """

    completion: float = 10.0
    """Added when the ninja touches an open exit."""
    switch: float = 1.0
    """Added when an exit switch is collected."""
    death: float = -1.5
    """Added when the ninja dies. Shaping then returns what is left of the potential, about 5 near the start of a level;
    with a small weight here that looks like a gain to a critic that has not learned the potential yet. With a large one
    standing still is the safest, and hard levels on their own are never begun."""
    time: float = -0.0005
    """Added per simulated frame."""
    gold: float = 0.0
    """Added per piece of gold."""
    shaping: float = 5.0
    """Weight of the shaping term; 0 turns it off."""
    gamma: float = 0.995
    """Discount factor per step, for the shaping term and the trainer."""

    def __post_init__(self) -> None:
        """Reject values out of range."""
        for item in dataclasses.fields(self):
            _check_number(item.name, getattr(self, item.name), low=-math.inf, high=math.inf)
        _check_number("gamma", self.gamma, low=0.0, high=1.0)


@dataclass(frozen=True)
class RenderConfig:
    """Sizes of the pictures. A pixel of a reduced picture is the average over its area."""

    player_frame_size: int = 128
    """Side of the square ``player_frame`` in pixels."""
    player_frame_scale: float = 1.0
    """Side of a pixel of ``player_frame`` in world pixels: 2 shows twice as far with the same bytes."""
    global_view_size: tuple[int, int] = (128, 256)
    """Height and width of ``global_view`` in pixels; it shows the whole world, 600 x 1056 world pixels."""
    picture_scale: float = 1.0
    """Scale of the ``rgb_array`` and ``human`` picture; 1 is 1056 x 600 pixels."""

    def __post_init__(self) -> None:
        """Reject sizes that cannot be drawn, or that are surely a mistake."""
        check_integer("player_frame_size", self.player_frame_size, low=16, high=512)
        _check_number("player_frame_scale", self.player_frame_scale, low=1.0, high=16.0)
        shown = int(self.player_frame_size) * float(self.player_frame_scale)  # small integers of NumPy overflow
        if shown > 2 * WORLD_WIDTH:
            most = 2 * WORLD_WIDTH / self.player_frame_size
            raise ConfigError(
                f"player_frame_scale: expected at most {most:.4g} for a player_frame_size of {self.player_frame_size}, "
                f"got {self.player_frame_scale!r}, which shows {shown:.0f} world pixels around the ninja; the world is "
                f"{WORLD_WIDTH} wide: choose a smaller scale or size, or observe global_view"
            )
        object.__setattr__(self, "global_view_size", _view_size(self.global_view_size))
        _check_number("picture_scale", self.picture_scale, low=0.1, high=4.0)

    @classmethod
    def preset(cls, side: int, **fields: Any) -> RenderConfig:
        """Return sizes by the side of ``player_frame``: 128, 84 or 64; all three show the same part of the world.

        ``global_view`` shrinks with it: 128 x 256, 84 x 168 or 64 x 128.

        Raises:
            ConfigError: if there is no such preset, a field is unknown or a value is out of range.
        """
        _check_choice("preset", side, (128, 84, 64))
        sizes = {"player_frame_size": side, "player_frame_scale": 128 / side, "global_view_size": (side, 2 * side)}
        return build(cls, {**sizes, **fields}, "render")


@dataclass(frozen=True)
class ObservationConfig:
    """Options of the observations named in ``EnvironmentConfig.observations``."""

    dtype: VectorDtype = "float32"
    """Dtype of all feature vectors; ``float16`` is the float32 value rounded to nearest, ties to even."""
    frame_stack: int = 1
    """Number of stacked observations, oldest first, on a new first axis of every array that stacks; 1: no stack."""
    max_entities: int = 32
    """Rows of ``entity_states``: the number of nearest entities listed."""
    local_position: bool = False
    """Give ``x`` and ``y`` of ``game_state`` within the tile of the ninja, the way to the objective only as far as it
    is near, and no remaining time. A policy cannot tell levels apart then, and what it learns applies to others."""
    locals_size: int = 21
    """Side of ``locals`` in squares of 12 pixels; odd, so that one square is in the middle."""
    locals_planes: int = 1
    """Planes of ``locals``, 1 to 3: what is solid; where the ninja would touch something deadly; how much nearer to the
    objective each square is."""
    outcome_frames: int = 60
    """Frames for which ``action_outcomes`` holds each action, 3 to 600; it takes time in proportion."""
    reachability_slots: int | None = None
    """Capacity of the ``reachability`` cache in entries of 54 KB, one per state of a level's doors; None: two per
    level, at least 64. With fewer slots than entries in use every step is slow; see ``reachability_counts``."""

    def __post_init__(self) -> None:
        """Reject sizes out of range."""
        _check_choice("dtype", self.dtype, get_args(VectorDtype))
        check_bool("local_position", self.local_position)
        check_integer("frame_stack", self.frame_stack, low=1, high=64)
        check_integer("max_entities", self.max_entities, low=1, high=MOST_LISTED_ENTITIES)
        check_integer("locals_size", self.locals_size, low=1, high=99)
        check_integer("locals_planes", self.locals_planes, low=1, high=3)
        check_integer("outcome_frames", self.outcome_frames, low=3, high=600)
        if self.reachability_slots is not None:
            check_integer("reachability_slots", self.reachability_slots, low=1, high=65536)
        if self.locals_size % 2 == 0:
            raise ConfigError(f"locals_size: expected an odd number, got {self.locals_size}")


@dataclass(frozen=True)
class EnvironmentConfig:
    """Everything that defines an environment, single or vectorised."""

    levels: tuple[Any, ...] = ("first-steps",)
    """Built-in sets or levels by name, files or packs by path, map bytes, or loaded levels; an episode plays one."""
    mirrored: bool = False
    """Also play the mirror image of each level, with left and right exchanged."""
    observations: tuple[str, ...] = DEFAULT_OBSERVATIONS
    """Names of the observations, from ``OBSERVATION_NAMES``; the others cost nothing."""
    dict_observations: bool = True
    """Return observations as a dict of arrays by name. False: return the array of the only observation, with a Box as
    its space; a stack of pictures then has its frames in place of the channel, (k, height, width)."""
    action_space: ActionSpaceName = "discrete"
    """``discrete``: 3 * jump + direction; ``multi_discrete``: [direction, jump]. Directions: none, left, right."""
    frame_skip: int = 4
    """Frames simulated per step with the same action; fewer when the episode ends."""
    max_frames: int = 5400
    """Frames after which an episode is truncated (60 per second)."""
    paths: PathsName = "tiles"
    """Paths that the shaping reward and ``game_state`` follow. ``tiles``: to a switch and its exit, through doors;
    ``doors``: also to the switches of the locked doors on the way, in order, with the doors closed until then."""
    reward: RewardConfig = field(default_factory=RewardConfig)
    """Weights of the reward."""
    observation: ObservationConfig = field(default_factory=ObservationConfig)
    """Options of the observations: dtype, stack and sizes."""
    render: RenderConfig = field(default_factory=RenderConfig)
    """Sizes of the pictures."""
    render_mode: RenderMode | None = None
    """Behaviour of ``render()``: ``rgb_array`` returns a picture, ``human`` shows a window."""

    def __post_init__(self) -> None:
        """Normalise sequences to tuples and reject values out of range."""
        for name in ("levels", "observations"):
            value = getattr(self, name)
            single = isinstance(value, (str, bytes)) or not isinstance(value, (tuple, list))
            object.__setattr__(self, name, (value,) if single else tuple(value))
        if not self.levels:
            raise ConfigError("levels: expected at least one level, got none; name a set, a level or a file")
        for name in self.observations:
            _check_choice("observations", name, OBSERVATION_NAMES)
        if not self.observations or len(set(self.observations)) != len(self.observations):
            raise ConfigError(
                f"observations: expected one or more different names out of {', '.join(OBSERVATION_NAMES)}, "
                f"got {shortened(self.observations, 200)}"
            )
        check_bool("dict_observations", self.dict_observations)
        if not self.dict_observations and (len(self.observations) > 1 or self.observations[0] in _OF_SEVERAL_ARRAYS):
            raise ConfigError(
                f"observations: expected one name of a single array with dict_observations=False, such as "
                f"'game_state', got {shortened(self.observations, 200)}; name one, or set dict_observations=True"
            )
        check_bool("mirrored", self.mirrored)
        _check_choice("paths", self.paths, get_args(PathsName))
        _check_choice("action_space", self.action_space, get_args(ActionSpaceName))
        _check_choice("render_mode", self.render_mode, (None, *get_args(RenderMode)))
        check_integer("frame_skip", self.frame_skip, low=1, high=60)
        check_integer("max_frames", self.max_frames, low=1, high=1_000_000)
        for name, expected in (
            ("reward", RewardConfig),
            ("observation", ObservationConfig),
            ("render", RenderConfig),
        ):
            value = getattr(self, name)
            if isinstance(value, Mapping):
                object.__setattr__(self, name, build(expected, value, name))
            elif not isinstance(value, expected):
                raise ConfigError(f"{name}: expected {expected.__name__} or a mapping, got {shortened(value)}")

    @property
    def only_observation(self) -> str | None:
        """Name of the array that is the observation; None if observations are dicts."""
        return None if self.dict_observations else self.observations[0]

    @property
    def frames_per_second(self) -> float:
        """Steps per second at the speed of the game; an int if it is whole, as Gymnasium's ``play`` asks for."""
        exact = FRAMES_PER_SECOND / self.frame_skip
        return int(exact) if exact.is_integer() else exact

    @property
    def max_steps(self) -> int:
        """Steps of the longest possible episode."""
        return -(-self.max_frames // self.frame_skip)

    def replace(self, **fields: Any) -> EnvironmentConfig:
        """Return a copy with other values in some fields.

        Raises:
            ConfigError: if a field is unknown or a value is out of range.
        """
        current = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return build(type(self), {**current, **fields}, "environment")

    @classmethod
    def for_training(cls, **fields: Any) -> EnvironmentConfig:
        """Return the preset for training: the state vector alone, short episodes."""
        return build(cls, {"observations": ("game_state",), "max_frames": 1200, **fields})

    @classmethod
    def for_parallel_training(cls, **fields: Any) -> EnvironmentConfig:
        """Return the preset for thousands of environments: as :meth:`for_training`, with shorter episodes."""
        return build(cls, {"observations": ("game_state",), "max_frames": 600, **fields})

    @classmethod
    def for_evaluation(cls, **fields: Any) -> EnvironmentConfig:
        """Return the preset for evaluating a policy: full episodes, rendering to arrays."""
        return build(cls, {"observations": ("game_state",), "render_mode": "rgb_array", **fields})

    @classmethod
    def for_human(cls, **fields: Any) -> EnvironmentConfig:
        """Return the preset for watching: one frame per step, shown in a window."""
        return build(cls, {"observations": ("game_state",), "frame_skip": 1, "render_mode": "human", **fields})


def build(kind: type, fields: Mapping[str, Any], argument: str = "configuration") -> Any:
    """Return ``kind(**fields)`` for a configuration dataclass, rejecting unknown names.

    Args:
        kind: the dataclass.
        fields: values by field name.
        argument: name of the mapping in messages.

    Raises:
        ConfigError: if a name is not a field; the message lists the valid ones.
    """
    valid = [item.name for item in dataclasses.fields(kind)]
    unknown = sorted(set(fields) - set(valid))
    if unknown:
        raise ConfigError(
            f"{argument}: unknown field {shortened(unknown, 200)[1:-1]}{did_you_mean(unknown[0], valid) or ';'} "
            f"valid fields: {', '.join(valid)}"
        )
    return kind(**fields)


def config_from(config: EnvironmentConfig | None, fields: Mapping[str, Any]) -> EnvironmentConfig:
    """Return a configuration with some fields replaced; the defaults with these fields if it is None.

    Raises:
        ConfigError: if ``config`` is no configuration, or a field is unknown or out of range.
    """
    if config is None:
        return build(EnvironmentConfig, fields, "environment")
    if not isinstance(config, EnvironmentConfig):
        raise ConfigError(
            f"config: expected an EnvironmentConfig, got {shortened(config)}; "
            f"pass its fields as keyword arguments (levels=...)"
        )
    return config.replace(**fields)


def _check_choice(name: str, value: object, choices: tuple[Any, ...]) -> None:
    if not isinstance(value, (str, Integral, type(None))) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ConfigError(f"{name}: expected one of {listed}, got {shortened(value)}")


def check_bool(name: str, value: object) -> None:
    """Reject what is neither True nor False.

    Raises:
        ConfigError: if it is not.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ConfigError(f"{name}: expected True or False, got {shortened(value)}")


def _view_size(size: Any) -> tuple[int, int]:
    """Return the height and width of ``global_view`` as a tuple."""
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise ConfigError(f"global_view_size: expected height and width, for example (128, 256), got {shortened(size)}")
    height, width = size
    check_integer("global_view_size[0], the height", height, low=16, high=WORLD_HEIGHT)
    check_integer("global_view_size[1], the width", width, low=16, high=WORLD_WIDTH)
    if height > width:
        raise ConfigError(
            f"global_view_size: expected the height, then the width, of a picture no higher than wide, "
            f"got {shortened(size)}; the world is {WORLD_WIDTH} wide and {WORLD_HEIGHT} high: pass ({width}, {height})"
        )
    return height, width


def check_integer(name: str, value: Any, low: int, high: int) -> None:
    """Reject a value that is not a whole number within bounds.

    Raises:
        ConfigError: naming the argument, the bounds and the value.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not low <= value <= high:
        raise ConfigError(f"{name}: expected a whole number from {low} to {high}, got {shortened(value)}")


def _check_number(name: str, value: Any, low: float, high: float) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:  # a whole number too large for a float
        number = math.inf
    if not math.isfinite(number) or not low <= number <= high:
        limits = f"number from {low:g} to {high:g}" if math.isfinite(high) else "finite number"
        raise ConfigError(f"{name}: expected a {limits}, got {shortened(value)}")
