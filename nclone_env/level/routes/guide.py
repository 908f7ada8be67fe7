"""Where to go: the landmarks of a level in order, and path lengths to each with the doors as they then are.

Landmarks are the switches that must be taken, door switches included, and at the end the exit. Which ones, and in which
order, follows from what can be reached: first every door switch in reach is taken to open its door until the exit can
be reached, then switches that turn out not to be needed are dropped, and the others are visited nearest first. So the
number of fields grows with the number of switches, not with the states of the doors.

A careful guide also knows gravity, by which path lengths depend on the height that the ninja can still gain
(``level.routes.gravity``), and trap doors that must stay open (``level.routes.traps``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from nclone_env._arrays import Arrays
from nclone_env.errors import check_integer, checked
from nclone_env.game import GOLD, LOCKED_DOOR
from nclone_env.level.compile import LEVEL_HEADER
from nclone_env.level.level_set import LevelSet, Paths
from nclone_env.level.routes.fields import FIELDS_LAYOUT, Fields, distance_at, field_room, joined_fields, trimmed
from nclone_env.level.routes.gold import GOLD_REACH, GoldGuide, make_gold_guide, no_gold
from nclone_env.level.routes.gravity import NO_FALL, falling_lengths, footing_of
from nclone_env.level.routes.landmarks import (
    CLEARANCES,
    DOORS,
    GOLDS,
    MOST_DOORS,
    close_doors,
    find_from,
    find_landmarks,
    find_route,
    length_from,
    terrain_room,
    write_lengths,
    write_route,
    write_terrain,
)
from nclone_env.level.routes.lattice import CLOSEST, FAR, LATTICE, node_lengths, nodes_at_door, path_lengths, seeds_of
from nclone_env.level.routes.traps import TrapGuide, no_traps, trap_doors, trap_guide

_MOST_CLOSED = 200
"""Fields for a landmark and a closed trap door."""
_MOST_FALLS = 40
"""Landmarks of a guide with gravity, a megabyte each."""
_LAYOUT = {"header": LEVEL_HEADER, **FIELDS_LAYOUT, "landmarks": np.dtype(np.int16)}


class Guide(NamedTuple):
    """The path lengths of a level for kernels.

    Attributes:
        fields: (K + 1, 101, 177) float32; path length from each node by the landmarks from number k on, pixels.
        landmarks: (K,) int16; entities in the order they are to be taken.
        longest: (K + 1,) float32; the longest of these path lengths, which also stands for places without a path.
        gold: ``GoldGuide``.
        falls: (K + 1, 10, 101, 177) float32; path lengths with gravity, by the height that the ninja can still gain
            (:func:`rise_of`); (0, 1, 1, 1) if gravity does not count.
        traps: ``TrapGuide``.
    """

    fields: np.ndarray
    landmarks: np.ndarray
    longest: np.ndarray
    gold: GoldGuide
    falls: np.ndarray
    traps: TrapGuide

    @classmethod
    def of(
        cls,
        fields: np.ndarray,
        slots: Sequence[int],
        gold: GoldGuide | None = None,
        falls: Sequence[np.ndarray] = (),
        traps: TrapGuide | None = None,
    ) -> Guide:
        """Return the guide with some fields and landmarks."""
        longest = np.where(fields < FAR, fields, 0.0).max(axis=(1, 2)).astype(np.float32)
        stacked = np.stack(falls) if falls else np.zeros((0, 1, 1, 1), np.float32)
        landmarks = np.array(slots, dtype=np.int16)
        return cls(fields.astype(np.float32), landmarks, longest, gold or no_gold(), stacked, traps or no_traps())


@checked()
def make_guide(levels: LevelSet, level: int = 0, gold: bool = False, careful: bool = False) -> Guide:
    """Return the guide of a level with an exit.

    If no path leads to an exit, doors are taken as open; if there still is none, lengths are as the crow flies.
    More than ``MOST_DOORS`` doors count as open: finding out which of their switches are needed would take minutes.

    Args:
        levels: level set.
        level: index of the level.
        gold: whether to guide to the gold as well.
        careful: whether gravity, trap doors and the clearance from one-way platforms count; gravity does if there are
            at most ``_MOST_FALLS`` landmarks.
    """
    check_integer("level", level, low=0, high=len(levels.levels) - 1)

    @cache
    def lattice(clearance: float) -> _Map:
        return _Map(levels, level, clearance, gold, careful)

    count = int(np.count_nonzero(levels.entities_of(level)["type"] == LOCKED_DOOR))
    for has_doors in (True, False) if count <= MOST_DOORS else (False,):
        for clearance in CLEARANCES:
            order = lattice(clearance).find_landmarks(has_doors)
            if len(order):
                return lattice(clearance).guide(order, has_doors)
    return lattice(CLEARANCES[0]).straight()


class _Map:
    """The lattice of a level at one clearance, with its targets; an order is an array of rows of its places."""

    def __init__(self, levels: LevelSet, level: int, clearance: float, gold: bool, careful: bool):
        header, arrays = levels.arrays.header[level], levels.arrays
        self._entities = entities = levels.entities_of(level)
        pieces = entities[entities["type"] == GOLD] if gold else entities[:0]
        doors = arrays.doors[header["first_door"] :][: header["door_count"]]
        count = int(np.count_nonzero(doors["type"] == LOCKED_DOOR))
        places = count + 2 * int(header["exit_count"])
        self._terrain = terrain_room(count, places + len(pieces))
        write_terrain(arrays, level, clearance, clearance if careful else CLOSEST, self._terrain)
        self._careful, self._traps = careful, trap_doors(doors) if careful else []
        self._has_gold = len(pieces) > 0
        if self._has_gold:
            self._count_gold(pieces, places)

    def _count_gold(self, pieces: np.ndarray, first: int) -> None:
        """Make places of the gold that can be reached with all doors open."""
        terrain = self._terrain
        lengths = self._from(np.arange(terrain.counts[DOORS]), True)
        points = [(float(piece["x"]), float(piece["y"])) for piece in pieces]
        reached = [(*point, GOLD_REACH, -1) for point in points if length_from(lengths, *point, GOLD_REACH) < FAR]
        terrain.places[first : first + len(reached)] = reached
        terrain.counts[GOLDS] = len(reached)

    def find_landmarks(self, has_doors: bool) -> np.ndarray:
        """Return the order of the landmarks, the exit last; empty if an exit cannot be reached.

        With ``has_doors`` locked doors are closed until their switch is taken.
        """
        order = np.zeros(self._terrain.lists.shape[1], np.int16)
        return order[: find_landmarks(self._terrain, has_doors, order)]

    def guide(self, order: np.ndarray, has_doors: bool) -> Guide:
        """Return the guide with the fields to some landmarks, the exit last."""
        terrain, fields = self._terrain, np.empty((len(order), *LATTICE), dtype=np.float32)
        onward = 0.0
        for number in reversed(range(len(order))):
            onward = write_lengths(terrain, order, number, has_doors, onward, fields[number])
        falls = self._falls(order, fields, has_doors) if self._careful and len(order) <= _MOST_FALLS else ()
        gold, traps = self._gold(order[:-1], has_doors), self._trap_guide(order)
        return Guide.of(fields, terrain.places["slot"][order[:-1]].tolist(), gold, falls, traps)

    def _trap_guide(self, order: np.ndarray) -> TrapGuide:
        """Return the trap doors that must stay open, by paths that touch no mine; none if they are too many.

        Locked doors are open: a search can open others than those of the landmarks.
        """
        if not 0 < len(self._traps) * len(order) <= _MOST_CLOSED:
            return no_traps()
        costs = np.where(self._terrain.costs > 1.0, np.float32(0.0), self._terrain.costs)
        needed = np.zeros((len(order), *LATTICE), np.uint64)
        never = np.zeros(len(self._traps), np.bool_)  # whether a later landmark is out of reach
        for number in reversed(range(len(order))):
            is_open = self._to(order[number], costs) < FAR
            for bit, same in enumerate(self._traps):
                closed = nodes_at_door(same[0])
                lengths = self._to(order[number], np.where(closed, np.float32(0.0), costs))
                stuck = is_open & ~closed & ((lengths >= FAR) | never[bit])
                needed[number][stuck] |= np.uint64(1 << bit)
                never[bit] |= number > 0 and length_from(lengths, *self._target(order[number - 1])) >= FAR
        return trap_guide(self._traps, needed)

    def _target(self, place: int) -> tuple[float, float, float]:
        """Return centre and radius of a place."""
        x, y, reach, _ = self._terrain.places[place].item()
        return x, y, reach

    def _to(self, place: int, costs: np.ndarray) -> np.ndarray:
        return path_lengths(costs, *self._target(place), barred=self._terrain.barred)

    def _falls(self, order: np.ndarray, fields: np.ndarray, has_doors: bool) -> list[np.ndarray]:
        """Return (10, 101, 177) float32 for each landmark: path lengths with gravity; ``fields`` are those without."""
        falls: list[np.ndarray] = []
        onward = 0.0
        for number in reversed(range(len(order))):
            costs = self._open_costs(order[:number], has_doors)
            seeds = seeds_of(costs, *self._target(order[number]), onward)
            footing = footing_of(costs, self._entities)
            falls.insert(0, falling_lengths(fields[number], costs, footing, seeds, self._terrain.barred))
            if number:
                before = self._target(order[number - 1])
                onward = min(length_from(falls[0][-1], *before), length_from(fields[number], *before) + NO_FALL)
        return falls

    def _gold(self, order: np.ndarray, has_doors: bool) -> GoldGuide | None:
        """Return the guide to the gold, None if gold does not count."""
        if not self._has_gold:
            return None
        reached = [self._from(order[:count], has_doors) for count in range(len(order) + 1)]

        def stage_of(x: float, y: float) -> int | None:
            lengths = (length_from(lengths, x, y, GOLD_REACH) for lengths in reached)
            return next((count for count, length in enumerate(lengths) if length < FAR), None)

        spawn: tuple[float, float] = tuple(self._terrain.spawn.tolist())
        return make_gold_guide(
            self._entities, self._open_costs(order, has_doors), self._terrain.barred, spawn, stage_of
        )

    def straight(self) -> Guide:
        """Return a guide to the switch and the exit through everything."""
        first = int(self._terrain.counts[DOORS])
        switch, exit_ = (self._target(place)[:2] for place in (first, first + 1))
        dx, dy = switch[0] - exit_[0], switch[1] - exit_[1]
        last = np.sqrt(dx * dx + dy * dy)
        fields = np.stack([node_lengths(*switch) + last, node_lengths(*exit_)])
        return Guide.of(fields, [int(self._terrain.places[first]["slot"])])

    def _open_costs(self, taken: np.ndarray, has_doors: bool) -> np.ndarray:
        """Return the costs with the doors closed whose switches are not taken."""
        close_doors(self._terrain, taken, len(taken), has_doors)
        return self._terrain.open.copy()

    def _from(self, taken: np.ndarray, has_doors: bool) -> np.ndarray:
        """Return the path lengths from the start."""
        order = np.array(taken, np.int16)
        find_from(self._terrain, *self._terrain.spawn.tolist(), order, len(order), has_doors)
        return self._terrain.field.copy()


def paths_with_doors(levels: LevelSet, on_level: Callable[[str, int, int], object] | None = None) -> Paths:
    """Return paths by the landmarks of the guides (``level.routes.guide``); computed once per machine.

    Locked doors are closed until their switch is taken, and steps near mines are longer than they are. ``on_level`` is
    called after each level whose paths are computed now: with what is done, to how many levels so far, and to how many
    in all.
    """
    return Paths(**levels.derived("door paths", _LAYOUT, lambda: _joined(levels, on_level)))


def _joined(levels: LevelSet, on_level: Callable[[str, int, int], object] | None) -> Arrays:
    """Return the arrays of ``Paths``."""
    parts = []
    for number in range(len(levels.levels)):
        parts.append(_level_paths(levels, number))
        if on_level is not None:
            on_level("paths found", number + 1, len(levels.levels))
    header = levels.arrays.header.copy()
    header["landmark_count"] = [len(landmarks) for _, landmarks in parts]
    header["first_landmark"] = header["first_field"] = np.cumsum(header["landmark_count"]) - header["landmark_count"]
    for row, (fields, _), level in zip(header, parts, levels.levels, strict=True):
        row["start_distance"] = distance_at(fields, 0, *level.spawn)
    fields = joined_fields([fields for fields, _ in parts])
    landmarks = np.concatenate([landmarks for _, landmarks in parts])
    return {"header": header, **fields._asdict(), "landmarks": landmarks}


def _level_paths(levels: LevelSet, level: int) -> tuple[Fields, np.ndarray]:
    """Return the fields of a level and its landmarks, with the exit as the last."""
    most = int(levels.arrays.header[level]["entity_count"])
    terrain, order = terrain_room(most, most), np.zeros(most + 2, np.int16)
    count, way = find_route(levels.arrays, level, terrain, order)
    fields, landmarks, ends = field_room(count), np.zeros(count, np.int16), np.zeros(2, np.int64)
    write_route(terrain, order, count, way, fields, landmarks, ends)
    return trimmed(fields, *ends.tolist()), landmarks
