"""What a page draws of a frame, in whole numbers.

A level has N sprites, in drawing order: its doors, its entities (a rocket turret has two sprites, the turret from which
a rocket has left and the rocket or turret itself), and the ninja. A frame is a row of values:

=================  ============================================================================================
values             meaning
=================  ============================================================================================
3 of each sprite   its number in the sprite sheet (-1: it is not shown), x, y
5 of each shooter  emission of ``sim.sight`` (-1: none), x and y of its begin, x and y of its end
3                  ninja: state, facing, gold collected
1                  input byte that led to this frame
=================  ============================================================================================

Coordinates are in steps of 1/256 pixel, rounded to nearest: no position is off by more than 1/512 pixel.
"""

import math

from nclone_env.gallery.tables import STEPS
from nclone_env.game import KINDS, bits
from nclone_env.jit import kernel
from nclone_env.render.compose import list_sprites
from nclone_env.sim.dispatch import beam_of
from nclone_env.sim.geometry import greater, lesser
from nclone_env.sim.sight import NO_BEAM
from nclone_env.sim.store import state_of

PER_SPRITE, PER_SHOOTER, OF_RUN = 3, 5, 4
_FARTHEST = 16384.0  # pixels from the corner of the world; farther is drawn there, which is out of sight
_SHOOTS = bits(kind for kind in KINDS if kind.shoots)


@kernel
def write_rows(levels, worlds, glyphs, sprites, rows):
    """Write the values of F worlds of a level to ``rows``, (F, 3 N + 5 S + 4) int32; the inputs stay as they are.

    ``sprites``, (N, 3) float64, are overwritten.
    """
    for index in range(rows.shape[0]):
        ninja = worlds.ninjas[index]
        count = list_sprites(levels, worlds, index, glyphs, sprites)
        for sprite in range(count):
            rows[index, PER_SPRITE * sprite] = int(sprites[sprite, 0])
            rows[index, PER_SPRITE * sprite + 1] = _in_steps(sprites[sprite, 1])
            rows[index, PER_SPRITE * sprite + 2] = _in_steps(sprites[sprite, 2])
        column = _write_beams(levels, worlds, index, levels.header[ninja["level"]], rows, PER_SPRITE * count)
        rows[index, column] = ninja["state"]
        rows[index, column + 1] = ninja["facing"]
        rows[index, column + 2] = ninja["gold"]


@kernel
def _write_beams(levels, worlds, index, header, rows, column):
    """Write the beams of all shooters; without one, the ends of an earlier one stay. Return the next column."""
    for slot in range(header["entity_count"]):
        entity = levels.entities[header["first_entity"] + slot]
        if _SHOOTS >> int(entity["type"]) & 1:
            emission, x, y, dx, dy, length = beam_of(levels, worlds, index, entity, state_of(worlds, index, slot))
            rows[index, column] = NO_BEAM
            if emission != NO_BEAM and length > 0.0:
                rows[index, column] = emission
                rows[index, column + 1] = _in_steps(x)
                rows[index, column + 2] = _in_steps(y)
                rows[index, column + 3] = _in_steps(x + length * dx)
                rows[index, column + 4] = _in_steps(y + length * dy)
            column += PER_SHOOTER
    return column


@kernel
def _in_steps(value):
    """Return a coordinate in steps."""
    return int(math.floor(greater(lesser(value, _FARTHEST), -_FARTHEST) * STEPS + 0.5))
