"""Snapshots of one environment, byte by byte (numbers are little-endian).

====== ===== ==============================================================================================
offset size  content
====== ===== ==============================================================================================
0      8     89 4E 53 54 41 0D 0A 1A: not text, and damaged by any conversion of line ends
8      4     format version, 2
12     4     size N of the contents
16     32    SHA-256 of the level set: names and digests of its levels, layout of the records
48     N     contents: its world, its ``EPISODE``, its ``RESULT``
48 + N 4     CRC-32 of everything before
====== ===== ==============================================================================================

The parts of the world are as large as its level needs (``sim.World``). In version 1 they are as large as any level of
the set needs; the last positions of the trail are those of the last frames, the one at the end of frame f in row f
modulo the number of rows.

The contents determine an environment's future, given its configuration and the actions, and include its last result.
The checksum detects damage. Of forged numbers, those that compiled code could not follow are refused
(``sim.plausible``); others make an impossible state, but a harmless one.
"""

import hashlib
import math
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from nclone_env.env.compiled.records import EPISODE, OUTCOMES, RESULT
from nclone_env.errors import SnapshotError
from nclone_env.game import NUM_ACTIONS
from nclone_env.level import LevelSet
from nclone_env.sim import MOVER, NINJA_RECORD, World, checked_world, read_world, trail_length

MAGIC = b"\x89NSTA\r\n\x1a"
VERSION = 2

_HEADER = struct.Struct("<8sII32s")
_CHECKSUM = struct.Struct("<I")
_SOURCE = "state"
_MOST_STEPS = 1 << 30
_FORMER_PADDING = ("action",)
_REWARDS = (
    ("episodes", "episode_return"),
    ("episodes", "potential"),
    ("results", "reward"),
    ("results", "episode_return"),
)
_LAYOUT = {
    "ninjas": NINJA_RECORD,
    "entity_states": np.dtype("u1"),
    "movers": MOVER,
    "trail": np.dtype("f8"),
    "episodes": EPISODE,
    "results": RESULT,
}


class Snapshot(NamedTuple):
    """The contents of a snapshot, as copies."""

    world: World
    episode: np.ndarray
    """(1,) ``EPISODE``."""
    result: np.ndarray
    """(1,) ``RESULT``."""


def level_set_digest(levels: LevelSet) -> bytes:
    """Return the SHA-256 of the levels and of the layout of the records of an environment."""
    digest = hashlib.sha256()
    for level in levels.levels:
        digest.update(f"level {level.name!r} {level.raw.digest}\n".encode())
    for name, dtype in _LAYOUT.items():
        digest.update(f"array {name} {_described(dtype)}\n".encode())
    return digest.digest()


def _described(dtype: np.dtype) -> Any:
    """Return the layout of a record as it was before bytes of padding became fields, which are 0 in older snapshots."""
    fields = dtype.fields
    if fields is None:
        return dtype.descr
    names = [name for name in fields if name not in _FORMER_PADDING]
    formats, offsets = [fields[name][0] for name in names], [fields[name][1] for name in names]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}).descr


def write_snapshot(digest: bytes, world: World, episode: np.ndarray, result: np.ndarray) -> bytes:
    """Return the snapshot of an environment; ``digest`` is of the level set."""
    contents = world.tobytes() + episode.tobytes() + result.tobytes()
    data = _HEADER.pack(MAGIC, VERSION, len(contents), digest) + contents
    return data + _CHECKSUM.pack(zlib.crc32(data))


def read_snapshot(data: Any, digest: bytes, levels: LevelSet, most_rows: int) -> Snapshot:
    """Return the contents of a snapshot of the level set of the digest, whose trail has at most so many rows."""
    version, contents = _checked(data, digest, levels)
    end = len(contents) - EPISODE.itemsize - RESULT.itemsize
    if end < NINJA_RECORD.itemsize:
        least = len(contents) - end + NINJA_RECORD.itemsize
        raise SnapshotError(_SOURCE, "offset 12", f"contents of at least {least} bytes", f"{len(contents)}")
    episode = np.frombuffer(contents, EPISODE, 1, end).copy()
    result = np.frombuffer(contents, RESULT, 1, end + EPISODE.itemsize).copy()
    read = _read_first if version == 1 else read_world
    snapshot = Snapshot(read(contents[:end], levels, most_rows, _SOURCE), episode, result)
    _check_numbers(snapshot, levels)
    return snapshot


