"""Where the parts of worlds lie: one store for all worlds of a batch, in which each takes what its own level needs.

The parts of a world are its entity states, its movers (with their hints) and its trail; each is a span of one array.
Worlds are made in two ways (``sim.state``): with spans for the largest level of a set, which never move; or without
any, for :func:`fit_world`, which gives a world a span at the end of the arrays, or notes that there is no space. Then
:func:`with_space` moves the spans together, into larger arrays if that is not enough.

Spans change between steps only, so a step needs room beforehand: for the level that the next episode begins on, and for
the positions that the trail gets.
"""

from typing import NamedTuple

import numpy as np

from nclone_env.jit import kernel, specialised_at_first
from nclone_env.memory import MemoryNode, array_group

PARTS = ("entities", "movers", "trail")
SPAN: np.dtype = np.dtype([(name, "i4") for name in ("first", "size", "used")])
"""Where a part of a world begins, the elements it has room for, and those that its level uses: of the trail, which is a
ring, the length, of which there is only room for as many positions as are remembered."""

ROOM: np.dtype = np.dtype(
    [(part, SPAN) for part in PARTS] + [(name, "i4") for name in ("trail_begin", "settled", "before", "after")]
)
"""The spans of a world, the frame of the first position in its trail (-1: none), 1 if there is room for all that the
next step can bring, and the worlds whose spans lie before and after it.

The last room is that of the store (:func:`store_of`): each span ``first`` is the end of those of all worlds, ``size``
the elements that they have, and ``used`` the most that a level of the set uses; ``trail_begin`` is the most frames
between two calls of :func:`fit_world` (-1: spans are for the largest level and never move), ``settled`` 1 if all worlds
are, and below 0 if one got no space (``LACKING``). It lies before the first world and after the last.
"""

NO_TRAIL = -1
SETTLED, UNSETTLED = 1, 0
LACKING = -1
"""Less the rows of the trail that a world needs."""
SLACK = 4
"""Arrays are longer than what they have to hold by a quarter, in which spans move."""
_TIGHT = 16  # an array that is full but for a sixteenth is made longer


class WorldArrays(NamedTuple):
    """The state of N worlds.

    Attributes:
        ninjas: (N,) ``NINJA_RECORD``.
        rooms: (N + 1,) ``ROOM``; the last is that of the store.
        entity_states: uint8, one byte an entity in the order of the level's entity table; ``kinds`` names its values. 0
            is untouched.
        movers: ``MOVER`` records.
        hints: uint16, one for each mover record: of those that look out, the segment of the level that hid the ninja
            last (``sim.sight``); of death balls, the door that held them last. No part of the state.
        trail: (R, 2) float64; past positions of the ninja for the evil ninjas, pixels (:func:`trail_row`).

    Behind the spans is an element that none has, which kernels read for entities without a mover.
    """

    ninjas: np.ndarray
    rooms: np.ndarray
    entity_states: np.ndarray
    movers: np.ndarray
    hints: np.ndarray
    trail: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays."""
        return array_group("worlds", self._asdict(), shared=False)


@kernel
def states_of(worlds, index):
    """Return (array, place): the entity states of all worlds, and where those of a world begin."""
    return worlds.entity_states, worlds.rooms[index]["entities"]["first"]


@kernel
def state_of(worlds, index, slot):
    """Return the state of an entity of a world."""
    return worlds.entity_states[worlds.rooms[index]["entities"]["first"] + slot]


@kernel
def movers_of(worlds, index):
    """Return (array, place): the movers of all worlds, and where those of a world begin."""
    return worlds.movers, worlds.rooms[index]["movers"]["first"]


@kernel
def mover_of(worlds, index, number):
    """Return a mover record of a world, a view."""
    return worlds.movers[worlds.rooms[index]["movers"]["first"] + number]


@kernel
def store_of(worlds):
    """Return the room of the store of some worlds."""
    return worlds.rooms[len(worlds.ninjas)]


@kernel
def trail_count(worlds, index):
    """Return the number of positions in the trail of a world: of the last frames, the present one not included."""
    room = worlds.rooms[index]
    if room["trail_begin"] == NO_TRAIL:
        return 0
    return min(worlds.ninjas[index]["frame"] - room["trail_begin"], room["trail"]["used"])


@kernel
def trail_row(room, frame):
    """Return the row of the trail that holds the position at the end of a frame; one of the world's for any number."""
    row = (frame - room["trail_begin"]) % max(room["trail"]["used"], 1)
    return room["trail"]["first"] + max(min(row, room["trail"]["size"] - 1), 0)


