"""Certificates of proofs, and saved searches, damaged and forged; certificates are checked, searches go on."""

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
from nclone_env.level.build import build_level
from nclone_env.level.level import Level
from nclone_env.level.load import load_level
from nclone_env.level.solutions import format_inputs, known_solutions, parse_inputs
from nclone_env.plan.saved import load_search
from nclone_env.plan.solver import MEMORY, solve
from nclone_env.prove.bounds import Bound
from nclone_env.prove.check import check_certificate
from nclone_env.prove.proof import Proof, prove, read_certificate
from tests.prove.test_proof import BY_BOUND, BY_SEARCH

from .accidents import damaged
from .archives import archive_of, json_of, members_of, plain_archive, with_other_members, with_other_values
from .target import SOURCE, Target

_FRAMES = 4000
_TEXT = "text.npy"
_ARGUMENTS: dict[str, Any] = {"seed": 1, "max_frames": 300, "hold": 2, "memory": MEMORY // 100}


@lru_cache(maxsize=1)
def _levels() -> tuple[Level, Level]:
    """Return a level that is solved in few frames, and one whose solution takes longer."""
    return build_level("exit 23 62", "exit_switch 22 62", tiles={(1, 1): 1}, spawn=(20, 60)), load_level(
        "first-steps/01-walk"
    )


@lru_cache(maxsize=1)
def certificates() -> list[bytes]:
    """Return a certificate with a search, and one with a bound, which does not hold."""
    short, walk = _levels()
    inputs = np.frombuffer(known_solutions()[walk.name], np.uint8)
    found = Proof(walk, inputs, Bound(len(inputs), "hall", 1e-2), "bound", ((1, 2), (8, 2**64 - 1)))
    return [prove(short, frames=100_000, memory=50_000_000).certificate(), found.certificate()]


def certificate(rng: random.Random) -> bytes:
    data = rng.choice(certificates())
    if rng.random() < 0.3:
        return damaged(rng, data, (b"{", b"[", b'"', b"1e999", b"NaN", b"null", b",", b"99999R", b"\xff"))
    return json_of(rng, with_other_values(rng, json.loads(data)))


def check(data: bytes) -> None:
    found = read_certificate(data, SOURCE)
    for level in _levels():
        check_certificate(found, level)


# Claims: certificates that are well-formed, and most of them false


@lru_cache(maxsize=1)
def _proved() -> dict[str, tuple[Level, Proof]]:
    """Return small levels with the proofs of their fastest solutions, by digest: three by a bound, one by a search."""
    made = (BY_BOUND["run 32"], BY_BOUND["fall 101"], BY_BOUND["fall 113"], BY_SEARCH["step"])
    return {level.raw.digest: (level, prove(level, frames=30_000, memory=60_000_000)) for level in made}


@lru_cache(maxsize=1)
def claims() -> list[bytes]:
    """Return their certificates."""
    return [proof.certificate() for _, proof in _proved().values()]


def claim(rng: random.Random) -> bytes:
    """Return a certificate after one to three changes of what it claims, or of single bytes."""
    data = rng.choice(claims())
    if rng.random() < 0.4:
        return damaged(rng, data, (b"1", b"9", b"R", b"J", b"."), most=1)
    fields = json.loads(data)
    for _ in range(rng.randint(1, 3)):
        _CLAIMS[rng.randrange(len(_CLAIMS))](rng, fields)
    return json.dumps(fields).encode()


def _other_inputs(rng: random.Random, fields: dict[str, Any]) -> None:
    """Wait, leave out or hold some frames; the number of frames goes along."""
    inputs = bytearray(parse_inputs(fields["inputs"], "inputs"))
    place, length = rng.randrange(len(inputs) + 1), rng.choice((1, 1, 2, 5, 20))
    if rng.random() < 0.5:
        inputs[place:place] = bytes([rng.choice((0, 1, 2, 4))]) * length
    elif rng.random() < 0.5 and len(inputs) > length:
        del inputs[place : place + length]
    else:
        inputs[place : place + length] = bytes(rng.choices((0, 1, 2, 3, 4, 5), k=min(length, len(inputs) - place)))
    fields["inputs"], fields["frames"] = format_inputs(bytes(inputs)), len(inputs)


def _other_frames(rng: random.Random, fields: dict[str, Any]) -> None:
    fields["frames"] += rng.choice((-3, -1, 1, 2, 50))


def _other_method(rng: random.Random, fields: dict[str, Any]) -> None:
    fields["method"] = rng.choice(("bound", "search"))


def _other_bound(rng: random.Random, fields: dict[str, Any]) -> None:
    number = fields["frames"] + rng.choice((-1, 0, 0, 1))
    fields["bound"] = {
        "frames": number,
        "rule": rng.choice(("hall", "any")),
        "width": rng.choice((1e-2, 3e-3, 0.9, 0.5)),
    }


def _other_level(rng: random.Random, fields: dict[str, Any]) -> None:
    fields["digest"] = rng.choice(list(_proved()))


def _other_layers(rng: random.Random, fields: dict[str, Any]) -> None:
    fields["layers"] = fields["layers"][: rng.randrange(3)]


_CLAIMS = (_other_inputs, _other_inputs, _other_frames, _other_method, _other_bound, _other_level, _other_layers)


def judge(data: bytes) -> None:
    """Check a claim on its level, and on another one; what holds must be true."""
    found = read_certificate(data, SOURCE)
    known = _proved()
    level, proof = known.get(found.digest) or next(iter(known.values()))
    if check_certificate(found, level, memory=30_000_000).holds:
        assert (found.digest, found.frames) == (level.raw.digest, proof.frames), "a false claim holds"


@lru_cache(maxsize=1)
def searches() -> list[bytes]:
    """Return the files of two searches: one without a solution yet, one that has found one."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for frames in (200, _FRAMES):
            path = Path(folder) / f"{frames}.search.npz"
            solve(_levels()[1], frames=frames, resume=path, **_ARGUMENTS)
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
        level = _levels()[1]
        load_search(path, level, {"objective": "time", **_ARGUMENTS})
        solve(level, frames=_FRAMES + 1000, resume=path, **_ARGUMENTS)


TARGETS = (
    Target("certificate", certificates, certificate, check, (FormatError,)),
    Target("claim", claims, claim, judge, (FormatError,)),
    Target("search", searches, search, go_on, (FormatError,)),
)
