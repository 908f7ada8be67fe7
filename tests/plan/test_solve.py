"""Solutions of levels: exact, repeatable, within the budget."""

import numpy as np
import pytest

from nclone_env.errors import ConfigError, UnsupportedLevelError
from nclone_env.level import build_level, build_room, hall_tiles, known_solutions
from nclone_env.plan import searches, solve
from nclone_env.sim.trajectory import simulate
from profiling.measure import basic_sets

BUILT_IN = [name for names in basic_sets().values() for name in names]
LEVEL = "jumps/01-stairs"
WALLED_IN = build_level("exit 150 66", "exit_switch 140 66", tiles=hall_tiles((2, 6), (5, 16)), spawn=(20, 60))


def wins(level, inputs):
    states = simulate(level, inputs).state
    return states[-1] == 8 and (states[:-1] < 6).all()


@pytest.mark.parametrize(
    "level", [*BUILT_IN[::2], *(pytest.param(name, marks=pytest.mark.slow) for name in BUILT_IN[1::2])]
)
def test_built_in_levels_are_solved(level):
    found = solve(level, frames=1_000_000)
    assert found.completed
    assert found.inputs.dtype == np.uint8
    assert found.frames == len(found.inputs)
    assert wins(level, found.inputs)
    assert found.frames <= 2 * len(known_solutions()[level])
    assert 1_000_000 <= found.simulated < 1_010_000  # each search ends with its trial
    assert found.stage in ("first", "shorter", "tube", "polished")


def test_each_solution_is_reported_once_and_is_shorter():
    reported = []
    best = solve(LEVEL, frames=200_000, on_solution=reported.append)
    lengths = [found.frames for found in reported]
    assert len(lengths) > 2
    assert lengths == sorted(set(lengths), reverse=True)
    assert best.inputs.tobytes() == reported[-1].inputs.tobytes()
    assert [found.simulated for found in reported] == sorted(found.simulated for found in reported)
    assert all(wins(LEVEL, found.inputs) for found in reported)


def test_a_search_without_a_solution_goes_on_to_its_first():
    reported: list = []
    solve("jumps/03-islands", frames=200_000, on_solution=reported.append, stop=lambda: bool(reported))
    (first,) = reported
    found = solve("jumps/03-islands", frames=10_000, frames_to_first=200_000)
    assert (found.inputs.tobytes(), found.simulated) == (first.inputs.tobytes(), first.simulated)
    assert not solve("jumps/03-islands", frames=5_000, frames_to_first=10_000).completed


def test_a_search_with_a_solution_ends_with_its_budget():
    plain, other = solve(LEVEL, frames=60_000), solve(LEVEL, frames=60_000, frames_to_first=200_000)
    assert (plain.inputs.tobytes(), plain.simulated) == (other.inputs.tobytes(), other.simulated)


def test_a_level_without_a_way_is_not_solved():
    found = solve(WALLED_IN, frames=50_000)
    assert not found.completed
    assert (found.frames, found.stage, len(found.inputs)) == (0, "", 0)
    assert found.simulated >= 50_000


def test_the_longest_solution_is_respected():
    shortest = solve(LEVEL, frames=300_000).frames
    assert solve(LEVEL, frames=200_000, max_frames=shortest + 60).frames <= shortest + 60
    assert not solve(LEVEL, frames=100_000, max_frames=60).completed


def test_a_budget_of_seconds_ends_the_search():
    ticks = iter(range(1000))
    found = solve(LEVEL, seconds=5, clock=lambda: next(ticks))
    assert 0 < found.simulated < 1_000_000


def test_a_search_can_be_stopped():
    asked = []

    def stop():
        asked.append(0)
        return len(asked) > 3

    found = solve(WALLED_IN, frames=10**9, stop=stop)
    assert found.simulated < 500_000


def interrupt(found):
    raise KeyboardInterrupt


def test_an_interrupt_returns_the_best_so_far():
    found = solve(LEVEL, frames=10**9, on_solution=interrupt)
    assert found.completed
    assert wins(LEVEL, found.inputs)


def test_an_interrupt_without_a_solution_is_raised(monkeypatch):
    monkeypatch.setattr(searches, "explore", lambda *arguments: interrupt(None))
    with pytest.raises(KeyboardInterrupt):
        solve(LEVEL, frames=1000)


def test_levels_with_doors_are_solved_by_their_switches():
    tiles = hall_tiles((2, 40), (14, 15))
    doors = [f"locked_door {100 + 2 * number} 60 0\nlocked_door_switch {30 + 3 * number} 62" for number in range(4)]
    level = build_level("exit 130 62", "exit_switch 120 62", *doors, tiles=tiles, spawn=(40, 62))
    found = solve(level, frames=500_000)
    assert wins(level, found.inputs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "seconds, frames: expected at least one budget, got none; pass seconds=4, for example"),
        ({"seconds": 0}, "seconds: expected a number above 0, got 0"),
        ({"frames": -1}, "frames: expected a number above 0, got -1"),
        ({"frames": 10, "max_frames": 0}, "max_frames: expected a number above 0, got 0"),
        ({"frames": 10, "max_frames": 10**7}, "max_frames: expected at most 999,999 frames, got 10,000,000"),
        ({"frames": 10, "hold": 10**10}, "hold: expected at most 999,999 frames, got 10,000,000,000"),
        ({"frames": 10, "frames_to_first": -1}, "frames_to_first: expected a number of at least 0, got -1"),
        ({"frames": 10, "seed": -1}, "seed: expected a whole number from 0 to 9223372036854775807, got -1"),
        ({"frames": 10, "objective": "speed"}, "objective: expected one of time, score, all-gold, got 'speed'"),
        ({"frames": 10, "threads": 0}, "threads: expected a whole number of at least 1, got 0"),
        ({"frames": 10, "memory": 100}, "memory: expected room for 4 archives of worlds, got 100 bytes"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ConfigError) as caught:
        solve(LEVEL, **arguments)
    assert str(caught.value).startswith(message)


def test_a_level_without_exit_is_rejected():
    with pytest.raises(UnsupportedLevelError, match="level: expected a level with an exit, got 'nowhere'"):
        solve(build_room(title="nowhere"), frames=10)
