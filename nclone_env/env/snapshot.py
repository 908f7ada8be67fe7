"""Snapshots of one environment, byte by byte (numbers are little-endian).

====== ===== ==============================================================================================
offset size  content
====== ===== ==============================================================================================
0      8     89 4E 53 54 41 0D 0A 1A: not text, and damaged by any conversion of line ends
8      4     format version, 1
12     4     size N of the contents
16     32    SHA-256 of the level set: names and digests of its levels, layout of the records
48     N     contents: the environment's row of every array of the state of its world, its ``EPISODE``,
             its ``RESULT``
48 + N 4     CRC-32 of everything before
====== ===== ==============================================================================================

The contents determine an environment's future, given its configuration and the actions, and include its last result.
The checksum detects damage. Of forged numbers, those that compiled code could not follow are refused
(``sim.plausible``); others make an impossible state, but a harmless one.
"""

import hashlib
import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from nclone_env.env.compiled.records import OUTCOMES
from nclone_env.errors import SnapshotError
from nclone_env.level import LevelSet
from nclone_env.sim import world_fault, worlds_of

MAGIC = b"\x89NSTA\r\n\x1a"
VERSION = 1

_HEADER = struct.Struct("<8sII32s")
_CHECKSUM = struct.Struct("<I")
_SOURCE = "state"
_MOST_STEPS = 1 << 30
_REWARDS = (
    ("episodes", "episode_return"),
    ("episodes", "potential"),
    ("results", "reward"),
    ("results", "episode_return"),
)

Rows = dict[str, np.ndarray]
"""Arrays by name; here the rows of one environment, (1, ...)."""


def level_set_digest(levels: LevelSet, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the SHA-256 of the levels and of the layout of the records of an environment.

    The number of records follows from the levels; that of a trail, from the time limit too.
    """
    digest = hashlib.sha256()
    for level in levels.levels:
        digest.update(f"level {level.name!r} {level.raw.digest}\n".encode())
    for name, array in arrays.items():
        digest.update(f"array {name} {array.dtype.descr}\n".encode())
    return digest.digest()


def write_snapshot(digest: bytes, rows: Rows) -> bytes:
    """Return the snapshot of an environment from its rows, in their order; ``digest`` is of the level set."""
    contents = b"".join(row.tobytes() for row in rows.values())
    data = _HEADER.pack(MAGIC, VERSION, len(contents), digest) + contents
    return data + _CHECKSUM.pack(zlib.crc32(data))


def read_snapshot(data: Any, digest: bytes, arrays: Mapping[str, np.ndarray], levels: LevelSet) -> Rows:
    """Return the rows of an environment by array name, (1, ...) each, if it has the level set of the digest."""
    contents = memoryview(_checked(data, digest, levels))[_HEADER.size : -_CHECKSUM.size]
    size = sum(row_bytes(array) for array in arrays.values())
    if len(contents) != size:
        expected = f"contents of {size} bytes for these levels and this max_frames"
        raise SnapshotError(_SOURCE, "offset 12", expected, f"{len(contents)}; use the same max_frames")
    rows: Rows = {}
    place = 0
    for name, array in arrays.items():
        end = place + row_bytes(array)
        rows[name] = np.frombuffer(contents[place:end], array.dtype).reshape(1, *array.shape[1:])
        place = end
    _check_numbers(rows, levels)
    return rows


def place_rows(rows: Rows, arrays: Mapping[str, np.ndarray], index: int) -> None:
    """Write the rows of a snapshot to an environment."""
    for name, row in rows.items():
        arrays[name][index : index + 1] = row


def row_bytes(array: np.ndarray) -> int:
    """Return the bytes of one row of an array."""
    return array.nbytes // len(array)


def _checked(data: Any, digest: bytes, levels: LevelSet) -> bytes:
    if not isinstance(data, (bytes, bytearray)):
        raise SnapshotError(_SOURCE, "type", "the bytes that get_state() returned", type(data).__name__)
    data = bytes(data)
    if data[: len(MAGIC)] != MAGIC:
        raise SnapshotError(_SOURCE, "offset 0", f"a snapshot, which begins with {MAGIC!r}", repr(data[: len(MAGIC)]))
    least = _HEADER.size + _CHECKSUM.size
    if len(data) < least:
        raise SnapshotError(_SOURCE, f"offset {len(data)}", f"at least {least} bytes", "the end")
    _, version, size, got = _HEADER.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(_SOURCE, "offset 8", f"format version {VERSION}", str(version))
    if len(data) != least + size:
        raise SnapshotError(_SOURCE, "offset 12", f"{least + size} bytes as the header says", str(len(data)))
    if _CHECKSUM.unpack_from(data, _HEADER.size + size)[0] != zlib.crc32(data[: -_CHECKSUM.size]):
        raise SnapshotError(_SOURCE, f"offset {_HEADER.size + size}", "the checksum", "another: it was damaged")
    if got != digest:
        mine = f"the level set of this environment ({_listed(levels)}; digest {digest.hex()[:16]})"
        raise SnapshotError(_SOURCE, "offset 16", mine, f"another, with digest {got.hex()[:16]}; use the same levels")
    return data


def _listed(levels: LevelSet) -> str:
    names = levels.names
    return f"{names[0]!r}" if len(names) == 1 else f"{len(names)} levels from {names[0]!r} to {names[-1]!r}"


def _check_numbers(rows: Rows, levels: LevelSet) -> None:
    """Reject numbers that kernels, which use them unchecked, could not follow."""
    last = len(levels.levels) - 1
    ranges = (
        ("ninjas", "level", 0, last),
        ("episodes", "next_level", -1, last),
        ("episodes", "own_level", -1, last),
        ("episodes", "steps", 0, _MOST_STEPS),
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
    fault = world_fault(worlds_of(rows), levels)
    if fault is not None:
        raise SnapshotError(_SOURCE, *fault)
