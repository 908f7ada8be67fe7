"""The gold of a level: path lengths to each group of pieces, and a tour of them.

Path lengths are kept for groups of pieces that lie near each other, so that their number stays small on levels with
hundreds of pieces. A short tour visits the nearest group next; each piece's share is the way from it to the next one,
so the shares of the pieces that are left estimate how long the rest of the tour is.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nclone_env.game import GOLD, KINDS, RADIUS
from nclone_env.level.routes.lattice import FAR, LATTICE, length_at, path_lengths

GOLD_REACH = KINDS[GOLD].radii[0] + RADIUS
_NEAR = 36.0
"""Pixels from the first piece of a group to the others; more on levels with many groups."""
_MOST_GROUPS = 64


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
    fields = np.stack([path_lengths(costs, x, y, GOLD_REACH, barred=barred) for x, y in firsts])
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
