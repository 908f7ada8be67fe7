"""Runs of several ranks, see ``test_ranks.py``.

    torchrun --standalone --nproc-per-node=2 -m tests.train.ranked compare FOLDER
    python -m tests.train.ranked compare FOLDER killed FOLDER

The second form is ``torchrun`` as a function: its ranks are copies of a process that has imported everything, which
takes half of the time.
"""

import logging
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from nclone_env.errors import NcloneError
from nclone_env.train import Hooks, Ranks, joined_ranks, loop

from .on_device import choose_device
from .runs import config

UPDATES = 4
ON_DEVICES = {
    "device": {},
    "device, whole": {"num_minibatches": 1, "update_epochs": 1},
    "device, still": {"learning_rate": 0.0},
}
"""Runs on devices, where each rank draws its own share of a minibatch: of one minibatch that is all of it."""


def settings(folder, name, **fields):
    """Return a short run on real levels.

    With this seed no step has a probability ratio so close to the clipping range that rounding decides its gradient.
    """
    defaults = {"name": name, "seed": 3, "levels": ("first-steps",), "num_threads": 1, "frame_skip": 8}
    return config(folder, **{**defaults, **fields})


@contextmanager
def on_a_stand_in():
    """Let runs take a stand-in for a GPU."""
    with pytest.MonkeyPatch.context() as patches:
        choose_device(patches)
        yield


def save_failure(folder, name, ranks, task):
    """Call a task that fails and write the message of each rank to a file."""
    try:
        task()
    except NcloneError as error:
        (folder / f"{name}-{ranks.number}.txt").write_text(f"{type(error).__name__}: {error}")


def compare(folder):
    """Run everything that needs no restart."""
    with joined_ranks() as ranks:

        def train(name, resume=None, **fields):
            rows = []
            stop_after = fields.pop("stop_after", None)
            loop.train(
                settings(folder, name, **fields),
                Hooks(on_update=rows.append, stop=lambda: ranks.number == 1 and len(rows) == stop_after),
                resume=resume,
                ranks=ranks,
            )

        train("two")
        train("other", seed=1)
        train("two, memory", recurrent_size=8)
        with on_a_stand_in():
            for name, fields in ON_DEVICES.items():
                train(f"two, {name}", **fields)
            train("part, device", stop_after=2)
            train("", resume=folder / "part, device")
            save_failure(folder, "uneven", ranks, lambda: train("uneven", num_envs=6, num_steps=4, num_minibatches=8))
        train("part", stop_after=2)
        train("", resume=folder / "part")
        train("", resume=folder / "one, part")
        save_failure(folder, "odd", ranks, lambda: train("odd", num_envs=33, num_steps=4))
        save_failure(folder, "taken", ranks, lambda: train("two"))
        with mock.patch.object(Ranks, "add_up", return_value=None):
            save_failure(folder, "apart", ranks, lambda: train("apart"))


def killed(folder):
    """Kill rank 1 in its third update, the first time.

    The other ranks ignore the SIGTERM of ``torchrun``, so that they always notice the lost connection themselves.
    """
    update_policy, done = loop.update_policy, []
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def update(run):
        done.append(run.counters.updates)
        if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and len(done) == 3 and run.ranks.number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return update_policy(run)

    loop.update_policy = update
    with joined_ranks() as ranks:
        try:
            loop.train(settings(folder, "", checkpoint_interval=1), ranks=ranks)
        except NcloneError as error:
            (folder / f"lost-{ranks.number}.txt").write_text(str(error))
            raise
        finally:
            attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
            (folder / f"updates-{attempt}-{ranks.number}.txt").write_text(" ".join(map(str, done)))


def run_case(case, folder):
    """Run a case in this rank."""
    {"compare": compare, "killed": killed}[case](Path(folder))


def launch(case, folder):
    """Run a case in two ranks, which are restarted once if one is lost."""
    logging.disable()  # to log a lost rank, torch imports its compiler, for four seconds
    meeting = {
        "rdzv_backend": "c10d",
        "rdzv_endpoint": "localhost:0",
    }  # any free port: another job may have the usual one
    options = LaunchConfig(1, 1, 2, max_restarts=case == "killed", start_method="fork", **meeting)
    elastic_launch(options, run_case)(case, folder)


if __name__ == "__main__":
    words = iter(sys.argv[1:])
    os.fsync = lambda descriptor: None  # what was written survives the process, if not a power failure
    for case, folder in zip(words, words):
        (run_case if "LOCAL_RANK" in os.environ else launch)(case, folder)
