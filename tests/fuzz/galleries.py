"""Generated packs and inputs of galleries, damaged and forged: collected, and written as pages."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path

import nclone_env.gallery.entries as entries
from nclone_env.errors import FormatError, NcloneError
from nclone_env.gallery.site import index_page, level_page
from nclone_env.gallery.tracks import Tracks, shown_frames
from nclone_env.generate.levels import CollectionFiles
from nclone_env.level.formats.pack_text import write_pack
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.level.solutions import known_solutions
from nclone_env.replay.recording import Recording, write_recording

from .accidents import damaged
from .archives import json_of, with_other_values
from .levels import attract_of, pack_file, raw_levels
from .recordings import peer, peers, recording, recordings
from .target import SOURCE, Target

_NAMES = ("first-steps/01-walk", "jumps/01-stairs")
_PACK, _TABLE, _RECORDING = range(3)
_HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</title><script>", "javascript:alert(1)", "&#x3c;b",
    "\x1b[31m", "\n", "\u202e", "\ud800", "../../x", "'onload='x", "x" * 5000,
)  # fmt: skip
Parts = tuple[bytes, bytes, tuple[tuple[str, bytes], ...]]
"""Pack, table, and recordings by the names of their files."""


class _MissingError(FormatError):
    """Nothing is left of the input."""


@lru_cache(maxsize=1)
def collections() -> list[Parts]:
    """Return what the generator writes: a pack, its table and its recordings."""
    levels = [load_level(name) for name in _NAMES]
    lines, rows, files = [], [], []
    for number, level in enumerate(levels):
        inputs = known_solutions()[level.name]
        name = f"{number:03}-{level.name.replace('/', '-')}.replay"
        lines.append(write_pack([level.raw]))
        rows.append({"number": number, "family": "pads", "seed": 1, "difficulty": 40, "digest": level.raw.digest,
                     "recording": name, "frames": len(inputs)})  # fmt: skip
        files.append((name, write_recording(Recording.of(level, inputs, {"level": level.name}, 1))))
    return [(b"".join(lines), _table(rows), tuple(files))]


def _table(rows: Sequence[object]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def collection(rng: random.Random) -> Parts:
    """Return a collection of which one to three parts are changed."""
    data, table, files = collections()[0]
    for part in rng.sample(range(3), rng.randint(1, 3)):
        if part == _PACK:
            data = pack_file(rng) if rng.random() < 0.5 else damaged(rng, data, (b"$", b"#", b"\n", b"\xff"))
        elif part == _TABLE:
            table = _other_table(rng, table)
        else:
            files = _other_files(rng, files)
    return data, table, files


def _other_table(rng: random.Random, table: bytes) -> bytes:
    if rng.random() < 0.3:
        return damaged(rng, table, (b"{", b"[" * 10**5, b'"', b"1e999", b"null", b"\n", b"\xff", b"1" * 5000))
    rows = [json.loads(line) for line in table.splitlines()]
    for row in rows:
        if rng.random() < 0.5:
            row[rng.choice(("family", "difficulty", "digest", "recording"))] = rng.choice(_HOSTILE)
    return b"\n".join(json_of(rng, with_other_values(rng, row)) for row in rows)


def _other_files(rng: random.Random, files: Sequence[tuple[str, bytes]]) -> tuple[tuple[str, bytes], ...]:
    changed = [(name, rng.choice((data, any_run(rng), b"", damaged(rng, data)))) for name, data in files]
    if rng.random() < 0.3:
        changed.append((f"{rng.randrange(10**30)}{rng.choice(('-é', '', '-%00', ' x'))}.replay", any_run(rng)))
    return tuple(changed[rng.randrange(2) :])


def any_run(rng: random.Random) -> bytes:
    """Return a file that may be a recording, of any format."""
    share = rng.random()
    if share < 0.4:
        return recording(rng)
    if share < 0.6:
        return peer(rng)
    if share < 0.7:
        raw = rng.choice(raw_levels())
        inputs = bytes(rng.choices(range(8), k=90))
        settings = {rng.choice(("level", "seed", "x")): rng.choice(_HOSTILE[:-1]) for _ in range(2)}
        return write_recording(Recording.of(raw, inputs, json.loads(json.dumps(settings)), 7))
    whole = rng.choice((*recordings(), *peers(), attract_of(peers()[0][13:-300], bytes(90))))
    return damaged(rng, whole) if rng.random() < 0.5 else whole


def read_collection(parts: Parts) -> None:
    """Collect a pack with its table and recordings, and make its pages."""
    data, table, files = parts
    with tempfile.TemporaryDirectory() as folder:
        made = CollectionFiles(Path(folder) / f"{SOURCE}.txt")
        made.folder.mkdir()
        made.pack.write_bytes(data)
        made.table.write_bytes(table)
        for name, content in files:
            (made.folder / name).write_bytes(content)
        make_pages([str(made.pack)], [])


def runs(rng: random.Random) -> tuple[bytes, ...]:
    """Return recordings of a gallery without names of levels."""
    return tuple(any_run(rng) for _ in range(rng.randint(1, 3)))


def all_runs() -> list[tuple[bytes, ...]]:
    """Return undamaged recordings."""
    return [tuple(content for _, content in collections()[0][2]), (peers()[0],)]


def read_runs(files: tuple[bytes, ...]) -> None:
    """Collect recordings in a folder, and make their pages."""
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(files):
            (Path(folder) / f"{number}-{SOURCE}.replay").write_bytes(content)
        make_pages([], [Path(folder)])


def make_pages(names: Sequence[str], recordings: Sequence[Path]) -> None:
    """Make all pages but the pictures; they must hold no markup of their inputs.

    Raises:
        FormatError: if nothing is left to show; the first fault.
    """
    faults: list[NcloneError] = []
    found = entries.collect(names, recordings, faults.append)
    for fault in faults:
        assert SOURCE in str(fault), fault
        assert len(str(fault)) < 1000, fault
    if not found:
        raise faults[0] if faults else _MissingError(SOURCE, "levels", "at least one", "none")
    for entry in found:
        levels = pack([entry.level])
        tracks = [Tracks(levels, run.inputs[: shown_frames(levels, len(run.inputs))]) for run in entry.runs]
        _check_page(level_page("title", entry, None, None, tracks))
    _check_page(index_page("title", found))


class _Page(HTMLParser):
    """Finds what a hostile input would have to bring in."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        assert not any(name.startswith("on") for name in values), attributes
        assert not (tag == "img" and values.get("src") == "x"), attributes
        assert not any((value or "").startswith("javascript:") for value in values.values()), attributes

    def handle_data(self, data: str) -> None:
        assert self.lasttag != "script" or "alert(1)" not in data, data


def _check_page(page: str) -> None:
    page.encode()
    assert "\x1b" not in page
    _Page().feed(page)


TARGETS = (
    Target("collection", collections, collection, read_collection, (FormatError,)),
    Target("gallery", all_runs, runs, read_runs, (FormatError,)),
)
