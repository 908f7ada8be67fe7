"""The difficulties on the page of the built-in sets are those that are measured."""

import re

import pytest

from nclone_env.level.catalog import level_sets
from nclone_env.level.load import load_level
from profiling.planning.set_difficulties import band, measure
from tests.docs.test_sets import ROWS


def measured_and_stated(names):
    """Yield the set, the measured difficulty and the one on the page of each level of some sets."""
    for name, _, _, cells in ROWS:
        stated = re.findall(r"\((\d+)\)", cells)
        for level, number in zip(level_sets()[name], stated, strict=True):
            if name in names:
                yield name, measure(load_level(level)).number, int(number)


def test_the_first_set_is_the_first_band():
    for name, measured, stated in measured_and_stated(("motifs-1",)):
        assert measured == stated
        assert name == f"motifs-{band(measured)}"
    assert [band(number) for number in (0, 9, 10, 89, 90, 99, 100)] == [1, 1, 2, 9, 10, 10, 10]


@pytest.mark.slow
def test_all_difficulties_are_as_measured():
    for name, measured, stated in measured_and_stated(level_sets()):
        assert measured == stated
        assert name == f"motifs-{band(measured)}"
