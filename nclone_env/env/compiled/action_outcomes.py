"""The pass that writes ``action_outcomes`` after a step, by a kernel of its own.

Environments without this observation do not compile it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.passes import Call
from nclone_env.env.compiled.step_arrays import StepArrays
from nclone_env.jit import kernel, specialised
from nclone_env.level.level_set import LevelSet
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.obs.action_outcomes import SCRATCH_WORLDS, write_outcomes
from nclone_env.obs.half import words
from nclone_env.obs.spec import frame_specs
from nclone_env.sim.state import WorldArrays, make_worlds

_NAME = "action_outcomes"
_OWN_ROWS = np.zeros(0, np.int32)


class ActionOutcomes:
    """Writes the outcomes of a batch.

    Args:
        config: configuration of the batch.
        levels: its levels.
        arrays: its ``StepArrays``.
        slots: number of worker slots.
        with_final: also write those of the last worlds of episodes in same-step mode.

    Attributes:
        ended: worlds at the end of an episode, one row for each environment, which the step fills in same-step mode
            before it begins the next episode; no rows in other modes.
    """

    def __init__(self, config: EnvironmentConfig, levels: LevelSet, arrays: StepArrays, slots: int, with_final: bool):
        spec = next(spec for spec in frame_specs(config, levels) if spec.name == _NAME)
        self._frames = config.observation.outcome_frames
        self.ended = make_worlds(len(arrays.episodes) if with_final else 0, levels, config.max_frames)
        # Up to the time limit no trail is overwritten, so that more rows, for the frames beyond it, change no index.
        self._tried = make_worlds(SCRATCH_WORLDS * slots, levels, config.max_frames + self._frames)
        unused = words(np.zeros((0, *spec.shape), spec.dtype))
        inputs = self._inputs(arrays, arrays.worlds)
        self._write = specialised(outcome_range, *inputs, unused, _OWN_ROWS, arrays.results, 0, 0, 0, 0)

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Write the outcomes of environments ``first`` to ``last - 1``, and of their episodes that ended."""
        arrays, out = call.arrays, words(call.out[_NAME])
        scope = arrays.results, call.base, worker, first, last
        self._write(*self._inputs(arrays, arrays.worlds), out, _OWN_ROWS, *scope)
        if call.final is not None:
            final = call.final.kernel_arrays[_NAME]
            self._write(*self._inputs(arrays, self.ended), final, call.final.places, *scope)

    def memory(self) -> MemoryNode:
        """Return the bytes of the worlds on which actions are tried, and of those of ended episodes."""
        tried = array_group(f"worlds of {_NAME}", self._tried._asdict(), shared=False)
        return MemoryNode(_NAME, children=(tried, array_group("ended worlds", self.ended._asdict(), shared=False)))

    def _inputs(self, arrays: StepArrays, worlds: WorldArrays) -> tuple[Any, ...]:
        return arrays.levels, arrays.paths, worlds, self._tried, self._frames


@kernel
def outcome_range(levels, paths, worlds, tried, frames, out, places, results, base, worker, first, last):
    """Write the outcomes of environments ``first`` to ``last - 1``.

    Args:
        levels: ``LevelArrays``.
        paths: ``Paths``.
        worlds: ``WorldArrays``, one row for each environment.
        tried: ``WorldArrays`` with two rows per worker slot, overwritten.
        frames: frames for which actions are held.
        out: (n, 6, 8) float32, or the words of float32 or float16 (``obs.half``).
        places: (n,) int32, the row of each environment whose episode ended, the only ones written; (0,): write all
            environments, in their own rows.
        results: (n,) ``RESULT``, which tell whose episode ended.
        base: environment of the first row of ``out`` and of ``places``.
        worker: worker slot.
        first: first environment.
        last: one past the last environment.
    """
    only_ended = places.shape[0] > 0
    for index in range(first, last):
        place = index - base
        if only_ended:
            if not (results[index]["terminated"] or results[index]["truncated"]):
                continue
            place = int(places[index - base])
        write_outcomes(levels, paths, worlds, index, frames, tried, SCRATCH_WORLDS * worker, out[place])
