"""The kernels that pages run, as the exports of a WebAssembly module (``jit.retarget``), and what a page has to know.

A page has one level at a time in the memory of the module, and any number of worlds, each in arrays of its own. For
policies it also has the paths of the level, of one kind or both.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from nclone_env.game import INPUT_OF_ACTION, KINDS, NUM_ACTIONS, ROCKET_TURRET
from nclone_env.jit import kernel
from nclone_env.jit.sources import kernels_digest
from nclone_env.level.compile import level_room, write_level
from nclone_env.level.level_set import Paths
from nclone_env.level.routes.distance import CLEARANCE, SOLID_SHAPE, write_objective_fields, write_solid
from nclone_env.level.routes.fields import FIELD_SHAPE, NODES, distance_at, field_room
from nclone_env.level.routes.landmarks import find_route, terrain_room, write_route
from nclone_env.level.routes.lattice import find_clear
from nclone_env.obs.action_outcomes import PROGRESS, SCRATCH_WORLDS, VALUES, write_outcomes
from nclone_env.obs.free_motion import write_free_motion
from nclone_env.obs.game_state import write_game_state
from nclone_env.obs.locals import write_planes
from nclone_env.obs.spec import ACTION_OUTCOME, FREE_MOTION, GAME_STATE
from nclone_env.render.raster import all_glyphs
from nclone_env.sim.frame import start, tick
from nclone_env.sim.state import MOVER, NINJA_RECORD, copy_world, hash_world, mark_of
from nclone_env.sim.store import NO_TRAIL, ROOM, WorldArrays, store_of
from profiling.checks.web_rows import PER_SPRITE, write_rows

SECTION = "nclone_env"
"""The section of the module that holds the layout."""
RULES = np.dtype([(name, "i4") for name in ("max_frames", "local_position", "outcome_frames")])
"""What observations depend on, as of ``EnvironmentConfig`` and ``ObservationConfig``."""
_ALL_FRAMES = 1 << 60


class TilePaths(NamedTuple):
    """What :func:`tile_paths` overwrites.

    Attributes:
        solid: (300, 528) bool.
        free: (51, 89) bool.
        costs: (51, 89) float32.
        lengths: (51, 89) float32.
        points: (2n, 2) float64 for n exits or more.
        steps: (51, 89) uint8, zeros, which stay.
        queue: (51 * 89,) int32.
        queued: (51, 89) bool, all False, and so again afterwards.
        ends: (2,) int64.
    """

    solid: np.ndarray
    free: np.ndarray
    costs: np.ndarray
    lengths: np.ndarray
    points: np.ndarray
    steps: np.ndarray
    queue: np.ndarray
    queued: np.ndarray
    ends: np.ndarray


class Seen(NamedTuple):
    """What a policy observes, a row each of ``obs.spec``; those without rows are not written.

    Attributes:
        game_state: (1, 30) float32.
        locals: (1, P, S, S) uint8.
        free_motion: (1, 6, 10) float32.
        action_outcomes: (1, 6, 8) float32.
    """

    game_state: np.ndarray
    locals: np.ndarray
    free_motion: np.ndarray
    action_outcomes: np.ndarray


@kernel
def make_world(levels, worlds):
    """Give the worlds of zeroed arrays room for the only level, and put the first at its start."""
    header, store = levels.header[0], store_of(worlds)
    entities, movers, rows = header["entity_count"], header["mover_count"], header["trail_count"]
    for index in range(worlds.ninjas.shape[0]):
        room = worlds.rooms[index]
        room["entities"]["first"], room["entities"]["size"] = index * entities, entities
        room["movers"]["first"], room["movers"]["size"] = index * movers, movers
        room["trail"]["first"], room["trail"]["size"] = index * rows, rows
    store["entities"]["used"], store["movers"]["used"] = entities, movers
    store["trail"]["used"], store["trail_begin"] = rows, NO_TRAIL
    start(levels, worlds, 0, 0)


@kernel
def play(levels, worlds, inputs, first, last):
    """Play frames ``first`` to ``last - 1`` of (T,) uint8 inputs; from the start if ``first`` is 0."""
    if first == 0:
        start(levels, worlds, 0, 0)
    for frame in range(first, last):
        tick(levels, worlds, 0, inputs[frame])


@kernel
def hash_of(worlds):
    """Return the hash of a world."""
    return hash_world(worlds, 0)


@kernel
def copy(source, target):
    """Copy one world over another."""
    copy_world(source, 0, target, 0)


@kernel
def mark(worlds, actions, count, level, number, key):
    """Return the mark of an episode of ``count`` actions in a world; the other numbers are as of ``sim.mark_of``."""
    ninja = worlds.ninjas[0]
    ninja["level"] = level
    found = mark_of(ninja, actions, 0, count, number, key)
    ninja["level"] = 0
    return found


@kernel
def tile_paths(levels, scratch, paths):
    """Write the paths of the level between tiles, which doors do not block."""
    header, costs, points = levels.header[0], scratch.costs, scratch.points
    write_solid(levels.tiles[0], scratch.solid)
    find_clear(scratch.solid, scratch.free, CLEARANCE)
    for row in range(costs.shape[0]):
        for column in range(costs.shape[1]):
            costs[row, column] = 1.0 if scratch.free[row, column] else 0.0
    exits = header["exit_count"]
    for number in range(exits):
        for is_switch in range(2):
            entity = levels.entities[header["first_exit"] + 2 * number + is_switch]
            place = exits * is_switch + number
            points[place, 0], points[place, 1] = entity["x"], entity["y"]
    lengths, steps, queue, queued = scratch.lengths, scratch.steps, scratch.queue, scratch.queued
    write_objective_fields(costs, points, exits, lengths, steps, queue, queued, paths, scratch.ends)
    _write_header(levels, paths, 0)


@kernel
def _write_header(levels, paths, landmarks):
    """Write the header of the paths."""
    paths.header[0] = levels.header[0]
    header = paths.header[0]
    header["landmark_count"] = landmarks
    header["start_distance"] = distance_at(paths, 0, header["spawn_x"], header["spawn_y"])


@kernel
def route(levels, terrain, order, found):
    """Find the route of the level (``level.routes.landmarks``); ``found``, (4,) int64, gets its length and its way."""
    found[0], found[1] = find_route(levels, 0, terrain, order)


@kernel
def door_paths(levels, terrain, order, found, paths):
    """Write the paths of a route, which closed doors block."""
    write_route(terrain, order, found[0], found[1], paths, paths.landmarks, found[2:])
    _write_header(levels, paths, found[0])


@kernel
def observe(levels, paths, worlds, rules, tried, progress, values, seen):
    """Write what a policy observes of a world.

    Args:
        paths: ``Paths``.
        rules: (1,) ``RULES``.
        tried: ``WorldArrays`` of two worlds, overwritten.
        progress: (4,) int64, zeros, which stay.
        values: (9,) float64, overwritten.
        seen: ``Seen``, written.
    """
    settings = rules[0]
    frames = settings["outcome_frames"]
    if seen.game_state.shape[0] > 0:
        write_game_state(levels, paths, worlds, 0, settings, seen.game_state[0])
    if seen.locals.shape[0] > 0:
        write_planes(levels, paths, worlds, 0, seen.locals[0])
    if seen.free_motion.shape[0] > 0:
        write_free_motion(levels, paths, worlds, 0, frames, seen.free_motion[0])
    if seen.action_outcomes.shape[0] > 0:
        out = seen.action_outcomes[0]
        write_outcomes(levels, paths, worlds, 0, frames, tried, 0, progress, values, _ALL_FRAMES, out)


def _tile_room(entities: int) -> TilePaths:
    """Return zeroed arrays for a level with so many entities."""
    real, flag = np.float32, np.bool_
    return TilePaths(
        solid=np.zeros(SOLID_SHAPE, flag),
        free=np.zeros(FIELD_SHAPE, flag),
        costs=np.zeros(FIELD_SHAPE, real),
        lengths=np.zeros(FIELD_SHAPE, real),
        points=np.zeros((entities, 2)),
        steps=np.zeros(FIELD_SHAPE, np.uint8),
        queue=np.zeros(NODES, np.int32),
        queued=np.zeros(FIELD_SHAPE, flag),
        ends=np.zeros(2, np.int64),
    )


def _path_room(fields: int) -> Paths:
    """Return zeroed arrays for so many fields."""
    return Paths(level_room(0).header, *field_room(fields), np.zeros(fields, np.int16))


def _seen_room(side: int) -> Seen:
    """Return zeroed arrays with a grid that has so many squares on a side."""
    return Seen(
        game_state=np.zeros((1, len(GAME_STATE)), np.float32),
        locals=np.zeros((1, 1, side, side), np.uint8),
        free_motion=np.zeros((1, NUM_ACTIONS, len(FREE_MOTION)), np.float32),
        action_outcomes=np.zeros((1, NUM_ACTIONS, len(ACTION_OUTCOME)), np.float32),
    )


def _eyes() -> dict[str, np.ndarray]:
    """Return the arrays of :func:`observe` that are the same for all levels, by name."""
    return {"rules": np.zeros(1, RULES), "progress": np.zeros(PROGRESS, np.int64), "values": np.zeros(VALUES)}


def _worlds() -> WorldArrays:
    return WorldArrays(
        np.zeros(1, NINJA_RECORD),
        np.zeros(2, ROOM),
        np.zeros(1, np.uint8),
        np.zeros(1, MOVER),
        np.zeros(1, np.uint16),
        np.zeros((1, 2)),
    )


def exports() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return a kernel for each export, and arguments of its types."""
    levels = level_room(1)
    worlds = _worlds()
    tiles, records = np.zeros((23, 42), np.uint8), np.zeros((1, 5), np.uint8)
    sprites, rows = np.zeros((1, PER_SPRITE)), np.zeros((1, 1), np.int32)
    terrain, paths, seen = terrain_room(1, 1), _path_room(1), _seen_room(1)
    order, found = np.zeros(1, np.int16), np.zeros(4, np.int64)
    rules, progress, values = _eyes().values()
    return {
        "compile": (write_level, (tiles, records, levels)),
        "make": (make_world, (levels, worlds)),
        "play": (play, (levels, worlds, np.zeros(1, np.uint8), 0, 0)),
        "hash": (hash_of, (worlds,)),
        "copy": (copy, (worlds, worlds)),
        "rows": (write_rows, (levels, worlds, all_glyphs(), sprites, rows)),
        "mark": (mark, (worlds, np.zeros(1, np.uint8), 0, 0, 0, 0)),
        "tile_paths": (tile_paths, (levels, _tile_room(1), paths)),
        "route": (route, (levels, terrain, order, found)),
        "door_paths": (door_paths, (levels, terrain, order, found, paths)),
        "observe": (observe, (levels, paths, worlds, rules, worlds, progress, values, seen)),
    }


