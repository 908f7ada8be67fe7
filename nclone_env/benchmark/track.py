"""Tracks: which levels a result is about, how an episode is played on them, and what may be spent on training.

A track is a file that never changes: a change is a track of another version. ``DIGESTS`` pins each file, and the file
has the digest of each level.
"""

import hashlib
import tomllib
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nclone_env._files import expanded, open_regular
from nclone_env.config import EnvironmentConfig, ObservationName
from nclone_env.errors import ConfigError, LevelFormatError, UnknownLevelError, check_choice, checked
from nclone_env.level import Level, load_levels

FOLDER = Path(__file__).parent / "tracks"
DIGESTS: Mapping[str, str] = {
    "Builtin-v1": "ee16fcfb039a20d0e35690c1a400095efb52873094cb8a24ed4f3eefc72fe5d0",
    "Builtin-sticky-v1": "fe06da7642bad46dab794687f284195160025e7736fc18528e24a550c67f115d",
    "Community-v1": "9050cdb436644d5e83eeb15e548656e875977cf286cddb3f25193ff38ecff69b",
    "Game-v1": "61fdb62a78b142dfd937e48886f0fd42eda37038ca4ef37c36d77a01411b63eb",
    "Generated-v1": "554aaf59e9f2406906192ec20d7b5c15603a885049eae171fc85e0111707f847",
    "Planning-v1": "d4bb8ffe73becca90ff4a532705366473ac49b10f3afe78f16bc9b055adc6c78",
}
"""SHA-256 of the file of each track."""
TRACK_NAMES = tuple(DIGESTS)

_STATE: tuple[ObservationName, ...] = ("game_state", "entity_states", "locals", "reachability", "graph")
_PIXELS: tuple[ObservationName, ...] = ("player_frame", "global_view")
MODES: Mapping[str, tuple[ObservationName, ...]] = {
    "state": _STATE,
    "pixels": _PIXELS,
    "look-ahead": (*_STATE, *_PIXELS, "free_motion", "action_outcomes", "action_mask"),
    "planning": (),
}
"""Observations that a policy of each mode may use. Planning: any use of the simulator."""


class TrackLevel(NamedTuple):
    """A level of a track."""

    reference: str
    """Name of a built-in level, family and number of a generated one, pack and number of one of the game, pack
    and place in the track of one by players."""
    frames: int
    """Frames of the best solution known when the track was made; the limit of an episode if none was."""
    digest: str
    """First 16 hex digits of the SHA-256 of tiles and records."""


