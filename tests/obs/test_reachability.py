"""What can be reached against a search in plain Python, by hand, and with caches of every size."""

import math
import threading
from collections import Counter
from functools import lru_cache
from unittest.mock import patch

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.game import EXIT, LOCKED_DOOR, TRAP_DOOR
from nclone_env.level import PLANES
from nclone_env.level.build import build_level, everything, hall_tiles
from nclone_env.level.level import Level
from nclone_env.obs import fields as cached
from nclone_env.obs.fields import compute_fields
from nclone_env.obs.reachability import KEY
from nclone_env.obs.spec import REACHABILITY
from nclone_env.sim.state import world_at

from ..env import peek
from ..env.bases import assert_same, choices, copies
from ..level.routes.test_distance import Node, check_field, naive_distances, naive_free
from ..shared import each_value
from .levels import BUILT_IN, compiled

NAMES = [feature.name for feature in REACHABILITY]
DOORS = (LOCKED_DOOR, TRAP_DOOR)


def rooms(*more: str, title: str = "rooms") -> Level:
    """Return three rooms in a row with a locked door (its switch in the first), then a trap door (in the second).

    The exit is in the third room, its switch in the second. The doors fill necks that are one tile high.
    """
    tiles = np.ones((23, 42), np.uint8)
    tiles[8:12, 2:15] = tiles[8:12, 18:30] = tiles[8:12, 33:41] = 0
    tiles[11, 15:18] = tiles[11, 30:33] = 0
    entities = """
        exit 150 50
        exit_switch 100 50
        locked_door 70 50
        locked_door_switch 45 50
        trap_door 130 50
        trap_door_switch 110 50
    """
    return build_level(entities, *more, tiles=tiles, spawn=(20, 50), title=title)


def hall() -> Level:
    """Return an open hall with two closed locked doors in it, upright and flat, and two exits."""
    entities = """
        exit 84 52
        exit 40 36
        exit_switch 88 40
        exit_switch 30 56
        locked_door 86 52
        locked_door_switch 36 40
        locked_door 61 47 2
        locked_door_switch 37 50
        trap_door 50 53 4
        trap_door_switch 40 50
    """
    return build_level(entities, tiles=hall_tiles((5, 24), (7, 14)), spawn=(50, 50), title="hall")


