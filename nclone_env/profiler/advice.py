"""What a configuration could do with less memory, computed from the tree of a run with it."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from nclone_env._table import format_bytes
from nclone_env.config import EnvironmentConfig
from nclone_env.env import NPlusPlusVectorEnv
from nclone_env.memory import Advice, MemoryNode, OwnedNode, copies
from nclone_env.obs import frame_specs

_SMALL, _SMALLEST = 64, 16  # pixels
_ANY_LEVELS = ("first-steps",)


def of_observations(
    config: EnvironmentConfig, owners: Sequence[OwnedNode], num_envs: int, unreported: float
) -> Iterator[Advice]:
    """Yield advice on the sizes of observations.

    Args:
        num_envs: n.
        unreported: bytes of Python of an environment that no owner reports; whole batches in them count, too.
    """
    before = _bytes(config)
    batches = int(unreported // max(1, sum(before.values())))
    used = owners[0].environment_bytes / num_envs + unreported
    for option, variant, more in _variants(config):
        after = _bytes(variant)
        shares = {name: 1 - after[name] / size for name, size in before.items() if size}
        stored = {name: sum(total for _, total in copies(owners, name)) for name in shares}
        each = sum(share * (stored[name] / num_envs + batches * before[name]) for name, share in shares.items())
        saved = int(each * num_envs) - more
        besides = f" and takes {format_bytes(more)} more for what all share" if more > 0 else ""
        yield Advice(
            option,
            saved,
            f"{option} saves {format_bytes(each)} of {format_bytes(used)} for each environment{besides}: "
            f"{format_bytes(saved)} in all.",
        )


def _variants(config: EnvironmentConfig) -> Iterator[tuple[str, EnvironmentConfig, int]]:
    """Yield (option, configuration with smaller observations, bytes more that all environments share)."""
    size = config.render.player_frame_size
    smaller = _SMALL if size > _SMALL else max(_SMALLEST, size // 2)
    if {"player_frame", "global_view"} & set(config.observations) and smaller < size:
        render = replace(config.render, player_frame_size=smaller, player_frame_scale=None)
        resized = config.replace(render=render)
        yield f"--picture-size {smaller}", resized, _shared_bytes(resized) - _shared_bytes(config)
    if config.observation.dtype == "float32":
        halved = config.replace(observation=replace(config.observation, dtype="float16"))
        yield "--vector-dtype float16", halved, 0


def _bytes(config: EnvironmentConfig) -> dict[str, int]:
    """Return the bytes of each observation of an environment; 0 where they depend on the levels."""
    depth = config.observation.frame_stack
    return {
        spec.name: math.prod(spec.shape) * spec.dtype.itemsize * (depth if spec.stacks else 1)
        for spec in frame_specs(config)
    }


def _shared_bytes(config: EnvironmentConfig) -> int:
    """Return the bytes of pictures that all environments share, without mapped files."""
    with closing(NPlusPlusVectorEnv(config.replace(levels=_ANY_LEVELS), 1)) as env:
        return env.memory().bytes_where(shared=True, mapped=False)


def of_more_environments(num_envs: int, one: MemoryNode, two: MemoryNode) -> Iterator[Advice]:
    """Yield advice for a training run most of whose memory does not grow with the environments.

    Args:
        num_envs: n.
        one: tree of the run.
        two: tree of a run of twice as many.
    """
    once = one.bytes_where(shared=True, mapped=False)
    more = two.bytes_where(mapped=False) - one.bytes_where(mapped=False)
    if once > more:
        yield Advice(
            f"--num-envs {2 * num_envs}",
            -more,
            f"--num-envs {2 * num_envs}, twice as many, takes only {format_bytes(more)} more: most of the run, "
            f"{format_bytes(once)}, is parameters, optimiser and scratch.",
        )
