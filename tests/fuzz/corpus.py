"""Inputs that once failed, by target and name: small ones as files in ``corpus``, large ones made here."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..shared import archived, members_of
from . import commands, files
from .files import map_of, pack_line, raw_levels

FOLDER = Path(__file__).with_name("corpus")
_EMPTY = np.zeros((23, 42), np.uint8)
_START = ((0, 6, 6, 0, 0), (3, 60, 60, 0, 0), (4, 70, 60, 0, 0))


def _map(*records: tuple[int, ...]) -> bytes:
    return map_of(raw_levels()[0], _EMPTY, np.array(_START + records, np.uint8))


def _exits(count: int) -> bytes:
    rows = [(0, 6, 6, 0, 0), *[(3, 60, 60, 0, 0)] * count, *[(4, 70, 60, 0, 0)] * count]
    return map_of(raw_levels()[0], _EMPTY, np.array(rows, np.uint8))


def _scattered(kind: int, count: int) -> bytes:
    return _map(*((kind, 12 + 7 * number % 150, 12 + 5 * number % 80, 0, 0) for number in range(count)))


def _checkpoint(**fields: Any) -> bytes:
    return files.saved({**files.fields(), **fields})


def _hidden(size: int) -> bytes:
    config = {**files.fields()["train_config"], "hidden_size": size}
    return _checkpoint(train_config=config)


def _observing(names: list[str]) -> bytes:
    return _checkpoint(train_config={**files.fields()["train_config"], "observations": names})


def _packed(name: str | None, size: int) -> bytes:
    """Return a checkpoint with a packed member of zeros: of another name, or instead of the largest one."""
    members = members_of(files.checkpoints()[0])
    largest = max(members, key=lambda member: len(members[member]))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for member, content in members.items():
            if name is not None or member != largest:
                archive.writestr(member, content)
        info = zipfile.ZipInfo(name or largest)
        info.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(info, "w", force_zip64=True) as opened:
            for _ in range(size // 10**6):
                opened.write(bytes(10**6))
    return stream.getvalue()


def _pickled(pickled: bytes) -> bytes:
    """Return a checkpoint with another pickle beside its storages."""
    members = members_of(files.checkpoints()[0])
    return archived((each, pickled if each.endswith("data.pkl") else members[each]) for each in members)


def _compared(**fields: Any) -> commands.Command:
    return ("compare", "k.pt"), {"k.pt": _checkpoint(**fields)}


def _compared_curve(row: dict[str, float]) -> commands.Command:
    from tests.train.runs import curve_of

    return _compared(curve=curve_of([row]))


MADE: dict[str, Callable[[], Any]] = {
    "text-dotted-key": lambda: b".".join([b"a"] * 50_000) + b" = 1",
    "text-dotted-table": lambda: b"[" + b".".join([b"a"] * 50_000) + b"]",
    "text-dotted-inline-table": lambda: b"x = {" + b".".join([b"a"] * 50_000) + b" = 1}",
    "text-list-with-a-huge-number": lambda: b"format = 1\ntitle = [0x" + b"f" * 5000 + b"]\ntiles = ''\nentities = ''",
    "text-nested-lists": lambda: b"title = " + b"[" * 10**5,
    "map-3000-mines": lambda: _scattered(1, 3000),
    "pack-of-an-empty-level": lambda: pack_line(b"", _EMPTY, np.zeros((0, 5), np.uint8)),
    "environment-16000-exits": lambda: _exits(16_000),
    "environment-2000-death-balls": lambda: _scattered(25, 2000),
    "environment-orientation-41-of-a-thwump": lambda: _map((20, 50, 50, 41, 0)),
    "checkpoint-hidden-size-20000": lambda: _hidden(20_000),
    "checkpoint-observation-of-3000000": lambda: _checkpoint(observation_shapes={"game_state": [3_000_000]}),
    "checkpoint-packed-storage": lambda: _packed(None, 2 * 10**8),
    "checkpoint-unused-packed-member": lambda: _packed("archive/data/unused", 2 * 10**8),
    "checkpoint-without-shapes": lambda: _checkpoint(observation_shapes=None),
    "checkpoint-shapes-in-a-list": lambda: _checkpoint(observation_shapes=[30]),
    "checkpoint-observation-named-200-times": lambda: _observing(["game_state"] * 200),
    "checkpoint-with-a-class": lambda: _checkpoint(held_out={"digests": bytearray}),
    "checkpoint-storage-named-by-a-number": lambda: _pickled(b"\x80\x02K\x05Q."),
    "command-gallery-of-endless-recordings": lambda: (("gallery", "--recordings", "/dev/zero"), {}),
    "command-gallery-of-a-recording-with-a-long-name": lambda: (("gallery", "--recordings", "0," * 3000), {}),
    "command-compare-curves-without-times": lambda: _compared_curve({"success_rate": 0.5}),
    "command-compare-curves-without-rates": lambda: _compared_curve({"timesteps": 5}),
    "command-compare-a-curve-of-words": lambda: _compared(
        curve={"columns": {"timesteps": True}, "values": "five", "given": [True]}
    ),
    "command-compare-a-curve-of-huge-numbers": lambda: _compared_curve({"timesteps": 2**64}),
    "command-compare-without-counters": lambda: _compared(counters={}),
    "command-compare-into-a-folder-without-a-name": lambda: (("compare", "k.pt", "--output", "/"), _compared()[1]),
    "command-train-with-a-long-family": lambda: (("train", "--levels", f"generated:0:{'a' * 5000}"), {}),
    "configuration-local-position-a-function": lambda: ("make", {"observation": {"local_position": len}}),
    "configuration-of-a-huge-number": lambda: ("make", {"frame_skip": 10**5000}),
    "configuration-of-a-long-name": lambda: ("make", {"observations": ["y" * 5000] * 3}),
}
"""Functions that make an input, by target and name."""


def inputs() -> dict[str, Callable[[], Any]]:
    """Return all inputs by name, which begins with that of their target."""
    files = {path.stem: path.read_bytes for path in sorted(FOLDER.iterdir())}
    return {**files, **MADE}


def target_of(name: str, targets: Any) -> Any:
    """Return the target of an input."""
    return next(target for key, target in targets.items() if name.startswith(f"{key}-"))