@kernel
def remember(worlds, index):
    """Store the ninja's position at the end of the last frame."""
    ninja, room, trail = worlds.ninjas[index], worlds.rooms[index], worlds.trail
    frame = ninja["frame"] - 1
    if room["trail_begin"] == NO_TRAIL:
        room["trail_begin"] = frame
    row = trail_row(room, frame)
    trail[row, 0], trail[row, 1] = ninja["x"], ninja["y"]
    size, ring = room["trail"]["size"], room["trail"]["used"]
    if size < ring and frame - room["trail_begin"] + store_of(worlds)["trail_begin"] >= size:
        unsettle(worlds, index)


@kernel
def recall(worlds, index, frame):
    """Return the ninja's position at the end of a frame."""
    row = trail_row(worlds.rooms[index], frame)
    return worlds.trail[row, 0], worlds.trail[row, 1]


@kernel
def unsettle(worlds, index):
    """Note that the spans of a world may be too small for the next step."""
    worlds.rooms[index]["settled"], store_of(worlds)["settled"] = UNSETTLED, UNSETTLED


@kernel
def fit_world(worlds, index, entities, movers, rows):
    """Give a world spans of so many elements, or of as many as it uses; what the arrays lack for it is noted.

    Nothing is done to worlds whose spans never move. Contents stay. If one of the spans must grow, all lie at the end
    of their arrays afterwards.
    """
    room, store = worlds.rooms[index], store_of(worlds)
    if store["trail_begin"] == NO_TRAIL:
        return
    entities, movers = max(entities, room["entities"]["used"]), max(movers, room["movers"]["used"])
    rows = max(rows, trail_count(worlds, index))
    if entities > room["entities"]["size"] or movers > room["movers"]["size"] or rows > room["trail"]["size"]:
        states, records, path = room["entities"]["first"], room["movers"]["first"], room["trail"]["first"]
        if store["before"] != index:  # else it lies at the end already
            states, records, path = store["entities"]["first"], store["movers"]["first"], store["trail"]["first"]
        has_space = states + entities < len(worlds.entity_states)
        if not (has_space and records + movers < len(worlds.movers) and path + rows < len(worlds.trail)):
            store["settled"] = min(store["settled"], LACKING - rows)
            return
        move_world(worlds, room, worlds, (states, records, path), (entities, movers, rows))
        move_last(worlds, index)
        store["entities"]["first"] = states + entities
        store["movers"]["first"] = records + movers
        store["trail"]["first"] = path + rows
    resize(room["entities"], entities, store["entities"])
    resize(room["movers"], movers, store["movers"])
    resize(room["trail"], rows, store["trail"])


@kernel
def resize(span, size, space):
    """Make a span so large."""
    space["size"] += size - span["size"]
    span["size"] = size


@kernel
def move_last(worlds, index):
    """Note that the spans of a world lie behind those of all others."""
    rooms, store, room = worlds.rooms, store_of(worlds), worlds.rooms[index]
    rooms[room["before"]]["after"], rooms[room["after"]]["before"] = room["after"], room["before"]
    rooms[store["before"]]["after"] = index
    room["before"], room["after"], store["before"] = store["before"], len(worlds.ninjas), index


@kernel
def lacks_space(worlds):
    """Return whether a world did not get the spans that it needs."""
    return store_of(worlds)["settled"] <= LACKING


