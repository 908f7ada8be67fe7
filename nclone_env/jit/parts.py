"""Kernels as parts of others, kept on disk: typed and lowered, neither optimised nor linked with the kernels they call.

A kernel that Python calls consists of up to three hundred. Two thirds of the time to compile it is spent on each of
these alone, so after an edit only those are done again that reach it by calls, and kernels that consist of the same
parts share them. Files are named after everything that the code depends on, as those of ``jit.cache``.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from nclone_env._files import temporary_beside
from nclone_env.jit.folder import (
    PART_SUFFIX,
    cache_folder,
    packed,
    read_used,
    remove_unused_code,
    unpacked,
    write_private,
)
from nclone_env.jit.sources import fields_of, identity, short_digest
from nclone_env.jit.target import target


class Part(NamedTuple):
    """What is kept of a kernel."""

    bitcode: bytes
    callees: list[str]
    """The names of the parts that it calls."""
    described: bytes
    """The pickle of Numba's description and signature, without the types of the arguments."""

    @classmethod
    def of(cls, bitcode: bytes, callees: list[str], described: Any, arguments: Sequence[Any]) -> Part:
        """Return a part; pickles of the types of arguments would be larger than all the rest."""
        file = io.BytesIO()
        _Pickler(file, arguments).dump(described)
        return cls(bitcode, callees, file.getvalue())

    def described_for(self, arguments: Sequence[Any]) -> Any:
        """Return description and signature, for equal types of arguments."""
        return _Unpickler(io.BytesIO(self.described), arguments).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, arguments: Sequence[Any]):
        super().__init__(file, protocol=5)
        self._arguments = arguments

    def persistent_id(self, value: Any) -> int | None:
        return next((place for place, argument in enumerate(self._arguments) if argument is value), None)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arguments: Sequence[Any]):
        super().__init__(file)
        self._arguments = arguments

    def persistent_load(self, place: int) -> Any:
        return self._arguments[place]


def part_name(function: Callable[..., Any], arguments: Sequence[Any], flags: Any) -> str | None:
    """Return the name of a kernel for types of arguments; None if its code cannot be identified across processes.

    Only finished kernels depend on the processor, so those for different ones are made of the same parts. A kernel
    inherits some of Numba's flags from the first that calls it.
    """
    code = _code_name(function)
    kinds = ", ".join([*map(str, arguments), *fields_of(arguments)])
    if code is None or " at 0x" in kinds:
        return None
    text = f"({kinds}) {sorted(flags.fastmath.flags)} {flags.forceinline} {target().triple} {target().vectors}"
    return f"{code}-{short_digest(text)}"


def has_parts(function: Callable[..., Any]) -> bool:
    """Return whether a kernel is kept for any types of arguments."""
    return _code_name(function) in _code_names()


@cache
def _code_name(function: Callable[..., Any]) -> str | None:
    code = identity(function)
    return code and f"{function.__module__}.{function.__name__}-{short_digest(f'{sys.version_info[:2]} {code}')}"


@cache
def _code_names() -> set[str]:
    """Return what part names begin with, as they were when the first kernel of the process was to be compiled."""
    folder = cache_folder()
    return set() if folder is None else {path.stem.rpartition("-")[0] for path in folder.glob(f"*{PART_SUFFIX}")}


def read_part(name: str) -> Part | None:
    """Return what is kept under a name; None if it is nothing, or damaged."""
    folder = cache_folder()
    if folder is None:
        return None
    part: Part | None = unpacked(read_used(folder / f"{name}{PART_SUFFIX}"), name)
    return part


def write_part(name: str, part: Part) -> None:
    """Keep a part, if there is a folder; hundreds are written in a row, so the disk is not waited for."""
    folder = cache_folder()
    if folder is None:
        return
    remove_unused_code(folder)
    with suppress(OSError), temporary_beside(path := folder / f"{name}{PART_SUFFIX}") as temporary:
        write_private(temporary, packed(name, part))
        temporary.replace(path)