def layout() -> dict[str, Any]:
    """Return what ``simulator.js`` has to know of the module, for JSON."""
    glyphs = all_glyphs()
    return {
        "sources": kernels_digest(function for function, _ in exports().values()),
        "exports": {name: list(_parameters(*export)) for name, export in exports().items()},
        "rooms": {
            "levels": _growing(level_room),
            "terrain": _growing(lambda entities: terrain_room(entities, entities)),
            "tiles": _growing(_tile_room),
            "paths": _growing(_path_room),
            "seen": _growing(_seen_room),
        },
        "eyes": {name: {"shape": array.shape, "itemsize": array.itemsize} for name, array in _eyes().items()},
        "worlds": {
            name: {"itemsize": array.itemsize, "inner": array.shape[1:]} for name, array in _worlds()._asdict().items()
        },
        "records": {
            "ninja": _fields(NINJA_RECORD),
            "header": _fields(level_room(0).header.dtype),
            "entity": _fields(level_room(0).entities.dtype),
            "rules": _fields(RULES),
        },
        "constants": {
            f"glyphs.{name}": _in_runs(getattr(glyphs, name)) for name in ("appearances", "door_appearances")
        },
        "most": [kind.most for kind in KINDS],
        "shooting": [kind.number for kind in KINDS if kind.shoots],
        "twice": ROCKET_TURRET,
        "inputs": list(INPUT_OF_ACTION),
        "tried": SCRATCH_WORLDS,
    }


