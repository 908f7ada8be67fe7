"""Where to go: the landmarks of a level in order, its gold, and path lengths to each with the doors as they then are.

Landmarks are the switches that must be taken, door switches included, and at the end the exit. Which ones, and in which
order, follows from what can be reached: first every door switch in reach is taken to open its door until the exit can
be reached, then switches that turn out not to be needed are dropped, and the others are visited nearest first. So the
number of fields grows with the number of switches, not with the states of the doors.

Path lengths to gold are kept for groups of pieces that lie near each other, so that their number stays small on levels
with hundreds of pieces. A short tour visits the nearest group next; each piece's share is the way from it to the next
one, so the shares of the pieces that are left estimate how long the rest of the tour is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from nclone_env.game import EXIT, EXIT_SWITCH, GOLD, KINDS, LOCKED_DOOR, LOCKED_DOOR_SWITCH, MINE, ONE_WAY, RADIUS
from nclone_env.level.array_cache import Arrays
from nclone_env.level.level_set import LEVEL_HEADER, LevelSet, Paths
from nclone_env.level.routes.distance import distance_at, solid_mask
from nclone_env.level.routes.lattice import (
    FAR,
    LATTICE,
    SPACING,
    clear_nodes,
    length_at,
    mine_costs,
    node_lengths,
    nodes_at_door,
    one_way_steps,
    path_lengths,
)

_NEAR = 36.0
"""Pixels from the first piece of a group to the others; more on levels with many groups."""
_MOST_GROUPS = 64

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
_GOLD_REACH = KINDS[GOLD].radii[0] + RADIUS
_MINE_REACH = KINDS[MINE].radii[0] + RADIUS

_Point = tuple[float, float]
_LAYOUT = {"header": LEVEL_HEADER, "fields": np.dtype(np.float32), "landmarks": np.dtype(np.int16)}


class GoldGuide(NamedTuple):
    """The gold of a level for kernels; no pieces if gold does not count.

    Attributes:
        slots: (G,) int16; entities, in the order of the tour.
        points: (G, 2) float32; x and y, pixels.
        groups: (G,) int16; group of each piece.
        stages: (G,) int16; landmarks that must be taken before it can be reached.
        shares: (G,) float32; way from the piece to the next one, pixels.
        fields: (N, 101, 177) float32; path lengths to each group, pixels; at least one field.
        each: (1,) bool; whether every piece must be collected, so that the tour is a part of the path; False at first.
    """

    slots: np.ndarray
    points: np.ndarray
    groups: np.ndarray
    stages: np.ndarray
    shares: np.ndarray
    fields: np.ndarray
    each: np.ndarray


def no_gold() -> GoldGuide:
    """Return the guide of searches for which gold does not count."""
    none, points, fields = np.zeros(0, np.int16), np.zeros((0, 2), np.float32), np.zeros((1, *LATTICE), np.float32)
    return GoldGuide(none, points, none, none, np.zeros(0, np.float32), fields, np.zeros(1, np.bool_))


def make_gold_guide(
    entities: np.ndarray,
    costs: np.ndarray,
    barred: np.ndarray,
    spawn: tuple[float, float],
    stage_of: Callable[[float, float], int | None],
) -> GoldGuide:
    """Return the guide to the gold that can be reached on a tour from ``spawn``, pixels.

    ``costs`` and ``barred`` are as for ``path_lengths``, with the doors open. ``stage_of`` returns the landmarks to
    take before a point can be reached, None if it cannot.
    """
    slots = np.flatnonzero(entities["type"] == GOLD)
    points = np.stack([entities["x"][slots], entities["y"][slots]], axis=1).astype(np.float32)
    members = _grouped(points)
    stages = [stage_of(float(points[group[0], 0]), float(points[group[0], 1])) for group in members]
    kept = [number for number, stage in enumerate(stages) if stage is not None]
    if not kept:
        return no_gold()
    firsts = (points[members[number][0]].tolist() for number in kept)
    fields = np.stack([path_lengths(costs, x, y, _GOLD_REACH, barred=barred) for x, y in firsts])
    order = _tour(fields, points, [members[number] for number in kept], spawn)
    groups = np.array([group for group, _ in order], np.int16)
    pieces = [piece for _, piece in order]
    return GoldGuide(
        slots[pieces].astype(np.int16),
        points[pieces],
        groups,
        np.array([stages[kept[group]] for group in groups], np.int16),
        _shares(fields, groups, points[pieces]),
        fields,
        np.zeros(1, np.bool_),
    )


def _grouped(points: np.ndarray) -> list[list[int]]:
    """Return the pieces of each group."""
    near = _NEAR
    while True:
        groups: list[list[int]] = []
        for piece, point in enumerate(points):
            for group in groups:
                if np.hypot(*(point - points[group[0]])) <= near:
                    group.append(piece)
                    break
            else:
                groups.append([piece])
        if len(groups) <= _MOST_GROUPS:
            return groups
        near *= 1.25


def _tour(
    fields: np.ndarray, points: np.ndarray, members: Sequence[Sequence[int]], start: tuple[float, float]
) -> list[tuple[int, int]]:
    """Return (group, piece) in an order in which the next group is always the nearest, and so are its pieces."""
    order: list[tuple[int, int]] = []
    left, place = list(range(len(members))), np.array(start, np.float32)
    while left:
        group = min(left, key=lambda number: length_at(fields, number, *place.tolist()))
        left.remove(group)
        pieces = list(members[group])
        while pieces:
            piece = min(pieces, key=lambda one: float(np.hypot(*(points[one] - place))))
            pieces.remove(piece)
            order.append((group, piece))
            place = points[piece]
    return order


def _shares(fields: np.ndarray, groups: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the way from each piece to the next one."""
    shares = np.zeros(len(groups), np.float32)
    for number in range(len(groups) - 1):
        straight = float(np.hypot(*(points[number + 1] - points[number])))
        path = length_at(fields, int(groups[number + 1]), *points[number].tolist())
        shares[number] = straight if path >= FAR else max(straight, path)
    return shares


