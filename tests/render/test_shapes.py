"""Tiles against the inequalities of physics 01, section 2.3; entities against their radii."""

import numpy as np
import pytest

from nclone_env.render.looks import LOOKS, POSTURES, Appearance, appearance, layers_of, ninja_layers
from nclone_env.render.raster import GREYS, coverage, stamp
from nclone_env.render.shapes import PAINTS, tile_outline

from ..golden.tiles import SOLID

# Points of a fine lattice, moved off it so that none lies on an outline.
LATTICE = (np.arange(24 * 20) + 0.5) / 20
U, V = LATTICE[None, :] + 0.0013, LATTICE[:, None] + 0.0007


@pytest.mark.parametrize("tile", SOLID)
def test_a_tile_covers_its_solid_region(tile):
    expected = np.broadcast_to(SOLID[tile](U, V), (480, 480)).reshape(24, 20, 24, 20).mean((1, 3))
    covered = coverage([tile_outline(tile)])
    # 64 samples a pixel against 400: a slope's edge differs by a few samples, arcs also by their chords.
    assert abs(covered - expected).max() < 0.08
    assert abs(covered.mean() - expected.mean()) < 0.003


@pytest.mark.parametrize("tile", [1, 2, 3, 4, 5])
def test_edges_on_pixel_boundaries_are_sharp(tile):
    assert set(np.unique(coverage([tile_outline(tile)]))) <= {0.0, 1.0}


@pytest.mark.parametrize(("tile", "edge"), [(34, np.s_[0]), (35, np.s_[:, 23]), (36, np.s_[23]), (37, np.s_[:, 0])])
def test_glitched_tiles_show_their_edge_only(tile, edge):
    expected = np.zeros((24, 24))
    expected[edge] = 1
    np.testing.assert_array_equal(coverage([tile_outline(tile)]), expected)


def test_magnification_refines_the_same_shape():
    fine = coverage([tile_outline(13)], 3)
    assert fine.shape == (72, 72)
    assert abs(fine.reshape(24, 3, 24, 3).mean((1, 3)) - coverage([tile_outline(13)])).max() < 0.05


def test_inner_outlines_are_holes():
    outer, inner = (np.array([(0, 0), (24, 0), (24, 24), (0, 24.0)]), np.array([(6, 6), (18, 6), (18, 18), (6, 18.0)]))
    assert coverage([outer, inner]).sum() == 24 * 24 - 12 * 12


def outlines_of(layers):
    return np.vstack([outline for layer in layers for outline in layer.outlines])


# Reach from the centre by (type, state), pixels: physics 02, section 11.
SIZES = {(1, 0): 4, (1, 1): 3.5, (1, 2): 4.5, (2, 0): 6, (3, 0): 12, (3, 1): 12, (4, 0): 6, (4, 1): 6, (5, 0): 12}
SIZES |= {(6, 0): 12, (7, 0): 5, (8, 1): 12, (9, 0): 5, (10, 0): 6, (11, 0): 12, (14, 0): 7.5, (15, 0): 7.5}
SIZES |= {(16, 0): 6, (17, 0): 9, (20, 0): 11, (24, 0): 6, (25, 0): 5, (26, 0): 4, (28, 0): 12, (23, 0): 8}


def test_entities_have_their_size():
    for (entity_type, state), radius in SIZES.items():
        reach = abs(outlines_of(layers_of(appearance(entity_type, 0, state)))).max()
        assert radius - 1 <= reach <= radius + 2.5, entity_type


def test_everything_fits_its_stamp_in_every_turn():
    for entity_type, look in LOOKS.items():
        for variant in range(len(look.variants)):
            for turn in range(8) if entity_type in (10, 11, 23) else (0, 2, 4, 6):
                assert abs(outlines_of(layers_of(Appearance(entity_type, variant, turn)))).max() <= 12 + 1e-9


def test_orientations_turn_clockwise():
    pad = layers_of(appearance(10, 0, 0))[1].outlines[0]
    for orientation in range(8):
        towards = layers_of(appearance(10, orientation, 0))[1].outlines[0].mean(0)
        angle = np.pi / 4 * orientation
        np.testing.assert_allclose(towards, pad.mean(0)[0] * np.array((np.cos(angle), np.sin(angle))), atol=1e-9)
    down, right = (layers_of(appearance(14, 0, heading))[-1].outlines[0].mean(0) for heading in (1, 0))
    assert right[0] > 2 > abs(right[1])
    assert down[1] > 2 > abs(down[0])


@pytest.mark.parametrize(("orientation", "x", "y"), [(0, 11, 0), (2, 0, 11), (4, -11, 0), (6, 0, -11), (1, 0, -11)])
def test_the_face_of_a_thwump_is_where_it_charges(orientation, x, y):
    face = layers_of(appearance(20, orientation, 0))[1].outlines[0]
    assert abs(face[abs(face[:, 0] - x) + abs(face[:, 1] - y) <= 7 + 1e-9]).max() == 11


def test_doors_stand_or_lie():
    for kind in (5, 6, 8):
        standing, lying = (outlines_of(layers_of(appearance(kind, turn, 0))) for turn in (4, 6))
        assert np.ptp(standing[:, 1]) == np.ptp(lying[:, 0]) == 24
        assert np.ptp(standing[:, 0]) == np.ptp(lying[:, 1]) <= 10


def test_the_ninja_stays_within_its_radius_and_mirrors():
    for state in POSTURES:
        right, left = outlines_of(ninja_layers(state, 1)), outlines_of(ninja_layers(state, -1))
        assert np.hypot(*right.T).max() <= 11.5  # radius 10, limbs may stick out by a pixel
        np.testing.assert_array_equal(left, right * (-1, 1))


def test_kinds_have_their_own_grey():
    greys = [paint.grey for paint in PAINTS.values()]
    assert len(set(greys)) == len(greys)


def test_a_stamp_is_premultiplied_and_opaque_inside():
    alpha, ink = stamp(layers_of(appearance(2, 0, 0)), GREYS)
    assert alpha[12, 12] == 1
    assert ink[12, 12, 0] == PAINTS["gold"].grey
    assert alpha[0, 0] == ink[0, 0, 0] == 0
