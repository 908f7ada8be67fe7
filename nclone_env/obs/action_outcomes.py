"""``action_outcomes``: what happens if each action is held, simulated on copies of the world after the step.

``obs.spec.ACTION_OUTCOME`` defines the elements. The world of the environment is read and not changed. The kernel is
one of its own: environments without this observation do not compile it.
"""

import warnings
from time import perf_counter
from typing import Any

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.game import (
    CELEBRATING,
    DEAD,
    INPUT_OF_ACTION,
    JUMPING,
    MAX_HORIZONTAL_SPEED,
    NUM_ACTIONS,
    NUM_DIRECTIONS,
)
from nclone_env.jit import called_kernel, kernel, specialised
from nclone_env.level import LevelSet
from nclone_env.memory import MemoryNode, array_group
from nclone_env.obs.game_state import clip, objective, path_length
from nclone_env.obs.half import words, write_vector
from nclone_env.obs.spec import ACTION_OUTCOME, frame_specs
from nclone_env.sim import (
    Pace,
    WorldArrays,
    copy_world,
    equal_worlds,
    make_growing_worlds,
    make_worlds,
    slow_frames_per_second,
    tick,
)

_OUTCOMES = "action_outcomes"
_OWN_ROWS = np.zeros(0, np.int32)
_LONG = 0.1  # seconds of an observation, of which a warning tells

SCRATCH_WORLDS = 2
"""Worlds that :func:`write_outcomes` overwrites."""
TURN, FRAME, CAN_REPEAT, ENVIRONMENT = range(4)
PROGRESS = 4
"""Numbers that tell how far :func:`write_outcomes` has got: the action, in the order in which they are tried, frames
simulated of it, whether a world of the action without jump was kept; and the environment, for its caller."""
VALUES = len(ACTION_OUTCOME) + 1
"""Numbers of the outcome in work, and the path length before the first frame, pixels."""
_SIZE = len(ACTION_OUTCOME)
_DEATH, _COMPLETION, _EARLY, _LATE = 0, 1, 2, 5  # first elements
_PRESS_ENDS = 8  # frames after which a press of jump is no longer remembered (physics 01, section 11.1)


