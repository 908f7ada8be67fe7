"""The recording format ``.replay``, byte by byte (little-endian).

====== ===== ==============================================================================================
offset size  content
====== ===== ==============================================================================================
0      8     magic 89 4E 52 45 50 0D 0A 1A; not valid text, and detects line-ending conversion
8      4     format version, 1
12     4     number of frames T
16     4     size S of the metadata
20     4     size M of the level
24     4     size I of the inputs
28     8     trajectory hash
36     32    SHA-256 of tiles and records of the level
68     4     CRC-32 of everything from offset 76
72     4     CRC-32 of the bytes 0..71
76     S     metadata: a JSON object in UTF-8 with two keys: ``seed`` (an integer or null) and ``settings`` (an object)
76 + S M     level: map bytes (:mod:`nclone_env.level.formats.map_bytes`), zlib
...    I     inputs: T bytes 0..15, zlib
====== ===== ==============================================================================================

The trajectory hash is BLAKE2b with a digest of 8 bytes over 33 bytes per frame, the state after the frame: x, y,
xspeed, yspeed (float64) and state (int8). Level and inputs determine a run completely; a replay with the same hash
matches the original run bit for bit in every frame.

Readers reject any other version, wrong sizes and checksums, and trailing data.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
import struct
import unicodedata
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nclone_env._files import suffix_of, there, write_file
from nclone_env._table import outline
from nclone_env.errors import InputsError, LevelFormatError, RecordingError, checked, plain, shortened
from nclone_env.level import (
    LARGEST_MAP,
    AttractFile,
    Level,
    LevelSource,
    PeerFile,
    RawLevel,
    appearance,
    is_attract,
    is_peer,
    load_level,
    read_attract,
    read_bytes,
    read_map,
    read_peer,
    write_map,
)
from nclone_env.options import plain as plain_value
from nclone_env.replay.verification import Verdict, verdict, verify, verify_peer
from nclone_env.sim import Trajectory, check_inputs, simulate

MAGIC = b"\x89NREP\r\n\x1a"
VERSION = 1
RECORDING_SUFFIX = ".replay"
MAX_FRAMES = 1 << 20
"""Nearly five hours at 60 frames per second; an episode has at most 1,000,000."""

_HEADER = struct.Struct("<8s5I8s32sI")
_CHECKSUM = struct.Struct("<I")
_BODY = _HEADER.size + _CHECKSUM.size
_HASH = re.compile("[0-9a-f]{16}")
_PIECE = 1 << 14  # frames hashed at a time
_START = 1 << 16  # bytes that show whether a file is a recording: a level has at most so many before its inputs
_FRAME = np.dtype([("x", "<f8"), ("y", "<f8"), ("xspeed", "<f8"), ("yspeed", "<f8"), ("state", "i1")])


@dataclass(frozen=True, eq=False)
class Recording:
    """A level, the inputs of a run on it, and a hash of the resulting trajectory.

    Attributes:
        level: the level.
        inputs: (T,) uint8, read-only; one input byte 0..15 per frame.
        trajectory_hash: 16 hex digits.
        settings: configuration of the run; JSON values.
        seed: seed of the environment, if any.
    """

    level: RawLevel
    inputs: np.ndarray
    trajectory_hash: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None

    __repr__ = outline

    @classmethod
    @checked("level")
    def of(
        cls, level: LevelSource, inputs: Any, settings: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> Recording:
        """Simulate inputs on a level and return the recording.

        Args:
            level: the level, in any form that ``load_level`` accepts.
            inputs: one byte 0..15 per frame; bytes or any sequence of integers.
            settings: configuration of the run; JSON values.
            seed: seed of the environment, if any.

        Raises:
            InputsError: if an input is not an integer from 0 to 15.
        """
        raw = level if isinstance(level, RawLevel) else load_level(level).raw
        codes = check_inputs(inputs)
        codes.flags.writeable = False
        return cls(raw, codes, trajectory_hash(simulate(raw, codes)), dict(settings or {}), seed)

    def verify(self) -> Verdict:
        """Replay the recording and check that every frame matches."""
        run = simulate(self.level, self.inputs)
        got = trajectory_hash(run)
        agrees = got == self.trajectory_hash
        reason = "every frame matches" if agrees else f"expected trajectory hash {self.trajectory_hash}, got {got}"
        return verdict(agrees, reason, run, len(self.inputs))

    @checked()
    def save(self, path: str | Path) -> None:
        """Write the recording to a file.

        Raises:
            RecordingError: if the format cannot represent it.
            OSError: if the file cannot be written.
        """
        write_file(path, write_recording(self))


class WatchedRun(NamedTuple):
    """A run to watch.

    Attributes:
        level: the level.
        inputs: one byte 0..15 a frame; taken one after another as the frames are shown.
        label: what the bar says instead of the name of the level.
    """

    level: Level
    inputs: Iterable[int]
    label: str = ""


def shown_name(level: Level) -> str:
    """Return what a picture calls a level: title and name, or the name alone where the font lacks a letter."""
    title = level.raw.title
    has_title = title not in ("", level.name) and without_accents(title).isascii()
    return f"{title}   {level.name}" if has_title else level.name


def without_accents(text: str) -> str:
    """Return a text with its letters as the font of pictures has them."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def named_level(recording: Recording) -> Level:
    """Return the level of a recording by the name that its settings give it, else by its title."""
    level = Level.of(recording.level)
    return Level(recording.level, str(recording.settings.get("level", level.name)))


