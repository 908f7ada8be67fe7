"""The tables of the physics specification: decimals are their bits, and the code and the golden values say the same."""

import re

import numpy as np
import pytest

from nclone_env import game
from nclone_env.level.tiles import EDGE_SIGNS, GRID_EDGES
from nclone_env.sim.entities.turrets import SPEEDS

from ..golden.values import CONSTRUCTION, FRAME_TABLES, REPLAYS, SYNTHETIC
from .test_physics import PARTS, sections

HEX = r"-?0x[01]\.[0-9a-f]+p[+-]\d+"


def rows(part: str, section: str) -> list[list[str]]:
    """Return the cells of all table rows of a section, without headers."""
    lines = [line for line in sections(part)[section].splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    heads = {i + step for i, row in enumerate(table) if set("".join(row)) <= set("-:") for step in (-1, 0)}
    return [row for i, row in enumerate(table) if i not in heads]


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_tile_tables():
    signs = {"·": 0, "−": -1, "+": 1}
    edges = {int(row[0]): [signs[cell] for cell in row[1:]] for row in rows("01", "2.4")}
    lattice = {int(row[0]): [int(cell) for cell in row[1:]] for row in rows("01", "2.8")}
    assert sorted(edges) == sorted(lattice) == list(range(38))
    assert np.array_equal([edges[tile] for tile in range(38)], EDGE_SIGNS)
    assert np.array_equal([lattice[tile] for tile in range(38)], GRID_EDGES)


@pytest.mark.parametrize("part", sorted(PARTS))
def test_decimals_are_their_bits(part):
    """A decimal beside its bits, as ``0.05 (`0x1.9p-5`)`` or in neighbouring cells of a table."""
    decimal, bits = r"−?\d+\.\d+", rf"`{HEX}`"
    lists = rf"({decimal}(?: / {decimal})*)(?: = [^|(`]*)?(?:\s*\(|\s*\|\s*)({bits}(?: / {bits})*)"
    found = re.findall(lists, PARTS[part].read_text())
    assert len(found) > 8
    for decimals, codes in found:
        values = [float.fromhex(code) for code in re.findall(HEX, codes)]
        assert [number(decimal) for decimal in decimals.split(" / ")][-len(values) :] == values, decimals


NAMED = {
    "fall gravity": "FALL_GRAVITY",
    "jump gravity": "JUMP_GRAVITY",
    "ground acceleration": "GROUND_ACCELERATION",
    "air acceleration": "AIR_ACCELERATION",
    "regular drag": "REGULAR_DRAG",
    "slow drag": "SLOW_DRAG",
    "ground friction": "GROUND_FRICTION",
    "slow ground friction": "SLOW_GROUND_FRICTION",
    "wall friction": "WALL_FRICTION",
    "maximum horizontal speed": "MAX_HORIZONTAL_SPEED",
}


def test_constants_of_the_ninja():
    table = {row[0].split(" (")[0]: row[1] for row in rows("01", "1")}
    for name, constant in NAMED.items():
        assert number(table[name]) == getattr(game, constant), name


def test_golden_values():
    construction = {}
    for row in rows("01", "15.3"):
        values = [int(n) for n in re.findall(r"\d+", " ".join(row))]
        construction[values[0]] = (*values[1:4], *values[5:])
    assert construction == CONSTRUCTION
    runs = {int(row[0]): row[-6:] for row in rows("01", "15.4")}
    assert {file: told(row) for file, row in runs.items()} == REPLAYS
    synthetic = [
        (int(r[0]), int(r[1]), int(r[2]), int(r[3]), number(r[4]), number(r[5]), int(r[6], 16))
        for r in rows("01", "15.5")
    ]
    assert tuple(synthetic) == SYNTHETIC


def told(row: list[str]) -> tuple[int | float, ...]:
    """Return frames, state, gold, x, y and checksum of a run."""
    frames, state, gold, x, y, checksum = row
    return int(frames), int(state), int(gold), number(x), number(y), int(checksum, 16)


def test_frames_of_recordings():
    lines = {}
    decimals = {}
    for row in rows("01", "15.1"):
        if "`" in row[1]:
            lines.setdefault(row[0], []).append(" ".join(cell.strip("`") for cell in row[1:]))
        else:
            decimals.setdefault(row[0], []).append((*map(int, row[1:4]), *map(number, row[4:])))
    expected: dict[str, list] = {}
    for table in FRAME_TABLES.values():
        for frame, values in table.items():
            expected.setdefault(str(frame), []).append(values)
    assert lines == {frame: [values[3] for values in all_values] for frame, all_values in expected.items()}
    for frame, told_values in decimals.items():
        for told_value, values in zip(told_values, expected[frame], strict=True):
            assert told_value == (*values[:3], *map(float.fromhex, values[3].split()))


def test_speeds_of_rockets():
    bits = dict(re.findall(rf"\| ([^|]+) \| [^|]+ \| `({HEX})` \|", sections("03")["19"]))
    acceleration, growth, limit = (float.fromhex(bits[f"rocket {name}"]) for name in ("a₀", "growth g", "limit M"))
    speed, speeds = 0.0, [0.0]
    for _ in range(len(SPEEDS) - 1):
        acceleration = acceleration * growth
        speed = speed + acceleration if speed < limit else limit
        speeds.append(speed)
    assert tuple(speeds) == SPEEDS
