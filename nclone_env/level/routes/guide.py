"""Where to go: the landmarks of a level in order, and path lengths to each with the doors as they then are.

Landmarks are the switches that must be taken, door switches included, and at the end the exit. Which ones, and in which
order, follows from what can be reached: first every door switch in reach is taken to open its door until the exit can
be reached, then switches that turn out not to be needed are dropped, and the others are visited nearest first. So the
number of fields grows with the number of switches, not with the states of the doors.

A careful guide also knows gravity, by which path lengths depend on the height that the ninja can still gain
(``level.routes.gravity``), and trap doors that must stay open (``level.routes.traps``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from nclone_env._arrays import Arrays
from nclone_env.game import EXIT, EXIT_SWITCH, GOLD, KINDS, LOCKED_DOOR, LOCKED_DOOR_SWITCH, MINE, ONE_WAY, RADIUS
from nclone_env.level.compile import LEVEL_HEADER
from nclone_env.level.level_set import LevelSet, Paths
from nclone_env.level.routes.distance import distance_at, solid_mask
from nclone_env.level.routes.gold import GOLD_REACH, GoldGuide, make_gold_guide, no_gold
from nclone_env.level.routes.gravity import NO_FALL, falling_lengths, footing_of
from nclone_env.level.routes.lattice import (
    FAR,
    LATTICE,
    SPACING,
    clear_nodes,
    mine_costs,
    node_lengths,
    nodes_at_door,
    one_way_steps,
    path_lengths,
    seeds_of,
)
from nclone_env.level.routes.traps import TrapGuide, no_traps, trap_doors, trap_guide

_MOST_CLOSED = 200
"""Fields for a landmark and a closed trap door."""
_MOST_FALLS = 40
"""Landmarks of a guide with gravity, a megabyte each."""
MOST_DOORS = 100
"""Locked doors whose switches the path takes in order."""
CLEARANCES = (9.0, 7.0)
"""Radii of the disc that must fit, pixels, in the order they are tried; smaller than the ninja, whose path may touch
walls between two nodes."""
_REACHES = {
    EXIT: KINDS[EXIT].radii[0] + RADIUS,
    EXIT_SWITCH: KINDS[EXIT_SWITCH].radii[0] + RADIUS,
    LOCKED_DOOR: KINDS[LOCKED_DOOR_SWITCH].radii[0] + RADIUS,
}
_MINE_REACH = KINDS[MINE].radii[0] + RADIUS

_Point = tuple[float, float]
_LAYOUT = {"header": LEVEL_HEADER, "fields": np.dtype(np.float32), "landmarks": np.dtype(np.int16)}


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

    @cache
    def lattice(clearance: float) -> _Map:
        return _Map(levels, level, clearance, gold, careful)

    count = int(np.count_nonzero(levels.entities_of(level)["type"] == LOCKED_DOOR))
    for has_doors in (True, False) if count <= MOST_DOORS else (False,):
        for clearance in CLEARANCES:
            landmarks = lattice(clearance).find_landmarks(has_doors)
            if landmarks:
                return lattice(clearance).guide(landmarks, has_doors)
    return lattice(CLEARANCES[0]).straight()


@dataclass(frozen=True)
class _Landmark:
    """A place to go to, and the entity whose state says that the ninja has been there."""

    slot: int
    point: _Point
    reach: float


class _Map:
    """The lattice of a level at one clearance, with its targets."""

    def __init__(self, levels: LevelSet, level: int, clearance: float, gold: bool, careful: bool):
        header, arrays = levels.arrays.header[level], levels.arrays
        self._entities = entities = levels.entities_of(level)
        free = clear_nodes(solid_mask(arrays.tiles[level]), clearance)
        costs = mine_costs(entities[entities["type"] == MINE], _MINE_REACH)
        self._costs = np.where(free, costs, np.float32(0.0))
        one_ways = entities[entities["type"] == ONE_WAY]
        self._barred = one_way_steps(one_ways, clearance) if careful else one_way_steps(one_ways)
        doors = arrays.doors[header["first_door"] :][: header["door_count"]]
        self._careful, self._traps = careful, trap_doors(doors) if careful else []
        doors = doors[doors["type"] == LOCKED_DOOR]
        self._at_doors = {int(door["owner"]): nodes_at_door(door) for door in doors}
        self._doors = [self._landmark(owner) for owner in self._at_doors]
        self._spawn: _Point = (float(header["spawn_x"]), float(header["spawn_y"]))
        pieces = entities[entities["type"] == GOLD] if gold else entities[:0]
        self._golds = [_Landmark(-1, (float(piece["x"]), float(piece["y"])), GOLD_REACH) for piece in pieces]
        self._exits = [
            (self._landmark(slot + 1), self._landmark(slot))
            for slot in np.flatnonzero(entities["type"] == EXIT).tolist()
        ]

    def find_landmarks(self, has_doors: bool) -> list[_Landmark]:
        """Return the landmarks in order, the exit last; none if an exit cannot be reached.

        With ``has_doors`` locked doors are closed until their switch is taken.
        """
        needed = self._needed() if has_doors else []
        if needed is None:
            return []
        for switch, exit_ in self._exits:
            order = self._nearest_first([*needed, switch], has_doors)
            if order and _at(self._from(order[-1].point, order, has_doors), exit_) < FAR:
                return [*order, exit_]
        return []

    def guide(self, landmarks: Sequence[_Landmark], has_doors: bool) -> Guide:
        """Return the guide with the fields to some landmarks, the exit last."""
        fields = np.empty((len(landmarks), *LATTICE), dtype=np.float32)
        onward = 0.0
        for number in reversed(range(len(landmarks))):
            target = landmarks[number]
            costs = self._open_costs(landmarks[:number], has_doors)
            fields[number] = path_lengths(costs, *target.point, target.reach, onward, self._barred)
            if number:
                onward = _at(fields[number], landmarks[number - 1])
        falls = self._falls(landmarks, fields, has_doors) if self._careful and len(landmarks) <= _MOST_FALLS else ()
        gold, traps = self._gold(landmarks[:-1], has_doors), self._trap_guide(landmarks)
        return Guide.of(fields, [landmark.slot for landmark in landmarks[:-1]], gold, falls, traps)

    def _trap_guide(self, landmarks: Sequence[_Landmark]) -> TrapGuide:
        """Return the trap doors that must stay open, by paths that touch no mine; none if they are too many.

        Locked doors are open: a search can open others than those of the landmarks.
        """
        if not 0 < len(self._traps) * len(landmarks) <= _MOST_CLOSED:
            return no_traps()
        costs = np.where(self._costs > 1.0, np.float32(0.0), self._costs)
        needed = np.zeros((len(landmarks), *LATTICE), np.uint64)
        never = np.zeros(len(self._traps), np.bool_)  # whether a later landmark is out of reach
        for number in reversed(range(len(landmarks))):
            is_open = self._to(landmarks[number], costs) < FAR
            for bit, same in enumerate(self._traps):
                closed = nodes_at_door(same[0])
                lengths = self._to(landmarks[number], np.where(closed, np.float32(0.0), costs))
                stuck = is_open & ~closed & ((lengths >= FAR) | never[bit])
                needed[number][stuck] |= np.uint64(1 << bit)
                never[bit] |= number > 0 and _at(lengths, landmarks[number - 1]) >= FAR
        return trap_guide(self._traps, needed)

    def _to(self, target: _Landmark, costs: np.ndarray) -> np.ndarray:
        return path_lengths(costs, *target.point, target.reach, barred=self._barred)

    def _falls(self, landmarks: Sequence[_Landmark], fields: np.ndarray, has_doors: bool) -> list[np.ndarray]:
        """Return (10, 101, 177) float32 for each landmark: path lengths with gravity; ``fields`` are those without."""
        falls: list[np.ndarray] = []
        onward = 0.0
        for number in reversed(range(len(landmarks))):
            target, costs = landmarks[number], self._open_costs(landmarks[:number], has_doors)
            seeds = seeds_of(costs, *target.point, target.reach, onward)
            footing = footing_of(costs, self._entities)
            falls.insert(0, falling_lengths(fields[number], costs, footing, seeds, self._barred))
            if number:
                before = landmarks[number - 1]
                onward = min(_at(falls[0][-1], before), _at(fields[number], before) + NO_FALL)
        return falls

    def _gold(self, landmarks: Sequence[_Landmark], has_doors: bool) -> GoldGuide | None:
        """Return the guide to the gold, None if gold does not count."""
        if not self._golds:
            return None
        reached = [self._from(self._spawn, landmarks[:count], has_doors) for count in range(len(landmarks) + 1)]

        def stage_of(x: float, y: float) -> int | None:
            piece = _Landmark(-1, (x, y), GOLD_REACH)
            return next((count for count, lengths in enumerate(reached) if _at(lengths, piece) < FAR), None)

        costs = self._open_costs(landmarks, has_doors)
        return make_gold_guide(self._entities, costs, self._barred, self._spawn, stage_of)

    def straight(self) -> Guide:
        """Return a guide to the switch and the exit through everything."""
        switch, exit_ = self._exits[0]
        dx, dy = switch.point[0] - exit_.point[0], switch.point[1] - exit_.point[1]
        last = np.sqrt(dx * dx + dy * dy)
        fields = np.stack([node_lengths(*switch.point) + last, node_lengths(*exit_.point)])
        return Guide.of(fields, [switch.slot])

    def _landmark(self, slot: int) -> _Landmark:
        entity = self._entities[slot]
        return _Landmark(slot, (float(entity["x"]), float(entity["y"])), _REACHES[int(entity["type"])])

    def _open_costs(self, taken: Sequence[_Landmark], has_doors: bool = True) -> np.ndarray:
        """Return the costs with the doors closed whose switches are not taken."""
        costs = self._costs.copy()
        slots = {landmark.slot for landmark in taken}
        for owner, nodes in self._at_doors.items():
            if has_doors and owner not in slots:
                costs[nodes] = 0.0
        return costs

    def _from(self, point: _Point, taken: Sequence[_Landmark], has_doors: bool = True) -> np.ndarray:
        costs = self._open_costs(taken, has_doors)
        return path_lengths(costs, *point, RADIUS, barred=self._barred, towards=False)

    def _needed(self) -> list[_Landmark] | None:
        """Return the door switches without which no exit can be reached; None if none can be reached with all."""
        taken = self._opened(self._doors)
        if taken is None:
            return None
        for switch in reversed(taken):
            fewer = self._opened([other for other in taken if other is not switch])
            if fewer is not None:
                taken = fewer
        return taken

    def _opened(self, allowed: Sequence[_Landmark]) -> list[_Landmark] | None:
        """Return the door switches to take until an exit, its switch and the gold can be reached; None if they cannot.

        Gold that cannot be reached with all doors open does not count.
        """
        taken: list[_Landmark] = []
        left = list(allowed)
        all_open = self._from(self._spawn, self._doors) if self._golds else None
        golds = [gold for gold in self._golds if all_open is not None and _at(all_open, gold) < FAR]
        while True:
            lengths = self._from(self._spawn, taken)
            has_exit = any(_at(lengths, switch) < FAR and _at(lengths, exit_) < FAR for switch, exit_ in self._exits)
            if has_exit and all(_at(lengths, gold) < FAR for gold in golds):
                return taken
            found = [switch for switch in left if _at(lengths, switch) < FAR]
            if not found:
                return None
            taken += found
            left = [switch for switch in left if switch not in found]

    def _nearest_first(self, landmarks: Sequence[_Landmark], has_doors: bool) -> list[_Landmark]:
        """Return the order in which the nearest landmark in reach is always the next; none if one is never in reach."""
        order: list[_Landmark] = []
        left, point = list(landmarks), self._spawn
        while left:
            lengths = self._from(point, order, has_doors)
            nearest = min(left, key=lambda landmark: _at(lengths, landmark))
            if _at(lengths, nearest) >= FAR:
                return []
            order.append(nearest)
            left.remove(nearest)
            point = nearest.point
        return order


def _at(field: np.ndarray, landmark: _Landmark) -> float:
    """Return the path length from the centre of a landmark, by the free nodes within its reach."""
    column, row = (int((value + 0.5 * SPACING) / SPACING) for value in landmark.point)
    around = int(landmark.reach / SPACING)
    rows = np.arange(max(row - around, 0), min(row + around + 1, LATTICE[0]))
    columns = np.arange(max(column - around, 0), min(column + around + 1, LATTICE[1]))
    if not (len(rows) and len(columns)):
        return FAR  # outside the world
    dx, dy = SPACING * columns - landmark.point[0], SPACING * rows - landmark.point[1]
    lengths = np.sqrt(dx * dx + (dy * dy)[:, None])
    return float((field[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] + lengths).min())


def paths_with_doors(levels: LevelSet) -> Paths:
    """Return paths by the landmarks of the guides (``level.routes.guide``); computed once per machine.

    Locked doors are closed until their switch is taken, and steps near mines are longer than they are.
    """
    return Paths(**levels.derived("door paths", _LAYOUT, lambda: _joined(levels)))


def _joined(levels: LevelSet) -> Arrays:
    """Return the arrays of ``Paths``."""
    parts = [_level_paths(levels, level) for level in range(len(levels.levels))]
    header = levels.arrays.header.copy()
    header["landmark_count"] = [len(landmarks) for _, landmarks in parts]
    header["first_landmark"] = header["first_field"] = np.cumsum(header["landmark_count"]) - header["landmark_count"]
    for row, (fields, _), level in zip(header, parts, levels.levels, strict=True):
        row["start_distance"] = distance_at(fields, 0, *level.spawn)
    return {
        "header": header,
        "fields": np.concatenate([fields for fields, _ in parts]),
        "landmarks": np.concatenate([landmarks for _, landmarks in parts]),
    }


def _level_paths(levels: LevelSet, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the fields of a level and its landmarks, with the exit as the last."""
    guide = make_guide(levels, level)
    switches = guide.landmarks[levels.entities_of(level)["type"][guide.landmarks] == EXIT_SWITCH]
    landmarks = np.append(guide.landmarks, switches[-1] - 1)  # an exit precedes its switch
    fields = guide.fields[:, ::2, ::2]  # every second node of the guide is one of the coarser lattice
    return np.where(fields < FAR, fields, np.float32(np.inf)), landmarks.astype(np.int16)