def _read_first(data: Any, levels: LevelSet, most_rows: int, source: str) -> World:
    """Return the world of a snapshot of version 1; see ``sim.read_world``."""
    counts = (1, -(-max(levels.max_entities, 1) // 8) * 8, max(levels.max_movers, 1), 2 * max(most_rows, 1))
    dtypes = tuple(_LAYOUT.values())[: len(counts)]
    ends = np.cumsum([count * dtype.itemsize for count, dtype in zip(counts, dtypes, strict=True)]).tolist()
    if len(data) != ends[-1]:
        size = ends[-1] + EPISODE.itemsize + RESULT.itemsize
        expected = f"contents of {size} bytes for these levels and this max_frames"
        raise SnapshotError(source, "offset 12", expected, f"{len(data) + size - ends[-1]}; use the same max_frames")
    parts = zip(dtypes, counts, [0, *ends], strict=False)
    ninjas, states, movers, trail = (np.frombuffer(data, *part).copy() for part in parts)
    level = int(ninjas[0]["level"])
    if not 0 <= level < len(levels.levels):
        raise SnapshotError(source, "ninjas.level", f"a level from 0 to {len(levels.levels) - 1}", str(level))
    header, frame = levels.arrays.header[level], int(ninjas[0]["frame"])
    states, movers = states[: header["entity_count"]], movers[: header["mover_count"]]
    rows = min(trail_length(levels, ninjas[0], states, movers), most_rows)
    path = trail.reshape(-1, 2)[np.arange(frame - rows, frame) % max(most_rows, 1)]
    return checked_world(World(ninjas[0], states, movers, path), levels, source)


def _checked(data: Any, digest: bytes, levels: LevelSet) -> tuple[int, bytes]:
    """Return the version and the contents of a snapshot."""
    if not isinstance(data, (bytes, bytearray)):
        raise SnapshotError(_SOURCE, "type", "the bytes that get_state() returned", type(data).__name__)
    data = bytes(data)
    if data[: len(MAGIC)] != MAGIC:
        raise SnapshotError(_SOURCE, "offset 0", f"a snapshot, which begins with {MAGIC!r}", repr(data[: len(MAGIC)]))
    least = _HEADER.size + _CHECKSUM.size
    if len(data) < least:
        raise SnapshotError(_SOURCE, f"offset {len(data)}", f"at least {least} bytes", "the end")
    _, version, size, got = _HEADER.unpack_from(data)
    if version not in (1, VERSION):
        raise SnapshotError(_SOURCE, "offset 8", f"format version {VERSION} or less", str(version))
    if len(data) != least + size:
        raise SnapshotError(_SOURCE, "offset 12", f"{least + size} bytes as the header says", str(len(data)))
    if _CHECKSUM.unpack_from(data, _HEADER.size + size)[0] != zlib.crc32(data[: -_CHECKSUM.size]):
        raise SnapshotError(_SOURCE, f"offset {_HEADER.size + size}", "the checksum", "another: it was damaged")
    if got != digest:
        first, *others = levels.names
        named = f"{len(levels.names)} levels from {first!r} to {others[-1]!r}" if others else repr(first)
        mine = f"the level set of this environment ({named}; digest {digest.hex()[:16]})"
        raise SnapshotError(_SOURCE, "offset 16", mine, f"another, with digest {got.hex()[:16]}; use the same levels")
    return version, data[_HEADER.size : -_CHECKSUM.size]


def _check_numbers(snapshot: Snapshot, levels: LevelSet) -> None:
    """Reject numbers that kernels, which use them unchecked, could not follow."""
    last, rows = len(levels.levels) - 1, {"episodes": snapshot.episode, "results": snapshot.result}
    ranges = (
        ("episodes", "next_level", -1, last),
        ("episodes", "own_level", -1, last),
        ("episodes", "steps", 0, _MOST_STEPS),
        ("episodes", "action", 0, NUM_ACTIONS - 1),
        ("results", "level", 0, last),
        ("results", "outcome", 0, len(OUTCOMES) - 1),
    )
    for name, field, least, most in ranges:
        value = rows[name][field].item()
        if not least <= value <= most:
            what = "a level" if "level" in field else "a number"
            raise SnapshotError(_SOURCE, f"{name}.{field}", f"{what} from {least} to {most}", str(value))
    for name, field in _REWARDS:  # of any size, as reward functions may return
        value = rows[name][field].item()
        if not math.isfinite(value):
            raise SnapshotError(_SOURCE, f"{name}.{field}", "a finite number", str(value))
