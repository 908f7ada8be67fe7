"""What happens to the ninja in a frame, and its decisions: timers, inputs, jumps and the state machine.

Contacts are a scratch row of numbers, filled by tiles and entities alike (physics 01, sections 8 and 9). Sections are
those of physics 01.
"""

import math

from nclone_env.game import (
    AIR_ACCELERATION,
    CELEBRATING,
    DEAD,
    DISABLED,
    DYING,
    FALL_GRAVITY,
    FALLING,
    GROUND_ACCELERATION,
    GROUND_FRICTION,
    IMMOBILE,
    JUMP_GRAVITY,
    JUMPING,
    MAX_HORIZONTAL_SPEED,
    MAX_JUMP_DURATION,
    RADIUS,
    REGULAR_DRAG,
    RUNNING,
    SLIDING,
    SLOW_DRAG,
    SLOW_GROUND_FRICTION,
    WALL_FRICTION,
    WALL_SLIDING,
)
from nclone_env.jit import kernel
from nclone_env.sim.geometry import discs_overlap

# Slots: number of floors and sum of their normals, the same for ceilings; sum of all pushes, sum of their lengths and
# whether a thwump took part; the wall normal that an entity reports.
FLOORS, FLOOR_X, FLOOR_Y, CEILINGS, CEILING_X, CEILING_Y = range(6)
CRUSH_X, CRUSH_Y, CRUSH_LENGTH, CRUSHABLE, WALL = range(6, 11)
CONTACT_SLOTS = 11

_LEVEL_Y = -0.0001  # normals with at least this y count as ceilings, vertical walls included


@kernel
def add_contact(contacts, nx, ny, steepness):
    """Count a contact normal as a floor or a ceiling; vertical walls are ceilings (physics 01, section 8.2, step 9)."""
    if steepness >= _LEVEL_Y:
        contacts[CEILINGS] += 1.0
        contacts[CEILING_X] += nx
        contacts[CEILING_Y] += ny
    else:
        contacts[FLOORS] += 1.0
        contacts[FLOOR_X] += nx
        contacts[FLOOR_Y] += ny


@kernel
def add_crush(contacts, push_x, push_y, length):
    """Add a push to those that may crush the ninja (physics 01, sections 7 and 8.2)."""
    contacts[CRUSH_X] += push_x
    contacts[CRUSH_Y] += push_y
    contacts[CRUSH_LENGTH] += length


@kernel
def is_targetable(ninja):
    """Return whether entities can act on the ninja; one killed earlier in the frame still counts (section 12.1)."""
    state = ninja["state"]
    return state != DEAD and state != CELEBRATING and state != DISABLED


@kernel
def touches(ninja, x, y, radius):
    """Return whether the ninja overlaps a disc around (x, y) (section 3.11)."""
    return discs_overlap(x, y, ninja["x"], ninja["y"], radius + RADIUS)


@kernel
def meets(ninja, x, y, radius):
    """Return whether a targetable ninja overlaps a disc around (x, y)."""
    return is_targetable(ninja) and touches(ninja, x, y, radius)


@kernel
def kill(ninja):
    """Kill the ninja unless it is dead, dying or has won (section 12.2)."""
    leave_play(ninja, DYING)


@kernel
def win(ninja):
    """Let the ninja win unless it is dead, dying or has won already (section 12.4)."""
    leave_play(ninja, CELEBRATING)


@kernel
def leave_play(ninja, state):
    """Enter a final state unless the ninja is in one already; a jump in progress ends."""
    if ninja["state"] < DEAD:
        if ninja["state"] == JUMPING:
            ninja["gravity"] = FALL_GRAVITY
        ninja["state"] = state


