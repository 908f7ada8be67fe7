"""Launch pads (physics 02, sections 5.3 and 6.9; physics 03, section 14, rule S3). The state is unused."""

import math

from nclone_env.game import DYING, FACING_X, FACING_Y, FALL_GRAVITY, FALLING, JUMPING, KINDS, LAUNCH_PAD, RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.ninja import FLOORS, meets

_RADIUS = KINDS[LAUNCH_PAD].radii[0]
_STRENGTH = 36.0 / 7.0
_BEHIND = -0.1  # the ninja's rearmost point may be this far beyond the pad's plane


@kernel
def touch(ninja, entity, contacts):
    """Throw a targetable ninja that is not dying and comes from the front."""
    px, py, x, y = entity["x"], entity["y"], ninja["x"], ninja["y"]
    if ninja["state"] == DYING or not meets(ninja, px, py, _RADIUS):
        return
    fx, fy = FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]]
    if (px - (x - RADIUS * fx)) * fx + (py - (y - RADIUS * fy)) * fy >= _BEHIND:
        lift = 1.0 if fy >= 0.0 else 1.0 - fy
        throw(ninja, contacts, fx * _STRENGTH, fy * _STRENGTH * lift)


@kernel
def throw(ninja, contacts, boost_x, boost_y):
    """Move the ninja by two thirds of a boost, which become its velocity (physics 02, section 5.3)."""
    wx, wy = boost_x * 2.0 / 3.0, boost_y * 2.0 / 3.0
    ninja["x"] += wx
    ninja["y"] += wy
    ninja["vx"], ninja["vy"] = wx, wy
    contacts[FLOORS] = 0.0
    ninja["floor_buffer"] = -1
    m = math.sqrt(wx * wx + wy * wy)
    ninja["pad_x"], ninja["pad_y"] = wx / m, wy / m
    ninja["pad_buffer"] = 0
    if ninja["state"] == JUMPING:
        ninja["gravity"] = FALL_GRAVITY
    ninja["state"] = FALLING


@kernel
def describe(entity):
    """Describe a launch pad, see ``sim.dispatch.describe``."""
    return 0.0, 0.0, FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]], 0.0, False, False