@pytest.fixture
def computed(monkeypatch):
    """Return how many fields were computed, by the slots of their cache."""
    counts = Counter()

    def count(levels, key, out):
        counts[len(out.base) // PLANES] += 1
        compute_fields(levels, key, out)

    monkeypatch.setattr(cached, "compute_fields", count)
    return counts


def used(envs) -> int:
    """Return the slots in use of the cache of fields."""
    return np.count_nonzero(peek.reachability(envs).cache.last_use >= 0)


def make(num_envs, levels, slots=None, names="reachability", **fields):
    with patch.object(cached, "slot_count", cached.slot_count if slots is None else lambda levels: slots):
        return NPlusPlusVectorEnv(None, num_envs, levels=levels, observations=names, **fields)


def observe(envs, index=0) -> dict[str, float]:
    out = {"reachability": np.full((1, len(NAMES)), 9, np.float32)}
    peek.observe(envs, index, out)
    return dict(zip(NAMES, out["reachability"][0].tolist()))


def place(envs, x, y, index=0) -> None:
    ninja = envs.worlds.ninjas[index]
    ninja["x"], ninja["y"] = x, y


def states_of(envs, kind, index=0):
    """Return the places in ``entity_states`` of the entities of a kind in the level that is played."""
    first = envs.worlds.rooms[index]["entities"]["first"]
    level = envs.level_set.levels[envs.worlds.ninjas[index]["level"]]
    return [first + slot for slot in np.flatnonzero(compiled(level).entities["type"] == kind).tolist()]


def side(a, b, c) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


class Search:
    """The slow method: sets, a heap and straight lines; ``closed`` holds the ends of each closed door."""

    def __init__(self, level, states):
        arrays = compiled(level)
        doors = [door for door in arrays.doors if door["type"] in DOORS]
        self.closed = []
        for door in doors:
            if (states[door["owner"]] == 0) == (door["type"] == LOCKED_DOOR):
                x, y = int(door["x"]), int(door["y"])
                a, b = (0, 12) if door["vertical"] else (12, 0)
                self.closed.append(((x - a, y - b), (x + a, y + b)))
        everywhere = free_of(level)
        self.free = {node for node in everywhere if not any(self.near(node, door) for door in self.closed)}
        self.total = len(everywhere)
        slots = np.flatnonzero(arrays.entities["type"] == EXIT)
        opened = [bool(states[slot]) for slot in slots]
        self.switch_remaining, self.exit_open = not all(opened), any(opened)
        exits, switches = ([(int(e["x"]), int(e["y"])) for e in arrays.entities[slots + k]] for k in (0, 1))
        self.switches = [p for p, is_open in zip(switches, opened) if not is_open]
        self.exits = [p for p, is_open in zip(exits, opened) if is_open] or exits

    @staticmethod
    def near(node: Node, door) -> bool:
        (x1, y1), (x2, y2) = door
        x, y = min(max(12 * node[0], x1), x2), min(max(12 * node[1], y1), y2)
        return math.hypot(12 * node[0] - x, 12 * node[1] - y) < 9.5

    def seen(self, x, y, node: Node) -> bool:
        start, end = (x, y), (12 * node[0], 12 * node[1])
        for first, second in self.closed:
            axis = 0 if first[0] == second[0] else 1
            parted = (start[axis] < first[axis]) != (end[axis] < first[axis])
            if parted and side(start, end, first) * side(start, end, second) <= 0:
                return False
        return True

    def distances(self, points) -> dict[Node, float]:
        seeds: dict[Node, float] = {}
        for x, y in points:
            lengths = {n: math.hypot(12 * n[0] - x, 12 * n[1] - y) for n in self.free if self.seen(x, y, n)}
            reach = max(24.0, min(lengths.values(), default=0.0))
            for node, length in lengths.items():
                if length <= reach:
                    seeds[node] = min(seeds.get(node, math.inf), length)
        return naive_distances(self.free, seeds)

    def around(self, x, y) -> list[tuple[float, Node]]:
        i0, j0 = math.floor(x / 12), math.floor(y / 12)
        nodes = [(i, j) for j in range(j0 - 1, j0 + 3) for i in range(i0 - 1, i0 + 3)]
        return [(math.hypot(12 * n[0] - x, 12 * n[1] - y), n) for n in nodes if n in self.free and self.seen(x, y, n)]

    def area(self, x, y) -> float:
        nodes = self.around(x, y)
        return len(naive_distances(self.free, {min(nodes)[1]: 0.0})) / self.total if nodes else 0.0


@lru_cache
def free_of(level) -> set[Node]:
    return naive_free(compiled(level).tiles[0])


def check(envs, index, draw, count) -> list[dict[str, float]]:
    """Compare the features of a world with the slow search, at random places."""
    level = envs.levels[envs.worlds.ninjas[index]["level"]]
    search = Search(level, world_at(envs.worlds, index).entity_states)
    ways = {"switch": search.distances(search.switches), "exit": search.distances(search.exits)}
    observe(envs, index)
    fields = np.empty((3, 51, 89), np.float32)
    compute_fields(envs.level_set, peek.reachability(envs).queries[index, KEY:], fields)
    if search.switch_remaining:
        check_field(fields[0], ways["switch"])
    check_field(fields[1], ways["exit"])
    free = sorted(search.free)
    found = []
    for k in range(count):
        if search.closed and k % 2:  # near a door
            (x1, y1), (x2, y2) = search.closed[draw.integers(len(search.closed))]
            x, y = (x1 + x2) / 2 + draw.uniform(-25, 25), (y1 + y2) / 2 + draw.uniform(-25, 25)
        else:
            node = free[draw.integers(len(free))]
            x, y = 12 * node[0] + draw.uniform(-9, 9), 12 * node[1] + draw.uniform(-9, 9)
        place(envs, x, y, index)
        got = observe(envs, index)
        assert got["switch_remaining"] == search.switch_remaining
        assert got["exit_open"] == search.exit_open
        assert got["reachable_area"] == pytest.approx(search.area(x, y), abs=1e-6)
        for plane, (name, way) in enumerate(ways.items()):
            check_way(got, name, search, way, fields[plane], x, y)
        found.append(got)
    return found


def check_way(got, name, search, way, field, x, y) -> None:
    lengths = [(length + way[node], node) for length, node in search.around(x, y) if node in way]
    counts = bool(lengths) and (name == "exit" or search.switch_remaining)
    assert got[f"{name}_reachable"] == counts
    direction = (got[f"{name}_direction_x"], got[f"{name}_direction_y"])
    if not counts:
        assert (got[f"{name}_distance"], *direction) == (1, 0, 0)
        return
    length = min(lengths)[0]
    assert got[f"{name}_distance"] == pytest.approx(length / (length + 528), rel=1e-4)
    ends = set()
    for other, node in lengths:
        if other < length + 1e-2:  # equally good ones may differ by rounding
            i, j = node
            for _ in range(3):
                near = [(field[b, a], b, a) for b in range(j - 1, j + 2) for a in range(i - 1, i + 2)]
                best = min(near)
                j, i = (j, i) if not best[0] < field[j, i] else next((b, a) for v, b, a in near if v == best[0])
            ends.add((i, j))
    expected = [(12 * i - x, 12 * j - y) for i, j in ends]
    units = [(dx / math.hypot(dx, dy), dy / math.hypot(dx, dy)) for dx, dy in expected]
    assert any(direction == pytest.approx(unit, abs=1e-4) for unit in units)


@pytest.mark.parametrize(
    ("level", "different"),
    [(rooms(), 3), (hall(), 1), (everything(), 1), ("jumps/05-tower", 1)],
    ids=["rooms", "hall", "everything", "tower"],
)
def test_against_a_search_in_plain_python(level, different):
    envs, draw = make(1, level), np.random.default_rng(1)
    envs.reset()
    areas = set()
    for _ in range(5):
        for kind in (*DOORS, EXIT):
            for entry in states_of(envs, kind):
                envs.worlds.entity_states[entry] = draw.integers(2)
        areas |= {round(row["reachable_area"], 3) for row in check(envs, 0, draw, 12)}
    assert len(areas) >= different


def test_doors_decide_what_can_be_reached():
    envs = make(1, rooms())
    first = dict(zip(NAMES, envs.reset()[0]["reachability"][0].tolist()))
    assert (first["switch_remaining"], first["switch_reachable"], first["exit_open"], first["exit_reachable"]) == (
        1,
        0,
        0,
        0,
    )
    assert (first["switch_distance"], first["exit_direction_x"]) == (1, 0)
    (locked,), (trap,), (exit_,) = (states_of(envs, kind) for kind in (LOCKED_DOOR, TRAP_DOOR, EXIT))
    states = envs.worlds.entity_states
    states[locked] = 1
    opened = observe(envs)
    assert (opened["switch_reachable"], opened["exit_reachable"]) == (1, 1)
    assert opened["switch_direction_x"] == pytest.approx(1.0, abs=0.01)
    assert opened["reachable_area"] == 1
    assert 0 < first["reachable_area"] < 1
    straight = 6 * (100 - 20)
    assert opened["switch_distance"] == pytest.approx(straight / (straight + 528), abs=0.03)
    states[trap] = 1
    assert (observe(envs)["switch_reachable"], observe(envs)["exit_reachable"]) == (1, 0)
    states[exit_] = 1
    taken = observe(envs)
    names = ("switch_remaining", "switch_reachable", "switch_distance", "switch_direction_x")
    assert [taken[name] for name in names] == [0, 0, 1, 0]
    assert taken["exit_open"] == 1


def test_nothing_is_seen_through_a_closed_door():
    """On both sides of a door in a hall the way leads round it, although the nodes behind it are near."""
    envs = make(1, hall())
    envs.reset()
    y = 6 * 52.0
    for dx in (10.0, 12.0, 18.0):
        lengths = []
        for x in (6 * 86 - dx, 6 * 86 + dx):
            place(envs, x, y)
            distance = observe(envs)["exit_distance"]
            lengths.append(528 * distance / (1 - distance))
        assert lengths[0] == pytest.approx(abs(dx - 12), abs=1e-3)  # the exit is on the left of the door
        assert lengths[1] > 2 * 24 + (dx - 12)


def test_the_world_beyond_the_walls():
    envs = make(1, rooms())
    envs.reset()
    for x, y in ((-500.0, 100.0), (500.0, 10_000.0), (0.0, 0.0), (1056.0, 600.0), (20.0, 20.0)):
        place(envs, x, y)
        got = observe(envs)
        assert (got["switch_reachable"], got["exit_reachable"], got["reachable_area"]) == (0, 0, 0)
        assert (got["switch_distance"], got["exit_distance"], got["exit_direction_x"]) == (1, 1, 0)


def levels_with_doors():
    return (rooms(), everything(), hall(), "jumps")


def played(slots, mode, num_threads=1, num_envs=6, **observation):
    envs = make(
        num_envs,
        levels_with_doors(),
        slots,
        ("reachability", "game_state"),
        autoreset_mode=mode,
        num_threads=num_threads,
        max_frames=160,
        observation=observation,
    )
    yield envs, [copies(envs.reset(seed=4)[0])]
    rows = []
    for actions in choices(45, num_envs).repeat(2, axis=0):
        observations, _, terminated, truncated, info = envs.step(actions)
        rows = [copies(observations)]
        over = terminated | truncated
        if "final_obs" in info:
            rows.append(copies(info["final_obs"]))
        if mode is AutoresetMode.DISABLED and over.any():
            rows.append(copies(envs.reset(options={"reset_mask": over})[0]))
        yield envs, rows


@pytest.mark.parametrize(
    ("mode", "options"), each_value(list(AutoresetMode), [{}, {"dtype": "float16", "frame_stack": 2}])
)
def test_values_do_not_depend_on_the_cache_or_on_threads(mode, options, computed):
    runs = [played(64, mode, **options), played(1, mode, **options), played(1, mode, 2, **options)]
    for first, *others in zip(*runs, strict=True):
        for _, right in others:
            for a, b in zip(first[1], right, strict=True):
                assert_same(a, b)
    assert computed[64] == used(first[0]), "none was replaced"
    assert [used(envs) for envs, _ in others] == [1, 1]
    assert computed[1] > 22


def test_clones_share_the_fields_and_step_at_the_same_time(computed):
    with patch.object(cached, "slot_count", lambda levels: 1):
        env = NPlusPlusEnv(levels=(rooms(), hall()), observations="reachability", max_frames=100)
        clones = [env.clone() for _ in range(3)]
    assert all(peek.reachability(clone).cache is peek.reachability(env).cache for clone in clones)
    results = [[] for _ in range(4)]

    def play(number: int, one: NPlusPlusEnv) -> None:
        for episode in range(8):
            results[number].append(one.reset(seed=1, options={"level": (episode + number) % 2})[0]["reachability"])
            for action in choices(20, 1)[:, 0]:
                results[number].append(one.step(action)[0]["reachability"])

    threads = [threading.Thread(target=play, args=item) for item in enumerate([env, *clones])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[1], results[3])
    np.testing.assert_array_equal(results[0][21:], results[1][:-21])
    assert computed[1] > 2, "they replaced each other's"


def test_levels_without_switched_doors_have_one_entry(computed):
    envs = make(4, "jumps", max_frames=60)
    envs.reset(seed=1)
    for actions in choices(100, 4):
        envs.step(actions)
    assert computed.total() <= used(envs) <= len(envs.level_names)


def test_environments_with_the_same_levels_share_their_fields(computed):
    first, second = make(2, "jumps"), make(3, "jumps")
    first.reset(options={"level": 0})
    before = computed.total()
    second.reset(options={"level": 0})
    assert computed.total() == before <= 1
    assert peek.reachability(second).cache is peek.reachability(first).cache
    assert peek.reachability(make(1, "jumps", slots=7)).cache is not peek.reachability(first).cache


def test_bytes_are_reported_and_nothing_is_made_unless_asked_for():
    envs = make(4, BUILT_IN, slots=5)
    sizes = {node.name: node.total_bytes for _, node in envs.memory().walk()}
    assert sizes["5 slots"] == 5 * 3 * 51 * 89 * 4
    plain = make(4, BUILT_IN, names="game_state")
    assert not any("reach" in node.name for _, node in plain.memory().walk())
