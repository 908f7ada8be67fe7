"""Bounce blocks (physics 02, section 6.16). The state is unused; ``a`` and ``b`` of the mover are the velocity."""

from nclone_env.jit import kernel
from nclone_env.sim.cells import refresh
from nclone_env.sim.geometry import square_penetration

VELOCITY_X, VELOCITY_Y = "a", "b"
_SPRING = 0.02222222222222222  # one unit in the last place below 1 / 45
_DAMPING = 0.98
_SHARE = 0.2  # of a penetration by which the ninja is pushed; the block takes the rest
_REST = 1.0 - _SHARE
_HALF = 19.0  # half side plus the ninja's radius
_WALL_HALF = 19.1


@kernel
def move(levels, worlds, index, slot, entity, mover):
    """Swing towards home."""
    ninja = worlds.ninjas[index]
    ux, uy = mover[VELOCITY_X] * _DAMPING, mover[VELOCITY_Y] * _DAMPING
    x, y = mover["x"] + ux, mover["y"] + uy
    force_x, force_y = _SPRING * (entity["x"] - x), _SPRING * (entity["y"] - y)
    mover["x"], mover["y"] = x + force_x, y + force_y
    mover[VELOCITY_X], mover[VELOCITY_Y] = ux + force_x, uy + force_y
    refresh(ninja, mover)


@kernel
def push(ninja, mover):
    """Return (hit, nx, ny, length); the block yields by four fifths of the penetration."""
    inside, nx, ny, depth, _ = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _HALF)
    if not inside:
        return False, 0.0, 0.0, 0.0
    mover["x"] -= nx * depth * _REST
    mover["y"] -= ny * depth * _REST
    mover[VELOCITY_X] -= nx * depth * _REST
    mover[VELOCITY_Y] -= ny * depth * _REST
    return True, nx, ny, depth * _SHARE


@kernel
def touch(ninja, mover):
    """Return the wall normal, 0 if the ninja is not at a vertical side."""
    _, nx, _, _, _ = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _WALL_HALF)
    return nx


@kernel
def describe(mover):
    """Describe a bounce block, see ``sim.dispatch.describe``."""
    return mover[VELOCITY_X], mover[VELOCITY_Y], 0.0, 0.0, 0.0, False, True
