"""Limits of the speed of training: environments or a network that do nothing, and matrix products alone."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from nclone_env.jit import numeric_kernel
from nclone_env.jit.products import add_transposed_multiply, multiply, multiply_transposed

_INPUTS, _ACTIONS, _BLOCK, _STEPS = 30, 6, 128, 32_768


class StubEnvironments:
    """Vector environments that do nothing: observations stay as they are, no episode ends."""

    level_names = ("stub",)

    def __init__(self, config: Any, num_envs: int):
        from gymnasium import spaces

        self.num_envs = num_envs
        self.single_observation_space = spaces.Dict({"game_state": spaces.Box(-1, 1, (30,), np.float32)})
        results = np.zeros(num_envs), np.zeros(num_envs, np.bool_), np.zeros(num_envs, np.bool_)
        info = ("level", "start", "outcome", "episode_return", "episode_frames")
        self._results = *results, {name: np.zeros(num_envs, np.int32) for name in info}

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Do nothing."""
        return options["out"], {}

    def step(self, actions: np.ndarray, *, out: Any = None) -> tuple[Any, ...]:
        """Do nothing."""
        return out, *self._results

    def get_state(self, index: int) -> bytes:
        """Return nothing."""
        return b""

    def memory(self) -> Any:
        """Return an empty tree."""
        from nclone_env.memory.measure.tree import MemoryNode

        return MemoryNode("stub")

    def close(self) -> None:
        """Do nothing."""


def stub_network(run: Any) -> None:
    """Make the network of a run return what its scratch holds, without computing; collectors call it from Python."""
    network = run.network

    def outputs(seat: int, observations: Any, states: Any = None) -> tuple[np.ndarray, np.ndarray]:
        scratch, count = network._seats[seat].scratch, len(observations["game_state"])
        scratch.logits[:count] = 0
        return scratch.logits[:count], scratch.values[:count, 0]

    network.outputs = outputs
    for collector in run.collectors:
        collector._play_compiled = lambda *arguments: False
    run.learner._learn_compiled = lambda *arguments: None


def products(seconds: float, hidden_size: int, towers: int, epochs: int) -> float:
    """Return the steps/s that the matrix products of a network alone would allow, on all threads.

    Every step is passed forward once when it is collected, and forward and backward in each epoch.
    """
    import scipy.linalg  # noqa: F401 - before the threads of BLAS are limited

    from nclone_env.env.threads import Workers
    from nclone_env.train.policies.acting import one_thread_per_call

    workers = Workers(_STEPS, min_chunk=1)
    seats = [_arrays(hidden_size, towers) for _ in range(workers.count)]

    def multiply_blocks(seat: int, first: int, last: int) -> None:
        _multiply_blocks(*seats[seat], towers, epochs, last - first)

    blocks, done = _STEPS // _BLOCK, 0
    with one_thread_per_call():
        workers.run(multiply_blocks, 0, blocks)
        started = time.perf_counter()
        while (passed := time.perf_counter() - started) < seconds:
            workers.run(multiply_blocks, 0, blocks)
            done += _STEPS
    workers.close()
    return done / passed


def _arrays(hidden_size: int, towers: int) -> tuple[np.ndarray, ...]:
    """Return inputs, activations, outputs, and the weights of three layers followed by their gradients."""
    outputs = _ACTIONS + 1 if towers == 1 else _ACTIONS
    rows = (_INPUTS, hidden_size, hidden_size, outputs)
    weights = ((hidden_size, _INPUTS), (hidden_size, hidden_size), (outputs, hidden_size))
    shapes = [*((_BLOCK, width) for width in rows), *weights, *weights]
    return tuple(np.zeros(shape, np.float32) for shape in shapes)


@numeric_kernel
def _multiply_blocks(
    inputs, hidden_1, hidden_2, outputs, weight_1, weight_2, weight_3, gradient_1, gradient_2, gradient_3,
    towers, epochs, blocks,
):  # fmt: skip
    for _ in range(blocks * towers):
        for epoch in range(epochs + 1):
            multiply_transposed(inputs, weight_1, hidden_1)
            multiply_transposed(hidden_1, weight_2, hidden_2)
            multiply_transposed(hidden_2, weight_3, outputs)
            if epoch < epochs:
                add_transposed_multiply(outputs, hidden_2, gradient_3)
                multiply(outputs, weight_3, hidden_2)
                add_transposed_multiply(hidden_2, hidden_1, gradient_2)
                multiply(hidden_2, weight_2, hidden_1)
                add_transposed_multiply(hidden_1, inputs, gradient_1)
