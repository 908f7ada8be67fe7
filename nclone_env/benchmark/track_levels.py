"""From a track to its levels; each is checked against the digest in the file of the track."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from nclone_env._files import write_file
from nclone_env.benchmark.track import Track
from nclone_env.errors import ConfigError, NcloneError
from nclone_env.generate import HELD_OUT_SPLIT, generate_level
from nclone_env.jit import cache_root
from nclone_env.level import Level, load_levels
from nclone_env.level.formats import write_pack
from nclone_env.train import Hooks

_SILENT = Hooks()


def track_levels(track: Track, packs: Mapping[str, Path] | None = None, hooks: Hooks = _SILENT) -> tuple[Level, ...]:
    """Return the levels of a track.

    Generated levels are made on first use, about two minutes for a thousand, and kept in the cache folder of the
    package.

    Args:
        track: the track.
        packs: for a track of the game, the file of each of its packs by name.
        hooks: ``on_level`` is called after each level that is made.

    Raises:
        ConfigError: if a level is not the one of the track, or a pack is missing or another one.
    """
    if track.source == "builtin":
        return _checked(track, load_levels(level.reference for level in track.levels))
    if track.source == "packs":
        return _checked(track, _from_packs(track, packs or {}))
    path = cache_root() / "benchmark" / f"{track.name}-{track.digest[:16]}.txt"
    try:
        return _checked(track, load_levels(path))
    except (NcloneError, OSError):  # not made yet, or damaged
        levels = _generated(track, hooks)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, write_pack([level.raw for level in levels]))
    except OSError:
        pass  # they are made again next time
    return levels


def _generated(track: Track, hooks: Hooks) -> tuple[Level, ...]:
    made = []
    for level in track.levels:
        family, number = level.reference.split("/")
        made.append(generate_level(family, track.seed, int(number), split=HELD_OUT_SPLIT).level)
        hooks.on_level("levels made", len(made), len(track.levels))
    return _checked(track, made)


def _from_packs(track: Track, packs: Mapping[str, Path]) -> list[Level]:
    for name, digest in track.packs.items():
        if name not in packs:
            missing = f"--packs {name}=FILE, a pack with SHA-256 {digest[:16]}..."
            raise ConfigError(f"packs: expected {missing}, got {', '.join(packs) or 'none'}; {track.name} needs it")
        got = hashlib.sha256(Path(packs[name]).read_bytes()).hexdigest()
        if got != digest:
            raise ConfigError(f"packs: expected {name} with SHA-256 {digest}, got {got} of {packs[name]}")
    pairs = (level.reference.split("#") for level in track.levels)
    return load_levels(f"{packs[name]}#{number}" for name, number in pairs)


def _checked(track: Track, levels: list[Level]) -> tuple[Level, ...]:
    found = [level.raw.digest[:16] for level in levels]
    for number, expected in enumerate(track.levels):
        got = found[number] if number < len(found) else "none"
        if got != expected.digest:
            raise ConfigError(f"levels: expected {expected.reference} with digest {expected.digest}, got {got}")
    if len(found) > len(track.levels):
        raise ConfigError(f"levels: expected {len(track.levels)} levels, got {len(found)}")
    return tuple(levels)
