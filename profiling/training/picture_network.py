"""Gradients per second of a network that sees pictures: by hand, through torch, and with convolutions instead.

Each figure is the gradient of the loss in all parameters for stacks of two frames of random play, by parts of a batch,
on one thread per CPU second, and on two threads per second. Turns alternate, and ratios are medians over turns, so that
background load affects all rows alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import torch
import tyro
from gymnasium import spaces

from nclone_env import NPlusPlusVectorEnv, RenderConfig
from nclone_env.train import ActorCritic
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.policies.acting import one_thread_per_call
from nclone_env.train.policies.arrays import LossScaling
from nclone_env.train.policies.mlp import MLP
from nclone_env.train.policies.network import FlatParameters
from nclone_env.train.policies.torch_network import TorchNetwork
from profiling.measure import describe, ratios, timed, turns
from profiling.training.convolutions import ConvolutionEncoder

NAME, THREADS, FRAMES, NUM_ENVS, PART = "player_frame", 2, 2, 64, 256
SCALING = LossScaling(*np.array([0, 1, 1 / 1024, 0.2, 0.5, 0.01, 0], np.float32))


def rollout(side: int, num_steps: int) -> RolloutStorage:
    """Return stored player frames of random play on the built-in levels."""
    levels = ("first-steps", "jumps", "hazards")
    envs = NPlusPlusVectorEnv(
        None, NUM_ENVS, levels=levels, observations=(NAME,), render=RenderConfig(side), max_frames=600
    )
    storage = RolloutStorage(num_steps, NUM_ENVS, spaces.Dict({NAME: envs.single_observation_space[NAME]}), FRAMES)
    random = np.random.default_rng(0)
    envs.reset(seed=0)
    for row in storage.observation_arrays[NAME]:
        for _ in range(5):
            observations = envs.step(random.integers(6, size=NUM_ENVS))[0]
        row[:] = observations[NAME]
    envs.close()
    storage.arrays.advantages[:] = random.standard_normal(storage.arrays.advantages.shape)
    storage.arrays.actions[:] = random.integers(6, size=storage.arrays.actions.shape)
    storage.arrays.log_probs[:] = -np.log(6)
    return storage


def forms(storage: RolloutStorage) -> dict[str, Callable[[int, np.ndarray], None]]:
    """Return functions that compute the gradient of a part on a seat, for each network."""
    shapes = {name: tuple(rows.shape[1:]) for name, rows in storage.observation_buffers(0).items()}

    def gradient(kind: type[MLP] | type[TorchNetwork], **convolutions: Any) -> Callable[[int, np.ndarray], None]:
        policy = ActorCritic(shapes, hidden_size=64)
        if convolutions:
            policy.encoders[NAME] = ConvolutionEncoder(NAME, shapes[NAME], **convolutions)
        parameters = FlatParameters(policy)
        network = kind(policy, parameters, storage, THREADS, PART)
        results = np.zeros((THREADS, len(parameters.vector)), np.float32), np.zeros((THREADS, 6))
        return lambda seat, rows: network.gradient(seat, rows, SCALING, results[0][seat], results[1][seat])

    return {
        "patches, by hand (the package)": gradient(MLP),
        "patches, torch": gradient(TorchNetwork),
        "convolutions, float32, channels first": gradient(TorchNetwork, dtype=torch.float32, channels_last=False),
        "convolutions, float32, channels last": gradient(TorchNetwork, dtype=torch.float32),
        "convolutions, bfloat16, channels last": gradient(TorchNetwork, dtype=torch.bfloat16),
    }


def alone(gradient: Callable[[int, np.ndarray], None], parts: list[np.ndarray]) -> float:
    """Return gradients per CPU second of one thread."""
    _, seconds = timed(lambda: [gradient(0, rows) for rows in parts], time.process_time)
    return sum(map(len, parts)) / seconds


def together(gradient: Callable[[int, np.ndarray], None], parts: list[np.ndarray], pool: ThreadPoolExecutor) -> float:
    """Return gradients per second of two threads that take every second part each."""

    def take(seat: int) -> None:
        for rows in parts[seat::THREADS]:
            gradient(seat, rows)

    _, seconds = timed(lambda: list(pool.map(take, range(THREADS))))
    return sum(map(len, parts)) / seconds


def compare(side: int, num_steps: int, rounds: int) -> None:
    """Print the table of one picture size."""
    storage = rollout(side, num_steps)
    order = np.random.default_rng(1).permutation(num_steps * NUM_ENVS)
    parts = np.split(order, len(order) // PART)
    pool = ThreadPoolExecutor(THREADS)
    print(f"\n{side} x {side}, {FRAMES} frames{'one thread':>40} ratio{'two threads':>14} ratio")
    networks = forms(storage)
    columns = []
    for measure in (alone, partial(together, pool=pool)):
        tasks = [partial(measure, gradient, parts) for gradient in networks.values()]
        turns(1, tasks)  # first calls choose kernels
        speeds = turns(rounds, tasks)
        columns.append(list(zip(np.median(speeds, axis=0), ratios(speeds))))
    for name, (one, one_ratio), (two, two_ratio) in zip(networks, *columns):
        print(f"{name:<50} {one:9.0f} {one_ratio:5.2f} {two:13.0f} {two_ratio:5.2f}", flush=True)


def main(sides: tuple[int, ...] = (128, 84, 64), num_steps: int = 32, rounds: int = 7) -> None:
    """Compare all networks for each picture size.

    Args:
        sides: sides of the player frame, each a preset.
        num_steps: steps of 64 environments in a batch, a multiple of 8.
        rounds: turns; the figures are medians.
    """
    print(describe(), f"PyTorch {torch.__version__}")
    with one_thread_per_call():
        for side in sides:
            compare(side, num_steps, rounds)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
