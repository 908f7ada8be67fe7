"""One-way platforms (physics 02, section 6.10). The state is unused."""

from nclone_env.game import FACING_X, FACING_Y, RADIUS
from nclone_env.jit import kernel

_INWARD_LIMIT, _OUTWARD_LIMIT = 21.0, 17.1  # lateral reach, by whether the ninja moves towards the middle
_DEEPEST = 1.1  # how far the ninja may already have been inside before it moved


@kernel
def push(ninja, entity, x0, y0):
    """Return (hit, nx, ny, length): out of the platform if the ninja comes from its front."""
    fx, fy = FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]]
    px, py, vx, vy = entity["x"], entity["y"], ninja["vx"], ninja["vy"]
    dx, dy = ninja["x"] - px, ninja["y"] - py
    lateral = dy * fx - dx * fy
    limit = _INWARD_LIMIT if (vy * fx - vx * fy) * lateral < 0.0 else _OUTWARD_LIMIT
    if abs(lateral) >= limit:
        return False, 0.0, 0.0, 0.0
    distance = dx * fx + dy * fy
    if not 0.0 < distance <= RADIUS or vx * fx + vy * fy > 0.0:
        return False, 0.0, 0.0, 0.0
    before = (x0 - px) * fx + (y0 - py) * fy
    if RADIUS - before > _DEEPEST:
        return False, 0.0, 0.0, 0.0
    return True, fx, fy, RADIUS - distance


@kernel
def touch(ninja, entity, x0, y0):
    """Return the wall normal of an upright platform that holds the ninja, otherwise 0."""
    hit, fx, _, _ = push(ninja, entity, x0, y0)
    return fx if hit and abs(fx) == 1.0 else 0.0


@kernel
def describe(entity):
    """Describe a one-way platform, see ``sim.dispatch.describe``."""
    return 0.0, 0.0, FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]], 0.0, False, True
