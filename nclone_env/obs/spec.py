"""The table of observations: name, shape, dtype and bounds. Spaces, buffers and documentation derive from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nclone_env.config import EnvironmentConfig


@dataclass(frozen=True)
class ObservationSpec:
    """One observation: ``low`` and ``high`` bound every element."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    low: float
    high: float
    meaning: str


@dataclass(frozen=True)
class Feature:
    """One element of ``game_state``."""

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


def observation_specs(config: EnvironmentConfig) -> tuple[ObservationSpec, ...]:
    """Return the specs of the configured observations, in the order of the configuration."""
    side, whole = config.render.player_frame_size, config.render.global_view_size
    float32, uint8 = np.dtype(np.float32), np.dtype(np.uint8)
    table = {
        spec.name: spec
        for spec in (
            ObservationSpec("game_state", (len(GAME_STATE),), float32, -1, 1, "the ninja, its objective, what is near"),
            ObservationSpec("player_frame", (side, side, 1), uint8, 0, 255, "grey picture around the ninja"),
            ObservationSpec("global_view", (*whole, 1), uint8, 0, 255, "grey picture of the whole level"),
        )
    }
    return tuple(table[name] for name in config.observations)