def _growing(room: Callable[[int], Any]) -> dict[str, dict[str, Any]]:
    """Return the shape of each array of a room, what each thing that it has room for adds to it, and item sizes."""
    none, one = room(0)._asdict(), room(1)._asdict()
    return {
        name: {
            "shape": array.shape,
            "each": [more - less for less, more in zip(array.shape, one[name].shape)],
            "itemsize": array.itemsize,
        }
        for name, array in none.items()
    }


def _parameters(function: Any, arguments: tuple[Any, ...]) -> Iterator[tuple[str, int]]:
    """Yield the name of each parameter of an export, and its dimensions, 0 of numbers."""
    for name, argument in zip(inspect.signature(function.py_func).parameters, arguments, strict=True):
        parts = argument._asdict() if isinstance(argument, tuple) else {"": argument}  # type: ignore[attr-defined]
        for part, value in parts.items():
            yield f"{name}.{part}" if part else name, getattr(value, "ndim", 0)


def _fields(record: np.dtype) -> dict[str, tuple[int, str]]:
    """Return the offset of each field of a record, and the method of ``DataView`` that reads it."""
    kinds = {"f8": "getFloat64", "i4": "getInt32", "i2": "getInt16", "i1": "getInt8", "u1": "getUint8"}
    return {name: (record.fields[name][1], kinds[record[name].str[1:]]) for name in record.names or ()}  # type: ignore[index]


def _in_runs(array: np.ndarray) -> dict[str, Any]:
    """Return an array of 16-bit numbers as its different rows, in runs of equal numbers, and which rows it has."""
    rows, which = np.unique(array.reshape(-1, array.shape[-1]), axis=0, return_inverse=True)
    runs = []
    for row in rows:
        first = np.flatnonzero(np.diff(row, prepend=row[0] - 1))
        runs.append(np.stack([row[first], np.diff(first, append=len(row))], axis=1).reshape(-1).tolist())
    return {"shape": array.shape, "rows": runs, "which": which.tolist()}
