"""Lower bounds: frames that every solution of a level takes at least.

The switch is touched in a frame before the exit, so no solution of any level has fewer than two frames. In a *hall*
there are tight bounds. A hall is an empty rectangle between full blocks that the ninja cannot leave, with nothing in it
that pushes, throws or carries it. There every contact with a tile has a horizontal or a vertical normal, so that motion
along x and motion along y are independent of each other, apart from which of a few accelerations is possible in a
frame. The bounds let the ninja choose freely among them in each frame:

- Along x (physics 01, sections 6.1, 10.2, 11.3 and 11.4) a frame multiplies vx by the drag and adds it to x, sets it to
  0 at a wall, adds one of 0, +-ground acceleration, +-air acceleration if the result stays below the speed limit, and
  multiplies it by 1 or a friction. Jumps off a flat floor change no vx. A jump off a wall adds at most 1, and takes
  place within five frames after the ninja was at most 10.1 pixels from the wall: it then is at most ``LEAVE`` pixels
  from it and at most ``LEAVE_SPEED`` fast.
- Along y the ninja never falls faster than freely from its highest speed.

``_Frontier`` holds the largest x that can be reached after t frames for each small interval of vx; rounding is always
towards the larger x. A bound counts frames until the frontier reaches the switch, and from there, with the velocity it
can have there, until it reaches the exit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nclone_env.constants import (
    AIR_ACCELERATION,
    CELL_SIZE,
    COLUMNS,
    FALL_GRAVITY,
    GROUND_ACCELERATION,
    GROUND_FRICTION,
    MAX_HORIZONTAL_SPEED,
    RADIUS,
    REGULAR_DRAG,
    ROWS,
    SLOW_GROUND_FRICTION,
    WALL_REACH,
)
from nclone_env.jit import kernel
from nclone_env.kinds import (
    CHAINGUN_DRONE,
    CHASER_DRONE,
    EXIT,
    EXIT_SWITCH,
    GAUSS_TURRET,
    GOLD,
    KINDS,
    LASER_DRONE,
    LASER_TURRET,
    MINE,
    MINI_DRONE,
    ROCKET_TURRET,
    TOGGLE_MINE,
    ZAP_DRONE,
)
from nclone_env.level import LevelSet

LEAST = 2
"""Frames of the shortest solution of any level."""
_HARMLESS = (
    *(GOLD, EXIT, EXIT_SWITCH, MINE, TOGGLE_MINE, ZAP_DRONE, CHASER_DRONE, MINI_DRONE, CHAINGUN_DRONE, LASER_DRONE),
    *(ROCKET_TURRET, GAUSS_TURRET, LASER_TURRET),
)
"""Kinds that never change the velocity or the position of a living ninja."""
_FULL, _EMPTY = 1, 0
LEAVE, LEAVE_SPEED = 14.2, 1.5
"""A ninja within 10.1 pixels of a wall moved away from it by at most 0.1 in that frame; after six frames of
acceleration by 1 / 15 it is at most 0.5 fast, 1.5 after the jump, and has come 3 pixels and the pixel of the jump."""
_ODD_CORNERS = 52.0
"""Left of this x are the three positions at which the game treats corners differently (physics 01, section 8.2)."""
_ACCELERATIONS = (0.0, AIR_ACCELERATION, -AIR_ACCELERATION, GROUND_ACCELERATION, -GROUND_ACCELERATION)
_IN_AIR = 3
"""Accelerations that are possible in the air come first; friction is not among what is possible there."""
_FRICTIONS = (1.0, GROUND_FRICTION, SLOW_GROUND_FRICTION)
FASTEST = 4.6
"""Pixels per frame; the speed limit is 3.34, a jump off a wall leaves at 1.5 at most."""
_SLACK = 1e-6
"""Pixels by which positions are rounded outwards in each frame: more than contacts and floating-point sums err."""
_NOWHERE = -1e9
_MOST_FRAMES = 5400


@dataclass(frozen=True)
class Hall:
    """A hall; pixels. Centres of the ninja are between ``left`` and ``right``, and at ``floor`` or above it."""

    left: float
    right: float
    floor: float
    spawn: tuple[float, float]
    switch: tuple[float, float]
    exit: tuple[float, float]

    @property
    def mirrored(self) -> Hall:
        """The hall with left and right exchanged."""
        points = ((-x, y) for x, y in (self.spawn, self.switch, self.exit))
        return Hall(-self.right, -self.left, self.floor, *points)


SWITCH_REACH, EXIT_REACH = (KINDS[kind].radii[0] + RADIUS for kind in (EXIT_SWITCH, EXIT))


def hall_of(levels: LevelSet, level: int = 0) -> Hall | None:
    """Return the hall that a level is, None if it is none."""
    header, tiles = levels.arrays.header[level], levels.arrays.tiles[level]
    entities = levels.entities_of(level)
    if header["exit_count"] != 1 or not np.isin(entities["type"], _HARMLESS).all():
        return None
    x, y = float(header["spawn_x"]), float(header["spawn_y"])
    row, column = int(y / CELL_SIZE), int(x / CELL_SIZE)
    if not (1 <= row < ROWS - 1 and 1 <= column < COLUMNS - 1):
        return None  # the ninja starts outside the tiles
    rows, columns = _run(tiles[:, column], row), _run(tiles[row], column)
    inside = tiles[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1]
    frame = (tiles[rows[0] - 1, columns[0] : columns[1] + 1], tiles[rows[1] + 1, columns[0] : columns[1] + 1])
    sides = (tiles[rows[0] : rows[1] + 1, columns[0] - 1], tiles[rows[0] : rows[1] + 1, columns[1] + 1])
    if (inside != _EMPTY).any() or any((edge != _FULL).any() for edge in (*frame, *sides)):
        return None
    left, right = CELL_SIZE * columns[0] + RADIUS, CELL_SIZE * (columns[1] + 1) - RADIUS
    top, bottom = CELL_SIZE * rows[0] + RADIUS, CELL_SIZE * (rows[1] + 1) - RADIUS
    if left < _ODD_CORNERS or not (left <= x <= right and top <= y <= bottom):
        return None
    switch, exit_ = (entities[entities["type"] == kind][0] for kind in (EXIT_SWITCH, EXIT))
    return Hall(left, right, bottom, (x, y), *((float(one["x"]), float(one["y"])) for one in (switch, exit_)))


def _run(cells: np.ndarray, place: int) -> tuple[int, int]:
    """Return the first and the last of the empty cells around a place in a line; its ends are full."""
    first = last = place
    while cells[first - 1] == _EMPTY and first > 1:
        first -= 1
    while cells[last + 1] == _EMPTY and last < len(cells) - 2:
        last += 1
    return first, last


class Bound(NamedTuple):
    """A lower bound.

    Attributes:
        frames: every solution has at least so many.
        rule: ``hall``, or ``any`` for the bound of every level.
        width: of the intervals of vx, pixels per frame; 0 if there are none.
    """

    frames: int
    rule: str
    width: float


def lower_bound(levels: LevelSet, width: float = 1e-3, level: int = 0) -> Bound:
    """Return a lower bound of the frames that solutions of a level take.

    Args:
        width: of the intervals of vx, pixels per frame; smaller ones make the bound of a hall tighter.
    """
    hall = hall_of(levels, level)
    if hall is None:
        return Bound(LEAST, "any", 0.0)
    return Bound(max(LEAST, _frames_along_y(hall), _frames_along_x(hall, width)), "hall", width)


def _frames_along_y(hall: Hall) -> int:
    """Return the frames of a free fall to the switch, or to the exit if that is lower."""
    return frames_to_fall(max(hall.switch[1] - SWITCH_REACH, hall.exit[1] - EXIT_REACH) - hall.spawn[1])


def frames_to_fall(depth: float) -> int:
    """Return the frames of a free fall from rest by so many pixels."""
    fallen, speed, frames = 0.0, 0.0, 0
    while fallen + _SLACK * (frames + 1) < depth:
        speed = speed * REGULAR_DRAG + FALL_GRAVITY
        fallen += speed
        frames += 1
    return frames


def _frames_along_x(hall: Hall, width: float) -> int:
    """Return the frames to the switch and from there to the exit."""
    if hall.switch[0] < hall.spawn[0]:
        hall = hall.mirrored
    landing = frames_to_fall(hall.floor - hall.spawn[1])
    edge, last = hall.switch[0] - SWITCH_REACH, hall.switch[0] + SWITCH_REACH
    exit_first, exit_last = hall.exit[0] - EXIT_REACH, hall.exit[0] + EXIT_REACH
    there, back = (
        _Frontier(hall.spawn[0], hall.left, hall.right, width),
        _Frontier(-hall.spawn[0], -hall.right, -hall.left, width),
    )
    onward = _Frontier(None, hall.left, hall.right, width)
    returning = _Frontier(None, -hall.right, -hall.left, width)
    for frames in range(1, _MOST_FRAMES):
        for frontier in (there, back, onward, returning):
            frontier.advance(frames >= landing)
        nearest = back.farthest, there.farthest
        for left_in, right_in in ((there, back), (onward, returning)):
            left_in.leave_wall(nearest[0])
            right_in.leave_wall(nearest[1])
        if onward.farthest >= exit_first and -returning.farthest <= exit_last:
            return frames
        touched(there.reached, back.reached, onward.reached, returning.reached, edge, last)
        onward.leave_wall(nearest[0])  # also in the frame in which the switch is touched
        returning.leave_wall(nearest[1])
    return _MOST_FRAMES


class _Frontier:
    """The largest x that can be reached, for each interval of vx, after as many frames as ``advance`` was called.

    Args:
        start: x at the start, at rest; None: nothing is reached yet.
        left: smallest x of the hall.
        right: largest x.

    Attributes:
        reached: float64; the largest x by interval, very small where nothing is reached. Interval n of N starts at
            ``(n - N / 2) * width``.
    """

    def __init__(self, start: float | None, left: float, right: float, width: float):
        half = int(FASTEST / width)
        self.reached, self._next = np.full((2, 2 * half), _NOWHERE)
        self._left, self._right, self._width, self._half = left, right, width, half
        if start is not None:
            self.reached[half - 1 : half + 1] = start

    @property
    def farthest(self) -> float:
        """The largest x."""
        return float(self.reached.max())

    def advance(self, grounded: bool) -> None:
        """Play one frame, at the end of which the ninja may be on the ground, or cannot."""
        advance(self.reached, self._next, self._width, self._right, grounded)
        self.reached, self._next = self._next, self.reached

    def leave_wall(self, nearest: float) -> None:
        """Add the states in which the ninja has just left the left wall, or is at the right one.

        Args:
            nearest: how near the ninja can be to the left wall now, as the negative of its x.
        """
        slow = self._half + int(LEAVE_SPEED / self._width) + 1
        if -nearest <= self._left + WALL_REACH - RADIUS + _SLACK and self.farthest > _NOWHERE:
            np.maximum(self.reached[:slow], self._left + LEAVE - RADIUS, out=self.reached[:slow])
        if self.farthest >= self._right - (WALL_REACH - RADIUS) - _SLACK:
            still = slice(self._half - slow + self._half, self._half + int(0.2 / self._width))
            np.maximum(self.reached[still], self._right, out=self.reached[still])


@kernel
def advance(reached, result, width, right, grounded):
    """Write the frontier after one more frame, in which the ninja may be on the ground, or cannot."""
    count = reached.shape[0]
    half = count // 2
    for place in range(count):
        result[place] = _NOWHERE
    for place in range(count):
        if reached[place] == _NOWHERE:
            continue
        low, high = (place - half) * width * REGULAR_DRAG, (place + 1 - half) * width * REGULAR_DRAG
        x = min(reached[place] + high + _SLACK, right + _SLACK)
        for number in range(len(_ACCELERATIONS) if grounded else _IN_AIR):
            first, last = accelerated(low, high, _ACCELERATIONS[number])
            if first > last:
                continue
            for kind in range(len(_FRICTIONS) if grounded else 1):
                friction = _FRICTIONS[kind]
                begin, end = intervals(first * friction, last * friction, width, count)
                for other in range(begin, end + 1):
                    if x > result[other]:
                        result[other] = x


@kernel
def accelerated(low, high, acceleration):
    """Return the least and the greatest speed after an acceleration, which never leads beyond the top speed."""
    first, last = low + acceleration, high + acceleration
    if acceleration != 0.0:
        first, last = max(first, -MAX_HORIZONTAL_SPEED), min(last, MAX_HORIZONTAL_SPEED)
    return first, last


def distances(frames: int, width: float) -> np.ndarray:
    """Return (frames + 1, B) float64: the farthest x from 0 after n frames, by interval of vx, walls aside."""
    table = np.zeros((frames + 1, 2 * int(FASTEST / width)))
    for frame in range(1, frames + 1):
        extend(table[frame - 1], table[frame], width)
    return np.maximum.accumulate(table, axis=0)


@kernel
def extend(before, result, width):
    """Write the farthest x by interval of vx in one more frame than ``before``."""
    count = before.shape[0]
    half = count // 2
    for place in range(count):
        low, high = (place - half) * width * REGULAR_DRAG, (place + 1 - half) * width * REGULAR_DRAG
        farthest = before[half]  # a wall stops the ninja
        for number in range(len(_ACCELERATIONS)):
            first, last = accelerated(low, high, _ACCELERATIONS[number])
            if first > last:
                continue
            for kind in range(len(_FRICTIONS)):
                begin, end = intervals(first * _FRICTIONS[kind], last * _FRICTIONS[kind], width, count)
                for other in range(begin, end + 1):
                    farthest = max(farthest, before[other])
        result[place] = max(high, 0.0) + farthest + _SLACK


@kernel
def intervals(first, last, width, count):
    """Return the first and the last interval that contain velocities from ``first`` to ``last``."""
    begin = int(np.floor(first / width - 1e-9)) + count // 2
    end = int(np.floor(last / width + 1e-9)) + count // 2
    return max(begin, 0), min(end, count - 1)


def falls(frames: int) -> np.ndarray:
    """Return (frames + 1, 2) float64: how far the ninja falls in n frames, from rest and for each unit of vy."""
    rows = np.zeros((frames + 1, 2))
    speeds = np.array([0.0, 1.0])
    for frame in range(1, frames + 1):
        speeds = speeds * REGULAR_DRAG + (FALL_GRAVITY, 0.0)
        rows[frame] = rows[frame - 1] + speeds + (_SLACK, 0.0)
    return rows


@kernel
def touched(there, back, onward, returning, first, last):
    """Add the states in which the ninja touches the switch to the frontiers that begin there.

    Args:
        there: frontier to the right; x by interval of vx.
        back: frontier to the left; -x by interval of -vx.
        onward: frontier to the right of states after the switch, changed.
        returning: frontier to the left of those, changed.
        first: smallest x at which the switch can be touched.
        last: largest x at which it can be touched.
    """
    count = there.shape[0]
    for place in range(count):
        lowest, highest = max(-back[count - 1 - place], first), min(there[place], last)
        if there[place] != _NOWHERE and back[count - 1 - place] != _NOWHERE and lowest <= highest:
            onward[place] = max(onward[place], highest)
            returning[count - 1 - place] = max(returning[count - 1 - place], -lowest)
