"""Inputs that once failed, by target and name: small ones as files in ``corpus``, large ones made here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..shared import archived, members_of
from . import commands, files
from .files import map_of, raw_levels

FOLDER = Path(__file__).with_name("corpus")
_EMPTY = np.zeros((23, 42), np.uint8)
_START = ((0, 6, 6, 0, 0), (3, 60, 60, 0, 0), (4, 70, 60, 0, 0))


def _map(*records: tuple[int, ...]) -> bytes:
    return map_of(raw_levels()[0], _EMPTY, np.array(_START + records, np.uint8))


def _checkpoint(**fields: Any) -> bytes:
    return files.saved({**files.fields(), **fields})


def _observing(names: list[str]) -> bytes:
    return _checkpoint(train_config={**files.fields()["train_config"], "observations": names})


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
    "text-list-with-a-huge-number": lambda: b"format = 1\ntitle = [0x" + b"f" * 5000 + b"]\ntiles = ''\nentities = ''",
    "environment-orientation-41-of-a-thwump": lambda: _map((20, 50, 50, 41, 0)),
    "checkpoint-observation-named-200-times": lambda: _observing(["game_state"] * 200),
    "checkpoint-storage-named-by-a-number": lambda: _pickled(b"\x80\x02K\x05Q."),
    "command-compare-curves-without-times": lambda: _compared_curve({"success_rate": 0.5}),
    "command-compare-curves-without-rates": lambda: _compared_curve({"timesteps": 5}),
    "command-compare-a-curve-of-words": lambda: _compared(
        curve={"columns": {"timesteps": True}, "values": "five", "given": [True]}
    ),
    "command-compare-a-curve-of-huge-numbers": lambda: _compared_curve({"timesteps": 2**64}),
    "command-compare-without-counters": lambda: _compared(counters={}),
    "command-compare-into-a-folder-without-a-name": lambda: (("compare", "k.pt", "--output", "/"), _compared()[1]),
    "command-train-with-a-long-family": lambda: (("train", "--levels", f"generated:0:{'a' * 5000}"), {}),
}
"""Functions that make an input, by target and name."""


def inputs() -> dict[str, Callable[[], Any]]:
    """Return all inputs by name, which begins with that of their target."""
    files = {path.stem: path.read_bytes for path in sorted(FOLDER.iterdir())}
    return {**files, **MADE}


def target_of(name: str, targets: Any) -> Any:
    """Return the target of an input."""
    return next(target for key, target in targets.items() if name.startswith(f"{key}-"))
