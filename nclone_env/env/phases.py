"""Time of the phases of a step: simulation, reward, reset, each observation, each further pass.

The compiled step finishes one environment before it begins the next, so its phases cannot be timed from inside without
slowing it down. Here each is run alone over all environments, from the same state and by the same kernels.
"""

import dataclasses
import time
from collections.abc import Callable

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env.config import EnvironmentConfig
from nclone_env.env.arrays.buffers import Buffers, make_buffers
from nclone_env.env.arrays.final import FinalPool
from nclone_env.env.batch import Batch
from nclone_env.env.compiled.masks import ActionMasks
from nclone_env.env.compiled.passes import Call, Pass, StepPass
from nclone_env.env.compiled.records import DISABLED, SAME_STEP
from nclone_env.env.compiled.step import play_step, simulate_frames
from nclone_env.env.threads import CALLING_THREAD
from nclone_env.env.vector import AUTORESET_CODES
from nclone_env.game import INPUT_OF_ACTION, NUM_ACTIONS
from nclone_env.jit import kernel, specialised
from nclone_env.obs import ActionOutcomes, Reachability, frame_specs

WHOLE, SIMULATION, REWARD, RESET, REST = "whole step", "simulation", "reward", "reset", "rest"
_TOGETHER = {  # arrays that one kernel writes
    "entity_states": ("entity_states", "entity_kinds", "entity_count"),
    "graph_level": ("graph_level", "graph_node", "graph_entities"),
}
_OF_PASSES = {ActionMasks: "action_mask", ActionOutcomes: "action_outcomes", Reachability: "reachability"}
_OTHERS = {*_OF_PASSES.values(), *(name for first, names in _TOGETHER.items() for name in names if name != first)}
"""Arrays that are not timed as observations of the compiled step: of a pass, or written with another one."""
_WARM_UP = 3


def measure_phases(
    config: EnvironmentConfig, num_envs: int, mode: AutoresetMode, steps: int = 200, seed: int = 0
) -> dict[str, float]:
    """Return the median seconds of each phase of a vector step in one thread, and of the whole step.

    Stacks are left out. ``rest`` is what the step takes beyond the phases, such as last observations of episodes.
    """
    alone = config.replace(observation=dataclasses.replace(config.observation, frame_stack=1))
    timer = PhaseTimer(Batch(alone, num_envs, AUTORESET_CODES[mode], num_threads=1), seed)
    rows = [timer.step() for _ in range(_WARM_UP + steps)][_WARM_UP:]
    medians = {name: float(np.median([row[name] for row in rows])) for name in rows[0]}
    return {**medians, REST: 2 * medians[WHOLE] - sum(medians.values())}


class PhaseTimer:
    """Steps a batch in one thread, without stacks, with random actions, and times the phases of each step."""

    def __init__(self, batch: Batch, seed: int):
        specs, num_envs = frame_specs(batch.config, batch.level_set), batch.num_envs
        self._batch, self._random = batch, np.random.default_rng(seed)
        self._out = make_buffers(specs, num_envs)
        self._finals, self._empty_finals = FinalPool(specs, num_envs), FinalPool((), num_envs)
        self._state: tuple[np.ndarray, ...] = ()
        self._saved: tuple[np.ndarray, ...] = ()
        self._none = np.zeros(num_envs, np.bool_)
        self._play = specialised(play_range, self._step_call({}).arrays, False, 0, 0)
        everywhere = ~self._none
        batch.seed(self._random.integers(2**63, size=num_envs, dtype=np.uint64), everywhere)
        self._run(batch.reset_call(everywhere, self._out))

    def step(self) -> dict[str, float]:
        """Step all environments once; return the seconds of each phase by name."""
        batch, last = self._batch, self._batch.num_envs
        batch.actions[:] = self._random.integers(NUM_ACTIONS, size=last)
        call, unseen = self._step_call(self._out), self._step_call({})
        self._save()
        whole = self._undone(lambda: self._run(call))
        simulation = self._undone(lambda: self._play(call.arrays, False, 0, last))
        played = self._undone(lambda: self._play(call.arrays, True, 0, last))
        stepped = self._undone(lambda: self._run_pass(unseen.passes[0], unseen))
        passes = self._pass_seconds(self._step_call(self._out))
        observations = {name: self._observation_seconds(name) for name in self._out if name not in _OTHERS}
        queries = self._observation_seconds()
        if "reachability" in passes:
            passes["reachability"] += queries
        self._begin_episodes()
        phases = {WHOLE: whole, SIMULATION: simulation, REWARD: played - simulation, RESET: stepped - played - queries}
        return {**phases, **observations, **passes}

    def _save(self) -> None:
        """Save the state of the environments, which may be in other arrays than before."""
        batch = self._batch
        self._state = (*batch.worlds, batch.episodes, batch.results)
        if [array.shape for array in self._saved] != [array.shape for array in self._state]:
            self._saved = tuple(np.empty_like(array) for array in self._state)
        _copy(self._state, self._saved)

    def _pass_seconds(self, call: Call) -> dict[str, float]:
        """Step, and return the seconds of each pass after the compiled step."""
        seconds = {}
        for one in call.passes:
            taken = _seconds(lambda one=one: self._run_pass(one, call))  # type: ignore[misc]
            if not isinstance(one, StepPass):
                seconds[_OF_PASSES[type(one)]] = taken
        return seconds

    def _observation_seconds(self, name: str | None = None) -> float:
        """Return the time of writing one observation of the current state; of none: of the loop and of queries."""
        out = {part: self._out[part] for part in _TOGETHER.get(name, (name,))} if name else {}
        call = self._batch.reset_call(self._none, out)
        return _seconds(lambda: self._run_pass(call.passes[0], call))

    def _begin_episodes(self) -> None:
        """Begin new episodes where the step does not."""
        if self._batch.autoreset == DISABLED:
            self._run(self._batch.reset_call(self._batch.episodes["over"] != 0, self._out))

    def _step_call(self, out: Buffers) -> Call:
        finals = self._finals if out else self._empty_finals
        return self._batch.step_call(out, finals.take() if self._batch.autoreset == SAME_STEP else None)

    def _run(self, call: Call) -> None:
        call(CALLING_THREAD, 0, self._batch.num_envs)

    def _run_pass(self, one: Pass, call: Call) -> None:
        one(call, CALLING_THREAD, 0, self._batch.num_envs)

    def _undone(self, task: Callable[[], object]) -> float:
        """Return the time of a task, and restore the state before it."""
        seconds = _seconds(task)
        _copy(self._saved, self._state)
        return seconds


def _copy(source: tuple[np.ndarray, ...], target: tuple[np.ndarray, ...]) -> None:
    for one, other in zip(source, target, strict=True):
        np.copyto(other, one)


def _seconds(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


@kernel
def play_range(arrays, with_reward, first, last):
    """Simulate the frames of a step in environments ``first`` to ``last - 1`` whose episode goes on."""
    rules = arrays.settings[0]
    for index in range(first, last):
        if arrays.episodes[index]["over"] != 0:
            continue
        if with_reward:
            play_step(arrays, index)
        else:
            inputs = INPUT_OF_ACTION[arrays.actions[index]]
            simulate_frames(arrays.levels, arrays.worlds, index, inputs, rules["frame_skip"], rules["max_frames"])
