"""Training with the policy on a device: environment steps/s of each phase, and how often the host waits for the device.

All copies between host and device pass through ``send`` and ``fetch`` of ``nclone_env.train.policies.device``, which
are counted here: every copy back to the host is one synchronisation. On a GPU PyTorch's own count stands beside it; it
would also notice synchronisations that are not meant to be. On ``cpu`` the same code runs on the processor, so the
counts are those of a GPU, but the times are not.
"""

from __future__ import annotations

import itertools
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
from profiling.training.speed import prepared_run

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
def transfers() -> Iterator[Callable[[], tuple[int, int]]]:
    """Count the copies to the host and to the device."""
    from nclone_env.train.learn import learners as device_update
    from nclone_env.train.policies import torch_network

    made: dict[str, list[None]] = {"fetch": [], "send": []}  # lists, as several threads count

    def counted(name: str, real: Callable[..., None], *arguments: Any) -> None:
        made[name].append(None)
        real(*arguments)

    with ExitStack() as patched:
        for module, name in itertools.product((device_update, torch_network), made):
            patched.enter_context(patch.object(module, name, partial(counted, name, getattr(module, name))))
        yield lambda: (len(made["fetch"]), len(made["send"]))


def measure(
    levels: tuple[str, ...], observations: tuple[str, ...], device: str, updates: int, **fields: object
) -> tuple[tuple[str, ...], np.ndarray, int]:
    """Return the names of the phases, (phases, updates, 4) figures of each, and the steps of an update.

    The figures are seconds, copies to the host, copies to the device, and synchronisations that PyTorch notices.
    """
    import torch

    from nclone_env.train.runs import run as module
    from nclone_env.train.runs.steps import collect_rollout, compute_returns, update_policy

    phases = {"collect": collect_rollout, "advantages": compute_returns, "update": update_policy}
    chosen, on_gpu = torch.device(device), device != "cpu"
    table = np.zeros((len(phases), updates, 4))
    options = {"observations": observations, "device": "cuda" if on_gpu else "auto", **fields}
    with (
        patch.object(module, "learning_device", lambda *arguments: chosen),
        prepared_run(levels, **options) as run,
        synchronisations(on_gpu) as noticed,
        transfers() as made,
    ):
        for update in range(-WARM_UPDATES, updates):
            for phase, call in enumerate(phases.values()):
                before = np.array([time.perf_counter(), *made(), noticed()])
                call(run)
                after = np.array([time.perf_counter(), *made(), noticed()])
                if update >= 0:
                    table[phase, update] = after - before
        return tuple(phases), table, run.config.batch_size


def main(
    levels: tuple[str, ...] = ("first-steps",),
    observations: tuple[str, ...] = ("game_state",),
    device: str = "cpu",
    updates: int = 10,
    num_envs: int = 256,
    num_steps: int = 64,
    picture_size: int = 84,
    frame_stack: int = 1,
    hidden_size: int = 64,
) -> None:
    """Measure and print one table.

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
    name = torch.cuda.get_device_name(torch.device(device)) if device != "cpu" else "the processor"
    print(f"PyTorch {torch.__version__}; policy on {name}; {num_envs} environments x {num_steps} steps")
    network = {"picture_size": picture_size, "frame_stack": frame_stack, "hidden_size": hidden_size}
    options = {"num_envs": num_envs, "num_steps": num_steps, **network}
    names, table, steps = measure(levels, observations, device, updates, **options)
    median = np.median(table, axis=1)
    print(f"median of {updates} updates{'steps/s':>17}{'copies back':>14}{'copies to it':>14}{'noticed':>10}")
    for phase, (seconds, fetched, sent, noticed) in zip((*names, "all"), (*median, median.sum(axis=0)), strict=True):
        counted = f"{noticed:>10.0f}" if device != "cpu" else f"{'-':>10}"
        print(f"  {phase:<18}{steps / seconds:>19,.0f}{fetched:>14.0f}{sent:>14.0f}{counted}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
