"""From a track to its levels; each is checked against the digest in the file of the track."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from nclone_env.benchmark.track import Track
from nclone_env.errors import ConfigError
from nclone_env.level import Level, load_levels


def track_levels(track: Track, packs: Mapping[str, Path] | None = None) -> tuple[Level, ...]:
    """Return the levels of a track.

    Generated levels are part of the package, so that a track outlives changes of the generator.

    Args:
        track: the track.
        packs: for a track of the game, the file of each of its packs by name.

    Raises:
        ConfigError: if a level is not the one of the track, or a pack is missing or another one.
    """
    if track.source == "builtin":
        return _checked(track, load_levels(level.reference for level in track.levels))
    if track.source == "packs":
        return _checked(track, _from_packs(track, packs or {}))
    return _checked(track, load_levels(track.pack))


def training_levels(track: Track, packs: Mapping[str, Path]) -> tuple[str, ...]:
    """Return references, as ``EnvironmentConfig.levels`` takes them, of the levels of packs that are not evaluated.

    Args:
        track: a track of the game.
        packs: as for :func:`track_levels`.

    Raises:
        ConfigError: if the track has no packs, or one is missing or another one.
    """
    if track.source != "packs":
        raise ConfigError(
            f"track: expected one of the game, got {track.name}; a policy may be trained on {track.training}"
        )
    _check_packs(track, packs)
    evaluated, found = {level.digest for level in track.levels}, []
    for path in (packs[name] for name in track.packs):
        levels = enumerate(load_levels(path))
        numbers = [str(number) for number, level in levels if level.raw.digest[:16] not in evaluated]
        found += [f"{path}#{','.join(numbers)}"] if numbers else []
    return tuple(found)


def _check_packs(track: Track, packs: Mapping[str, Path]) -> None:
    for name, digest in track.packs.items():
        if name not in packs:
            missing = f"--packs {name}=FILE, a pack with SHA-256 {digest[:16]}..."
            raise ConfigError(f"packs: expected {missing}, got {', '.join(packs) or 'none'}; {track.name} needs it")
        try:
            got = hashlib.sha256(Path(packs[name]).read_bytes()).hexdigest()
        except OSError as error:
            raise ConfigError(f"packs: expected {name} in {packs[name]}, got {error.strerror}") from error
        if got != digest:
            raise ConfigError(f"packs: expected {name} with SHA-256 {digest}, got {got} of {packs[name]}")


def _from_packs(track: Track, packs: Mapping[str, Path]) -> list[Level]:
    _check_packs(track, packs)
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
