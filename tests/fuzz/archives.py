"""Zip archives and the JSON in files: members dropped, renamed, repeated, packed, damaged and exchanged."""

from __future__ import annotations

import io
import json
import random
import warnings
import zipfile
from typing import Any

from .accidents import VALUES, damaged, drawn, with_other_parts

Members = dict[str, bytes]
_NAMES = ("", "x", "../x", "/x", "data.pkl", "0 x.npy", "text.npy", "é", "a" * 300)


def members_of(data: bytes) -> Members:
    """Return the contents of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(rng: random.Random, members: Members) -> bytes:
    """Return an archive of some members, some of them with other names and packed in other ways."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")  # names that are there twice
        for name, content in members.items():
            method = (
                rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)) if rng.random() < 0.02 else zipfile.ZIP_STORED
            )
            info = zipfile.ZipInfo(rng.choice(_NAMES) if rng.random() < 0.01 else name)
            archive.writestr(info, content, method)
            if rng.random() < 0.005:
                archive.writestr(zipfile.ZipInfo(name), rng.randbytes(30), method)
    return stream.getvalue()


def plain_archive(members: Members) -> bytes:
    """Return an archive of some members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # without the time of day
    return stream.getvalue()


def with_other_members(rng: random.Random, data: bytes, header: int | None = None) -> bytes:
    """Return an archive of which one to three members are damaged, missing or exchanged.

    Args:
        rng: random numbers.
        data: the archive.
        header: bytes of a member that may be damaged, as the rest is taken on trust; None: all.
    """
    members = members_of(data)
    for _ in range(rng.randint(1, 3)):
        name, other = rng.choice(list(members)), rng.choice(list(members))
        action = rng.random()
        if action < 0.1 and len(members) > 1:
            del members[name]
        elif action < 0.2 and header is None:
            members[name] = members[other]
        elif action < 0.25:
            members[name] += bytes(rng.choice((1, 64, 10**6)))
        else:
            start, end = members[name][:header], members[name][header:] if header else b""
            members[name] = damaged(rng, start, (b"\x80\x02", b"cos\nsystem\n", b"}q\x01", b"K\xff", b"<f8")) + end
    return archive_of(rng, members)


def with_other_values(rng: random.Random, value: Any) -> Any:
    """Return nested dicts and lists with one to three other parts."""
    for _ in range(rng.randint(1, 3)):
        value = with_other_parts(rng, value, lambda rng: drawn(rng, VALUES))
    return value


def json_of(rng: random.Random, value: Any) -> bytes:
    """Return JSON; what it cannot hold becomes text."""
    text = json.dumps(value, default=str, skipkeys=True)
    if rng.random() < 0.03:
        text = text.replace("1", rng.choice(("1" * 5000, "NaN", "1e999", "[" * 10**5, "-0")), 1)
    return text.encode()
