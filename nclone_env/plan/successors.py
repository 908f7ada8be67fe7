"""Successors of many worlds in one call, for searches that go forward layer by layer."""

from __future__ import annotations

from nclone_env.constants import CELEBRATING, DEAD
from nclone_env.jit import kernel
from nclone_env.kinds import EXIT_SWITCH
from nclone_env.sim import copy_world
from nclone_env.sim.tick import tick

DIED, WON, SWITCH, DOOR, GOLD = 1, 2, 4, 8, 16
"""Bits of what happened while an input was held: the ninja died or won, took an exit switch, changed a locked or trap
door, collected gold."""


@kernel
def expand(levels, source, rows, count, parts, inputs, hold, target, origins, events, frames):
    """Hold each of A inputs in copies of worlds, until the ninja dies or wins; return how many go on.

    Candidate ``n * A + a`` is world ``rows[n]`` with input a. Those that go on are in the first rows of ``target``.

    Args:
        levels: ``LevelArrays``.
        source: ``WorldArrays``.
        rows: (n,) integers; worlds of ``source``.
        count: how many of the rows to expand, N.
        parts: ``KeyParts`` of the level.
        inputs: (A,) uint8 input bytes.
        hold: frames that an input is held.
        target: ``WorldArrays`` for at least N A worlds, overwritten; not ``source``.
        origins: (N A,) int32, overwritten; candidate in each row of ``target``.
        events: (N A,) uint8, overwritten; bits of what happened, by candidate.
        frames: (N A,) int32, overwritten; frames simulated, by candidate.
    """
    kept = 0
    for place in range(count):
        for number in range(inputs.shape[0]):
            candidate = place * inputs.shape[0] + number
            copy_world(source, rows[place], target, kept)
            frames[candidate] = play(levels, target, kept, inputs[number], hold)
            events[candidate] = events_since(levels, source, rows[place], target, kept, parts)
            if events[candidate] & (DIED | WON) == 0:
                origins[kept] = candidate
                kept += 1
    return kept


@kernel
def play(levels, worlds, index, code, hold):
    """Hold an input in one world for so many frames, or until the ninja dies or wins; return the frames played."""
    for frame in range(hold):
        tick(levels, worlds, index, code)
        if worlds.ninjas[index]["state"] >= DEAD:
            return frame + 1
    return hold


@kernel
def events_since(levels, old_worlds, old, new_worlds, new, parts):
    """Return the bits of what happened between two states of a world."""
    before, after = old_worlds.ninjas[old], new_worlds.ninjas[new]
    found = 0
    if after["state"] >= DEAD:
        found |= WON if after["state"] == CELEBRATING else DIED
    if after["gold"] != before["gold"]:
        found |= GOLD
    first = levels.header[after["level"]]["first_entity"]
    for place in range(parts.switches.shape[0]):
        slot = parts.switches[place]
        if old_worlds.entity_states[old, slot] != new_worlds.entity_states[new, slot]:
            found |= SWITCH if levels.entities[first + slot]["type"] == EXIT_SWITCH else DOOR
    return found


@kernel
def copy_rows(source, rows, count, target):
    """Make world n of ``target`` a copy of world ``rows[n]`` of ``source``, for n below ``count``.

    Args:
        source: ``WorldArrays``.
        rows: integers, at least ``count``.
        count: number of worlds to copy.
        target: ``WorldArrays`` for the same level set, changed in place; not ``source``.
    """
    for place in range(count):
        copy_world(source, rows[place], target, place)
