"""The levels of a run: a part to train on, and a part that is held out to measure success on unseen levels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nclone_env.errors import ConfigError
from nclone_env.level import LevelRef, LevelSource, OpenedPacks, listed_names, load_levels, readable, resolve
from nclone_env.train.config import TrainConfig


def run_levels(config: TrainConfig) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return references of the fixed levels that a run trains on, and of those that it holds out.

    Besides generated levels, too few of them to be split are all trained on.

    Raises:
        ConfigError, UnknownLevelError, LevelFormatError: as :func:`split_levels`.
    """
    share = config.evaluation.held_out
    if share == 0:
        return config.fixed_levels, ()
    return split_levels(config.fixed_levels, share, config.evaluation.split_seed, optional=config.generates)


def level_digests(levels: Iterable[LevelSource]) -> list[str]:
    """Return the digest of tiles and entities of each level, in the order of an environment's ``level_names``.

    Raises:
        UnknownLevelError, LevelFormatError: as :func:`split_levels`.
    """
    return [level.raw.digest for level in load_levels(levels)]


def split_levels(
    levels: Sequence[str], held_out: float, seed: int, optional: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split levels at random into a training part and a held-out part.

    A level whose tiles and entities equal those of an earlier one is removed, whatever its name: in both parts it would
    make the held-out success meaningless, and twice in one part it would count twice.

    Args:
        levels: sets, levels, files, folders, packs and ranges of packs, as ``EnvironmentConfig.levels`` takes them.
        held_out: share of the levels to hold out, between 0 and 1; rounded to whole levels.
        seed: seed of the choice, at least 0; the same levels and seed give the same parts.
        optional: train on all levels where the share leaves a part empty.

    Returns:
        References of the training levels and of the held-out levels, one for each level, each part in the order of
        ``levels``; ``EnvironmentConfig.levels`` takes them.

    Raises:
        ConfigError: if the share leaves a part empty.
        UnknownLevelError: if a name is neither built in nor a file.
        LevelFormatError: if a level is malformed.
    """
    refs = _distinct_levels(levels)
    size, count = len(refs), round(held_out * len(refs))
    if not 0 < count < size:
        if optional:
            return tuple(levels), ()
        empty = "no level to hold out" if count == 0 else "no level to train on"
        fix = f"choose a share from {1 / size:.2g} to {1 - 1 / size:.2g}" if size > 1 else "name more levels"
        listed = listed_names(refs, 3) or "no levels"
        raise ConfigError(f"held_out: {held_out!r} of {size} levels ({listed}) leaves {empty}; {fix}")
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[np.random.default_rng(seed).permutation(size)[:count]] = True
    training, out = (tuple(ref.reference for ref, out in zip(refs, chosen) if out == part) for part in (False, True))
    return training, out


def _distinct_levels(levels: Sequence[str]) -> list[LevelRef]:
    """Return the levels that names denote, without those whose tiles and entities equal those of an earlier one."""
    packs: OpenedPacks = {}
    found: dict[str, LevelRef] = {}
    for name in levels:
        for ref, level in readable(resolve(name, packs)):
            found.setdefault(level.raw.digest, ref)
    return list(found.values())
