"""Processes that train one policy together: who plays which environments, and how they communicate.

``torchrun`` starts K processes, ranks 0 to K - 1. The whole gradient is one vector, so one all-reduce of it replaces
what ``DistributedDataParallel`` would do for a module.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed

from nclone_env.errors import ConfigError, NcloneError, Within, checked

Value = TypeVar("Value")


class RankError(NcloneError, ConnectionError):
    """Another rank was lost, or the ranks no longer agree."""


@dataclass(frozen=True)
class Ranks:
    """The place of this process among those of a job; by default it is alone.

    All ranks must call the communicating methods in the same order. Every rank receives the same bits.
    """

    number: int = 0
    """Number of this process."""
    count: int = 1
    """Number of processes."""
    local_count: int = 1
    """Number of processes on this machine."""
    local_number: int = 0
    """Number of this process among those."""

    @property
    def first(self) -> bool:
        """Whether this process writes the files."""
        return self.number == 0

    @checked()
    def share(self, num_envs: Annotated[int, Within(1, 1 << 40)]) -> range:
        """Return the environments of this rank, numbered over all ranks.

        Raises:
            ConfigError: if the ranks cannot have equally many.
        """
        if num_envs % self.count:
            nearest = max(1, round(num_envs / self.count)) * self.count
            raise ConfigError(
                f"num_envs: expected a multiple of the {self.count} ranks, as it is the total over all of them, "
                f"got {num_envs}; pass --num-envs {nearest}"
            )
        size = num_envs // self.count
        return range(self.number * size, (self.number + 1) * size)

    def add_up(self, array: np.ndarray | Tensor) -> None:
        """Replace a contiguous array, or a tensor on any device, by the sum of those of all ranks."""
        if self.count > 1:
            with _lost_ranks_named(self.number):
                distributed.all_reduce(torch.from_numpy(array) if isinstance(array, np.ndarray) else array)

    def exchange(self, value: Value) -> list[Value]:
        """Return the values of all ranks, in their order."""
        values = [value] * self.count
        if self.count > 1:
            with _lost_ranks_named(self.number):
                distributed.all_gather_object(values, value)
        return values

    def gather(self, value: Value) -> list[Value]:
        """Return the values of all ranks to rank 0, in their order, and an empty list to the others."""
        if self.count == 1:
            return [value]
        values = [value] * self.count if self.first else []
        with _lost_ranks_named(self.number):
            distributed.gather_object(value, values or None)
        return values

    def from_first(self, compute: Callable[[], Value]) -> Value:
        """Call a function in rank 0 alone; return its result, or raise its error, in every rank."""
        if self.count == 1:
            return compute()
        outcome: list[Value | NcloneError | None] = [None]
        if self.first:
            try:
                outcome = [compute()]
            except NcloneError as error:
                outcome = [error]
        with _lost_ranks_named(self.number):
            distributed.broadcast_object_list(outcome)
        if isinstance(outcome[0], NcloneError):
            raise outcome[0]
        return outcome[0]  # type: ignore[return-value]


ALONE = Ranks()


@contextmanager
def joined_ranks() -> Iterator[Ranks]:
    """Join the other processes that ``torchrun`` has started; without it, this process is alone.

    The environment variables are those that ``torchrun`` sets. Other launchers may set ``WORLD_SIZE`` for purposes of
    their own, so that one alone changes nothing. Where each process of a machine has a GPU, they add up tensors there.
    """
    if not distributed.is_torchelastic_launched() or int(os.environ["WORLD_SIZE"]) == 1:
        yield ALONE
        return
    local_count, local_number = (int(os.environ[name]) for name in ("LOCAL_WORLD_SIZE", "LOCAL_RANK"))
    has_gpus = local_count <= torch.cuda.device_count() and distributed.is_nccl_available()
    with _lost_ranks_named(int(os.environ["RANK"])):
        store, number, count = next(distributed.rendezvous("env://"))
        session = distributed.PrefixStore(_agree_on_session(store, number, count), store)
        backend = "cpu:gloo,cuda:nccl" if has_gpus else "gloo"
        distributed.init_process_group(backend, store=session, rank=number, world_size=count)
    try:
        yield Ranks(distributed.get_rank(), distributed.get_world_size(), local_count, local_number)
    finally:
        distributed.destroy_process_group()


def _agree_on_session(store: distributed.Store, number: int, count: int) -> str:
    """Return a name that the ranks of this attempt share with no earlier one.

    ``torchrun`` keeps one store for all attempts, and the addresses in it may be those of processes that were killed.
    Restarts are counted by each machine on its own, so their number is no such name.
    """
    own = secrets.token_hex(8)
    if number == 0:
        for other in range(1, count):
            greeting = store.get(f"greeting {other}").decode()
            store.delete_key(f"greeting {other}")
            store.set(f"answer {greeting}", own)
        return own
    store.set(f"greeting {number}", own)
    return store.get(f"answer {own}").decode()


@contextmanager
def _lost_ranks_named(number: int) -> Iterator[None]:
    """Translate the errors of broken connections."""
    try:
        yield
    except RuntimeError as error:
        raise RankError(
            f"rank {number}: the connection to another rank was lost ({str(error).splitlines()[0][:100]}); "
            "see what that rank printed. With --max-restarts N, torchrun goes on from the latest checkpoint by itself"
        ) from error
