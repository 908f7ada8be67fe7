"""Random choices."""

from collections import Counter

from nclone_env.generate.draws import Draws, seed_of
from nclone_env.sim.state import random_bits


def test_a_seed_depends_on_all_parts_and_on_nothing_else():
    assert seed_of(1, "train", "rooms", 7, 0) == 7304780050966343637
    assert len({seed_of(1, "a"), seed_of(1, "b"), seed_of("1a"), seed_of("a", 1), seed_of(11, "a")}) == 5
    assert 0 <= seed_of("x") < 1 << 63


def test_numbers_are_those_of_the_counter():
    draws = Draws(5)
    assert [draws.below(1000) for _ in range(600)] == [int(random_bits(5, n)) % 1000 for n in range(600)]


def test_ranges_and_shares():
    draws = Draws(1)
    assert {draws.between(-1, 2) for _ in range(100)} == {-1, 0, 1, 2}
    assert {draws.between(3, 1) for _ in range(10)} == {3}
    assert 200 < sum(draws.chance(25) for _ in range(1000)) < 300
    assert not any(draws.chance(0) for _ in range(100))
    assert all(draws.chance(100) for _ in range(100))


def test_picks_and_shuffles():
    draws = Draws(2)
    assert set(Counter(draws.pick("abc") for _ in range(100))) == set("abc")
    mixed = draws.shuffled(range(20))
    assert sorted(mixed) == list(range(20))
    assert mixed != list(range(20))