class ActionOutcomes:
    """Writes the outcomes of a batch: a pass of its calls (``env.compiled.passes``).

    Attributes:
        ended: worlds at the end of an episode, one row for each environment, which the step fills in same-step mode
            before it begins the next episode; no rows unless ``with_final``.
    """

    def __init__(self, config: EnvironmentConfig, levels: LevelSet, arrays: Any, slots: int, with_final: bool):
        spec = next(spec for spec in frame_specs(config, levels) if spec.name == _OUTCOMES)
        self._frames = config.observation.outcome_frames
        count = len(arrays.episodes) if with_final else 0
        self.ended = make_growing_worlds(count, levels, config.max_frames, config.frame_skip)
        self._tried = make_worlds(SCRATCH_WORLDS * slots, levels, config.max_frames + self._frames)
        self._progress = np.zeros((slots, PROGRESS), np.int64), np.zeros((slots, VALUES))
        self._paces = [Pace() for _ in range(slots)]
        unused = words(np.zeros((0, *spec.shape), spec.dtype))
        inputs = self._inputs(arrays, arrays.worlds)
        self._write = specialised(outcome_range, *inputs, 0, unused, _OWN_ROWS, arrays.results, 0, 0, 0)
        self._warn_of_slow(levels)

    def __call__(self, call: Any, worker: int, first: int, last: int) -> None:
        """Write the outcomes of environments ``first`` to ``last - 1``, and of their episodes that ended."""
        arrays, out = call.arrays, words(call.out[_OUTCOMES])
        self._run(call, self._inputs(arrays, arrays.worlds), out, _OWN_ROWS, worker, first, last)
        if call.final is not None:
            final = call.final.kernel_arrays[_OUTCOMES]
            self._run(call, self._inputs(arrays, self.ended), final, call.final.places, worker, first, last)

    def _run(
        self,
        call: Any,
        inputs: tuple[Any, ...],
        out: np.ndarray,
        places: np.ndarray,
        worker: int,
        first: int,
        last: int,
    ) -> None:
        """Write rows in pieces, between which Ctrl-C is answered, also within an environment: some need a minute."""
        progress, pace = self._progress[0][worker], self._paces[worker]
        progress[:] = 0
        progress[ENVIRONMENT] = first
        while progress[ENVIRONMENT] < last:
            budget, began = pace.size, perf_counter()
            left = self._write(*inputs, budget, out, places, call.arrays.results, call.base, worker, last)
            pace.adjust(budget - left, perf_counter() - began)

    def _warn_of_slow(self, levels: LevelSet) -> None:
        for level in levels.levels:
            speed = slow_frames_per_second(level.raw)
            seconds = NUM_ACTIONS * self._frames / speed if speed else 0.0
            if seconds > _LONG:
                warnings.warn(
                    f"action_outcomes: each observation of {level.name!r} simulates {NUM_ACTIONS} actions for "
                    f"{self._frames} frames, about {seconds:.1f} s at {speed:,.0f} frames/s; lower outcome_frames",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def memory(self) -> MemoryNode:
        """Return the bytes of the worlds on which actions are tried, and of those of ended episodes."""
        tried = array_group(f"worlds of {_OUTCOMES}", self._tried._asdict(), shared=False)
        return MemoryNode(_OUTCOMES, children=(tried, array_group("ended worlds", self.ended._asdict(), shared=False)))

    def _inputs(self, arrays: Any, worlds: WorldArrays) -> tuple[Any, ...]:
        return arrays.levels, arrays.paths, worlds, self._tried, self._frames, *self._progress


@kernel
def outcome_range(
    levels, paths, worlds, tried, frames, progress, values, budget, out, places, results, base, worker, last
):
    """Write the outcomes of environments from ``progress[worker, ENVIRONMENT]`` to ``last - 1``, or a part of them.

    Args:
        tried: ``WorldArrays`` with two rows per worker slot, overwritten.
        frames: frames for which actions are held.
        progress: (slots, 4) int64, as of ``write_outcomes``.
        values: (slots, 9) float64, likewise.
        budget: frames to simulate at most, above 0.
        out: (n, 6, 8) float32, or the words of float32 or float16 (``obs.half``).
        places: (n,) int32, the row of each environment whose episode ended, the only ones written; (0,): write all
            environments, in their own rows.
        results: (n,) ``RESULT``, which tell whose episode ended.
        base: environment of the first row of ``out`` and of ``places``.

    Returns:
        The frames that are left of the budget.
    """
    only_ended = places.shape[0] > 0
    mine = progress[worker]
    while mine[ENVIRONMENT] < last and budget > 0:
        index = mine[ENVIRONMENT]
        place = index - base
        if only_ended:
            if not (results[index]["terminated"] or results[index]["truncated"]):
                mine[ENVIRONMENT] += 1
                continue
            place = int(places[index - base])
        scratch, mine_values = SCRATCH_WORLDS * worker, values[worker]
        budget = write_outcomes(
            levels, paths, worlds, index, frames, tried, scratch, mine, mine_values, budget, out[place]
        )
        if mine[TURN] == 0 and mine[FRAME] == 0:
            mine[ENVIRONMENT] += 1
    return budget


@kernel
def write_outcomes(levels, paths, worlds, index, frames, scratch, place, progress, values, budget, out):
    """Write the outcomes of one world, or a part of them.

    Args:
        frames: frames for which each action is held.
        scratch: ``WorldArrays``, two of which are overwritten.
        place: the first of them.
        progress: (4,) int64, 0 at first; where to go on.
        values: (9,) float64, likewise.
        budget: frames to simulate at most, above 0.
        out: (6, 8) float32, or the words of float32 or float16 (``obs.half``); in the order of ``Action`` and of
            ``ACTION_OUTCOME``.

    Returns:
        The frames that are left of the budget. All is written if action and frame of ``progress`` are 0.
    """
    if progress[TURN] == 0 and progress[FRAME] == 0:
        values[_SIZE] = path_left(levels, paths, worlds, index)
    while progress[TURN] < 2 * NUM_DIRECTIONS and budget > 0:
        action = progress[TURN] // 2 + NUM_DIRECTIONS * (progress[TURN] & 1)
        budget = hold(levels, paths, worlds, index, action, frames, scratch, place, progress, values, budget, out)
        if progress[FRAME] == 0:
            progress[TURN] += 1
    if progress[TURN] == 2 * NUM_DIRECTIONS:
        progress[TURN] = 0
    return budget


@called_kernel
def hold(levels, paths, worlds, index, action, frames, scratch, place, progress, values, budget, out):
    """Write the outcome of one action; return what is left of the budget. ``progress[FRAME]`` is 0 when it is written.

    Without jump, the world at the time when a press of jump is forgotten is kept. With jump, if the world at that time
    is the same, so is everything that follows, and the outcome is copied: the action without jump comes first.

    Args as in :func:`write_outcomes`, and:
        action: the action.
    """
    ninja = scratch.ninjas[place]
    if progress[FRAME] == 0:
        copy_world(worlds, index, scratch, place)
        for element in range(_SIZE):
            values[element] = 0.0
    early = (frames + 2) // 3
    while budget > 0:
        budget -= 1
        progress[FRAME] += 1
        frame = progress[FRAME]
        tick(levels, scratch, place, INPUT_OF_ACTION[action])
        ended = ninja["state"] == DEAD or ninja["state"] == CELEBRATING
        if ended:
            values[_DEATH if ninja["state"] == DEAD else _COMPLETION] = (frames + 1 - frame) / frames
        if frame == early or (ended and frame < early):
            write_place(levels, paths, worlds, index, early, scratch, place, _EARLY, values)
        if frame == frames or ended:
            write_place(levels, paths, worlds, index, frames, scratch, place, _LATE, values)
            write_vector(values[:_SIZE], out[action])
            progress[CAN_REPEAT] = action < NUM_DIRECTIONS and frame > _PRESS_ENDS
            progress[FRAME] = 0
            return budget
        if frame == _PRESS_ENDS:
            if action < NUM_DIRECTIONS:
                copy_world(scratch, place, scratch, place + 1)
            elif progress[CAN_REPEAT] != 0 and jump_had_no_effect(scratch, place):
                for element in range(out.shape[1]):
                    out[action, element] = out[action - NUM_DIRECTIONS, element]
                progress[FRAME] = 0
                return budget
    return budget


@kernel
def jump_had_no_effect(scratch, place):
    """Return whether a world with jump held and the next one, without, have the same future.

    They do if only what remembers the input of the last frame differs, and no jump is under way that releasing ends.
    """
    pressed, released = scratch.ninjas[place], scratch.ninjas[place + 1]
    if pressed["state"] == JUMPING:
        return False
    released["jump_held"] = pressed["jump_held"]
    return equal_worlds(scratch, place, place + 1)


@kernel
def write_place(levels, paths, worlds, index, frames, scratch, place, first, values):
    """Write where the ninja has got to: its displacement, and how much shorter the path is."""
    before, after, scale = worlds.ninjas[index], scratch.ninjas[place], MAX_HORIZONTAL_SPEED * frames
    values[first] = clip((after["x"] - before["x"]) / scale)
    values[first + 1] = clip((after["y"] - before["y"]) / scale)
    values[first + 2] = clip((values[_SIZE] - path_left(levels, paths, scratch, place)) / scale)


@kernel
def path_left(levels, paths, worlds, index):
    """Return the remaining path length of a world in pixels."""
    return path_length(paths, objective(levels, paths, worlds, index)[0], worlds.ninjas[index])