@kernel
def think(ninja, direction, jump):
    """Advance the timers and let the ninja act on its inputs (sections 11.1 and 11.2).

    ``direction`` is -1 left, 0 none, 1 right; ``jump`` 0 or 1.
    """
    new_press = jump == 1 and ninja["jump_held"] == 0
    ninja["jump_held"] = jump
    ninja["pad_buffer"] = _advance(ninja["pad_buffer"], 2)
    ninja["jump_buffer"] = _advance(ninja["jump_buffer"], 4)
    ninja["wall_buffer"] = _advance(ninja["wall_buffer"], 4)
    ninja["floor_buffer"] = _advance(ninja["floor_buffer"], 4)
    within_pad = 0 <= ninja["pad_buffer"] <= 3
    wants_jump = new_press or 0 <= ninja["jump_buffer"] <= 4
    within_wall = 0 <= ninja["wall_buffer"] <= 4
    within_floor = 0 <= ninja["floor_buffer"] <= 4
    if new_press and ninja["airborne"] != 0:
        ninja["jump_buffer"] = 0
    if ninja["walled"] != 0:
        ninja["wall_buffer"] = 0
    if ninja["airborne"] == 0:
        ninja["floor_buffer"] = 0

    state = ninja["state"]
    if state == DEAD or state == DISABLED:
        return
    if state == DYING:
        ninja["state"] = DEAD
    elif state == CELEBRATING:
        ninja["drag"] = REGULAR_DRAG if ninja["airborne"] != 0 else SLOW_DRAG
    elif ninja["airborne"] == 0:
        think_on_ground(ninja, direction, wants_jump)
    else:
        think_in_air(ninja, direction, jump, new_press, wants_jump, within_wall, within_floor, within_pad)


@kernel
def _advance(timer, last):
    return timer + 1 if 0 <= timer <= last else -1


@kernel
def think_on_ground(ninja, direction, wants_jump):
    """Run, slide, stop or jump (section 11.3)."""
    wanted = ninja["vx"] + GROUND_ACCELERATION * direction
    if abs(wanted) < MAX_HORIZONTAL_SPEED:
        ninja["vx"] = wanted
    if ninja["state"] > SLIDING:
        if ninja["state"] == JUMPING:
            ninja["gravity"] = FALL_GRAVITY
        ninja["state"] = SLIDING if ninja["vx"] * direction <= 0.0 else RUNNING
    if wants_jump:
        floor_jump(ninja, direction)
        return
    speed = abs(ninja["vy"] * ninja["floor_x"] - ninja["vx"] * ninja["floor_y"])
    pushing = (direction * speed) * ninja["vx"] > 0.0
    if ninja["state"] == SLIDING:
        slide(ninja, speed, pushing)
    elif ninja["state"] == RUNNING:
        run(ninja, direction, wanted, pushing)
    elif direction != 0:
        ninja["state"] = RUNNING
    elif speed < 0.1:
        ninja["vx"] = ninja["vx"] * SLOW_GROUND_FRICTION
    else:
        ninja["state"] = SLIDING


@kernel
def slide(ninja, speed, pushing):
    """Slide: friction along the floor, more of it uphill (section 11.3, state 2)."""
    vx, vy, fx, fy = ninja["vx"], ninja["vy"], ninja["floor_x"], ninja["floor_y"]
    if pushing:
        ninja["state"] = RUNNING
    elif speed < 0.1 and fx == 0.0:
        ninja["state"] = IMMOBILE
    elif vy < 0.0 and fx != 0.0:
        v = math.sqrt(vx * vx + vy * vy)
        if v == 0.0:  # the squares of speeds below 1e-162 are 0
            return
        friction = abs((vx * (1.0 - GROUND_FRICTION)) * fy)
        slowed = v - friction * (fy * fy)
        ninja["vx"] = (vx / v) * slowed
        ninja["vy"] = (vy / v) * slowed
    else:
        ninja["vx"] = vx * GROUND_FRICTION


@kernel
def run(ninja, direction, wanted, pushing):
    """Run: uphill the acceleration is turned along the slope (section 11.3, state 1)."""
    if not pushing:
        ninja["state"] = SLIDING
        return
    fx, fy = ninja["floor_x"], ninja["floor_y"]
    if direction * fx < 0.0 and abs(wanted) < MAX_HORIZONTAL_SPEED:
        k = (GROUND_ACCELERATION / 2.0) * direction
        ninja["vx"] += (k * fy) * fy
        ninja["vy"] += (k * fy) * (-fx)


