"""The table of keys."""

import numpy as np
import pytest

from nclone_env.plan.kernels import EMPTY, PLACE_BYTES, find_place, make_table, places_for


def insert(table, key, number):
    place = find_place(table, np.uint64(key))
    table.keys[place], table.numbers[place] = key, number


def lookup(table, key):
    return int(table.numbers[find_place(table, np.uint64(key))])


@pytest.mark.parametrize("count", [1, 6, 7, 1000])
def test_the_size_is_known_beforehand(count):
    table = make_table(count)
    assert len(table.keys) == places_for(count)
    assert sum(array.nbytes for array in table) == PLACE_BYTES * places_for(count)
    assert count <= 0.75 * len(table.keys)


def test_keys_are_found_until_the_table_is_full():
    rng = np.random.default_rng(0)
    keys = [int(key) for key in rng.integers(0, 2**63, 500)]
    keys += [key + 64 for key in range(0, 64 * 1024, 1024)]  # chains of collisions
    table, expected = make_table(len(keys)), {}
    for number, key in enumerate(keys):
        insert(table, key, number)
        expected[key] = number
    assert [lookup(table, key) for key in keys] == [expected[key] for key in keys]
    assert lookup(table, 12345) == EMPTY
    assert np.count_nonzero(table.numbers != EMPTY) == len(expected)
