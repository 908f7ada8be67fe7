"""The graphs of levels against sets of lattice nodes, and what an observation says of them against the world."""

import math

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.game import EXIT_SWITCH, GOLD, LAUNCH_PAD, LOCKED_DOOR, REGULAR_DOOR, TRAP_DOOR
from nclone_env.level.build import everything
from nclone_env.level.compile import level_distances
from nclone_env.level.level import RawLevel
from nclone_env.level.routes.fields import distance_at
from nclone_env.level.routes.graph import NO_NODE, build_graphs
from nclone_env.sim.state import world_at

from ..level.routes.test_distance import Node
from .levels import BUILT_IN, compiled, run
from .test_reachability import Search, free_of, hall, rooms

LEVELS = (rooms(), hall(), everything(), "jumps", "hazards/05-slalom")


def make(num_envs=4, levels=LEVELS, **fields):
    return NPlusPlusVectorEnv(None, num_envs, levels=levels, observations="graph", **fields)


def neighbours(node: Node) -> list[Node]:
    return [(node[0] + a, node[1] + b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]


def cell(node: Node) -> Node:
    return node[0] // 2, node[1] // 2


def naive_edges(free: set[Node]) -> set[tuple[Node, Node]]:
    joined = {(cell(n), cell(m)) for n in free for m in neighbours(n) if m in free}
    return {(a, b) for a, b in joined if a != b}


def parts(nodes, edges) -> set[frozenset]:
    """Return the connected parts of a graph."""
    around = {node: set() for node in nodes}
    for a, b in edges:
        around[a].add(b)
    found, left = set(), set(nodes)
    while left:
        part, queue = set(), [next(iter(left))]
        while queue:
            node = queue.pop()
            if node not in part:
                part.add(node)
                queue += around[node]
        left -= part
        found.add(frozenset(part))
    return found


class Unpacked:
    """One graph as Python objects; places are named by their cells."""

    def __init__(self, graphs, row, level):
        self.place = {}
        for j, i in np.argwhere(graphs.lattice[row] >= 0).tolist():
            self.place.setdefault(int(graphs.lattice[row, j, i]), cell((i, j)))
        self.edges = graphs.edges[row].T[graphs.edge_mask[row]].tolist()
        self.steps = {(self.place[a], self.place[b]) for a, b in self.edges if a in self.place and b in self.place}
        self.homes = {a: self.place[b] for a, b in self.edges if a not in self.place}
        self.back = {b: self.place[a] for a, b in self.edges if b not in self.place}
        self.closed = [(tuple(self.edges[e]), entity) for e, entity in graphs.closed_by[row].tolist() if e >= 0]

    def steps_with(self, closed: set[int]) -> set[tuple[Node, Node]]:
        gone = {(self.place[a], self.place[b]) for (a, b), entity in self.closed if entity in closed}
        return self.steps - gone


def check_graph(level, graphs, row) -> None:
    graph, free = Unpacked(graphs, row, level), free_of(level)
    cells = {cell(node) for node in free}
    assert set(graph.place.values()) == cells
    assert len(graph.place) == len(cells)
    assert graph.steps == naive_edges(free)
    assert len(graph.edges) == len(graph.steps) + 2 * len(graph.homes)
    assert graph.homes == graph.back
    for slot, entity in enumerate(compiled(level).entities):
        lengths = {n: math.hypot(12 * n[0] - entity["x"], 12 * n[1] - entity["y"]) for n in free}
        least = min(lengths.values())
        assert graph.homes[slot] in {cell(n) for n, length in lengths.items() if length == least}
    first = min(graph.place)
    assert graphs.node_mask[row].sum() == len(cells) + len(compiled(level).entities)
    assert graphs.node_mask[row, : len(compiled(level).entities)].all()
    assert graphs.node_mask[row, first : first + len(cells)].all()
    assert (graphs.kinds[row, : len(compiled(level).entities)] == compiled(level).entities["type"]).all()
    assert (graphs.kinds[row, len(compiled(level).entities) :] == 0).all()


def check_features(level, graphs, row) -> None:
    graph, free, distances = Unpacked(graphs, row, level), free_of(level), level_distances(compiled(level))
    members: dict[Node, list[Node]] = {}
    for node in free:
        members.setdefault(cell(node), []).append(node)
    for number, name in graph.place.items():
        x, y = (12 * sum(n[axis] for n in members[name]) / len(members[name]) for axis in (0, 1))
        length = distance_at(distances, 0, x, y)
        way = length / (length + 528) if math.isfinite(length) else 1
        expected = [x / 528 - 1, y / 300 - 1, len(members[name]) / 4, way, 0, 0]
        assert graphs.nodes[row, number].tolist() == pytest.approx(expected, abs=1e-5)
    for slot, entity in enumerate(compiled(level).entities):
        got = graphs.nodes[row, slot].tolist()
        assert got[:3] == pytest.approx([entity["x"] / 528 - 1, entity["y"] / 300 - 1, 0], abs=1e-5)
        if entity["type"] == LAUNCH_PAD:
            angle = entity["orientation"] * math.pi / 4
            assert got[4:] == pytest.approx([math.cos(angle), math.sin(angle)], abs=1e-5)
    assert (np.abs(graphs.nodes) <= 1).all()


def check_doors(level, graphs, row) -> int:
    """Close each door alone, then all, and compare with the lattice without the nodes near it; return their number."""
    graph = Unpacked(graphs, row, level)
    switched = [slot for slot, e in enumerate(compiled(level).entities) if e["type"] in (LOCKED_DOOR, TRAP_DOOR)]
    for closed in [{slot} for slot in switched]:
        assert graph.steps_with(closed) == naive_edges(Search(level, states_with(level, closed)).free)
    free = Search(level, states_with(level, set(switched))).free
    lattice = {frozenset(cell(n) for n in part) for part in parts(free, links(free))}
    cells = {cell(node) for node in free}
    left = {part & cells for part in parts(set(graph.place.values()), graph.steps_with(set(switched)))}
    assert {part for part in left if part} == lattice
    return len(switched)


def links(free):
    return [(n, m) for n in free for m in neighbours(n) if m in free]


def states_with(level, closed: set[int]) -> np.ndarray:
    """Return entity states with some doors closed and the other doors open."""
    states = np.zeros(len(compiled(level).entities), np.uint8)
    for slot, entity in enumerate(compiled(level).entities):
        if entity["type"] in (LOCKED_DOOR, TRAP_DOOR):
            states[slot] = (slot in closed) == (entity["type"] == TRAP_DOOR)
    return states


def test_graphs_against_sets_of_nodes():
    envs = make()
    doors = 0
    for row, level in enumerate(envs.levels):
        check_graph(level, envs.graphs, row)
        check_features(level, envs.graphs, row)
        doors += check_doors(level, envs.graphs, row)
    assert doors >= 6


def test_padding_points_nowhere():
    graphs = make().graphs
    assert not graphs.edge_mask.all()
    assert not graphs.node_mask.all()
    assert (graphs.edges[~np.broadcast_to(graphs.edge_mask[:, None], graphs.edges.shape)] == 0).all()
    for row in range(len(graphs.nodes)):
        ends = graphs.edges[row][:, graphs.edge_mask[row]]
        assert graphs.node_mask[row][ends].all()
        assert (graphs.nodes[row][~graphs.node_mask[row]] == 0).all()
    assert ((graphs.closed_by >= 0).all(axis=2) | (graphs.closed_by == NO_NODE).all(axis=2)).all()
    assert all(not array.flags.writeable for array in graphs)


def expected_entities(level, states, count) -> list[int]:
    values = []
    for slot in range(count):
        kind = compiled(level).entities["type"][slot] if slot < len(compiled(level).entities) else 0
        state = states[slot] if slot < len(states) else 0
        gone = kind in (GOLD, EXIT_SWITCH, LOCKED_DOOR, TRAP_DOOR) and state != 0
        closed = kind in (REGULAR_DOOR, LOCKED_DOOR) and state == 0
        closed |= kind == TRAP_DOOR and state != 0
        values.append(0 if kind == 0 else (not gone) + 2 * closed)
    return values


def test_observations_follow_the_world():
    envs = make(6, max_frames=300, frame_skip=8)
    seen = set()
    for step, observations in enumerate(run(envs, 120)):
        assert observations in envs.observation_space
        for i in range(6) if step % 5 == 0 else ():
            row = observations["graph_level"][i, 0]
            ninja, level = envs.worlds.ninjas[i], envs.levels[row]
            assert row == ninja["level"]
            count = envs.level_set.max_entities
            expected = expected_entities(level, world_at(envs.worlds, i).entity_states, count)
            assert observations["graph_entities"][i].tolist() == expected
            node = observations["graph_node"][i, 0]
            x, y = float(ninja["x"]), float(ninja["y"])
            near = [n for n in free_of(level) if -12 <= 12 * n[0] - 12 * (x // 12) <= 24]
            near = [n for n in near if -12 <= 12 * n[1] - 12 * (y // 12) <= 24]
            if not near:
                assert node == NO_NODE
                continue
            best = min(near, key=lambda n: math.hypot(12 * n[0] - x, 12 * n[1] - y))
            assert node == envs.graphs.lattice[row, best[1], best[0]]
            seen.add((row, node))
    assert len({row for row, _ in seen}) >= 3


def test_outside_of_the_world_there_is_no_node():
    env = NPlusPlusEnv(levels=rooms(), observations="graph")
    env.reset()
    env.worlds.ninjas["y"] = 9000
    assert env.step(0)[0]["graph_node"] == NO_NODE


def test_graphs_are_shared_built_once_and_only_if_asked_for():
    plain = NPlusPlusVectorEnv(None, 2, levels=BUILT_IN, observations="game_state")
    assert not any(node.name == "graphs" for _, node in plain.memory().walk())
    assert plain.graphs is plain.graphs
    reported = next(node for _, node in plain.memory().walk() if node.name == "graphs")
    assert reported.total_bytes == sum(array.nbytes for array in plain.graphs)
    env = NPlusPlusEnv(levels=rooms(), observations="graph")
    env.reset()
    assert env.clone().graphs.nodes is env.graphs.nodes


def test_graphs_of_a_file_are_those_that_are_made():
    envs = make()
    for array, made in zip(envs.graphs, build_graphs(envs.level_set)):
        np.testing.assert_array_equal(array, made)


def test_a_level_without_free_places_has_entities_alone():
    solid = RawLevel(np.ones((23, 42), np.uint8), rooms().raw.records, "solid")
    env = NPlusPlusEnv(levels=solid, observations="graph")
    graphs = env.graphs
    assert graphs.node_mask.sum() == len(compiled(env.levels[0]).entities)
    assert not graphs.edge_mask.any()
    assert env.reset()[0]["graph_node"] == NO_NODE
