"""Edits of a solution: each accepted one is a solution, and the kept worlds are those on its way."""

import numpy as np
import pytest

from nclone_env.level import build_level, hall_tiles, known_solutions, load_level, make_guide, pack
from nclone_env.plan.polish import _SPACING, edit, has_joined, make_polisher, polish, take
from nclone_env.plan.solver import solve
from nclone_env.plan.task import origin_of
from nclone_env.sim import Session, copy_world, hash_world

from .test_solve import wins

NAME = "jumps/04-chimney"
LEVEL = load_level(NAME)
KNOWN = np.array(list(known_solutions()[NAME]), np.uint8)  # writable, as those of the solver
AT_ONCE = build_level("exit 22 60", "exit_switch 21 60", tiles=hall_tiles((2, 20), (12, 16)), spawn=(20, 60))


def polished(level=LEVEL, inputs=KNOWN, seed=1, frames=100_000, worse=0):
    """Return the polisher and all solutions that it found."""
    levels = pack([level])
    guide, found = make_guide(levels), []
    polisher = make_polisher(levels, len(inputs), origin_of(levels), worse=worse)
    polisher.search["seed"] = seed
    take(levels.arrays, polisher, guide, inputs)
    while polisher.search[0]["frames"] < frames:
        if polish(levels.arrays, polisher, guide, frames):
            found.append(polisher.best[: polisher.search[0]["best_length"]].copy())
    return polisher, found


def test_solutions_become_shorter_and_win():
    polisher, found = polished()
    lengths = [len(KNOWN), *map(len, found)]
    assert lengths == sorted(set(lengths), reverse=True)
    assert lengths[-1] < len(KNOWN) - 10
    assert polisher.search[0]["length"] == lengths[-1]
    assert all(wins(LEVEL, inputs) for inputs in found)


def test_a_search_drifts_among_solutions_that_are_a_little_worse():
    drifting, found = polished(worse=3)
    lengths = [len(KNOWN), *map(len, found)]
    assert lengths == sorted(set(lengths), reverse=True)
    assert all(wins(LEVEL, inputs) for inputs in found)
    state, seen = drifting.search[0], set()
    levels = pack([LEVEL])
    for frames in range(state["frames"], state["frames"] + 20_000, 1000):
        polish(levels.arrays, drifting, make_guide(levels), frames)
        seen.add(int(state["cost"] - state["least"]))
        assert wins(LEVEL, drifting.inputs[: state["length"]])
    assert max(seen) in (1, 2, 3)
    assert min(seen) >= 0


def test_the_kept_worlds_are_those_of_the_solution():
    polisher, _ = polished()
    length = polisher.search[0]["length"]
    session = Session(LEVEL, max_frames=len(KNOWN))
    for frame in range(length):
        if frame % _SPACING == 0:
            assert hash_world(polisher.worlds, frame // _SPACING) == hash_world(session.worlds, 0)
        session.play(polisher.inputs[frame : frame + 1][:, None])


def test_edits_begin_where_they_say_and_stay_inside():
    polisher, _ = polished(frames=1000)
    length = int(polisher.search[0]["length"])
    seen = set()
    for _ in range(2000):
        first, size = edit(polisher)
        assert 0 <= first < length
        assert 0 < size <= length
        assert polisher.edited[: min(first, size)].tobytes() == polisher.inputs[: min(first, size)].tobytes()
        assert set(polisher.edited[:size].tolist()) <= set(range(6))
        seen.add(size - length)
    assert min(seen) < -4
    assert max(seen) == 0


def test_solutions_of_a_few_frames():
    best = solve(AT_ONCE, frames=200_000)
    assert 0 < best.frames < 10
    polisher, found = polished(AT_ONCE, best.inputs, frames=20_000)
    assert all(wins(AT_ONCE, shorter) for shorter in found)
    assert polisher.search[0]["length"] <= best.frames


def test_a_solution_of_another_search_is_taken():
    levels, shorter = pack([LEVEL]), polished()[1][-1]
    guide, polisher = make_guide(levels), make_polisher(levels, len(KNOWN), origin_of(levels))
    take(levels.arrays, polisher, guide, KNOWN)
    take(levels.arrays, polisher, guide, shorter)
    assert polisher.search[0]["length"] == len(shorter)
    assert polisher.ways[0] == pytest.approx(polisher.ways[1], abs=5)


def test_a_trial_ends_in_a_state_of_the_solution():
    levels = pack([LEVEL])
    guide, polisher = make_guide(levels), make_polisher(levels, len(KNOWN), origin_of(levels))
    take(levels.arrays, polisher, guide, KNOWN)

    def joined(kept, frames, edited, gain):
        """Return whether a trial ends in a kept world; ``edited`` and ``gain`` are those of its edits."""
        copy_world(polisher.worlds, kept, polisher.worlds, len(polisher.worlds.ninjas) - 1)
        polisher.search["edited"], polisher.search["gain"] = edited, gain
        return has_joined(levels.arrays, polisher, frames)

    frames = 3 * _SPACING
    assert joined(3, frames, frames, 0)
    assert joined(4, frames, frames, _SPACING)  # 8 frames earlier than the solution
    assert joined(2, frames, frames, -_SPACING)
    assert not joined(3, frames, frames + 1, 0)  # an edit is still to come
    assert not joined(4, frames, frames, 0)
    assert not joined(3, frames, frames, 1)  # no world is kept of that frame
