"""The programs that run on a GPU, one world per thread, and arguments of their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

from nclone_env.config import EnvironmentConfig
from nclone_env.env.arrays.buffers import make_buffers
from nclone_env.env.compiled.records import NEXT_STEP
from nclone_env.env.compiled.step import step_range
from nclone_env.env.compiled.step_arrays import NO_FINAL_ROWS, FinalArrays, make_step_arrays, playable_levels
from nclone_env.game import CELEBRATING, DEAD
from nclone_env.jit import kernel
from nclone_env.obs.rows import kernel_view, no_observations
from nclone_env.obs.spec import observation_specs
from nclone_env.sim.frame import start, tick
from nclone_env.sim.state import FIRST, copy_world, hash_world, make_worlds, mix


@kernel
def play_world(levels, worlds, index, inputs):
    """Play a world with its row of inputs, again from the start after each end; return a hash of its state at all ends.

    Neighbours play the same level.

    Args:
        inputs: (n, frames) uint8.
    """
    level = index * levels.header.shape[0] // inputs.shape[0]
    value = FIRST
    start(levels, worlds, index, level)
    for frame in range(inputs.shape[1]):
        tick(levels, worlds, index, inputs[index, frame])
        state = worlds.ninjas[index]["state"]
        if state == DEAD or state == CELEBRATING:
            value = mix(value, hash_world(worlds, index))
            start(levels, worlds, index, level)
    return mix(value, hash_world(worlds, index))


@kernel
def play_one(index, levels, worlds, inputs, hashes):
    """Play a world; ``inputs`` is (n, frames) uint8, ``hashes`` (n,) uint64."""
    hashes[index] = play_world(levels, worlds, index, inputs)


@kernel
def branch_one(index, source, indices, target, hashes):
    """Copy world ``indices[index]`` and hash the copy; ``indices`` is (n,) int64, ``hashes`` (n,) uint64."""
    copy_world(source, indices[index], target, index)
    hashes[index] = hash_world(target, index)


@kernel
def step_one(index, arrays, out, final):
    """Step an environment; arguments as of ``step_range``."""
    step_range(arrays, out, final, 0, index, index, index + 1)


ONE_WORLD: dict[str, Any] = {"play": play_one, "branch": branch_one, "step": step_one}
"""What a thread does, by program: kernels that any target can be given, with the index of the world first."""


def play(levels, worlds, inputs, hashes):
    """Play each world."""
    index = cuda.grid(1)
    if index < inputs.shape[0]:
        play_one(index, levels, worlds, inputs, hashes)


def branch(source, indices, target, hashes):
    """Copy and hash each world."""
    index = cuda.grid(1)
    if index < indices.shape[0]:
        branch_one(index, source, indices, target, hashes)


def step(arrays, out, final):
    """Step each environment."""
    index = cuda.grid(1)
    if index < arrays.actions.shape[0]:
        step_one(index, arrays, out, final)


PROGRAMS: dict[str, Callable[..., None]] = {"play": play, "branch": branch, "step": step}
"""The programs of a GPU, a thread for each world."""


def arguments(
    name: str, count: int = 2, levels: tuple[str, ...] = ("first-steps",), frames: int = 1
) -> tuple[Any, ...]:
    """Return arguments of a program for ``count`` worlds or environments, zeros where the caller chooses."""
    config = EnvironmentConfig(levels=levels)
    chosen = playable_levels(config)
    hashes = np.zeros(count, np.uint64)
    if name == "play":
        return chosen.arrays, make_worlds(count, chosen), np.zeros((count, frames), np.uint8), hashes
    if name == "branch":
        worlds = make_worlds(count, chosen)
        return worlds, np.zeros(count, np.int64), worlds, hashes
    specs = observation_specs(config)
    none = no_observations(specs)
    out = kernel_view(make_buffers(specs, count), none)
    return make_step_arrays(config, chosen, count, NEXT_STEP, slots=count), out, FinalArrays(none, *NO_FINAL_ROWS)
