"""Rounding to float16 against NumPy."""

import numba
import numpy as np
import pytest

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv
from nclone_env.env.arrays.buffers import make_buffers
from nclone_env.level.build import everything
from nclone_env.obs.half import words, write_vector
from nclone_env.obs.rows import kernel_view, no_observations
from nclone_env.obs.spec import observation_specs

from ..env.bases import copies
from .levels import BUILT_IN, run

VECTORS = ("game_state", "entity_states", "reachability", "free_motion", "action_outcomes")


def rounded(values: np.ndarray) -> np.ndarray:
    out = np.zeros(len(values), np.uint16)
    write_vector(values.astype(np.float32), out)
    return out


def check(values: np.ndarray) -> None:
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    bits, numbers = rounded(values), ~np.isnan(values)
    np.testing.assert_array_equal(bits[numbers], expected.view(np.uint16)[numbers])
    assert np.isnan(bits.view(np.float16)[~numbers]).all()


def test_every_half_and_the_floats_around_it_and_around_the_middles():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)].astype(np.float32)
    ordered = np.unique(halves)
    middles = (ordered[:-1] + ordered[1:]) / 2
    edge = np.float32([65519.996, 65520, 65520.004, 3.4e38, np.inf, np.nan, 1e-45, 2.9802322e-08, 2.9802326e-08])
    values = np.concatenate([halves, middles, edge, -edge])
    check(values)
    with np.errstate(over="ignore"):
        check(np.nextafter(values, np.float32(np.inf)))
        check(np.nextafter(values, np.float32(-np.inf)))


def test_random_floats():
    bits = np.random.default_rng(1).integers(0, 1 << 32, 1_000_000, dtype=np.uint32)
    check(bits.view(np.float32))


def test_of_float32_nothing_is_rounded_further():
    values, out = np.random.default_rng(2).normal(size=30), np.zeros(30, np.float32)
    write_vector(values, out)
    np.testing.assert_array_equal(out, values.astype(np.float32))


def test_words_of_float32_are_its_bits():
    values = np.random.default_rng(3).normal(size=30)
    values[:4] = 0.0, -0.0, np.inf, np.nan
    out = np.zeros(30, np.float32)
    write_vector(values, words(out))
    np.testing.assert_array_equal(out, values.astype(np.float32))
    assert np.signbit(out[1])


def test_kernels_are_compiled_once_for_both_dtypes():
    types = []
    for dtype in ("float32", "float16"):
        config = EnvironmentConfig(
            observations=("game_state", "entity_states"), observation={"dtype": dtype, "max_entities": 4}
        )
        specs = observation_specs(config)
        types.append(numba.typeof(kernel_view(make_buffers(specs, 2), no_observations(specs))))
    assert types[0] == types[1]


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("names", [("game_state",), VECTORS])
def test_observations_are_the_rounded_ones(names, num_threads):
    fields = {"levels": (*BUILT_IN, everything()), "observations": names, "max_frames": 60}
    plain = NPlusPlusVectorEnv(None, 5, **fields)
    halves = NPlusPlusVectorEnv(None, 5, observation={"dtype": "float16"}, num_threads=num_threads, **fields)
    for left, right in zip(run(plain, 90), run(halves, 90)):
        assert right in halves.observation_space
        for name, array in copies(left).items():
            if array.dtype == np.float32:
                assert right[name].dtype == np.float16
                array = array.astype(np.float16)
            np.testing.assert_array_equal(array, right[name])
