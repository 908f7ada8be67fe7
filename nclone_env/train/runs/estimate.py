"""Bytes that a training run will own, counted on parts of it before the run is built."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from nclone_env.errors import MemoryLimitError, checked
from nclone_env.machine import check_fits
from nclone_env.memory import MemoryNode
from nclone_env.sim import make_growing_worlds
from nclone_env.train.collect.environments import (
    MakeEnvironments,
    VectorEnvironment,
    make_environments,
    observation_arrays,
    observation_shapes,
    on_device,
)
from nclone_env.train.config import TrainConfig
from nclone_env.train.hooks import SILENT, Hooks
from nclone_env.train.learn.reference import make_reference
from nclone_env.train.policies.acting import one_thread_per_call
from nclone_env.train.policies.device import learning_device
from nclone_env.train.policies.network import make_policy
from nclone_env.train.ranks import ALONE, Ranks
from nclone_env.train.runs.curve import Rows
from nclone_env.train.runs.run import (
    ChosenLevels,
    assemble,
    choose_levels,
    group_sizes,
    make_collectors,
    make_held_out,
    make_workers,
    most_rows,
)

_NOWHERE = torch.device("meta")
_OF_ENVIRONMENTS = ("rollout storage", "update")
"""Parts that grow with the environments; the others grow with the threads, or not at all."""
_GROWING = ("worlds", "ended worlds")


@checked()
def estimate_bytes(
    config: TrainConfig,
    make_envs: MakeEnvironments = make_environments,
    ranks: Ranks = ALONE,
    hooks: Hooks = SILENT,
) -> MemoryNode:
    """Return the bytes that a run, or a rank of it, will own once it is prepared, as ``Run.memory()`` reports them.

    Left out are libraries, compiled code, the activations that torch allocates during an update, the episodes that end
    in a rollout, and their last observations.

    Parts of the run are built for one and for two environments and threads, with which their bytes grow in proportion.
    The system provides no memory for zeroed arrays until they are written, so that costs little.

    Args:
        config: configuration of the run.
        make_envs: creates the environments.
        ranks: the processes that train together.
        hooks: told of the levels whose paths are computed, and asked whether to stop.

    Raises:
        ConfigError, UnknownLevelError, LevelFormatError: as creating the environments does.
        MemoryLimitError: if the system refuses even the addresses of an array.
    """
    levels = choose_levels(config, make_envs is make_environments, hooks)
    try:
        with one_thread_per_call():  # forked processes would wait for further threads in vain
            one, two = (_measured(config, levels, make_envs, count, ranks) for count in (1, 2))
    except MemoryError as error:
        reason = str(error) or "an allocation failed"
        raise MemoryLimitError(f"num_envs: expected as many as fit, got {config.num_envs:,}: {reason}") from error
    num_envs, worlds = len(ranks.share(config.num_envs)), one.pop("worlds").each
    counts = dict.fromkeys(one.keys() - {"worlds"}, make_workers(config, ranks).count) | dict.fromkeys(
        _OF_ENVIRONMENTS, num_envs
    )
    sizes = {name: _continued(one[name], two[name], count) for name, count in counts.items()}
    groups = group_sizes(num_envs) if learning_device(config, ranks) is None else [num_envs]
    each = sum(_continued(one["groups"], two["groups"], size).each for size in groups) + worlds
    sizes["groups"] = _Sizes(each, *one["groups"][1:])
    return MemoryNode("training run", children=tuple(_node(name, found) for name, found in sizes.items()))


def check_memory(config: TrainConfig, ranks: Ranks = ALONE, hooks: Hooks = SILENT) -> None:
    """Reject a run that, with the other ranks of this machine, needs more memory than is available."""
    tree = estimate_bytes(config, ranks=ranks, hooks=hooks)
    each = tree.bytes_where(shared=False) * ranks.local_count / config.num_envs
    once = tree.bytes_where(shared=True, mapped=False)
    check_fits("num_envs", config.num_envs, each, once * ranks.local_count)


class _Sizes(NamedTuple):
    """Bytes of a part of a run."""

    each: int
    """That grow with the environments."""
    once: int
    """That do not."""
    mapped: int
    """Of mapped files."""


def _sizes(tree: MemoryNode) -> _Sizes:
    once, mapped = (tree.bytes_where(shared=True, mapped=kind) for kind in (False, True))
    return _Sizes(tree.bytes_where(shared=False), once, mapped)


def _continued(one: _Sizes, two: _Sizes, count: int) -> _Sizes:
    """Continue the growth from one environment, or thread, to two."""
    return _Sizes._make(first + (second - first) * (count - 1) for first, second in zip(one, two))


def _node(name: str, sizes: _Sizes) -> MemoryNode:
    """Return the node of a part: with a child for each kind of bytes if there are several."""
    parts = (
        MemoryNode("for each environment", sizes.each),
        MemoryNode("shared", sizes.once, shared=True),
        MemoryNode("shared", sizes.mapped, shared=True, mapped=True),
    )
    used = tuple(part for part in parts if part.own_bytes)
    return replace(used[0], name=name) if len(used) == 1 else MemoryNode(name, children=used)


def _measured(
    config: TrainConfig, levels: ChosenLevels, make_envs: MakeEnvironments, count: int, ranks: Ranks
) -> dict[str, _Sizes]:
    """Return the bytes of the parts of a run with ``count`` threads, and with a group of ``count`` environments.

    The policy has arbitrary parameters: initial ones would cost time, threads and random numbers.
    """
    config = config.replace(num_threads=count)
    device = None if learning_device(config, ranks) is None else Nowhere()
    place = None if device is None else device.place
    made_envs = on_device(make_envs, device) if device is not None else lambda *given: _begun(make_envs(*given))
    with closing(made_envs(levels.environment, count)) as envs:
        with _NOWHERE:
            policy = make_policy(config, observation_shapes(envs, config.frame_stack))
        empty = {name: torch.empty(value.shape, dtype=value.dtype) for name, value in policy.state_dict().items()}
        policy.load_state_dict(empty, assign=True)  # to_empty() would import SymPy, which takes half a second
        workers = make_workers(config, ranks)
        made, learner = assemble(config, policy, envs.single_observation_space, count, workers, ranks, place)
        parameters, storage, network = made.parameters, made.storage, made.network
        group = make_collectors(made, [envs])[0].memory()
        parts = [part.memory() for part in (storage, network, learner, Rows(config.num_updates))]
        of_groups = group_sizes(len(ranks.share(config.num_envs)))
        growing, begun = (0, 0) if place is not None else _growing_worlds(envs, group, of_groups)
    if config.keeps_clone:
        parts.append(make_reference(policy, storage, workers.count, most_rows(config, ranks)).memory())

    num_envs = len(ranks.share(config.num_envs))
    held_out = levels.held_out
    measured = make_held_out(config, num_envs, held_out, lambda *given: _begun(make_envs(*given)), network, workers)
    if measured is not None:
        with closing(measured):
            parts.append(measured.memory())
    own = MemoryNode("parameters", parameters.vector.nbytes, shared=True)
    of_group = _sizes(group)
    sizes = {part.name: _sizes(part) for part in (own, *parts)}
    return {**sizes, "groups": of_group._replace(each=of_group.each - growing), "worlds": _Sizes(begun, 0, 0)}


def _growing_worlds(envs: VectorEnvironment, tree: MemoryNode, groups: Iterable[int]) -> tuple[int, int]:
    """Return the bytes of the worlds in a tree that grow with their levels, and what those of groups begin with."""
    found = [node.total_bytes for _, node in tree.walk() if node.name in _GROWING and node.total_bytes]
    if not found:  # environments of others
        return 0, 0
    config, levels = envs.config, envs.level_set  # type: ignore[attr-defined]
    worlds = (make_growing_worlds(size, levels, config.max_frames, config.frame_skip) for size in groups)
    return sum(found), len(found) * sum(array.nbytes for arrays in worlds for array in arrays)


class Nowhere:
    """A device whose arrays take no memory, in the place of a run's."""

    place = _NOWHERE

    def free_bytes(self) -> None:
        """Return None: it has no end."""

    def program(self, name: str, arguments: tuple[Any, ...]) -> Callable[[int, Mapping[Any, Any]], None]:
        """Return a program that does nothing."""
        return lambda count, replaced: None


def _begun(envs: VectorEnvironment) -> VectorEnvironment:
    """Return environments after the reset of both sets of arrays that results are written to in turn."""
    for _ in range(2):
        envs.reset(seed=0, out=observation_arrays(envs))
    return envs
