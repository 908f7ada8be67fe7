"""Room in the store of worlds for what the next step can bring (``sim.store``).

An environment has room for the level it plays and for the one that its next episode begins on, which is known before:
it follows from requests, seed, number of the episode and weights.
"""

from collections.abc import Callable

import numpy as np

from nclone_env.env.compiled.starts import next_start
from nclone_env.jit import kernel
from nclone_env.sim import (
    NO_TRAIL,
    SETTLED,
    UNSETTLED,
    WorldArrays,
    fit_world,
    gains_space,
    lacks_space,
    store_of,
    trail_count,
    with_space,
)


@kernel
def make_room(arrays):
    """Give the environments that are not settled room; return whether the store of ``StepArrays`` had it.

    If it had not, call it again with the worlds that :func:`nclone_env.sim.with_space` returns.
    """
    worlds = arrays.worlds
    if store_of(worlds)["settled"] == SETTLED:
        return True
    settle_all(arrays)
    while lacks_space(worlds):
        if not gains_space(worlds):
            return False
        settle_all(arrays)
    for index in range(len(worlds.rooms)):
        worlds.rooms[index]["settled"] = SETTLED
    return True


@kernel
def settle_all(arrays):
    """Give all environments that are not settled room, as far as there is space."""
    for index in range(len(arrays.worlds.ninjas)):
        if arrays.worlds.rooms[index]["settled"] != SETTLED:
            settle(arrays, index)


@kernel
def settle(arrays, index):
    """Give an environment room for one step, in which its next episode may begin."""
    worlds = arrays.worlds
    level, place = next_start(arrays, index)
    header = arrays.levels.header[level]
    rows = store_of(worlds)["trail_begin"]
    if place >= 0:
        rows += arrays.starts.starts[place]["trail_count"]
    rows = max(min(rows, header["trail_count"]), rows_needed(worlds, index))
    fit_world(worlds, index, header["entity_count"], header["mover_count"], rows)


@kernel
def rows_needed(worlds, index):
    """Return the rows of a trail for one step more; if it has to grow, twice as many."""
    room, store = worlds.rooms[index], store_of(worlds)
    held, most = store["trail_begin"], min(room["trail"]["used"], store["trail"]["used"])
    if room["trail_begin"] != NO_TRAIL:
        held += trail_count(worlds, index)
        held = room["trail"]["size"] if held <= room["trail"]["size"] else 2 * held
    return min(held, most)


@kernel
def fit_copies(worlds, source, indices):
    """Give world i room for a copy of world ``indices[i]`` of ``source``, -1: none; return whether there was space."""
    for index in range(len(indices)):
        if indices[index] >= 0:
            room = source.rooms[indices[index]]
            rows = trail_count(source, indices[index])
            fit_world(worlds, index, room["entities"]["used"], room["movers"]["used"], rows)
    return not lacks_space(worlds)


@kernel
def fit_alike(worlds, others):
    """Give each world as much room as the same one of ``others`` has; return whether there was space."""
    for index in range(len(worlds.ninjas)):
        room = others.rooms[index]
        fit_world(worlds, index, room["entities"]["size"], room["movers"]["size"], room["trail"]["size"])
    return not lacks_space(worlds)


def with_room(worlds: WorldArrays, fit: Callable[[WorldArrays], bool]) -> WorldArrays:
    """Return worlds, in larger arrays if needed, for which ``fit`` found space."""
    while not fit(worlds):
        worlds = with_space(worlds)
    return worlds


def unsettle_all(worlds: WorldArrays, mask: np.ndarray | slice | int = slice(None)) -> None:
    """Note that worlds may need other room before the next step."""
    worlds.rooms["settled"][:-1][mask] = UNSETTLED
    worlds.rooms["settled"][-1] = UNSETTLED
