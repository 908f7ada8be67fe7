"""Beams, shots and aiming lines of a world in its present state, for pictures.

A picture after a frame shows the beam that the next frame tests.
"""

from __future__ import annotations

from nclone_env.jit import kernel
from nclone_env.sim import dispatch
from nclone_env.sim.rays import NO_BEAM, NOTHING, RAY_LENGTH, TO_THE_WALL, ray


@kernel
def beam_of(levels, worlds, index, entity, state):
    """Return (emission, x, y, dx, dy, length) of an entity; the emission is ``NO_BEAM`` if there is none.

    Args:
        levels: ``LevelArrays``.
        worlds: ``WorldArrays``.
        index: world.
        entity: record of the entity.
        state: its state byte.

    Returns:
        ``BEAM``, ``SHOT_FIRED``, ``AIM`` or ``ROCKET_TRAIL`` of ``sim.rays``; start (pixels), direction (a unit
        vector), length (pixels).
    """
    mover = worlds.movers[index, max(entity["mover"], 0)]
    x, y = mover["x"], mover["y"]
    emission, dx, dy, length = dispatch.beam(entity, mover, state)
    if emission != NO_BEAM and length == TO_THE_WALL:
        length = ray(levels, worlds.entity_states, index, worlds.ninjas[index]["level"], x, y, dx, dy)
        if length == NOTHING:
            length = RAY_LENGTH
    return emission, x, y, dx, dy, length