class Guide(NamedTuple):
    """The path lengths of a level for kernels.

    Attributes:
        fields: (K + 1, 101, 177) float32; path length from each node by the landmarks from number k on, pixels.
        landmarks: (K,) int16; entities in the order they are to be taken.
        longest: (K + 1,) float32; the longest of these path lengths, which also stands for places without a path.
        gold: ``GoldGuide``.
    """

    fields: np.ndarray
    landmarks: np.ndarray
    longest: np.ndarray
    gold: GoldGuide

    @classmethod
    def of(cls, fields: np.ndarray, slots: Sequence[int], gold: GoldGuide | None = None) -> Guide:
        """Return the guide with some fields and landmarks."""
        longest = np.where(fields < FAR, fields, 0.0).max(axis=(1, 2)).astype(np.float32)
        return cls(fields.astype(np.float32), np.array(slots, dtype=np.int16), longest, gold or no_gold())


def make_guide(levels: LevelSet, level: int = 0, gold: bool = False) -> Guide:
    """Return the guide of a level with an exit.

    If no path leads to an exit, doors are taken as open; if there still is none, lengths are as the crow flies.
    More than ``MOST_DOORS`` doors count as open: finding out which of their switches are needed would take minutes.

    Args:
        levels: level set.
        level: index of the level.
        gold: whether to guide to the gold as well.
    """

    @cache
    def lattice(clearance: float) -> _Map:
        return _Map(levels, level, clearance, gold)

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

    def __init__(self, levels: LevelSet, level: int, clearance: float, gold: bool):
        header, arrays = levels.arrays.header[level], levels.arrays
        self._entities = entities = levels.entities_of(level)
        free = clear_nodes(solid_mask(arrays.tiles[level]), clearance)
        costs = mine_costs(entities[entities["type"] == MINE], _MINE_REACH)
        self._costs = np.where(free, costs, np.float32(0.0))
        self._barred = one_way_steps(entities[entities["type"] == ONE_WAY])
        doors = arrays.doors[header["first_door"] :][: header["door_count"]]
        doors = doors[doors["type"] == LOCKED_DOOR]
        self._at_doors = {int(door["owner"]): nodes_at_door(door) for door in doors}
        self._doors = [self._landmark(owner) for owner in self._at_doors]
        self._spawn: _Point = (float(header["spawn_x"]), float(header["spawn_y"]))
        pieces = entities[entities["type"] == GOLD] if gold else entities[:0]
        self._golds = [_Landmark(-1, (float(piece["x"]), float(piece["y"])), _GOLD_REACH) for piece in pieces]
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
        return Guide.of(fields, [landmark.slot for landmark in landmarks[:-1]], self._gold(landmarks[:-1], has_doors))

    def _gold(self, landmarks: Sequence[_Landmark], has_doors: bool) -> GoldGuide | None:
        """Return the guide to the gold, None if gold does not count."""
        if not self._golds:
            return None
        reached = [self._from(self._spawn, landmarks[:count], has_doors) for count in range(len(landmarks) + 1)]

        def stage_of(x: float, y: float) -> int | None:
            piece = _Landmark(-1, (x, y), _GOLD_REACH)
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
