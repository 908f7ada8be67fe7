"""The ninja's contacts of one frame: a scratch row of numbers, filled by tiles and entities alike."""

from nclone_env.jit import kernel

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
