"""Training on a device: environment steps/s, the share of the collection, and how often the host waits for the device.

All copies between host and device in an update pass through ``send``, ``fetch_later`` and ``fetch`` of
``nclone_env.train.policies.device``, which are counted here: every ``fetch`` is one wait. On a GPU PyTorch's own count
stands beside it; it would also notice waits that are not meant to be. On ``cpu`` the same code runs on the processor,
with a stand-in for the environments of a GPU, so the counts are those of a GPU, but the times are not.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import tyro

from profiling.measure import describe
from profiling.training.speed import prepared_run, update

WARM_UPDATES = 2


@contextmanager
def synchronisations(on_gpu: bool) -> Iterator[Callable[[], int]]:
    """Count the synchronisations that PyTorch notices; on the processor there are none."""
    import torch

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if on_gpu:
            torch.cuda.set_sync_debug_mode("warn")
        try:
            yield lambda: sum("called a synchronizing" in str(warning.message) for warning in caught)
        finally:
            if on_gpu:
                torch.cuda.set_sync_debug_mode("default")


@contextmanager
def transfers() -> Iterator[Callable[[], tuple[int, int, int]]]:
    """Count the waits, and the copies to the host and to the device."""
    from nclone_env.train.collect import device as collecting
    from nclone_env.train.learn import learners

    made = {"fetch": 0, "fetch_later": 0, "send": 0}

    def counted(name: str, real: Callable[..., None], *arguments: Any) -> None:
        made[name] += 1
        real(*arguments)

    with ExitStack() as patched:
        for module in (collecting, learners):
            for name in made:
                if hasattr(module, name):
                    patched.enter_context(patch.object(module, name, partial(counted, name, getattr(module, name))))
        yield lambda: (made["fetch"], made["fetch"] + made["fetch_later"], made["send"])


def measure(
    levels: tuple[str, ...], observations: tuple[str, ...], device: str, updates: int, **fields: object
) -> tuple[np.ndarray, int]:
    """Return (updates, 6) figures of updates, and the steps of one.

    The figures are seconds, those of the collection, waits, copies to the host, copies to the device, and
    synchronisations that PyTorch notices.
    """
    from nclone_env.train.runs import run as module

    table, on_gpu = np.zeros((updates, 6)), device != "cpu"
    options = {"observations": observations, "device": "cuda" if on_gpu else "cpu", **fields}
    with ExitStack() as stack:
        if not on_gpu:
            from tests.env.processor import Processor

            stack.enter_context(patch.object(module, "learning_device", lambda *arguments: Processor()))
        run = stack.enter_context(prepared_run(levels, **options))
        noticed, made = stack.enter_context(synchronisations(on_gpu)), stack.enter_context(transfers())
        for number in range(-WARM_UPDATES, updates):
            before = np.array([*made(), noticed()])
            began = time.perf_counter()
            update(run)
            seconds = time.perf_counter() - began
            if number >= 0:
                collecting = float(run.collectors[0].step_seconds.sum())
                table[number] = seconds, collecting, *(np.array([*made(), noticed()]) - before)
        return table, run.config.batch_size


def main(
    levels: tuple[str, ...] = ("first-steps",),
    observations: tuple[str, ...] = ("game_state",),
    device: str = "cpu",
    updates: int = 10,
    num_envs: int = 4096,
    num_steps: int = 16,
    picture_size: int = 84,
    frame_stack: int = 1,
    hidden_size: int = 64,
) -> None:
    """Measure and print one line.

    Args:
        levels: levels to train on.
        observations: observations of the policy.
        device: cuda, or cpu to run the same code on the processor.
        updates: measured updates, after two that are not.
        num_envs: environments.
        num_steps: steps of each environment in an update.
        picture_size: pixels of a side of ``player_frame``.
        frame_stack: observations of the policy's input.
        hidden_size: units of a hidden layer.
    """
    import torch

    print(describe())
    name = torch.cuda.get_device_name() if device != "cpu" else "the processor, with a stand-in"
    print(f"PyTorch {torch.__version__}; on {name}; {num_envs} environments x {num_steps} steps")
    network = {"picture_size": picture_size, "frame_stack": frame_stack, "hidden_size": hidden_size}
    options = {"num_envs": num_envs, "num_steps": num_steps, **network}
    table, steps = measure(levels, observations, device, updates, **options)
    seconds, collecting, waits, fetched, sent, noticed = np.median(table, axis=0)
    print(f"median of {updates} updates: {steps / seconds:,.0f} steps/s, {collecting / seconds:.0%} of it collection")
    counted = f", {noticed:.0f} synchronisations noticed by PyTorch" if device != "cpu" else ""
    print(f"  {waits:.0f} wait, {fetched:.0f} copies to the host, {sent:.0f} to the device{counted}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
