"""Configuration of environments: frozen dataclasses with a docstring per field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from nclone_env.errors import ConfigError, Within, check_integer, shortened
from nclone_env.game import FRAMES_PER_SECOND, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.options import Suggesting, build, check, group, option, rejects_unknown, replace, several

ObservationName = Literal[
    "game_state",
    "player_frame",
    "global_view",
    "entity_states",
    "locals",
    "reachability",
    "free_motion",
    "action_outcomes",
    "graph",
    "action_mask",
]
OBSERVATION_NAMES: tuple[ObservationName, ...] = get_args(ObservationName)
_OF_SEVERAL_ARRAYS = ("entity_states", "graph")
DEFAULT_OBSERVATIONS: tuple[ObservationName, ...] = ("game_state", "player_frame", "global_view")
VectorDtype = Literal["float32", "float16"]
MOST_LISTED_ENTITIES = 128
"""Largest ``max_entities``: kernels keep that many on their stack."""
PathsName = Literal["tiles", "doors"]
ActionSpaceName = Literal["discrete", "multi_discrete"]
RenderMode = Literal["rgb_array", "human"]
Theme = Literal["light", "dark"]
_SHOWN = 128.0  # world pixels that a ``player_frame`` of any size shows


@rejects_unknown
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
    gamma: Annotated[float, Within(0, 1)] = 0.995
    """Discount factor per step, for the shaping term and the trainer."""

    def __post_init__(self) -> None:
        """Reject values out of range."""
        check(self)


@rejects_unknown
@dataclass(frozen=True)
class RenderConfig:
    """Sizes of the pictures. A pixel of a reduced picture is the average over its area."""

    player_frame_size: Annotated[int, Within(16, 512)] = option(128, alias="picture_size", fixed="policy")
    """Side of the square ``player_frame`` in pixels."""
    player_frame_scale: Annotated[float, Within(1, 16)] | None = option(None, fixed="policy", on_command_line=False)
    """Side of a pixel of ``player_frame`` in world pixels: 2 shows twice as far with the same bytes. None: every size
    below 128 shows the same 128 world pixels."""
    global_view_size: tuple[int, int] | None = option(None, fixed="policy", on_command_line=False)
    """Height and width of ``global_view`` in pixels; it shows the whole world, 600 x 1056 world pixels. None: as high
    as ``player_frame`` and twice as wide."""
    picture_scale: Annotated[float, Within(0.1, 4)] = option(1.0, on_command_line=False)
    """Scale of the ``rgb_array`` and ``human`` picture; 1 is 1056 x 600 pixels."""
    crop: bool = option(False, on_command_line=False)
    """Show only the part of the world that the levels use, and a tile of wall around it; all levels of an environment
    have pictures of one size."""
    theme: Theme = option("light", on_command_line=False)
    """Colours of the ``rgb_array`` and ``human`` picture: ``light`` or ``dark``."""

    def __post_init__(self) -> None:
        """Reject sizes that cannot be drawn, or that are surely a mistake."""
        check(self)
        if self.global_view_size is not None:
            object.__setattr__(self, "global_view_size", _checked_view(self.global_view_size))
        size = self.player_frame_size
        shown = size * self.pixel_side
        if shown > 2 * WORLD_WIDTH:
            raise ConfigError(
                f"player_frame_scale: expected at most {2 * WORLD_WIDTH / size:.4g} for a player_frame_size of {size}, "
                f"got {self.player_frame_scale!r}, which shows {shown:.0f} world pixels around the ninja; the world is "
                f"{WORLD_WIDTH} wide: choose a smaller scale or size, or observe global_view"
            )

    @property
    def pixel_side(self) -> float:
        """Side of a pixel of ``player_frame`` in world pixels."""
        scale = self.player_frame_scale
        return max(1.0, _SHOWN / self.player_frame_size) if scale is None else scale

    @property
    def view_shape(self) -> tuple[int, int]:
        """Height and width of ``global_view`` in pixels."""
        return self.global_view_size or (self.player_frame_size, 2 * self.player_frame_size)


@rejects_unknown
@dataclass(frozen=True)
class ObservationConfig:
    """Options of the observations named in ``EnvironmentConfig.observations``."""

    dtype: VectorDtype = option("float32", alias="vector_dtype")
    """Dtype of all feature vectors; ``float16`` is the float32 value rounded to nearest, ties to even."""
    frame_stack: Annotated[int, Within(1, 64)] = option(1, fixed="policy")
    """Number of stacked observations, oldest first, on a new first axis of every array that stacks; 1: no stack."""
    max_entities: Annotated[int, Within(1, MOST_LISTED_ENTITIES)] = option(32, fixed="policy")
    """Rows of ``entity_states``: the number of nearest entities listed."""
    local_position: bool = option(False, fixed="policy")
    """Give ``x`` and ``y`` of ``game_state`` within the tile of the ninja, the way to the objective only as far as it
    is near, and no remaining time. A policy cannot tell levels apart then, and what it learns applies to others."""
    locals_size: Annotated[int, Within(1, 99)] = option(21, fixed="policy")
    """Side of ``locals`` in squares of 12 pixels; odd, so that one square is in the middle. Fewer carry over better to
    levels not trained on."""
    locals_planes: Annotated[int, Within(1, 3)] = option(1, fixed="policy")
    """Planes of ``locals``, 1 to 3: what is solid; where the ninja would touch something deadly; how much nearer to the
    objective each square is."""
    outcome_frames: Annotated[int, Within(3, 600)] = option(60, fixed="policy")
    """Frames for which ``free_motion`` and ``action_outcomes`` hold each action, 3 to 600; the time is proportional."""

    def __post_init__(self) -> None:
        """Reject sizes out of range."""
        check(self)
        if self.locals_size % 2 == 0:
            raise ConfigError(f"locals_size: expected an odd number, got {self.locals_size}")


@rejects_unknown
@dataclass(frozen=True)
class EnvironmentConfig(metaclass=Suggesting):
    """Everything that defines an environment, single or vectorised."""

    levels: tuple[Any, ...] = option(("first-steps",), fixed="run")
    """Built-in sets or levels by name, files or packs by path, map bytes, or loaded levels; an episode plays one."""
    mirrored: bool = option(False, fixed="run")
    """Also play the mirror image of each level, with left and right exchanged."""
    observations: tuple[ObservationName, ...] = option(DEFAULT_OBSERVATIONS, fixed="policy")
    """Names of the observations, from ``OBSERVATION_NAMES``; the others cost nothing."""
    dict_observations: bool = option(True, on_command_line=False)
    """Return observations as a dict of arrays by name. False: return the array of the only observation, with a Box as
    its space; a stack of pictures then has its frames in place of the channel, (k, height, width)."""
    action_space: ActionSpaceName = option("discrete", on_command_line=False)
    """``discrete``: 3 * jump + direction; ``multi_discrete``: [direction, jump]. Directions: none, left, right."""
    frame_skip: Annotated[int, Within(1, 60)] = 4
    """Frames simulated per step with the same action; fewer when the episode ends."""
    action_repeat_probability: Annotated[float, Within(0, 1)] = 0.0
    """Probability with which a step repeats the action of the step before, as sticky actions of Atari do: with 0.25 no
    list of actions learned by heart wins. It is drawn from the seed of the environment; the first step of an episode
    repeats none."""
    max_frames: Annotated[int, Within(1, 1_000_000)] = 5400
    """Frames after which an episode is truncated (60 per second)."""
    paths: PathsName = option("tiles", fixed="policy")
    """Paths that the shaping reward and ``game_state`` follow. ``tiles``: to a switch and its exit, through doors;
    ``doors``: also to the switches of the locked doors on the way, in order, with the doors closed until then."""
    reward: RewardConfig = group(RewardConfig, named=True)
    """Weights of the reward."""
    observation: ObservationConfig = group(ObservationConfig)
    """Options of the observations: dtype, stack and sizes."""
    render: RenderConfig = group(RenderConfig)
    """Sizes of the pictures."""
    render_mode: RenderMode | None = option(None, on_command_line=False)
    """Behaviour of ``render()``: ``rgb_array`` returns a picture, ``human`` shows a window."""

    def __post_init__(self) -> None:
        """Normalise sequences to tuples and reject values out of range."""
        check(self)
        if not self.levels:
            raise ConfigError(
                "levels: expected at least one level, got none; name a set, a level or a file (an iterator serves once)"
            )
        if not self.observations or len(set(self.observations)) != len(self.observations):
            raise ConfigError(
                f"observations: expected one or more different names out of {', '.join(OBSERVATION_NAMES)}, "
                f"got {shortened(self.observations, 200)}"
            )
        if not self.dict_observations and (len(self.observations) > 1 or self.observations[0] in _OF_SEVERAL_ARRAYS):
            raise ConfigError(
                f"observations: expected one name of a single array with dict_observations=False, such as "
                f"'game_state', got {shortened(self.observations, 200)}; name one, or set dict_observations=True"
            )

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
        return replace(self, fields, "environment")

    @classmethod
    def for_parallel_training(cls, **fields: Any) -> EnvironmentConfig:
        """Return the preset for training in many environments: the state vector alone, episodes of 1,200 frames."""
        return build(cls, {"observations": ("game_state",), "max_frames": 1200, **fields})


def config_from(config: EnvironmentConfig | None, fields: Mapping[str, Any]) -> EnvironmentConfig:
    """Return a configuration with some fields replaced; the defaults with these fields if it is None."""
    if config is None:
        return build(EnvironmentConfig, fields, "environment")
    if not isinstance(config, EnvironmentConfig):
        fix = f"pass keyword arguments ({'num_envs' if isinstance(config, int) else 'levels'}=...)"
        raise ConfigError(f"config: expected an EnvironmentConfig, got {shortened(config)}; {fix}")
    return config.replace(**fields)


def _checked_view(size: Any) -> tuple[int, int]:
    """Return the height and width of ``global_view`` as a tuple."""
    sides = several(size)
    if len(sides) != 2:
        raise ConfigError(f"global_view_size: expected height and width, for example (128, 256), got {shortened(size)}")
    height = check_integer("global_view_size[0], the height", sides[0], low=16, high=WORLD_HEIGHT)
    width = check_integer("global_view_size[1], the width", sides[1], low=16, high=WORLD_WIDTH)
    if height > width:
        raise ConfigError(
            f"global_view_size: expected the height, then the width, of a picture no higher than wide, "
            f"got {shortened(size)}; the world is {WORLD_WIDTH} wide and {WORLD_HEIGHT} high: pass ({width}, {height})"
        )
    return height, width
