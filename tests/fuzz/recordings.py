"""Recordings: parts exchanged, damaged and packed again, with sizes, digest and checksums right or wrong.

Those of the package nclone have lengths alone.
"""

from __future__ import annotations

import json
import random
import struct
import zlib
from contextlib import suppress
from functools import lru_cache

from nclone_env.errors import LevelFormatError, RecordingError
from nclone_env.level.formats.attract import read_peer
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.load import load_level
from nclone_env.level.solutions import known_solutions
from nclone_env.replay.recording import Recording, read_recording, write_recording
from nclone_env.replay.verification import verify_peer

from .accidents import EDGES, damaged
from .archives import json_of, with_other_values
from .levels import changed, map_of, raw_levels, use
from .target import SOURCE, Target

_HEADER = struct.Struct("<8s5I8s32sI")
_MOST_FRAMES = 2000  # are played


@lru_cache(maxsize=1)
def recordings() -> list[bytes]:
    """Return a recording of some inputs on each level."""
    inputs = random.Random(0).choices(range(8), k=90)
    return [write_recording(Recording.of(raw, inputs, {"level": "a", "n": 4}, 7)) for raw in raw_levels()]


def recording(rng: random.Random) -> bytes:
    base = rng.choice(recordings())
    if rng.random() < 0.15:
        return damaged(rng, base)
    fields = list(_HEADER.unpack_from(base))
    start, parts = _HEADER.size + 4, []
    for size in fields[3:6]:
        parts.append(base[start : start + size])
        start += size
    parts = [rng.choice(_CHANGES[place])(rng, part) for place, part in enumerate(parts)]
    fields[3:6] = map(len, parts)
    fields[2] = _length(parts[2]) if rng.random() < 0.9 else rng.choice((0, 1, 2**20, 2**24, 2**32 - 1))
    fields[7] = _digest(parts[1]) if rng.random() < 0.9 else rng.randbytes(32)
    if rng.random() < 0.1:
        place = rng.randrange(1, 6)
        fields[place] = rng.choice((*EDGES, 2**24, 2**31, 2**32 - 1))
    return _sealed(fields, b"".join(parts))


def _sealed(fields: list, body: bytes) -> bytes:
    """Return a file whose checksums are right."""
    fields[8] = zlib.crc32(body)
    header = _HEADER.pack(*fields)
    return header + zlib.crc32(header).to_bytes(4, "little") + body


@lru_cache(maxsize=8)
def _length(part: bytes) -> int:
    try:
        return len(zlib.decompress(part))
    except zlib.error:
        return 0


@lru_cache(maxsize=8)
def _digest(part: bytes) -> bytes:
    try:
        return bytes.fromhex(read_map(zlib.decompressobj().decompress(part, 10**6)).digest)
    except (zlib.error, LevelFormatError):
        return bytes(32)


def _same(rng: random.Random, part: bytes) -> bytes:
    return part


def _bomb(rng: random.Random, part: bytes) -> bytes:
    return _zeros(rng.choice((10**5, 10**5, 10**5, 10**7, 2**20, 2**24, 10**8)) if rng.random() < 0.1 else 5000)


@lru_cache(maxsize=8)
def _zeros(size: int) -> bytes:
    return zlib.compress(bytes(size), 9)


def _packed_damage(rng: random.Random, part: bytes) -> bytes:
    return zlib.compress(damaged(rng, zlib.decompress(part)))


def _other_level(rng: random.Random, part: bytes) -> bytes:
    raw = rng.choice(raw_levels())
    return zlib.compress(map_of(raw, *changed(rng, raw)))


def _other_metadata(rng: random.Random, part: bytes) -> bytes:
    return json_of(rng, with_other_values(rng, json.loads(part)))


def _odd_metadata(rng: random.Random, part: bytes) -> bytes:
    return rng.choice((b"[" * 10**5, b'{"a":' * 10**5, b"1" * 5000, b"NaN", b"\xff", b"null", b"1e999"))


_CHANGES = (
    (_same, _same, damaged, _other_metadata, _odd_metadata),
    (_same, _same, damaged, _packed_damage, _other_level, _other_level, _bomb),
    (_same, _same, damaged, _packed_damage, _bomb),
)


def read(data: bytes) -> None:
    found = read_recording(data, SOURCE)
    use(found.level)
    if len(found.inputs) <= _MOST_FRAMES:
        found.verify()


@lru_cache(maxsize=1)
def peers() -> list[bytes]:
    """Return recordings of the package nclone: with a version, and as older files without one."""
    found = []
    for name in ("first-steps/01-walk", "jumps/01-stairs"):
        level, inputs = write_map(load_level(name).raw), known_solutions()[name]
        found.append(struct.pack("<3I?", 1, len(level), len(inputs), True) + level + inputs)
        found.append(struct.pack("<2I", len(level), len(inputs)) + level + inputs)
    return found


def peer(rng: random.Random) -> bytes:
    base = rng.choice(peers())
    if rng.random() < 0.2:
        return damaged(rng, base)
    raw = rng.choice(raw_levels())
    level = map_of(raw, *changed(rng, raw))
    inputs = bytes(rng.choices(range(16 if rng.random() < 0.1 else 8), k=rng.choice((0, 1, 90, 600))))
    if rng.random() < 0.3:
        level = damaged(rng, level)
    lengths = [len(level), len(inputs)]
    if rng.random() < 0.1:
        lengths[rng.randrange(2)] = rng.choice((*EDGES, 1230, 1235, 2**24, 2**31, 2**32 - 1))
    if rng.random() < 0.5:
        return struct.pack("<2I", *lengths) + level + inputs
    return struct.pack("<3IB", 1, *lengths, rng.choice((0, 1, 1, 255))) + level + inputs


def read_peers(data: bytes) -> None:
    found = read_peer(data, SOURCE)
    use(found.level)
    if len(found.inputs) <= _MOST_FRAMES:
        verdict = verify_peer(found)
        with suppress(RecordingError):  # loads, but cannot be written
            recording = read_recording(write_recording(Recording.of(found.level, found.inputs, {}, 0)), SOURCE)
            assert recording.verify().end == verdict.end


TARGETS = (
    Target("recording", recordings, recording, read, (RecordingError,)),
    Target("peer", peers, peer, read_peers, (LevelFormatError,)),
)
