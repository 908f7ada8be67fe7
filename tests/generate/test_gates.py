"""Gates across a corridor made by hand."""

from collections import Counter

from nclone_env.generate.draws import Draws
from nclone_env.generate.pieces import Scene, add_gates
from nclone_env.generate.route import distances, set_route
from nclone_env.generate.sketch import Sketch


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
