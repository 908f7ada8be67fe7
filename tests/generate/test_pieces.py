"""Set pieces and gates in halls and corridors made by hand: where they are put, and with their mirror images."""

from collections import Counter

import numpy as np
import pytest

from nclone_env.game import GOLD, KINDS, MINE, kind_name
from nclone_env.generate.draws import Draws
from nclone_env.generate.families import motifs
from nclone_env.generate.pieces import AIR, HAZARDS, HELPERS, MOVERS, PATTERNS, Piece, Scene, add_gates, add_gold, lay
from nclone_env.generate.route import Unusable, distances, set_route
from nclone_env.generate.sketch import DOWN, LEFT, RIGHT, UP, Sketch
from nclone_env.level.build import mirrored


def hall(seed=0, aim=100, symmetric=True) -> Scene:
    made = Sketch()
    made.carve((4, 37), (5, 16))
    return Scene(made, Draws(seed), aim, set_route(made, (20, 16), (20, 15), (21, 16)), symmetric)


def records(scene, *kinds):
    level = scene.made.level(scene.made.proposals)
    return [tuple(record) for record in level.raw.records.tolist() if record[0] in kinds]


@pytest.mark.parametrize(
    ("wall", "cells"),
    [
        (UP, {(column, 16) for column in range(4, 38)}),
        (DOWN, {(column, 5) for column in range(4, 38)}),
        (RIGHT, {(4, row) for row in range(5, 17)}),
        (LEFT, {(37, row) for row in range(5, 17)}),
        (AIR, {(column, row) for column in range(6, 36) for row in range(7, 15)}),
    ],
)
def test_cells_along_walls(wall, cells):
    near = {(column, row) for column in range(15, 26) for row in range(11, 17)}
    assert set(hall().along(wall, 2, 6)) == cells - near


def test_pits_are_floors_between_walls():
    scene = hall()
    scene.made.carve((8, 10), (17, 19))
    assert scene.along(14, 2, 6) == [(8, 19), (9, 19), (10, 19)]


def test_a_line_has_its_rhythm():
    scene = hall(symmetric=False)
    lay(scene, Piece("mine", (DOWN,), 3, (3,), 40))
    columns = [x // 4 - 1 for _, x, *_ in records(scene, MINE)]
    assert len(columns) > 8
    assert set(np.diff(columns)) == {3}


def test_two_in_a_cell_are_half_a_cell_apart():
    scene = hall(symmetric=False)
    lay(scene, Piece("mine", (DOWN,), 3, (0,), 40))
    assert set(np.diff([x for _, x, *_ in records(scene, MINE)])) == {2}


@pytest.mark.parametrize("piece", [*HAZARDS, *MOVERS, *HELPERS], ids=lambda piece: piece.kind)
def test_a_piece_in_a_symmetric_level_is_its_own_mirror_image(piece):
    scene = hall(seed=3)
    scene.made.carve((8, 10), (17, 19))
    scene.made.carve((31, 33), (17, 19))
    lay(scene, piece, proposed=piece in MOVERS)
    level = scene.made.level(scene.made.proposals)
    kind = next(kind.number for kind in KINDS if kind.name == piece.kind)
    there, images = ({tuple(r) for r in each.raw.records.tolist() if r[0] == kind} for each in (level, mirrored(level)))
    assert there
    assert there == images
    assert bool(scene.made.proposals) == (piece in MOVERS)


@pytest.mark.parametrize("symmetric", [True, False])
def test_gold_is_in_patterns_in_free_cells(symmetric):
    sizes = Counter()
    for seed in range(40):
        scene = hall(seed, symmetric=symmetric)
        add_gold(scene, 1)
        gold = records(scene, GOLD)
        sizes[len(gold)] += 1
        assert all(scene.made.is_open(x // 4 - 1, y // 4 - 1) for _, x, y, *_ in gold)
        if symmetric:
            assert {(168 + 8 - x, y) for _, x, y, *_ in gold} == {(x, y) for _, x, y, *_ in gold}
    areas = {across * down for across, down, *_ in PATTERNS}
    assert all(any(size % area == 0 for area in areas) for size in sizes)
    assert len(sizes) > 5


def test_sketches_have_every_kind_that_the_other_families_lack():
    kinds = Counter()
    for seed in range(60):
        try:
            sketch = motifs.sketch(Draws(seed), 60)
        except Unusable:
            continue
        kinds.update(kind_name(record[0]) for record in sketch.level(sketch.proposals).raw.records)
    assert {"trap_door", "regular_door", "evil_ninja", "shove_thwump", "launch_pad", "boost_pad"} <= set(kinds)
    assert {"locked_door", "thwump", "zap_drone", "gauss_turret", "bounce_block", "one_way"} <= set(kinds)


def corridor(seed, height=3, symmetric=False) -> Scene:
    """A corridor, with a chamber for switches below its left end."""
    made = Sketch()
    made.carve((2, 39), (13 - height, 12))
    made.carve((2, 4), (13, 16))
    made.carve((37, 39), (13, 16))
    made.fill((3, 4), (13, 13))
    made.fill((37, 38), (13, 13))
    return Scene(made, Draws(seed), 50, set_route(made, (6, 12), (30, 12), (36, 12)), symmetric)


def test_a_gate_leaves_a_doorway_on_the_floor():
    kinds = Counter()
    for seed in range(12):
        scene = corridor(seed)
        open_before = (scene.made.tiles == 0).sum()
        proposed = add_gates(scene, 1)
        assert open_before - (scene.made.tiles == 0).sum() == 2
        assert proposed == len(scene.made.proposals)
        kinds.update([proposal.name for proposal in scene.made.proposals] or ["regular_door"])
        assert distances(scene.made, scene.route.start)[12, 36] > 0
    assert set(kinds) == {"locked_door", "trap_door", "regular_door"}


def test_switches_are_on_this_side_and_those_of_locked_doors_off_the_way():
    names = set()
    for seed in range(12):
        scene = corridor(seed)
        add_gates(scene, 1)
        for proposal in scene.made.proposals:
            door, switch = ([int(word) for word in line.split()[1:3]] for line in proposal.lines.splitlines())
            assert switch[0] < door[0]
            assert ((switch[0] // 4 - 1, switch[1] // 4 - 1) in scene.route.cells) == (proposal.name == "trap_door")
            names.add(proposal.name)
    assert names == {"locked_door", "trap_door"}


def test_no_gate_where_the_ceiling_is_high():
    assert add_gates(corridor(1, height=9), 3) == 0
    assert (corridor(1, height=9).made.tiles[4:13, 6:36] == 0).all()


def test_a_symmetric_level_has_two_walls_a_gate():
    scene = corridor(5, symmetric=True)
    add_gates(scene, 1)
    assert (scene.made.tiles == scene.made.tiles[:, ::-1]).all()
    assert (scene.made.tiles[10:12, 2:40] == 1).sum() == 4