@kernel
def think_in_air(ninja, direction, jump, new_press, wants_jump, within_wall, within_floor, within_pad):
    """Steer, end or start jumps, slide on walls (section 11.4)."""
    wanted = ninja["vx"] + AIR_ACCELERATION * direction
    if abs(wanted) < MAX_HORIZONTAL_SPEED:
        ninja["vx"] = wanted
    if ninja["state"] < JUMPING:
        ninja["state"] = FALLING
        return
    if ninja["state"] == JUMPING:
        ninja["jump_duration"] += 1
        if jump == 0 or ninja["jump_duration"] > MAX_JUMP_DURATION:
            ninja["gravity"] = FALL_GRAVITY
            ninja["state"] = FALLING
            return
    if wants_jump:
        if ninja["walled"] != 0 or within_wall:
            wall_jump(ninja, direction)
            return
        if within_floor:
            floor_jump(ninja, direction)
            return
        if within_pad and new_press:
            pad_jump(ninja)
            return
    hold_wall(ninja, direction)


@kernel
def hold_wall(ninja, direction):
    """Start, continue or end a wall slide (section 11.4, step 5)."""
    toward = direction * ninja["wall_normal"]
    if ninja["walled"] == 0:
        if ninja["state"] == WALL_SLIDING:
            ninja["state"] = FALLING
    elif ninja["state"] == WALL_SLIDING:
        if toward <= 0.0:
            ninja["vy"] = ninja["vy"] * WALL_FRICTION
        else:
            ninja["state"] = FALLING
    elif ninja["vy"] > 0.0 and toward < 0.0:
        if ninja["state"] == JUMPING:
            ninja["gravity"] = FALL_GRAVITY
        ninja["state"] = WALL_SLIDING


@kernel
def floor_jump(ninja, direction):
    """Jump off the floor, along its normal on a slope (section 10.1)."""
    ninja["jump_buffer"] = -1
    ninja["floor_buffer"] = -1
    ninja["pad_buffer"] = -1
    fx, fy, vx = ninja["floor_x"], ninja["floor_y"], ninja["vx"]
    along_x, along_y = (2.0 / 3.0) * fx, 2.0 * fy
    if fx == 0.0:
        jx, jy = 0.0, -2.0
    elif vx * fx >= 0.0:
        jx, jy = (along_x, along_y) if vx * direction >= 0.0 else (0.0, -1.4)
    elif vx * direction > 0.0:
        jx, jy = 0.0, -1.4
    else:
        jx, jy = along_x, along_y
        ninja["vx"] = 0.0
    take_off(ninja, jx, jy)


@kernel
def wall_jump(ninja, direction):
    """Jump off a wall, weakly if the ninja slides on it and presses towards it (section 10.2)."""
    wall = ninja["wall_normal"]
    if direction * wall < 0.0 and ninja["state"] == WALL_SLIDING:
        jx, jy = 2.0 / 3.0, -1.0
    else:
        jx, jy = 1.0, -1.4
    if ninja["vx"] * wall < 0.0:
        ninja["vx"] = 0.0
    ninja["jump_buffer"] = -1
    ninja["wall_buffer"] = -1
    ninja["pad_buffer"] = -1
    take_off(ninja, jx * wall, jy)


@kernel
def take_off(ninja, jx, jy):
    """Enter the jumping state: position and velocity change by the same amount (section 10)."""
    ninja["state"] = JUMPING
    ninja["gravity"] = JUMP_GRAVITY
    if ninja["vy"] > 0.0:
        ninja["vy"] = 0.0
    ninja["vx"] += jx
    ninja["vy"] += jy
    ninja["x"] += jx
    ninja["y"] += jy
    ninja["jump_duration"] = 0


@kernel
def pad_jump(ninja):
    """Boost off a launch pad with a jump pressed shortly after it (section 10.3)."""
    ninja["floor_buffer"] = -1
    ninja["wall_buffer"] = -1
    ninja["jump_buffer"] = -1
    ninja["pad_buffer"] = -1
    boost = 2.0 * abs(ninja["pad_x"]) + 2.0
    if boost == 2.0:
        boost = 1.7
    ninja["vx"] += ((ninja["pad_x"] * boost) * 2.0) / 3.0
    ninja["vy"] += ((ninja["pad_y"] * boost) * 2.0) / 3.0


@kernel
def turn(ninja, direction):
    """Update the side the ninja faces, for pictures (section 13)."""
    if ninja["state"] == WALL_SLIDING:
        ninja["facing"] = -1 if ninja["wall_normal"] > 0.0 else 1
        return
    if ninja["airborne"] == 0 and ninja["state"] == RUNNING and direction != 0:
        ninja["facing"] = direction
    if abs(ninja["vx"]) > 0.01:
        ninja["facing"] = 1 if ninja["vx"] > 0.0 else -1
