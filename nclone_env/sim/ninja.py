"""What happens to the ninja in a frame: contacts, death and victory (physics 01, sections 8, 9 and 12).

Contacts are a scratch row of numbers, filled by tiles and entities alike.
"""

from nclone_env.constants import CELEBRATING, DEAD, DISABLED, DYING, FALL_GRAVITY, JUMPING, RADIUS
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
