"""Restarts by ``torchrun``: after the loss of a rank, a job continues the run that it began.

The folder of a run names the ``torchrun`` processes of its job. A restarted job looks for a folder that names one of
its own, so it continues no run of another job, not even if its first attempt failed because the folder held that run.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from torch import distributed

from nclone_env._files import write_file
from nclone_env.train.config import TrainConfig
from nclone_env.train.ranks import Ranks
from nclone_env.train.runs.folder import (
    JOB,
    LATEST,
    RunFolder,
    SharedFolder,
    checkpoint_file,
    lock_folder,
    named_folder,
)


def launchers(ranks: Ranks) -> frozenset[str]:
    """Return the ``torchrun`` processes that started the ranks; empty without ``torchrun``.

    They live on when ranks are restarted. On several machines one of them may be lost.
    """
    return frozenset(filter(None, ranks.exchange(_launcher())))


def own_checkpoint(config: TrainConfig, source: Path | None, job: Collection[str]) -> Path | None:
    """Return the latest checkpoint of the run that this job began before a restart, None without one.

    Args:
        source: the checkpoint that it was to be resumed from.
        job: the result of :func:`launchers`.
    """
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) == 0:
        return None
    for folder in _folders(config, source):
        named = (folder / JOB).read_text().splitlines() if (folder / JOB).is_file() else []
        if (folder / LATEST).is_file() and not set(named).isdisjoint(job):
            return folder / LATEST
    return None


def lock_folder_for_all(
    config: TrainConfig, resume: str | Path | None, overwrite: bool, ranks: Ranks
) -> tuple[RunFolder, Path | None]:
    """Choose and lock the folder of a run for all ranks, and the checkpoint to continue from.

    Raises:
        CheckpointError: if ``resume`` does not exist.
        RunFolderError: as :func:`nclone_env.train.runs.folder.lock_folder` does.
    """
    job, locked = launchers(ranks), []

    def choose() -> tuple[Path, Path | None]:
        source = None if resume is None else checkpoint_file(resume)
        source = own_checkpoint(config, source, job) or source
        locked.append(lock_folder(config, source, overwrite))
        return locked[0].path, source

    path, source = ranks.from_first(choose)
    return (locked[0] if ranks.first else SharedFolder(path)), source


def name_job(folder: RunFolder, job: Collection[str]) -> None:
    """Note which job writes to a folder."""
    if job:
        write_file(folder.path / JOB, "\n".join(sorted(job)).encode())


def _folders(config: TrainConfig, source: Path | None) -> Iterator[Path]:
    """Yield the folders that :func:`nclone_env.train.runs.folder.lock_folder` may have chosen."""
    path = named_folder(config, source)
    if path is not None:
        yield path
    else:
        yield from config.output.glob(f"{config.run_folder.name}*")


def _launcher() -> str:
    """Return what tells the parent process from all others, of other machines and times as well."""
    if not distributed.is_torchelastic_launched():
        return ""
    parent = os.getppid()
    boot = started = ""
    with suppress(OSError):  # only Linux tells
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        started = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]  # clock ticks since the boot
    return f"{socket.gethostname()} {boot} {parent} {started}"
