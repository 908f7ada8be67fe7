"""Files of compiled levels, damaged and forged: each is mapped, or removed and made again."""

from __future__ import annotations

import json
import random
import struct
import tempfile
import zlib
from functools import lru_cache
from pathlib import Path
from unittest.mock import patch

import numpy as np

from nclone_env.errors import FormatError
from nclone_env.level import array_cache
from nclone_env.level.level_set import ARRAYS_LAYOUT, pack
from nclone_env.level.load import load_level

from .accidents import damaged
from .archives import json_of, with_other_values
from .target import SOURCE, Target

_HEADER = struct.Struct("<II24x32s")


class _MadeError(FormatError):
    """The file was not used: its arrays are made again."""


@lru_cache(maxsize=1)
def _arrays() -> array_cache.Arrays:
    packed = pack([load_level("hazards/02-minefield")], with_distances=True)
    return {**packed.arrays._asdict(), "fields": packed.fields}


def _ask(folder: str, make) -> array_cache.Arrays:
    with patch.object(array_cache, "folder", lambda: Path(folder)):
        return array_cache.cached_arrays("levels", "content", ARRAYS_LAYOUT, make)


@lru_cache(maxsize=1)
def _file() -> tuple[str, bytes]:
    """Return the name and the contents of the file."""
    with tempfile.TemporaryDirectory() as folder:
        _ask(folder, _arrays)
        (path,) = Path(folder).iterdir()
        return path.name, path.read_bytes()


def files() -> list[bytes]:
    return [_file()[1]]


def file(rng: random.Random) -> bytes:
    data, share = _file()[1], rng.random()
    if share < 0.3:
        return damaged(rng, data)
    text, rest = _parts(data)
    if share < 0.4:
        text = damaged(rng, text)
    elif share < 0.75:
        text = json_of(rng, with_other_values(rng, json.loads(text)))
    else:
        place = rng.randrange(len(rest) - 4)
        rest = rest[:place] + rng.randbytes(4) + rest[place + 4 :]
    forged = sealed(data, text, rest)
    if rng.random() < 0.1:
        place, number = rng.choice((0, 4, 8)), rng.choice((0, 1, 2, 63, 2**31, 2**32 - 1))
        return forged[:place] + struct.pack("<I", number) + forged[place + 4 :]
    return forged


def sealed(data: bytes, text: bytes, rest: bytes | None = None) -> bytes:
    """Return a file with another description, and other arrays; sizes and checksum are right."""
    rest = _parts(data)[1] if rest is None else rest
    header = _HEADER.pack(0, len(text), _HEADER.unpack_from(data)[2])
    checked = header[4:] + text + rest
    return struct.pack("<I", zlib.crc32(checked)) + checked


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """Return the description of a file, and what follows it."""
    end = _HEADER.size + _HEADER.unpack_from(data)[1]
    return data[_HEADER.size : end], data[end:]


def read(data: bytes) -> None:
    def refuse():
        raise _MadeError(SOURCE, "file", "a file that is used", "one that is made again")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _file()[0]
        path.write_bytes(data)
        arrays = _ask(folder, refuse)
        for name, dtype in ARRAYS_LAYOUT.items():
            assert arrays[name].dtype == dtype
            assert not arrays[name].flags.writeable
            np.ascontiguousarray(arrays[name]).tobytes()


TARGETS = (Target("library", files, file, read, (_MadeError,)),)
