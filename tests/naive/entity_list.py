"""``entity_states`` by a sort of everything, with the facts of each kind in a table."""

import math

import numpy as np

from nclone_env.level.compile import LevelArrays
from nclone_env.sim.state import WorldArrays, world_at

DRONES = {12: 0.4285714285714285, 13: 0.2857142857142857, 14: 8 / 7, 15: 8 / 7, 26: 1.3}
RADII = {2: 6, 3: 12, 4: 6, 5: 12, 6: 12, 7: 5, 8: 12, 9: 5, 10: 6, 11: 12, 16: 6, 17: 9, 20: 9, 24: 6, 25: 5, 28: 12}
RADII |= dict.fromkeys((12, 13, 14, 15), 7.5) | {26: 4}
SIDES = [(1, 0), (0, 1), (-1, 0), (0, -1)]


def clipped(value: float) -> float:
    return min(max(value, -1.0), 1.0)


def listed(level: LevelArrays, worlds: WorldArrays, index: int) -> list[tuple[float, int, tuple[float, ...]]]:
    """Return (squared distance, kind, row) of all that matters, nearest first."""
    ninja, states, things = worlds.ninjas[index], world_at(worlds, index).entity_states, []
    for slot, entity in enumerate(level.entities):
        kind, state = int(entity["type"]), int(states[slot])
        if kind == 5 or (kind in (2, 4, 6, 8) and state):
            continue
        kind += kind in (6, 8)
        x, y = float(entity["x"]), float(entity["y"])
        if slot in level.mover_slots:
            mover = world_at(worlds, index).movers[list(level.mover_slots).index(slot)]
            x, y = float(mover["x"]), float(mover["y"])
        else:
            mover = None
        things.append((x, y, kind, facts(kind, state, entity, mover, worlds, index)))
    for door in level.doors:
        kind, state = int(door["type"]), int(states[door["owner"]])
        closed = (state == 0) != (kind == 8)
        if kind == 6 and not closed:
            continue
        normal = (1, 0) if door["vertical"] else (0, 1)
        things.append((float(door["x"]), float(door["y"]), kind, (0, 0, *normal, 0.5, closed, 0, 0, closed, 0)))
    rows = []
    for x, y, kind, fact in things:
        dx, dy = x - ninja["x"], y - ninja["y"]
        rows.append((dx * dx + dy * dy, kind, (clipped(dx / 528), clipped(dy / 528), *fact)))
    return sorted(rows, key=lambda row: row[0])


def facts(kind, state, entity, mover, worlds, index) -> tuple[float, ...]:
    """Return everything of a row but the place."""
    velocity, facing = motion(kind, state, entity, mover, worlds, index)
    radius = RADII.get(kind, 0)
    if kind in (1, 21):
        radius = (4, 3.5, 4.5)[state]
    if kind == 22:
        radius = 6 if state == 3 else 10
    deadly = kind in (14, 15, 16, 20, 25, 26) or (kind in (1, 21) and state == 0)
    deadly = deadly or (kind == 18 and state >= 16) or (kind == 22 and state == 3) or (kind == 28 and state & 3 > 1)
    solid = kind in (11, 17, 20) or (kind == 28 and state & 3 < 2)
    speed = [clipped(v / 8) for v in velocity]
    flags = (deadly, kind in (12, 13, 18, 19, 23), solid, kind in (2, 4, 7, 9))
    return (*speed, *(clipped(v) for v in facing), radius / 24, phase(kind, state), *flags)


def phase(kind: int, state: int) -> float:
    """Return the phase by the tables of the kinds."""
    tables = {1: (1, 0, 0.5), 21: (1, 0, 0.5), 3: (0, 1), 24: (0, 1), 16: (0, 1, 1), 20: (0, 1, 0.5)}
    tables[22] = (0, 0.5, 0.5, 1)
    if kind in tables:
        return tables[kind][state]
    if kind == 15:
        return float(state >= 4)
    if kind in (12, 13):
        return (0, 0.5, 1, 0)[state >> 2 & 3]
    if kind == 28:
        return (0, 0.5, 1, 0.5)[state & 3]
    if kind == 18:
        return 0 if state == 0 else 0.5 if state < 16 else 1
    if kind == 19:
        return 0 if state == 0 or state >= 197 else 0.5 if state < 182 else 1
    return float(kind in (14, 23, 25, 26))


def motion(kind, state, entity, mover, worlds, index):
    """Return velocity and facing."""
    still, turned = (0.0, 0.0), SIDES[state & 3]
    eighth = entity["orientation"] * math.pi / 4
    if kind in (10, 11):
        return still, (math.cos(eighth), math.sin(eighth))
    if kind in (14, 26) or (kind == 15 and state < 4):
        return np.multiply(turned, DRONES[kind]), turned
    if kind == 15:
        return np.multiply(turned, 2 * DRONES[15]), turned
    if kind in (12, 13):
        if state >> 2 & 3 in (1, 2):
            return still, unit(mover["a"] - mover["x"], mover["b"] - mover["y"])
        return (np.multiply(turned, DRONES[kind]) if state >> 2 & 3 == 0 else still), turned
    if kind == 16:
        side = (0, 1, -1)[state]
        return (side * 24 / 7, 0), (side, 0)
    if kind in (17, 25):
        return (mover["a"], mover["b"]), still
    if kind == 20:
        charge = {0: (1, 0), 2: (0, 1), 4: (-1, 0)}.get(int(entity["orientation"]), (0, -1))
        return np.multiply(charge, (0, 20 / 7, -8 / 7)[state]), charge
    pair = (0.0, 0.0) if mover is None else (mover["a"], mover["b"])
    if kind == 28:
        return np.multiply(pair, (0, 0, -4, 1)[state & 3]), np.multiply(pair, (0, 1, -1, 1)[state & 3])
    if kind == 18 and state >= 16:
        return np.multiply(pair, rocket_speed(state - 16)), pair
    if kind == 19:
        return still, unit(pair[0] - mover["x"], pair[1] - mover["y"])
    if kind == 22:
        return follow(state, entity, mover, worlds, index), still
    if kind == 23:
        sense = (0, 1, -1)[state]
        velocity = (-math.sin(mover["a"]) * sense, math.cos(mover["a"]) * sense)
        return velocity, (math.cos(mover["b"]), math.sin(mover["b"]))
    return still, still


def unit(x: float, y: float) -> tuple[float, float]:
    length = math.hypot(x, y)
    return (x / length, y / length) if length else (0.0, 0.0)


def rocket_speed(step: int) -> float:
    speed, acceleration = 0.0, 0.04444444444444444
    for _ in range(step):
        acceleration *= 1.0656022367666107
        speed = speed + acceleration if speed < 2.2857142857142856 else 2.2857142857142856
    return speed


def follow(state, entity, mover, worlds, index):
    """Return the way of an evil ninja in the next frame."""
    trail, frame = world_at(worlds, index).trail, int(worlds.ninjas[index]["frame"])
    met, number = int(mover["a"]), int(mover["b"])
    if state == 3:
        x, y = trail[2 - 120 * number]  # the last one is of the frame before
        return x - mover["x"], y - mover["y"]
    if state == 2 and frame > met + 120 * (number - 1) and frame > met + 1:
        x, y = trail[met + 1 - frame]
        return (x - entity["x"]) / 120, (y - entity["y"]) / 120
    return 0.0, 0.0