@dataclass(frozen=True, eq=False)
class Track:
    """A track.

    Attributes:
        name: with its version.
        digest: SHA-256 of its file.
        title: in one sentence.
        source: where its levels are from: ``builtin``, ``generated``, ``packs`` or ``digests``: any files of the user
            that have levels of these digests.
        training: levels that a policy may be trained on, in words.
        seed: of generated levels.
        packs: SHA-256 of each pack that the user brings, by name.
        modes: names in ``MODES``.
        budgets: most that training (or planning on one level) may take, by name: ``steps``, ``seconds`` or ``frames``.
        frame_skip: frames that an action is held.
        max_frames: frames after which an episode is lost.
        attempts: episodes with sampled actions on each level.
        bands: parts of equal size that the levels are in, the easiest first; 1: no parts.
        levels: the levels.
        random: mean scores of random play.
        action_repeat_probability: probability that a step takes the action of the step before instead of the policy's.
        reserved: digests of the other levels of the packs that the levels are from: a policy may not be trained on
            these either.
    """

    name: str
    digest: str
    title: str
    source: str
    training: str
    seed: int
    packs: Mapping[str, str]
    modes: tuple[str, ...]
    budgets: Mapping[str, Mapping[str, int]]
    frame_skip: int
    max_frames: int
    attempts: int
    bands: int
    levels: tuple[TrackLevel, ...]
    random: Mapping[str, float]
    action_repeat_probability: float = 0.0
    reserved: frozenset[str] = frozenset()

    @property
    def is_sticky(self) -> bool:
        """Whether actions are repeated at random."""
        return self.action_repeat_probability > 0

    @property
    def max_steps(self) -> int:
        """Steps of the longest possible episode."""
        return -(-self.max_frames // self.frame_skip)

    @property
    def pack(self) -> Path:
        """The pack of its levels, if these are generated ones."""
        return FOLDER / f"{self.name.lower()}.txt.gz"

    @property
    def parts(self) -> dict[str, slice]:
        """Parts of the levels: the bands by number from 1 on, the packs by name; nothing if there is one part."""
        if self.bands > 1:
            size = len(self.levels) // self.bands
            return {str(band + 1): slice(band * size, (band + 1) * size) for band in range(self.bands)}
        is_of_packs = self.source in ("packs", "digests")
        names = [level.reference.split("#")[0] for level in self.levels] if is_of_packs else []
        first = {name: names.index(name) for name in names}
        return {name: slice(place, place + names.count(name)) for name, place in first.items()}

    @property
    def authors(self) -> int:
        """Authors that stand for others: as many parts of equal size; 0 if the track is about its own levels alone."""
        return len(self.parts) if self.source == "digests" else 0

    @checked()
    def environment(self, mode: str, given: EnvironmentConfig | None = None) -> EnvironmentConfig:
        """Return the configuration of the environments of a mode, with the levels left as they are.

        The environments repeat no action at random, whatever ``given`` says: the evaluation does, if the track asks for
        it, so that the simulator can play the actions of an episode again.

        Args:
            mode: name of the mode.
            given: observations and their options; None: the default of the mode, its first observation alone for
                states, the pictures for pixels, and ``action_outcomes`` besides the state for look-ahead.

        Raises:
            ConfigError: if the track has no such mode, or an observation is not allowed in it.
        """
        check_choice("mode", mode, self.modes)
        if given is None:
            names = {"state": ("game_state", "locals"), "pixels": _PIXELS}
            given = EnvironmentConfig(observations=names.get(mode, ("game_state", "action_outcomes")))
        refused = [name for name in given.observations if name not in MODES[mode]]
        if refused:
            allowed = ", ".join(MODES[mode]) or "none"
            raise ConfigError(f"observations: expected those of mode {mode!r} ({allowed}), got {', '.join(refused)}")
        rules = {"frame_skip": self.frame_skip, "max_frames": self.max_frames, "action_repeat_probability": 0.0}
        return given.replace(**rules, mirrored=False, render_mode=None)


@checked()
def load_track(name: str) -> Track:
    """Return a track.

    Args:
        name: ``Builtin-v1``, ``Builtin-sticky-v1``, ``Community-v1``, ``Game-v1``, ``Generated-v1`` or ``Planning-v1``.

    Raises:
        ConfigError: if there is no such track, or its file was changed.
    """
    check_choice("track", name, TRACK_NAMES)
    return _read_track(name)


@cache
def _read_track(name: str) -> Track:
    data = (FOLDER / f"{name.lower()}.toml").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != DIGESTS[name]:
        raise ConfigError(
            f"track: expected {name} with digest {DIGESTS[name][:16]}, got {digest[:16]}; install it again"
        )
    return parse_track(name, data)


def parse_track(name: str, data: bytes) -> Track:
    """Return the track that a file defines."""
    table = tomllib.loads(data.decode())
    rows = (line.split() for line in table.pop("levels").strip().splitlines())
    levels = tuple(TrackLevel(reference, int(frames), digest) for reference, frames, digest in rows)
    table["modes"] = tuple(table["modes"])
    table["reserved"] = frozenset(table.get("reserved", "").split())
    return Track(name=name, digest=hashlib.sha256(data).hexdigest(), levels=levels, **table)


def track_levels(track: Track, packs: Mapping[str, Path] | None = None) -> tuple[Level, ...]:
    """Return the levels of a track; one of the game needs the file of each of its packs by name.

    One of digests needs files or folders that have its levels, by any names. Generated levels are part of the package,
    so that a track outlives changes of the generator.
    """
    if track.source == "builtin":
        return _checked(track, load_levels(level.reference for level in track.levels))
    if track.source == "packs":
        packs = packs or {}
        _check_packs(track, packs)
        pairs = (level.reference.split("#") for level in track.levels)
        return _checked(track, load_levels(f"{packs[name]}#{number}" for name, number in pairs))
    if track.source == "digests":
        return _checked(track, _levels_of_digests(track, (packs or {}).values()))
    return _checked(track, load_levels(track.pack))


@checked()
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
            with open_regular(packs[name]) as file:
                got = hashlib.sha256(file.read()).hexdigest()
        except OSError as error:
            raise ConfigError(f"packs: expected {name} in {packs[name]}, got {error.strerror}") from error
        if got != digest:
            raise ConfigError(f"packs: expected {name} with SHA-256 {digest}, got {got} of {packs[name]}")


def _levels_of_digests(track: Track, paths: Collection[Path]) -> list[Level]:
    """Return the levels of a track from files and folders of any names, named by the track."""
    wanted = {level.digest: level.reference for level in track.levels}
    found: dict[str, Level] = {}
    for level in (level for path in paths for level in _levels_at(expanded(path))):
        digest = level.raw.digest[:16]
        if digest in wanted:
            found[digest] = Level(level.raw, wanted[digest])
        if len(found) == len(wanted):
            return [found[digest] for digest in wanted]
    missing = [wanted[digest].split("#")[0] for digest in wanted if digest not in found]
    listed = ", ".join(f"{missing.count(name)} of {name}" for name in track.parts if name in missing)
    where = ", ".join(map(str, paths)) or "no folder"
    raise ConfigError(
        f"packs: expected --packs FOLDER, a folder with the packs {', '.join(track.parts)}, got {where}: "
        f"{len(missing)} of the {len(wanted)} levels of {track.name} are missing ({listed}); put these packs there"
    )


def _levels_at(path: Path) -> Iterator[Level]:
    """Yield the levels of a file, or of all level files in a folder and its folders, whatever else they have."""
    if not path.is_dir():
        yield from load_levels(path)
        return
    for folder in (path, *sorted(each for each in path.rglob("*") if each.is_dir())):
        levels: list[Level] = []
        unreadable = suppress(UnknownLevelError, LevelFormatError)
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning), unreadable:
            levels = load_levels(folder)
        yield from levels


def _checked(track: Track, levels: list[Level]) -> tuple[Level, ...]:
    found = [level.raw.digest[:16] for level in levels]
    for number, expected in enumerate(track.levels):
        got = found[number] if number < len(found) else "none"
        if got != expected.digest:
            raise ConfigError(f"levels: expected {expected.reference} with digest {expected.digest}, got {got}")
    if len(found) > len(track.levels):
        raise ConfigError(f"levels: expected {len(track.levels)} levels, got {len(found)}")
    return tuple(levels)