def trajectory_hash(run: Trajectory) -> str:
    """Return the hash of a trajectory, 16 hex digits."""
    digest = hashlib.blake2b(digest_size=8)
    for first in range(0, len(run), _PIECE):
        rows = np.empty(min(_PIECE, len(run) - first), dtype=_FRAME)
        for name in _FRAME.names or ():
            rows[name] = getattr(run, name)[first : first + _PIECE]
        digest.update(rows.tobytes())
    return digest.hexdigest()


def recording_name(number: int, level: str) -> str:
    """Return a file name for the recording of a level: its number among others, and what of its name files may have."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", level)[-60:].lstrip("-.")
    return f"{number:03d}-{name}{RECORDING_SUFFIX}"


def is_recording(data: bytes) -> bool:
    """Return whether the data start with the magic bytes of a recording."""
    return data.startswith(MAGIC)


@checked()
def load_recording(path: str | Path) -> Recording:
    """Read a recording from a file.

    Raises:
        UnknownLevelError: if the file does not exist.
        LevelFormatError: if the file cannot be read.
        RecordingError: if the file is malformed.
    """
    return read_recording(read_bytes(path), plain(path))


def load_any_recording(path: str | Path) -> Recording:
    """Read a recording from a ``.replay`` file, an attract file of the game, or a recording of nclone."""
    file = _load_either(path)
    return file if isinstance(file, Recording) else Recording.of(file.level, file.inputs)


def load_verified(path: str | Path) -> tuple[Recording | AttractFile | PeerFile, Verdict]:
    """Read a recording of any kind, and check that the simulator reproduces it."""
    file = _load_either(path)
    if isinstance(file, Recording):
        return file, file.verify()
    return file, verify_peer(file) if isinstance(file, PeerFile) else verify(file)


def is_any_recording(data: bytes) -> bool:
    """Return whether data begin like a recording that :func:`load_any_recording` reads; all data may be needed."""
    return is_recording(data) or is_attract(data) or is_peer(data)


def recording_files(path: Path) -> list[Path]:
    """Return a file, or the recordings in a folder by name; other files of the folder are not recordings."""
    if not there(path.is_dir):
        return [path]
    try:
        files = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
        return [file for file in files if _starts_as_recording(file)]
    except OSError as error:
        raise LevelFormatError(str(path), "folder", "a readable folder of recordings", str(error)) from error


def _starts_as_recording(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(_START)
    return is_recording(start) or is_attract(start) or suffix_of(path) == RECORDING_SUFFIX


def _load_either(path: str | Path) -> Recording | AttractFile | PeerFile:
    data, source = read_bytes(path), plain(path)
    if is_recording(data):
        return read_recording(data, source)
    if is_attract(data):
        return read_attract(data, source)
    if not is_peer(data):
        expected = "a recording: a .replay, an attract file or a recording of nclone"
        raise LevelFormatError(source, "file", expected, appearance(data))
    return read_peer(data, source)


def write_recording(recording: Recording) -> bytes:
    """Serialise a recording; the inverse of :func:`read_recording`, which refuses what is refused here.

    Raises:
        InputsError: if an input is not an integer from 0 to 15.
        RecordingError: if another part cannot be written.
    """
    source, inputs = recording.level.source, check_inputs(recording.inputs)
    if not isinstance(recording.trajectory_hash, str) or not _HASH.fullmatch(recording.trajectory_hash):
        raise RecordingError(source, "trajectory_hash", "16 hex digits", shortened(recording.trajectory_hash))
    try:
        level = write_map(recording.level)
    except LevelFormatError as error:
        raise RecordingError(source, error.where, error.expected, error.got) from error
    if len(inputs) > MAX_FRAMES:
        raise RecordingError(source, "inputs", f"at most {MAX_FRAMES} frames", str(len(inputs)))
    parts = (
        _metadata(recording),
        zlib.compress(level, 9),
        zlib.compress(inputs.tobytes(), 9),
    )
    body = b"".join(parts)
    header = _HEADER.pack(
        MAGIC,
        VERSION,
        len(inputs),
        *map(len, parts),
        bytes.fromhex(recording.trajectory_hash),
        bytes.fromhex(recording.level.digest),
        zlib.crc32(body),
    )
    return header + _CHECKSUM.pack(zlib.crc32(header)) + body


def read_recording(data: bytes, source: str = "<bytes>") -> Recording:
    """Parse and validate a recording without simulating it, see :meth:`Recording.verify`; errors name ``source``."""
    frames, sizes, run_hash, digest = _read_header(data, source)
    metadata_end = _BODY + sizes[0]
    level_end = metadata_end + sizes[1]
    settings, seed = _read_metadata(data[_BODY:metadata_end], source)
    level = _read_level(_inflate(data[metadata_end:level_end], LARGEST_MAP, metadata_end, source), metadata_end, source)
    if bytes.fromhex(level.digest) != digest:
        raise RecordingError(source, "offset 36", f"the digest of the level, {level.digest}", digest.hex())
    inputs = _read_inputs(_inflate(data[level_end:], frames, level_end, source), frames, level_end, source)
    return Recording(level, inputs, run_hash.hex(), settings, seed)


def _metadata(recording: Recording) -> bytes:
    try:
        seed = None if recording.seed is None else int(operator.index(recording.seed))
        metadata = {"seed": seed, "settings": plain_value(dict(recording.settings))}
        return json.dumps(metadata, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        where = "settings and seed"
        raise RecordingError(recording.level.source, where, "JSON values", str(error)) from error


def _read_header(data: bytes, source: str) -> tuple[int, tuple[int, int, int], bytes, bytes]:
    """Check sizes and checksums; return frames, sizes of the three parts, trajectory hash and digest of the level."""
    if not is_recording(data):
        raise RecordingError(source, "offset 0", f"the magic bytes of a recording, {MAGIC!r}", repr(data[: len(MAGIC)]))
    if len(data) < _BODY:
        raise RecordingError(source, f"offset {len(data)}", f"a header of {_BODY} bytes", "end of file")
    _, version, frames, metadata, level, inputs, run_hash, digest, body_sum = _HEADER.unpack_from(data)
    if version != VERSION:
        raise RecordingError(source, "offset 8", f"format version {VERSION}", str(version))
    if _CHECKSUM.unpack_from(data, _HEADER.size)[0] != zlib.crc32(data[: _HEADER.size]):
        raise RecordingError(
            source, f"offset {_HEADER.size}", "a valid header checksum", "a mismatch: the header is damaged"
        )
    size = _BODY + metadata + level + inputs
    if len(data) != size:
        raise RecordingError(source, f"offset {min(size, len(data))}", f"a file of {size} bytes", str(len(data)))
    if body_sum != zlib.crc32(data[_BODY:]):
        raise RecordingError(
            source, "offset 68", "a valid checksum of the contents", "a mismatch: the contents are damaged"
        )
    if frames > MAX_FRAMES:
        raise RecordingError(source, "offset 12", f"at most {MAX_FRAMES} frames", str(frames))
    return frames, (metadata, level, inputs), run_hash, digest


def _read_metadata(text: bytes, source: str) -> tuple[dict[str, Any], int | None]:
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordingError(source, f"offset {_BODY}", "JSON in UTF-8", str(error)[:80]) from error
    if isinstance(metadata, dict) and set(metadata) == {"seed", "settings"}:
        seed, settings = metadata["seed"], metadata["settings"]
        if (seed is None or type(seed) is int) and isinstance(settings, dict):
            return settings, seed
    raise RecordingError(source, f"offset {_BODY}", "an object with the keys seed and settings", repr(text[:40]))


def _read_level(data: bytes, offset: int, source: str) -> RawLevel:
    try:
        return read_map(data, source)
    except LevelFormatError as error:
        raise RecordingError(source, f"level at offset {offset}, {error.where}", error.expected, error.got) from error


def _read_inputs(data: bytes, frames: int, offset: int, source: str) -> np.ndarray:
    if len(data) != frames:
        raise RecordingError(source, f"inputs at offset {offset}", f"{frames} frames", str(len(data)))
    try:
        inputs = check_inputs(data)
    except InputsError as error:
        raise RecordingError(source, f"inputs at offset {offset}", "bytes 0..15", str(error)) from error
    inputs.flags.writeable = False
    return inputs


def _inflate(data: bytes, limit: int, offset: int, source: str) -> bytes:
    """Decompress at most ``limit`` bytes; larger data are rejected before memory is allocated for them."""
    engine = zlib.decompressobj()
    try:
        plain = engine.decompress(data, limit + 1)
    except zlib.error as error:
        raise RecordingError(source, f"offset {offset}", "zlib data", str(error)) from error
    if len(plain) > limit or not engine.eof or engine.unused_data:
        raise RecordingError(source, f"offset {offset}", f"one zlib stream of at most {limit} bytes", "other data")
    return plain
