"""Distance fields, kept in two bytes a node, and paths along them.

A field has the path length from each node of a lattice of (51, 89), 12 pixels apart. Its lengths are float32 numbers,
sums of few kinds of steps: multiples of a *unit* of 12 pixels leave few different *rests*. A *code* of 16 bits has the
multiple in its upper bits and the number of the rest, the smallest first, in its lower ``shift``. So codes are in the
order of their lengths, and give exactly these back. A field with too many rests has a unit twice, four times ... as
large, until its codes fit.

Of each row of nodes only those from the first to the last with a path have codes.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nclone_env.game import COLUMNS, ROWS
from nclone_env.jit import kernel
from nclone_env.level.routes.lattice import FAR

FIELD_SHAPE = (2 * ROWS + 1, 2 * COLUMNS + 1)
NODES = FIELD_SHAPE[0] * FIELD_SHAPE[1]
SPACING = 12.0
FIELD = np.dtype([("first", "i4"), ("first_rest", "i4"), ("unit", "f4"), ("shift", "i4")], align=True)
"""Where the codes and the rests of a field begin, its unit (pixels), and the bits of the number of a rest."""
FIELD_ROW = np.dtype([("first", "u2"), ("left", "u1"), ("count", "u1")], align=True)
"""Nodes of a row that have codes: the place of the first in its field, its column, and how many they are."""
NO_CODE = 0xFFFF
"""The code without a path, the largest."""
_BITS = 16
_ONE_CODE, _ONE_REST = np.zeros(1, np.uint16), np.zeros(1, np.float32)
_REACH = 2  # lattice lines on each side that a point looks at for its nearest nodes


class Fields(NamedTuple):
    """F distance fields.

    Attributes:
        fields: (F,) ``FIELD``.
        rows: (F, 51) ``FIELD_ROW``.
        codes: (C,) uint16.
        rests: (R,) float32, pixels; ascending within a field.
    """

    fields: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    rests: np.ndarray


FIELDS_LAYOUT = {"fields": FIELD, "rows": FIELD_ROW, "codes": np.dtype("u2"), "rests": np.dtype("f4")}
"""The dtypes of the arrays of ``Fields``."""


def field_room(count: int) -> Fields:
    """Return zeroed arrays with room for so many fields of any lengths."""
    shapes = (count,), (count, FIELD_SHAPE[0]), (count * NODES,), (count * NODES,)
    return Fields(*(np.zeros(shape, dtype) for shape, dtype in zip(shapes, FIELDS_LAYOUT.values(), strict=True)))


def joined_fields(parts: Sequence[Fields]) -> Fields:
    """Return the fields of all parts one after another, read-only; a code and a rest at least, for kernels."""
    counts = [len(part.fields) for part in parts]
    fields = np.concatenate([part.fields for part in parts])
    for name, arrays in (("first", [part.codes for part in parts]), ("first_rest", [part.rests for part in parts])):
        lengths = np.array([len(array) for array in arrays])
        fields[name] += np.repeat(np.cumsum(lengths) - lengths, counts).astype(np.int32)
    codes = np.concatenate([part.codes for part in parts]) if any(len(part.codes) for part in parts) else _ONE_CODE
    rests = np.concatenate([part.rests for part in parts]) if any(len(part.rests) for part in parts) else _ONE_REST
    return frozen(Fields(fields, np.concatenate([part.rows for part in parts]), codes, rests))


def trimmed(fields: Fields, end: int, end_rest: int) -> Fields:
    """Return read-only copies of fields that were written into a room, without what follows the last code and rest."""
    return frozen(Fields(fields.fields, fields.rows, fields.codes[:end].copy(), fields.rests[:end_rest].copy()))


def frozen(fields: Fields) -> Fields:
    """Make the arrays read-only."""
    for array in fields:
        array.flags.writeable = False
    return fields


@kernel
def write_field(lengths, step, paths, number, first, first_rest):
    """Write a field behind others; return where its codes and its rests end.

    Args:
        lengths: float32, pixels, ``FAR`` or more without a path.
        step: lines of their lattice for each one of the field.
        paths: ``Fields`` or ``Paths``.
        number: which of its fields.
        first: where the codes begin.
        first_rest: where the rests begin.
    """
    field, end = paths.fields[number], first
    least, most = FAR, 0.0
    for j in range(paths.rows.shape[1]):
        left, stop = 0, 0
        for i in range(FIELD_SHAPE[1]):
            length = float(lengths[step * j, step * i])
            if length < FAR:
                left, stop = i if stop == 0 else left, i + 1
                least, most = length if length < least else least, length if length > most else most
        row = paths.rows[number, j]
        row["first"], row["left"], row["count"] = end - first, left, stop - left
        end += stop - left
    unit, base, shift, count = 0.5 * SPACING, 0, 0, -1
    while count < 0:
        unit *= 2.0
        base, shift = math.floor(least / unit), _BITS
        while shift > 0 and (math.floor(most / unit) - base) >> (_BITS - shift) != 0:
            shift -= 1
        count = _write_rests(lengths, step, unit, base, paths.rests, first_rest, (1 << shift) - 1)
    field["first"], field["first_rest"], field["unit"], field["shift"] = first, first_rest, unit, shift
    for j in range(paths.rows.shape[1]):
        row = paths.rows[number, j]
        for place in range(row["count"]):
            length, code = float(lengths[step * j, step * (int(row["left"]) + place)]), NO_CODE
            if length < FAR:
                whole = math.floor(length / unit) - base
                rest = np.float32(length - unit * whole)
                code = (whole << shift) + _place_of(paths.rests, first_rest, count, rest) - first_rest
            paths.codes[first + int(row["first"]) + place] = code
    return end, first_rest + count


@kernel
def _write_rests(lengths, step, unit, base, rests, first, most):
    """Write the different rests of lengths in ascending order; return how many, -1 if they are more than ``most``."""
    count = 0
    for j in range(FIELD_SHAPE[0]):
        for i in range(FIELD_SHAPE[1]):
            length = float(lengths[step * j, step * i])
            if length < FAR:
                rest = np.float32(length - unit * (math.floor(length / unit) - base))
                place = _place_of(rests, first, count, rest)
                if place == first + count or rests[place] != rest:
                    if count == most:
                        return -1
                    for other in range(first + count, place, -1):
                        rests[other] = rests[other - 1]
                    rests[place] = rest
                    count += 1
    return count


@kernel
def _place_of(rests, first, count, rest):
    """Return the place of the first of ascending rests that is not smaller than one."""
    low, high = first, first + count
    while low < high:
        middle = (low + high) >> 1
        if rests[middle] < rest:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def code_at(paths, number, j, i):
    """Return the code of a node."""
    row = paths.rows[number, j]
    place = i - int(row["left"])
    if place < 0 or place >= row["count"]:
        return NO_CODE
    return int(paths.codes[paths.fields[number]["first"] + row["first"] + place])


@kernel
def length_of(paths, number, code):
    """Return the path length of a code of a field, pixels; infinite without a path."""
    if code == NO_CODE:
        return math.inf
    field = paths.fields[number]
    rest = paths.rests[field["first_rest"] + (code & ((1 << field["shift"]) - 1))]
    return field["unit"] * (code >> field["shift"]) + rest


@kernel
def nearest_node(paths, number, x, y):
    """Return (distance, row, column) of the node around (x, y) with the shortest path; infinite if there is none."""
    rows, columns = FIELD_SHAPE
    i0, j0 = int(math.floor(x / SPACING)), int(math.floor(y / SPACING))
    best, best_row, best_column = math.inf, 0, 0
    for j in range(max(j0 - 1, 0), min(j0 + _REACH, rows - 1) + 1):
        for i in range(max(i0 - 1, 0), min(i0 + _REACH, columns - 1) + 1):
            onward = length_of(paths, number, code_at(paths, number, j, i))
            if onward < best:  # else the sum is no less
                dx, dy = SPACING * i - x, SPACING * j - y
                length = onward + math.sqrt(dx * dx + dy * dy)
                if length < best:
                    best, best_row, best_column = length, j, i
    return best, best_row, best_column


@kernel
def distance_at(paths, number, x, y):
    """Return the path length from (x, y) by one of the fields, pixels; infinite if there is no path."""
    return nearest_node(paths, number, x, y)[0]


@kernel
def follow(values, first, rows, number, j, i, hops):
    """Return (row, column) of the node ``hops`` steps along the path from node (j, i).

    Args:
        values: codes or lengths, those of the field from ``first`` on.
        first: likewise.
        rows: (F, 51) ``FIELD_ROW``.
        number: of the field, in ``rows``.
        j: row of the node.
        i: column.
        hops: how many steps.
    """
    for _ in range(hops):
        j, i = _downhill(values, first, rows, number, j, i)
    return j, i


@kernel
def _downhill(values, first, rows, number, j, i):
    """Return (row, column) of the node among (j, i) and its neighbours with the shortest path."""
    own = rows[number, j]
    best, best_row, best_column = values[first + int(own["first"]) + i - int(own["left"])], j, i
    for down in range(-1, 2):  # three of each, so that the loops are unrolled; at the edge some come twice
        next_row = min(max(j + down, 0), rows.shape[1] - 1)
        row = rows[number, next_row]
        begin = first + int(row["first"])
        for right in range(-1, 2):
            place = i + right - int(row["left"])
            if 0 <= place < row["count"] and values[begin + place] < best:
                best, best_row, best_column = values[begin + place], next_row, i + right
    return best_row, best_column


@kernel
def direction_to(j, i, x, y):
    """Return the unit direction from (x, y) to node (j, i); (0, 0) at the node."""
    dx, dy = SPACING * i - x, SPACING * j - y
    norm = math.sqrt(dx * dx + dy * dy)
    if norm == 0.0:
        return 0.0, 0.0
    return dx / norm, dy / norm
