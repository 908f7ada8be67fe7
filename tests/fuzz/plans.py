"""Saved searches, damaged and forged, that go on."""

from __future__ import annotations

import io
import json
import random
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env.errors import FormatError
from nclone_env.level.load import load_level
from nclone_env.plan.saved import load_search
from nclone_env.plan.solver import MEMORY, solve

from .accidents import damaged
from .archives import archive_of, json_of, members_of, plain_archive, with_other_members, with_other_values
from .target import SOURCE, Target

_LEVEL = "first-steps/01-walk"
_FRAMES = 4000
_TEXT = "text.npy"
_ARGUMENTS: dict[str, Any] = {"seed": 1, "max_frames": 300, "hold": 2, "memory": MEMORY // 100}


@lru_cache(maxsize=1)
def searches() -> list[bytes]:
    """Return the files of two searches: one without a solution yet, one that has found one."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for frames in (200, _FRAMES):
            path = Path(folder) / f"{frames}.search.npz"
            solve(load_level(_LEVEL), frames=frames, resume=path, **_ARGUMENTS)
            found.append(path.read_bytes())
    return found


def search(rng: random.Random) -> bytes:
    data = rng.choice(searches())
    share = rng.random()
    if share < 0.2:
        return damaged(rng, data)
    if share < 0.5:
        return with_other_members(rng, data, header=80)
    if share < 0.8:
        return with_text(data, lambda text: with_other_values(rng, text), lambda text: json_of(rng, text))
    members = members_of(data)
    name = rng.choice([name for name in members if name != _TEXT])
    members[name] = saved_array(_other_array(rng, np.load(io.BytesIO(members[name]))))
    return archive_of(rng, members)


def with_text(data: bytes, change: Callable[[Any], Any], write: Callable[[Any], bytes] | None = None) -> bytes:
    """Return the file of a search with another text."""
    members = members_of(data)
    text = change(json.loads(np.load(io.BytesIO(members[_TEXT])).tobytes()))
    members[_TEXT] = saved_array(np.frombuffer(write(text) if write else json.dumps(text).encode(), np.uint8))
    return plain_archive(members)


def _other_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Return an array of another shape or dtype."""
    flat = array.reshape(-1)
    return rng.choice((flat, flat[:1], flat[:0], array[np.newaxis], array.repeat(2), np.zeros(3), np.array("x")))


def saved_array(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def go_on(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{SOURCE}.search.npz"
        path.write_bytes(data)
        level = load_level(_LEVEL)
        load_search(path, level.raw.digest, {"objective": "time", **_ARGUMENTS})
        solve(level, frames=_FRAMES + 1000, resume=path, **_ARGUMENTS)


TARGETS = (Target("search", searches, search, go_on, (FormatError,)),)
