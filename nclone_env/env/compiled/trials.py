"""The passes that try all actions on copies of the worlds after a step: ``action_mask`` and ``action_outcomes``.

The mask is 0 for each action that has exactly the effect of an action with a lower number. Each pass has a kernel of
its own: environments without these observations compile neither.
"""

import warnings
from time import perf_counter
from typing import Any

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.passes import Call
from nclone_env.env.compiled.step import simulate_frames
from nclone_env.env.compiled.step_arrays import StepArrays
from nclone_env.game import INPUT_OF_ACTION, NUM_ACTIONS, NUM_DIRECTIONS
from nclone_env.jit import kernel, specialised
from nclone_env.level import LevelSet
from nclone_env.memory import MemoryNode, array_group
from nclone_env.obs import (
    ENVIRONMENT,
    FRAME,
    PROGRESS,
    SCRATCH_WORLDS,
    TURN,
    VALUES,
    frame_specs,
    words,
    write_outcomes,
)
from nclone_env.sim import Pace, WorldArrays, copy_world, equal_worlds, make_worlds, slow_frames_per_second

_MASK, _OUTCOMES = "action_mask", "action_outcomes"
_OWN_ROWS = np.zeros(0, np.int32)
_LONG = 0.1  # seconds of an observation, of which a warning tells
MASK_AT_END = (1,) + (0,) * (NUM_ACTIONS - 1)
"""After the end of an episode all actions have the same effect: none."""


class ActionMasks:
    """Writes the masks of a batch."""

    def __init__(self, levels: LevelSet, arrays: StepArrays, slots: int):
        trail_rows = arrays.worlds.trail.shape[1]
        self._scratch = make_worlds(NUM_ACTIONS * slots, levels, trail_rows if levels.max_trail else None)
        unused = np.zeros((0, NUM_ACTIONS), np.int8)
        self._write = specialised(mask_range, *self._arguments(arrays, unused), 0, 0, 0, 0)

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Write the masks of environments ``first`` to ``last - 1`` into ``call.out["action_mask"]``, (n, 6) int8."""
        self._write(*self._arguments(call.arrays, call.out[_MASK]), call.base, worker, first, last)

    def memory(self) -> MemoryNode:
        """Return the bytes of the worlds on which actions are tried."""
        return array_group(f"worlds of {_MASK}", self._scratch._asdict(), shared=False)

    def _arguments(self, arrays: StepArrays, out: np.ndarray) -> tuple[Any, ...]:
        return arrays.levels, arrays.worlds, arrays.settings, arrays.episodes, self._scratch, out


@kernel
def mask_range(levels, worlds, settings, episodes, scratch, out, base, worker, first, last):
    """Write the masks of environments ``first`` to ``last - 1``.

    Args:
        settings: (1,) ``SETTINGS``.
        episodes: (n,) ``EPISODE``.
        scratch: ``WorldArrays`` with six rows per worker slot, overwritten.
        out: (n, 6) int8.
        base: environment of the first row of ``out``.
    """
    rules = settings[0]
    for index in range(first, last):
        if episodes[index]["over"] != 0:
            for action in range(NUM_ACTIONS):
                out[index - base, action] = MASK_AT_END[action]
        else:
            frame_skip, max_frames = rules["frame_skip"], rules["max_frames"]
            write_mask(levels, worlds, index, frame_skip, max_frames, scratch, NUM_ACTIONS * worker, index - base, out)


@kernel
def write_mask(levels, worlds, index, frame_skip, max_frames, scratch, first_row, row, out):
    """Write 1 for each action that leads to another world than every lower action, else 0.

    Worlds are compared bit by bit, with remembered inputs, timers and the frame counter. A world remembers whether jump
    was pressed in its last frame, so only actions with the same jump input can coincide; the others are not compared.

    ``out`` is (n, 6) int8, in the order of ``Action``; six rows of ``scratch`` are overwritten, from ``first_row`` on.
    """
    for action in range(NUM_ACTIONS):
        copy_world(worlds, index, scratch, first_row + action)
        simulate_frames(levels, scratch, first_row + action, INPUT_OF_ACTION[action], frame_skip, max_frames)
        out[row, action] = 1
        for lower in range(action - action % NUM_DIRECTIONS, action):
            if out[row, lower] != 0 and equal_worlds(scratch, first_row + lower, first_row + action):
                out[row, action] = 0


class ActionOutcomes:
    """Writes the outcomes of a batch.

    Attributes:
        ended: worlds at the end of an episode, one row for each environment, which the step fills in same-step mode
            before it begins the next episode; no rows unless ``with_final``.
    """

    def __init__(self, config: EnvironmentConfig, levels: LevelSet, arrays: StepArrays, slots: int, with_final: bool):
        spec = next(spec for spec in frame_specs(config, levels) if spec.name == _OUTCOMES)
        self._frames = config.observation.outcome_frames
        self.ended = make_worlds(len(arrays.episodes) if with_final else 0, levels, config.max_frames)
        # Up to the time limit no trail is overwritten, so that more rows, for the frames beyond it, change no index.
        self._tried = make_worlds(SCRATCH_WORLDS * slots, levels, config.max_frames + self._frames)
        self._progress = np.zeros((slots, PROGRESS), np.int64), np.zeros((slots, VALUES))
        self._paces = [Pace() for _ in range(slots)]
        unused = words(np.zeros((0, *spec.shape), spec.dtype))
        inputs = self._inputs(arrays, arrays.worlds)
        self._write = specialised(outcome_range, *inputs, 0, unused, _OWN_ROWS, arrays.results, 0, 0, 0)
        self._warn_of_slow(levels)

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Write the outcomes of environments ``first`` to ``last - 1``, and of their episodes that ended."""
        arrays, out = call.arrays, words(call.out[_OUTCOMES])
        self._run(call, self._inputs(arrays, arrays.worlds), out, _OWN_ROWS, worker, first, last)
        if call.final is not None:
            final = call.final.kernel_arrays[_OUTCOMES]
            self._run(call, self._inputs(arrays, self.ended), final, call.final.places, worker, first, last)

    def _run(
        self,
        call: Call,
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
        """Warn of a level on which an observation takes long."""
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

    def _inputs(self, arrays: StepArrays, worlds: WorldArrays) -> tuple[Any, ...]:
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
