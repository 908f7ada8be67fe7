"""One frame of one world, and the start of a world (physics 01, sections 4 and 5)."""

from __future__ import annotations

from nclone_env.constants import (
    DEAD,
    DISABLED,
    FALL_GRAVITY,
    INPUT_JUMP,
    INPUT_LEFT,
    INPUT_RIGHT,
    INPUT_SUICIDE,
    REGULAR_DRAG,
)
from nclone_env.jit import kernel, local_f64
from nclone_env.sim.actors import move_entities, start_entities, think_entities
from nclone_env.sim.contacts import CONTACT_SLOTS
from nclone_env.sim.life import kill
from nclone_env.sim.ninja_move import collide, integrate, settle
from nclone_env.sim.ninja_think import think, turn
from nclone_env.sim.touch import NEAR_SLOTS, clear_near, visit


@kernel
def tick(levels, worlds, index, inputs):
    """Advance one world by one frame.

    Args:
        levels: ``LevelArrays``.
        worlds: ``WorldArrays``, changed in place.
        index: world.
        inputs: input byte, 0..15: jump 1, right 2, left 4 (left wins), suicide 8 (physics 01, section 14.4).
    """
    ninja = worlds.ninjas[index]
    ninja["frame"] += 1
    jump = inputs & INPUT_JUMP
    direction = 0
    if inputs & INPUT_LEFT:
        direction = -1
    elif inputs & INPUT_RIGHT:
        direction = 1
    header = levels.header[ninja["level"]]
    if header["run_count"] > 0:
        move_entities(levels, worlds, index)
        think_entities(levels, worlds, index)
    if ninja["state"] != DEAD and ninja["state"] != DISABLED:
        play(levels, worlds, index)
    think(ninja, direction, jump)
    turn(ninja, direction)
    if inputs & INPUT_SUICIDE:  # at the very end of the frame; dead one frame later (physics 03, section 5)
        kill(ninja)


@kernel
def play(levels, worlds, index):
    """Move a living ninja and settle its contacts."""
    ninja = worlds.ninjas[index]
    contacts, near = local_f64(CONTACT_SLOTS), local_f64(NEAR_SLOTS)
    clear_near(near)
    x0, y0 = ninja["x"], ninja["y"]
    integrate(ninja)
    impact_vx, impact_vy = ninja["vx"], ninja["vy"]
    collide(levels, worlds, index, near, contacts, x0, y0)
    visit(levels, worlds, index, near, contacts, x0, y0, False)
    settle(levels, worlds, index, contacts, impact_vx, impact_vy)


@kernel
def start(levels, worlds, index, level):
    """Put a world at the start of a level.

    Args:
        levels: ``LevelArrays``.
        worlds: ``WorldArrays``, changed in place.
        index: world.
        level: index of the level in ``levels``.
    """
    header = levels.header[level]
    ninja = worlds.ninjas[index]
    ninja["x"], ninja["y"] = header["spawn_x"], header["spawn_y"]
    ninja["vx"], ninja["vy"] = 0.0, 0.0
    ninja["gravity"], ninja["drag"] = FALL_GRAVITY, REGULAR_DRAG
    ninja["floor_x"], ninja["floor_y"] = 0.0, -1.0
    ninja["wall_normal"] = 0.0
    ninja["pad_x"], ninja["pad_y"] = 0.0, 0.0
    ninja["finish_fraction"] = 0.0
    ninja["frame"], ninja["level"], ninja["gold"] = 0, level, 0
    ninja["state"], ninja["airborne"], ninja["walled"], ninja["facing"] = 0, 0, 0, 1
    ninja["jump_held"], ninja["jump_duration"] = 0, 0
    ninja["jump_buffer"], ninja["floor_buffer"] = -1, -1
    ninja["wall_buffer"], ninja["pad_buffer"] = -1, -1
    start_entities(levels, worlds, index)
