"""Codes of distance fields: the lengths that they give back, their order, and what they take."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.level.routes.fields import (
    FIELD_SHAPE,
    NO_CODE,
    Fields,
    code_at,
    field_room,
    joined_fields,
    length_of,
    nearest_node,
    trimmed,
    write_field,
)

from .decoded import lengths_of


def coded(lengths: np.ndarray, step: int = 1) -> Fields:
    """Return the field of (51, 89) lengths, or of those of a lattice with ``step`` times as many lines."""
    fields = field_room(1)
    return trimmed(fields, *write_field(lengths, step, fields, 0, 0, 0))


def summed(rng: np.random.Generator, first: float, straight: int, diagonal: int, share: float) -> np.ndarray:
    """Return lengths of random steps from a length on, added up one by one as float32, some without a path."""
    lengths = np.full(FIELD_SHAPE, np.float32(first))
    for count, step in ((straight, 12.0), (diagonal, 12.0 * math.sqrt(2.0))):
        for _ in range(count):
            taken = rng.random(FIELD_SHAPE) < 0.5
            lengths[taken] = (lengths[taken].astype(np.float64) + step).astype(np.float32)
    lengths[rng.random(FIELD_SHAPE) >= share] = np.inf
    return lengths


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.floats(0.0, 2000.0, width=32),
    st.integers(0, 200),
    st.integers(0, 60),
    st.sampled_from([0.001, 0.3, 1.0]),
)
def test_sums_of_steps_come_back(seed, first, straight, diagonal, share):
    lengths = summed(np.random.default_rng(seed), first, straight, diagonal, share)
    assert lengths_of(coded(lengths), 0).tobytes() == lengths.tobytes()


@pytest.mark.parametrize("most", [0.0, 1e-3, 11.0, 1e3, 1e5, 9e8])
@pytest.mark.parametrize("least", [0.0, 5.0, 1e5])
def test_any_lengths_come_back_in_their_order(least, most):
    """Lengths without a pattern need a larger unit."""
    lengths = (least + np.random.default_rng(1).random(FIELD_SHAPE) * max(most - least, 0.0)).astype(np.float32)
    fields = coded(lengths)
    assert lengths_of(fields, 0).tobytes() == lengths.tobytes()
    assert (fields.fields["unit"][0] > 12.0) == (most > 11.0 and most > least)
    order = np.argsort(lengths.ravel(), kind="stable")
    assert np.array_equal(np.argsort(fields.codes, kind="stable"), order)
    assert fields.codes.max() < NO_CODE


def test_steps_have_few_rests_and_others_many():
    """The control: lengths as long, of no steps."""
    rng = np.random.default_rng(2)
    steps = summed(rng, 6.0, 100, 20, 1.0)
    assert len(coded(steps).rests) < 100
    assert len(coded((steps * rng.random(FIELD_SHAPE)).astype(np.float32)).rests) > 1000


def test_only_the_nodes_between_the_first_and_the_last_of_a_row_have_codes():
    lengths = np.full(FIELD_SHAPE, np.inf, np.float32)
    lengths[3, 5], lengths[3, 9], lengths[50, 0], lengths[0, 88] = 12.0, 24.0, 0.0, 36.0
    fields = coded(lengths)
    assert fields.rows["count"][0, [0, 3, 50]].tolist() == [1, 5, 1]
    assert len(fields.codes) == fields.rows["count"].sum() == 7
    found = np.array([[code_at(fields, 0, j, i) for i in range(FIELD_SHAPE[1])] for j in range(FIELD_SHAPE[0])])
    assert np.array_equal(found != NO_CODE, lengths < np.inf)
    for node in ((3, 5), (3, 9), (50, 0), (0, 88), (3, 6), (20, 20)):
        assert length_of(fields, 0, int(found[node])) == lengths[node]


def test_every_second_line_of_a_finer_lattice():
    fine = np.random.default_rng(3).random((101, 177)).astype(np.float32)
    assert np.array_equal(lengths_of(coded(fine, 2), 0), fine[::2, ::2])


def test_a_field_without_a_path():
    fields = coded(np.full(FIELD_SHAPE, np.inf, np.float32))
    assert (len(fields.codes), len(fields.rests)) == (0, 0)
    joined = joined_fields([fields, fields])
    assert np.isinf(lengths_of(joined, 1)).all()
    assert nearest_node(joined, 1, 500.0, 300.0) == (math.inf, 0, 0)


def test_joined_fields_are_those_of_their_parts():
    rng = np.random.default_rng(4)
    lengths = [summed(rng, rng.random() * 100, 20, 10, 0.5) for _ in range(3)]
    parts = [coded(array) for array in lengths]
    joined = joined_fields([joined_fields(parts[:2]), parts[2]])
    for number, array in enumerate(lengths):
        assert np.array_equal(lengths_of(joined, number), array)
    for array in joined:
        assert not array.flags.writeable
