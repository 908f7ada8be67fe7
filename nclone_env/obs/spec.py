"""The table of observations: name, shape, dtype and bounds. Spaces, buffers and documentation derive from it.

To add an observation: a name in ``config.ObservationName``, its arrays in :func:`frame_specs`, a kernel that writes a
row, called in ``obs.rows.write_extras``, and a row in ``docs/environments/observations.md``. Kernels get vectors as
16-bit words and write them by ``obs.half.write_vector``.
"""

import dataclasses
from collections import namedtuple
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from nclone_env.config import EnvironmentConfig, ObservationConfig, RenderConfig
from nclone_env.game import KINDS, NUM_ACTIONS
from nclone_env.level import NO_NODE, LevelSet


@dataclass(frozen=True)
class ObservationSpec:
    """One array of an observation; ``low`` and ``high`` bound every element, ``stacks`` says whether it is stacked."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    low: float
    high: float
    meaning: str
    stacks: bool = True


@dataclass(frozen=True)
class Feature:
    """One element of a vector."""

    name: str
    low: float
    high: float
    meaning: str


GAME_STATE = (
    Feature("x", -1, 1, "position across the world, -1 left to 1 right"),
    Feature("y", -1, 1, "position down the world, -1 top to 1 bottom"),
    Feature("vx", -1, 1, "horizontal velocity / 8 pixels per frame, clipped"),
    Feature("vy", -1, 1, "vertical velocity / 8 pixels per frame, clipped; positive is down"),
    Feature("airborne", 0, 1, "1 in the air"),
    Feature("wall_normal", -1, 1, "normal of the touched wall: 1 wall on the left, -1 on the right, 0 none"),
    Feature("jumping", 0, 1, "1 while a jump rises with reduced gravity"),
    Feature("wall_sliding", 0, 1, "1 while sliding on a wall"),
    Feature("floor_normal_x", -1, 1, "x of the last floor normal"),
    Feature("floor_normal_y", -1, 1, "y of the last floor normal, -1 on flat ground"),
    Feature("jump_duration", 0, 1, "frames for which the jump has been held / 45, 0 when not jumping"),
    Feature("jump_held", 0, 1, "1 if jump was pressed in the last frame"),
    Feature("floor_jump_buffer", 0, 1, "remaining share of the 5 frames in which a floor jump is still possible"),
    Feature("wall_jump_buffer", 0, 1, "remaining share of the 5 frames in which a wall jump is still possible"),
    Feature("exit_open", 0, 1, "1 once an exit is open"),
    Feature("objective_x", -1, 1, "horizontal offset of the objective / 528 pixels, clipped"),
    Feature("objective_y", -1, 1, "vertical offset of the objective / 300 pixels, clipped"),
    Feature("path_remaining", 0, 1, "remaining path length / initial path length, clipped; 1 without a path"),
    Feature("path_direction_x", -1, 1, "x of the direction of the next 36 pixels of the path"),
    Feature("path_direction_y", -1, 1, "y of the direction of the next 36 pixels of the path"),
    Feature("lookahead_x", -1, 1, "x of the direction to the point 120 pixels ahead on the path"),
    Feature("lookahead_y", -1, 1, "y of the direction to the point 120 pixels ahead on the path"),
    Feature("mine_x", -1, 1, "horizontal offset of the nearest armed mine / 96 pixels, 0 if none is in range"),
    Feature("mine_y", -1, 1, "vertical offset of the nearest armed mine / 96 pixels, 0 if none is in range"),
    Feature("mine_proximity", 0, 1, "1 touching the nearest armed mine, falling to 0 at 96 pixels"),
    Feature("clearance_left", 0, 1, "free distance to the left / 96 pixels, clipped"),
    Feature("clearance_right", 0, 1, "free distance to the right / 96 pixels, clipped"),
    Feature("clearance_up", 0, 1, "free distance upwards / 96 pixels, clipped"),
    Feature("clearance_down", 0, 1, "free distance downwards / 96 pixels, clipped"),
    Feature("time_remaining", 0, 1, "remaining share of the frames before the episode is truncated"),
)
"""The 30 elements of ``game_state``, in order."""


ENTITY_STATE = (
    Feature("relative_x", -1, 1, "horizontal offset from the ninja / 528 pixels, clipped; positive is right"),
    Feature("relative_y", -1, 1, "vertical offset from the ninja / 528 pixels, clipped; positive is down"),
    Feature("vx", -1, 1, "horizontal velocity / 8 pixels per frame, clipped"),
    Feature("vy", -1, 1, "vertical velocity / 8 pixels per frame, clipped; positive is down"),
    Feature("facing_x", -1, 1, "x of the direction in which it faces, charges, flies or shoots; 0 if none"),
    Feature("facing_y", -1, 1, "y of that direction"),
    Feature("radius", 0, 1, "radius, or half side, / 24 pixels"),
    Feature("phase", 0, 1, "0 idle, 0.5 preparing or returning, 1 active"),
    Feature("deadly", 0, 1, "1 if touching it, or one side of it, kills now"),
    Feature("shoots", 0, 1, "1 if it can kill from a distance"),
    Feature("solid", 0, 1, "1 if it blocks movement now, from at least one side"),
    Feature("collectable", 0, 1, "1 if touching it collects it: gold and switches"),
)
"""The 12 elements of a row of ``entity_states``, in order; phases by kind: ``obs.entity_states``."""


REACHABILITY = (
    Feature("switch_remaining", 0, 1, "1 while an exit switch is uncollected"),
    Feature("switch_reachable", 0, 1, "1 if there is a path to an uncollected switch"),
    Feature("switch_distance", 0, 1, "path length d to the nearest: d / (d + 528 pixels); 1 without a path"),
    Feature("switch_direction_x", -1, 1, "x of the direction of the next 36 pixels of that path; 0 without one"),
    Feature("switch_direction_y", -1, 1, "y of that direction"),
    Feature("exit_open", 0, 1, "1 once an exit is open"),
    Feature("exit_reachable", 0, 1, "1 if there is a path to an open exit, or to any exit while none is open"),
    Feature("exit_distance", 0, 1, "path length d to the nearest: d / (d + 528 pixels); 1 without a path"),
    Feature("exit_direction_x", -1, 1, "x of the direction of the next 36 pixels of that path; 0 without one"),
    Feature("exit_direction_y", -1, 1, "y of that direction"),
    Feature("reachable_area", 0, 1, "reachable share of the level's free space; 0 outside of free space"),
)
"""The 11 elements of ``reachability``, in order."""


_DISPLACEMENTS = (  # of an action
    Feature("early_x", -1, 1, "horizontal displacement after a third of the frames / top speed, clipped"),
    Feature("early_y", -1, 1, "vertical displacement after a third of the frames / top speed, clipped"),
    Feature("early_progress", -1, 1, "how much shorter the path to the exit is by then / top speed, clipped"),
    Feature("late_x", -1, 1, "horizontal displacement after all frames / top speed, clipped"),
    Feature("late_y", -1, 1, "vertical displacement after all frames / top speed, clipped"),
    Feature("late_progress", -1, 1, "how much shorter the path to the exit is by then / top speed, clipped"),
)

FREE_MOTION = (
    Feature("death", 0, 1, "share of the frames that are left when it meets something deadly or a floor too fast"),
    Feature("arrival", 0, 1, "share of the frames that are left when it meets the objective, 0 if it does not"),
    Feature("contact", 0, 1, "share of the frames that are left when it first meets a wall, 0 if it does not"),
    Feature("landing", 0, 1, "1 if that is a floor, met from the air"),
    *_DISPLACEMENTS,
)
"""The 10 elements of a row of ``free_motion``, in order."""


ACTION_OUTCOME = (
    Feature("death", 0, 1, "share of the frames that are left when the ninja dies; 1 in the first, 0 if it lives"),
    Feature("completion", 0, 1, "share of the frames that are left when it reaches the exit, 0 if it does not"),
    *_DISPLACEMENTS,
)
"""The 8 elements of a row of ``action_outcomes``, in order."""


_PICTURES = ("player_frame", "global_view")
_ARRAYS = {
    "entity_states": ("entity_states", "entity_kinds", "entity_count"),
    "graph": ("graph_level", "graph_node", "graph_entities"),
}
"""Arrays of the observations that have several."""


def columns(features: tuple[Feature, ...]) -> Any:
    """Return a named tuple: for each feature by its name, its place in the vector."""
    return namedtuple("Columns", [feature.name for feature in features])(*range(len(features)))


def observation_specs(config: EnvironmentConfig, levels: LevelSet | None = None) -> tuple[ObservationSpec, ...]:
    """Return the specs of the arrays an agent gets, in the order of the configuration.

    The levels determine the sizes of ``graph``; these are 0 if it is None.
    """
    depth, specs = config.observation.frame_stack, frame_specs(config, levels)
    if depth == 1:
        return specs
    return tuple(_stacked(spec, depth, config.dict_observations) if spec.stacks else spec for spec in specs)


def _stacked(spec: ObservationSpec, depth: int, with_channel: bool) -> ObservationSpec:
    """Return the spec of a stack; without a channel, frames take its place in pictures, as networks expect."""
    shape = spec.shape[:-1] if spec.name in _PICTURES and not with_channel else spec.shape
    return dataclasses.replace(spec, shape=(depth, *shape))


def frame_specs(config: EnvironmentConfig, levels: LevelSet | None = None) -> tuple[ObservationSpec, ...]:
    """Return the specs of the arrays of a single time step, unstacked, as the kernels write them."""
    last_level, entity_count = (len(levels.levels) - 1, levels.max_entities) if levels else (0, 0)
    return _frame_specs(config.observations, config.render, config.observation, last_level, entity_count)


@lru_cache(maxsize=64)
def _frame_specs(
    names: tuple[str, ...], render: RenderConfig, sizes: ObservationConfig, last_level: int, entity_count: int
) -> tuple[ObservationSpec, ...]:
    side, most, spec = render.player_frame_size, sizes.max_entities, ObservationSpec
    window = (sizes.locals_size, sizes.locals_size)
    planes = (sizes.locals_planes, *window) if sizes.locals_planes > 1 else window
    vector, int32 = np.dtype(sizes.dtype), np.dtype(np.int32)
    uint8, int8 = np.dtype(np.uint8), np.dtype(np.int8)
    rows, motions = (most, len(ENTITY_STATE)), (NUM_ACTIONS, len(FREE_MOTION))
    outcomes = (NUM_ACTIONS, len(ACTION_OUTCOME))
    arrays = (
        spec("game_state", (len(GAME_STATE),), vector, -1, 1, "ninja, objective and surroundings"),
        spec("player_frame", (side, side, 1), uint8, 0, 255, "greyscale around the ninja"),
        spec("global_view", (*render.view_shape, 1), uint8, 0, 255, "greyscale, the whole level"),
        spec("entity_states", rows, vector, -1, 1, "the nearest entities, nearest first, then zeros"),
        spec("entity_kinds", (most,), uint8, 0, len(KINDS) - 1, "kind of each row, 0 for none"),
        spec("entity_count", (1,), uint8, 0, most, "number of rows in use"),
        spec("locals", planes, uint8, 0, 255, "occupancy grid around the ninja"),
        spec("reachability", (len(REACHABILITY),), vector, -1, 1, "paths with the current door states"),
        spec("free_motion", motions, vector, -1, 1, "where each action leads by the ninja's own motion"),
        spec("action_outcomes", outcomes, vector, -1, 1, "where each action leads if it is held"),
        spec("graph_level", (1,), int32, 0, last_level, "index in ``graphs``", stacks=False),
        spec("graph_node", (1,), int32, NO_NODE, 32767, "node of the ninja, or -1", stacks=False),
        spec("graph_entities", (entity_count,), uint8, 0, 3, "1 present, + 2 door closed", stacks=False),
        spec("action_mask", (NUM_ACTIONS,), int8, 0, 1, "0 if equal to a lower action", stacks=False),
    )
    table = {array.name: array for array in arrays}
    return tuple(table[array] for name in names for array in _ARRAYS.get(name, (name,)))
