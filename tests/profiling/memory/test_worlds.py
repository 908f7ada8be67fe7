"""The bytes of worlds by their levels."""

from profiling.memory.worlds import bytes_of_worlds


def test_worlds_on_larger_levels_take_more():
    small, large = (bytes_of_worlds(levels, 16, 40) for levels in ("first-steps", "hazards"))
    assert small.keys() == large.keys()
    assert sum(large.values()) > sum(small.values()) > 120 + 64
