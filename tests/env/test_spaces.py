"""Spaces that do not grow with the batch are as good as Gymnasium's own."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from gymnasium.vector.utils import batch_space

from nclone_env import EnvironmentConfig
from nclone_env.config import OBSERVATION_NAMES
from nclone_env.env.spaces import batched_space, observation_space
from nclone_env.obs.spec import observation_specs

# Without levels a graph has no entities, and older versions of Gymnasium print empty spaces differently.
SPECS = tuple(
    spec for spec in observation_specs(EnvironmentConfig(observations=OBSERVATION_NAMES)) if 0 not in spec.shape
)


def pickled(space):
    return pickle.loads(pickle.dumps(space))


@pytest.mark.parametrize("remake", [lambda space: space, copy.deepcopy, pickled])
def test_a_batched_space_equals_the_one_of_gymnasium(remake):
    space, expected = remake(batched_space(SPECS, 3)), batch_space(observation_space(SPECS), 3)
    assert space == expected
    assert repr(space) == repr(expected)
    assert batched_space(SPECS, 4) != expected
    for name, box in expected.items():
        for field in ("low", "high", "bounded_below", "bounded_above"):
            ours, theirs = getattr(space[name], field), getattr(box, field)
            assert ours.dtype == theirs.dtype
            assert np.array_equal(ours, theirs)


def test_samples_are_in_the_space_and_the_seed_decides_them():
    space, expected = batched_space(SPECS, 3), batch_space(observation_space(SPECS), 3)
    space.seed(5)
    expected.seed(5)
    sample, other = space.sample(), expected.sample()
    assert sample in space
    assert all(np.array_equal(sample[name], other[name]) for name in other)
    sample["entity_count"][1] = 255
    assert sample not in space


def test_bounds_take_no_memory():
    space = batched_space(SPECS, 1 << 20)  # a terabyte if every bound were stored
    for box in space.values():
        assert box.low.strides == (0,) * box.low.ndim
        assert box.bounded_above.base.nbytes == 1
