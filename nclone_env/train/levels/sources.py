"""The levels of a run: those that it trains on, and those that it holds out."""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from nclone_env.errors import ConfigError
from nclone_env.generate import HELD_OUT_SPLIT, generated_levels
from nclone_env.level import (
    Level,
    LevelRef,
    LevelSource,
    OpenedPacks,
    listed_names,
    load_levels,
    readable,
    resolve,
)
from nclone_env.train.config import TrainConfig

_GENERATED = "generated"
"""Name of the levels of bundled policies that were trained on generated ones."""
_SHOWN = 16
"""Held-out generated levels that these policies play by default."""


def policy_levels(config: TrainConfig) -> tuple[str | Level, ...]:
    """Return the levels that a policy plays by default: those of its run, or levels of the generator that are held out.

    The latter are made now, which may take seconds.
    """
    levels = config.environment.levels
    if levels != (_GENERATED,) or Path(_GENERATED).exists():
        return levels
    made = generated_levels(seed=config.evaluation.split_seed, split=HELD_OUT_SPLIT)
    return tuple(islice((each.level for each in made if len(each.inputs) <= config.environment.max_frames), _SHOWN))


def run_levels(config: TrainConfig) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return references of the levels that a run trains on, and of those that it holds out."""
    levels, share = config.environment.levels, config.evaluation.held_out
    if _GENERATED in levels and not Path(_GENERATED).exists():
        raise ConfigError(
            f"levels: expected levels that exist, got {_GENERATED!r}; name some, such as {_GENERATED}:0-999, or make a "
            "pack with solutions: 'nclone-env levels generate --count 1000 --output train.txt', then pass --levels "
            "train.txt --starts train-recordings/*.replay"
        )
    return (levels, ()) if share == 0 else split_levels(levels, share, config.evaluation.split_seed)


def level_digests(levels: Iterable[LevelSource]) -> list[str]:
    """Return the digest of tiles and entities of each level, in the order of an environment's ``level_names``."""
    return [level.raw.digest for level in load_levels(levels)]


def split_levels(levels: Sequence[str], held_out: float, seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split levels at random into a training part and a held-out part.

    A level whose tiles and entities equal those of an earlier one is removed, whatever its name: in both parts it would
    make the held-out success meaningless, and twice in one part it would count twice.

    Both parts are references, one for each level, in the order of ``levels``. The same levels and seed give the same
    parts; the share is rounded to whole levels.
    """
    refs = _distinct_levels(levels)
    size, count = len(refs), round(held_out * len(refs))
    if not 0 < count < size:
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
