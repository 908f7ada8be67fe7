"""Exhaustive search, frame by frame: every state that can be reached, until the ninja can win for the first time.

A layer holds the states after so many frames, each with the way to it. A state is left out if one with the same future
was in this or an earlier layer, if the ninja is dead, or if it provably cannot win before a limit (``Reach``). Two
states are taken to have the same future if two hashes, of 64 and of 63 bits, of all that their future depends on agree;
that this ever happens by chance among n states has a probability of about n**2 / 2**128.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.actions import INPUT_OF_ACTION
from nclone_env.constants import CELEBRATING, DEAD, RADIUS, WALL_REACH
from nclone_env.jit import kernel
from nclone_env.level import LevelSet
from nclone_env.plan import most_that_fit, places_for
from nclone_env.prove.bounds import (
    EXIT_REACH,
    FASTEST,
    LEAST,
    LEAVE,
    LEAVE_SPEED,
    SWITCH_REACH,
    distances,
    falls,
    hall_of,
)
from nclone_env.sim import FIRST, copy_world, finish, hash_future_from, make_worlds
from nclone_env.sim.tick import start, tick

INPUTS = np.array(INPUT_OF_ACTION, dtype=np.uint8)
"""The input bytes with different futures: of the others, left with right is left, and suicide never wins."""
_SECOND = np.uint64(0x13198A2E03707344)
_WIDTH = 0.01  # of the intervals of vx for Reach, pixels per frame
FULL = -1
"""Result of a layer that does not fit in the memory."""


class Seen(NamedTuple):
    """The hashes of all states so far, and how each was reached.

    Attributes:
        first: (P,) uint64; first hash.
        second: (P,) uint64; second hash; both are 0 where there is no state.
        parents: (N,) int32; number of the state before.
        inputs: (N,) uint8; input byte that led here.
        digest: (1,) uint64; sum of the products of the hashes of the last layer, in any order the same.
    """

    first: np.ndarray
    second: np.ndarray
    parents: np.ndarray
    inputs: np.ndarray
    digest: np.ndarray


class Reach(NamedTuple):
    """How far the ninja can come in a hall (``prove.bounds``); no rows for other levels.

    Attributes:
        distances: (N, B) float64; the farthest it can come to the right in n frames, by interval of vx.
        falls: (N, 2) float64; how far it can fall in n frames: from rest, and more for each pixel per frame of vy.
        hall: (8,) float64; left and right end, x and y of the switch and of the exit, width of the intervals, fewest
            frames from switch to exit.
    """

    distances: np.ndarray
    falls: np.ndarray
    hall: np.ndarray


def make_seen(count: int) -> Seen:
    """Return the memory for so many states."""
    places = places_for(count)
    return Seen(
        np.zeros(places, np.uint64),
        np.zeros(places, np.uint64),
        np.zeros(count, np.int32),
        np.zeros(count, np.uint8),
        np.zeros(1, np.uint64),
    )


def search_bytes(levels: LevelSet, limit: int, states: int) -> int:
    """Return the bytes of :func:`search` for a number of states, ``reach`` included."""
    world = sum(array.nbytes for array in make_worlds(1, levels, limit))
    seen, layers = 16 * places_for(states) + 5 * states + 8, 2 * (states // 4 + 1) * (world + 4)
    return seen + layers + reach_bytes(levels, limit)


def states_that_fit(levels: LevelSet, limit: int, memory: int) -> int:
    """Return the largest number of states of a :func:`search` that fits in so many bytes."""
    return most_that_fit(lambda states: search_bytes(levels, limit, states), memory)


def reach_bytes(levels: LevelSet, frames: int) -> int:
    """Return the bytes of :func:`make_reach` while it works: its table of distances is copied once."""
    return 0 if hall_of(levels) is None else (frames + 1) * (4 * int(FASTEST / _WIDTH) + 2) * 8


def make_reach(levels: LevelSet, frames: int) -> Reach:
    """Return how far the ninja can come in up to so many frames."""
    hall = hall_of(levels)
    if hall is None:
        return Reach(np.zeros((0, 1)), np.zeros((0, 2)), np.zeros(8))
    table = distances(frames, _WIDTH)
    gap = max(abs(hall.switch[0] - hall.exit[0]) - SWITCH_REACH - EXIT_REACH, 0.0)
    between = max(int(np.searchsorted(table.max(axis=1), gap)), 1)
    numbers = [hall.left, hall.right, *hall.switch, *hall.exit, _WIDTH, between]
    return Reach(table, falls(frames), np.array(numbers))


def search(
    levels: LevelSet, limit: int, states: int, reach: Reach
) -> tuple[list[tuple[int, int]], np.ndarray | None, bool]:
    """Search all inputs of fewer than ``limit`` frames.

    Args:
        limit: frames that a solution must stay below.
        states: most states of all layers together; also the most candidates of one layer.
        reach: what cannot win any more.

    Returns:
        (states and digest of each layer from frame 0 on, inputs of a shortest solution or None, whether the search
        is complete). It is not if the memory was too small.
    """
    seen = make_seen(states)
    worlds = make_worlds(states // 4 + 1, levels, limit), make_worlds(states // 4 + 1, levels, limit)
    numbers = np.zeros(states // 4 + 1, np.int32), np.zeros(states // 4 + 1, np.int32)
    start(levels.arrays, worlds[0], 0, 0)
    insert(levels.arrays, worlds[0], 0, seen)
    known = count = 1
    layers = [(1, int(seen.digest[0]))]
    for frame in range(1, limit):
        old, new = (frame + 1) % 2, frame % 2
        won = np.full(2, -1, np.int32)
        kept = next_layer(
            levels.arrays, worlds[old], numbers[old], count, worlds[new], numbers[new], seen, known, reach,
            limit - 1 - frame, won,
        )  # fmt: skip
        if won[0] >= 0:
            return layers, _way(seen, int(won[0]), int(won[1])), True
        if kept == FULL:
            return layers, None, False
        known, count = known + kept, kept
        layers.append((kept, int(seen.digest[0])))
        if kept == 0:
            break
    return layers, None, True


def _way(seen: Seen, number: int, last: int) -> np.ndarray:
    """Return the inputs that lead to a state, and one more."""
    codes = [last]
    while number > 0:
        codes.append(int(seen.inputs[number]))
        number = int(seen.parents[number])
    return np.array(codes[::-1], np.uint8)


@kernel
def next_layer(levels, source, numbers, count, target, targets, seen, known, reach, left, won):
    """Play one frame of every world with every input; return how many new states there are, or ``FULL``.

    Args:
        source: ``WorldArrays``; the worlds of the last layer.
        numbers: (M,) int32; their numbers among all states.
        count: how many there are.
        target: ``WorldArrays``, overwritten.
        targets: (M,) int32, overwritten; numbers of the new states.
        seen: ``Seen``, changed.
        known: states so far.
        reach: ``Reach``.
        left: frames after this one in which the ninja may still win.
        won: (2,) int32; number of the state before a win and its input, if there is one.
    """
    seen.digest[0] = 0
    kept = 0
    for place in range(count):
        for action in range(INPUTS.shape[0]):
            if kept >= targets.shape[0] or known + kept >= seen.parents.shape[0]:
                return FULL
            copy_world(source, place, target, kept)
            tick(levels, target, kept, INPUTS[action])
            state = target.ninjas[kept]["state"]
            if state == CELEBRATING:
                won[0], won[1] = numbers[place], INPUTS[action]
                return 0
            if state >= DEAD or left == 0 or not can_win(levels, target, kept, reach, left):
                continue
            if insert(levels, target, kept, seen):
                number = known + kept
                seen.parents[number], seen.inputs[number] = numbers[place], INPUTS[action]
                targets[kept] = number
                kept += 1
    return kept


@kernel
def insert(levels, worlds, index, seen):
    """Insert the hashes of a world; return whether they are new."""
    first = hash_future_from(levels, worlds, index, FIRST)
    second = hash_future_from(levels, worlds, index, _SECOND) | np.uint64(1)
    last = seen.first.shape[0] - 1
    place = np.int64(first) & last
    while seen.second[place] != 0:
        if seen.first[place] == first and seen.second[place] == second:
            return False
        place = (place + 1) & last
    seen.first[place], seen.second[place] = first, second
    seen.digest[0] += finish(first ^ second)
    return True


@kernel
def can_win(levels, worlds, index, reach, left):
    """Return whether it is not excluded that the ninja wins within so many more frames."""
    ninja, header = worlds.ninjas[index], levels.header[worlds.ninjas[index]["level"]]
    if reach.distances.shape[0] == 0:
        return left >= LEAST or any_exit_open(worlds, index, header)
    hall = reach.hall
    if not can_touch(reach, ninja, hall[4], hall[5], EXIT_REACH, left):
        return False
    taken = worlds.entity_states[index, header["first_exit"] + 1] != 0
    return taken or can_touch(reach, ninja, hall[2], hall[3], SWITCH_REACH, left - int(hall[7]))


@kernel
def any_exit_open(worlds, index, header):
    """Return whether a switch is taken; an exit can be touched one frame after its switch at the earliest."""
    for number in range(header["exit_count"]):
        if worlds.entity_states[index, header["first_exit"] + 2 * number] != 0:
            return True
    return False


@kernel
def can_touch(reach, ninja, x, y, radius, left):
    """Return whether it is not excluded that the ninja touches something within so many more frames."""
    if left < 0:
        return False
    if ninja["y"] < y - radius:
        fall = reach.falls[left, 0] + reach.falls[left, 1] * max(ninja["vy"], 0.0)
        if ninja["y"] + fall < y - radius:
            return False
    if ninja["x"] < x - radius:
        return can_come(reach, ninja["x"], ninja["vx"], reach.hall[0], x - radius, left)
    if ninja["x"] > x + radius:
        return can_come(reach, -ninja["x"], -ninja["vx"], -reach.hall[1], -x - radius, left)
    return True


@kernel
def can_come(reach, x, vx, wall, target, left):
    """Return whether the ninja can be at ``target``, to its right, within so many frames."""
    if x + distance(reach, vx, left) >= target:
        return True
    from_wall = wall + (LEAVE - RADIUS) + distance(reach, LEAVE_SPEED, left)
    touches = x - distance(reach, -vx, left) <= wall + (WALL_REACH - RADIUS) or x <= wall + (LEAVE - RADIUS)
    return touches and from_wall >= target


@kernel
def distance(reach, vx, left):
    """Return the farthest the ninja can come to the right with a velocity, pixels; a wall in its back aside."""
    count = reach.distances.shape[1]
    place = int(np.floor(vx / reach.hall[6])) + count // 2
    return reach.distances[left, min(max(place, 0), count - 1)]
