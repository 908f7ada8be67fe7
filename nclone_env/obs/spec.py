"""The table of observations: name, shape, dtype and bounds. Spaces, buffers and documentation derive from it.

To add one: a name in ``config.ObservationName``, its arrays in :func:`frame_specs`, a field for each in
``env.observe.ExtraArrays`` with a writer called there, and a row in ``docs/observations.md``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.constants import ENTITY_NAMES
from nclone_env.level.level_set import LevelSet
from nclone_env.level.routes.graph import NO_NODE


@dataclass(frozen=True)
class ObservationSpec:
    """One array of an observation: ``low`` and ``high`` bound every element; ``stacks``: whether it can be stacked."""

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
    Feature("vx", -1, 1, "horizontal speed / 8 pixels per frame, clipped"),
    Feature("vy", -1, 1, "vertical speed / 8 pixels per frame, clipped; positive is down"),
    Feature("airborne", 0, 1, "1 in the air"),
    Feature("wall", -1, 1, "normal of the touched wall: 1 wall on the left, -1 on the right, 0 none"),
    Feature("jumping", 0, 1, "1 while a jump rises with low gravity"),
    Feature("wall_sliding", 0, 1, "1 while sliding on a wall"),
    Feature("floor_x", -1, 1, "x of the last floor normal"),
    Feature("floor_y", -1, 1, "y of the last floor normal, -1 on flat ground"),
    Feature("jump_time", 0, 1, "frames the jump has been held / 45, 0 when not jumping"),
    Feature("jump_held", 0, 1, "1 if jump was pressed in the last frame"),
    Feature("floor_jump_left", 0, 1, "share of the frames left in which a floor jump still counts"),
    Feature("wall_jump_left", 0, 1, "share of the frames left in which a wall jump still counts"),
    Feature("switch_taken", 0, 1, "1 once an exit is open"),
    Feature("objective_x", -1, 1, "horizontal distance to the switch or exit / 528 pixels, clipped"),
    Feature("objective_y", -1, 1, "vertical distance to the switch or exit / 300 pixels, clipped"),
    Feature("way_left", 0, 1, "length of the way still to go / whole way from the start, clipped; 1 if there is none"),
    Feature("way_x", -1, 1, "x of the direction of the way's next 36 pixels"),
    Feature("way_y", -1, 1, "y of the direction of the way's next 36 pixels"),
    Feature("ahead_x", -1, 1, "x of the direction to the place 120 pixels on along the way"),
    Feature("ahead_y", -1, 1, "y of the direction to the place 120 pixels on along the way"),
    Feature("mine_x", -1, 1, "horizontal distance to the nearest armed mine / 96 pixels, 0 if none is that near"),
    Feature("mine_y", -1, 1, "vertical distance to the nearest armed mine / 96 pixels, 0 if none is that near"),
    Feature("mine_near", 0, 1, "1 touching the nearest armed mine to 0 at 96 pixels or more"),
    Feature("room_left", 0, 1, "free way to the left / 96 pixels, clipped"),
    Feature("room_right", 0, 1, "free way to the right / 96 pixels, clipped"),
    Feature("room_up", 0, 1, "free way upwards / 96 pixels, clipped"),
    Feature("room_down", 0, 1, "free way downwards / 96 pixels, clipped"),
    Feature("time_left", 0, 1, "share of the frames left before the episode is truncated"),
)
"""The 30 elements of ``game_state``, in order."""


ENTITY_STATE = (
    Feature("x", -1, 1, "entity to the right of the ninja by so much / 528 pixels, clipped"),
    Feature("y", -1, 1, "entity below the ninja by so much / 528 pixels, clipped"),
    Feature("vx", -1, 1, "horizontal speed / 8 pixels per frame, clipped"),
    Feature("vy", -1, 1, "vertical speed / 8 pixels per frame, clipped; positive is down"),
    Feature("facing_x", -1, 1, "x of the direction it faces, charges, flies, or shoots in; 0 if none"),
    Feature("facing_y", -1, 1, "y of that direction"),
    Feature("radius", 0, 1, "radius, or half side, / 24 pixels"),
    Feature("phase", 0, 1, "0 at rest, 0.5 getting ready or on the way back, 1 active"),
    Feature("deadly", 0, 1, "1 if touching it, or a side of it, kills now"),
    Feature("shoots", 0, 1, "1 if it can kill from afar"),
    Feature("solid", 0, 1, "1 if it is in the way now, from one side at least"),
    Feature("collectable", 0, 1, "1 if touching it takes it: gold and switches"),
)
"""The 12 elements of a row of ``entity_states``, in order; phases by kind: ``obs.entity_facts``."""


REACHABILITY = (
    Feature("switch_left", 0, 1, "1 while an exit switch is untaken"),
    Feature("switch_reachable", 0, 1, "1 if there is a way to an untaken switch"),
    Feature("switch_distance", 0, 1, "length d of the way to the nearest: d / (d + 528 pixels); 1 if there is none"),
    Feature("switch_x", -1, 1, "x of the direction of that way's next 36 pixels; 0 if there is none"),
    Feature("switch_y", -1, 1, "y of that direction"),
    Feature("exit_open", 0, 1, "1 once an exit is open"),
    Feature("exit_reachable", 0, 1, "1 if there is a way to an open exit, or to any while none is open"),
    Feature("exit_distance", 0, 1, "length d of the way to the nearest: d / (d + 528 pixels); 1 if there is none"),
    Feature("exit_x", -1, 1, "x of the direction of that way's next 36 pixels; 0 if there is none"),
    Feature("exit_y", -1, 1, "y of that direction"),
    Feature("area", 0, 1, "share of the level's free space that there is a way to; 0 outside of free space"),
)
"""The 11 elements of ``reachability``, in order."""


def observation_specs(config: EnvironmentConfig, levels: LevelSet | None = None) -> tuple[ObservationSpec, ...]:
    """Return the specs of the arrays an agent gets, in the order of the configuration.

    Args:
        config: what is observed.
        levels: what is played, which sizes of ``graph`` depend on; they are 0 if None.
    """
    depth = config.observation.frame_stack
    return tuple(
        dataclasses.replace(spec, shape=(depth, *spec.shape)) if depth > 1 and spec.stacks else spec
        for spec in frame_specs(config, levels)
    )


def frame_specs(config: EnvironmentConfig, levels: LevelSet | None = None) -> tuple[ObservationSpec, ...]:
    """Return the specs of the arrays of one moment, unstacked: what the writers write."""
    last_level, most_there = (len(levels.levels) - 1, levels.max_entities) if levels else (0, 0)
    side, whole, sizes = config.render.player_frame_size, config.render.global_view_size, config.observation
    most, window = sizes.max_entities, (sizes.locals_size, sizes.locals_size)
    vector, uint8, int8 = np.dtype(sizes.dtype), np.dtype(np.uint8), np.dtype(np.int8)
    int32 = np.dtype(np.int32)
    rows = (most, len(ENTITY_STATE))
    table = {
        "game_state": (
            ObservationSpec("game_state", (len(GAME_STATE),), vector, -1, 1, "the ninja, its objective, what is near"),
        ),
        "player_frame": (ObservationSpec("player_frame", (side, side, 1), uint8, 0, 255, "grey, around the ninja"),),
        "global_view": (ObservationSpec("global_view", (*whole, 1), uint8, 0, 255, "grey, the whole level"),),
        "entity_states": (
            ObservationSpec("entity_states", rows, vector, -1, 1, "the nearest entities, nearest first, then zeros"),
            ObservationSpec("entity_kinds", (most,), uint8, 0, len(ENTITY_NAMES) - 1, "type of each, 0 where none"),
            ObservationSpec("entity_count", (1,), uint8, 0, most, "how many are listed"),
        ),
        "locals": (ObservationSpec("locals", window, uint8, 0, 255, "solid share of squares around the ninja"),),
        "reachability": (
            ObservationSpec("reachability", (len(REACHABILITY),), vector, -1, 1, "ways, with the doors as they are"),
        ),
        "graph": (
            ObservationSpec("graph_level", (1,), int32, 0, last_level, "which of ``graphs`` it is", stacks=False),
            ObservationSpec("graph_node", (1,), int32, NO_NODE, 32767, "where the ninja is, or -1", stacks=False),
            ObservationSpec("graph_entities", (most_there,), uint8, 0, 3, "1 there, + 2 its door shut", stacks=False),
        ),
        "action_mask": (
            ObservationSpec("action_mask", (6,), int8, 0, 1, "0 where a lower action does the same", stacks=False),
        ),
    }
    return tuple(spec for name in config.observations for spec in table[name])