@kernel
def move_world(source, room, target, places, sizes):
    """Move the spans of a world to other places, or to other arrays, where there is room for so many elements.

    A span that overlaps with its new place moves towards the beginning.
    """
    span, place = room["entities"], places[0]
    for k in range(min(span["size"], sizes[0])):
        target.entity_states[place + k] = source.entity_states[span["first"] + k]
    span["first"] = place
    span, place = room["movers"], places[1]
    for k in range(min(span["size"], sizes[1])):
        target.movers[place + k] = source.movers[span["first"] + k]
        target.hints[place + k] = source.hints[span["first"] + k]
    span["first"] = place
    span, place = room["trail"], places[2]
    for k in range(min(span["size"], sizes[2])):
        for axis in range(2):
            target.trail[place + k, axis] = source.trail[span["first"] + k, axis]
    span["first"] = place


@kernel
def move_together(source, target):
    """Move the spans of all worlds, in the order in which they lie, to the beginning of their arrays."""
    entities, movers, rows = 0, 0, 0
    store = store_of(source)
    index = store["after"]
    while index != len(source.ninjas):
        room = source.rooms[index]
        sizes = room["entities"]["size"], room["movers"]["size"], room["trail"]["size"]
        move_world(source, room, target, (entities, movers, rows), sizes)
        entities, movers, rows = entities + sizes[0], movers + sizes[1], rows + sizes[2]
        index = room["after"]
    store["entities"]["first"], store["movers"]["first"], store["trail"]["first"] = entities, movers, rows
    store["settled"] = UNSETTLED


@kernel
def longer(needed, length):
    """Return the length that an array should have: a quarter more than is needed if that hardly fits."""
    return needed + needed // SLACK + 1 if needed > length - length // _TIGHT - 1 else length


@kernel
def lengths_needed(worlds):
    """Return (entity states, movers, rows of the trail): the lengths that the arrays should have.

    One world needs as much as the largest level at most, of the trail as much as it is lacking, and moves if there are
    others.
    """
    store, moves = store_of(worlds), len(worlds.ninjas) > 1
    entities, movers = store["entities"]["used"], store["movers"]["used"]
    if moves:
        entities, movers = entities + store["entities"]["size"], movers + store["movers"]["size"]
    rows = store["trail"]["size"] + max(LACKING - store["settled"], 0)
    return (
        longer(entities, len(worlds.entity_states)),
        longer(movers, len(worlds.movers)),
        longer(rows, len(worlds.trail)),
    )


@kernel
def gains_space(worlds):
    """Move the spans together if the arrays are long enough; return whether they are."""
    entities, movers, rows = lengths_needed(worlds)
    if entities > len(worlds.entity_states) or movers > len(worlds.movers) or rows > len(worlds.trail):
        return False
    move_together(worlds, worlds)
    return True


def with_space(worlds: WorldArrays) -> WorldArrays:
    """Return worlds with space for what they are lacking: their spans moved together, into longer arrays if needed."""
    entities, movers, rows = _lengths_needed(worlds)
    check_lengths(len(worlds.ninjas), entities, movers, rows)
    lengths = {"entity_states": entities, "movers": movers, "hints": movers, "trail": rows}
    arrays = {name: _of_length(getattr(worlds, name), length) for name, length in lengths.items()}
    target = worlds._replace(**arrays)
    _move_together(worlds, target)
    return target


def check_lengths(count: int, *lengths: int) -> None:
    """Raise ``ValueError`` if arrays of so many elements are longer than the spans of worlds can express."""
    most = np.iinfo(SPAN["first"]).max
    if max(lengths) > most:
        raise ValueError(
            f"{count:,} worlds of these levels need {max(lengths):,} elements in one array, which has at most "
            f"{most:,}; make fewer of them at once, or use levels with fewer entities"
        )


def _of_length(array: np.ndarray, length: int) -> np.ndarray:
    """Return an array if it has a length, else a zeroed one like it."""
    return array if len(array) == length else np.zeros((length, *array.shape[1:]), array.dtype)


_lengths_needed = specialised_at_first(lengths_needed)
_move_together = specialised_at_first(move_together)
