"""Shards: parts of a job that know nothing of each other, each with its results in a journal.

A journal is a text of one line for the job and one for each result: a CRC-32 in hex digits and JSON, in which bytes are
``{"base64": ...}``. A killed process leaves whole lines and possibly a part of one; the next one goes on behind the
last whole line. Nothing is written to a file that does not begin as this journal does.
"""

from __future__ import annotations

import base64
import json
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, BinaryIO, Literal, TypedDict, Union, get_args, get_origin, get_type_hints

from nclone_env._files import lock_descriptor, open_regular
from nclone_env.errors import ConfigError, FormatError, plain, shortened

_NAME = re.compile(r"shard-([0-9]{1,9})-of-([0-9]{1,9})\.journal")
_LONGEST_NAME = 200  # bytes; systems allow 255
_MOST_BYTES, _MOST_OF_A_LINE, _MOST_RESULTS = 1 << 40, 1 << 26, 1 << 40


class _Header(TypedDict):
    """The first line of a journal."""

    job: str
    arguments: dict[str, Any]
    version: str
    levels: str
    total: int


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts of a job.

    Attributes:
        number: from 1.
        count: of all shards.
    """

    number: int
    count: int

    @classmethod
    def of(cls, text: str | None) -> Shard | None:
        """Return the shard ``I/N``, None for None.

        Raises:
            ConfigError: if the text is not two such numbers.
        """
        if text is None:
            return None
        found = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count:
            raise ConfigError(f"shard: expected I/N with I from 1 to N, such as 1/4, got {shortened(text)}")
        return cls(number, count)

    def numbers(self, total: int) -> range:
        """Return the numbers of its levels, of so many in all."""
        return range((self.number - 1) * total // self.count, self.number * total // self.count)

    @property
    def file(self) -> str:
        """Name of its journal."""
        return f"shard-{self.number}-of-{self.count}.journal"


class Journal:
    """The results of a shard, appended to a file.

    Args:
        path: the file; results that are there are kept.

    Attributes:
        done: number of results.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]):
        if path.exists():
            open_regular(path, _MOST_BYTES).close()
        self._file = path.open("ab+")
        try:
            if not lock_descriptor(self._file.fileno()):
                raise ConfigError(f"{path}: another process works on this shard; wait for it")
            self.done = self._take_over(path, header)
        except BaseException:
            self.close()
            raise

    def _take_over(self, path: Path, header: Mapping[str, Any]) -> int:
        """Write the header, or check that it is there and cut what follows the last whole line; count the results."""
        first = _line(header)
        self._file.seek(0)
        lines = _lines(self._file)
        value, place = next(lines, (None, 0))
        if not place:
            self._file.seek(0)
            if not first.startswith(self._file.read(len(first) + 1)):  # else it was killed as it wrote the header
                raise ConfigError(f"{path}: expected the journal of a shard, got another file; name another folder")
            self._file.truncate(0)
            self._file.write(first)
            self._file.flush()
            return 0
        if value != as_json(header):
            expected = "the journal of the same levels, options and version"
            raise ConfigError(f"{path}: expected {expected}, got another; name another folder")
        ends = [place, *(end for _, end in lines)]
        self._file.seek(ends[-1])
        lost = sum(line.endswith(b"\n") for line in self._file)
        if lost:
            said = f"line {len(ends) + 1} is damaged: it and the {lost - 1} after it are computed again"
            warnings.warn(f"{path}: {said}", RuntimeWarning, stacklevel=4)
        self._file.truncate(ends[-1])
        return len(ends) - 1

    def add(self, value: Any) -> None:
        """Append a result."""
        self._file.write(_line(value))
        self._file.flush()
        self.done += 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(frozen=True)
class Merged:
    """The results of all shards of a job; iterate to read them, in the order of the levels.

    Attributes:
        header: what the job is.
        journals: of all shards, in order.
        result: annotation of each result.
    """

    header: Mapping[str, Any]
    journals: Sequence[Path]
    result: Any = Any

    @classmethod
    def of(cls, folders: Sequence[Path]) -> Merged:
        """Find the journals in some folders, and check that they are those of all shards of one job, complete."""
        found: dict[Shard, Path] = {}
        for path in (path for folder in folders for path in sorted(folder.glob("shard-*"))):
            if name := _NAME.fullmatch(path.name):
                shard = Shard(int(name[1]), int(name[2]))
                if shard in found:
                    raise ConfigError(f"folders: expected each shard once, got {found[shard]} and {path}")
                found[shard] = path
        if not found:
            raise ConfigError(f"folders: expected journals of --shard, got none in {', '.join(map(str, folders))}")
        count = min(shard.count for shard in found)
        for shard in chain((Shard(number, count) for number in range(1, count + 1)), found):
            if shard not in found or shard.count != count:
                problem = f"no {shard.file}" if shard not in found else f"also {found[shard]}"
                raise ConfigError(f"folders: expected all {count} shards of one job, got {problem}")
        shards = sorted(found, key=lambda shard: shard.number)
        journals = [found[shard] for shard in shards]
        headers = [_complete(path, shard) for path, shard in zip(journals, shards)]
        for path, header in zip(journals, headers):
            if header != headers[0]:
                raise ConfigError(f"folders: expected shards of one job, got others in {journals[0]} and {path}")
        return cls(headers[0], journals)

    def __iter__(self) -> Iterator[Any]:
        """Yield the results.

        Raises:
            FormatError: if one is no result of the job.
        """
        for path in self.journals:
            with open_regular(path, _MOST_BYTES) as file:
                for number, (value, _) in enumerate(islice(_lines(file), 1, None), start=2):
                    if not _conforms(value, self.result):
                        raise FormatError(str(path), f"line {number}", f"a result of {self.header['job']}", "another")
                    yield value


def checked(name: str) -> str:
    """Return the name of a file in a result."""
    if Path(name).name != name or name == ".." or plain(name) != name or len(name.encode()) > _LONGEST_NAME:
        raise FormatError("journal", "result", "the plain name of a file without a folder", shortened(name))
    return name


def as_json(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return a header as a journal gives it back."""
    read: dict[str, Any] = json.loads(json.dumps(header))
    return read


def _complete(path: Path, shard: Shard) -> dict[str, Any]:
    """Return the header of a journal that has all results of the shard."""
    with open_regular(path, _MOST_BYTES) as file:
        lines = _lines(file)
        header: Any
        header, end = next(lines, (None, 0))
        if not _conforms(header, _Header) or not 0 < header["total"] <= _MOST_RESULTS:
            raise FormatError(str(path), "line 1", "the journal of a shard", "another text; start the shard again")
        ends = [end, *(end for _, end in lines)]
    expected, done = len(shard.numbers(header["total"])), len(ends) - 1
    if done != expected or ends[-1] != path.stat().st_size:
        raise ConfigError(f"{path}: expected {expected} results, got {done} whole ones; start the shard again")
    return dict(header)


def _conforms(value: Any, hint: Any) -> bool:
    """Return whether a value of a journal is what an annotation says: of a record, its fields by name."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return True
    if kind in (Union, UnionType):
        return any(_conforms(value, part) for part in parts)
    if kind is Literal:
        return isinstance(value, str) and value in parts
    if kind in (Mapping, dict):
        return isinstance(value, dict) and all(_conforms(each, parts[1]) for each in value.values() if parts)
    if kind in (Sequence, list):
        return isinstance(value, list) and all(_conforms(each, parts[0]) for each in value)
    if kind in (bool, int, float, str, bytes, NoneType):
        return type(value) is kind or (kind is float and type(value) is int)
    fields = get_type_hints(kind)
    return (
        isinstance(value, dict)
        and value.keys() == fields.keys()
        and all(_conforms(value[name], part) for name, part in fields.items())
    )


def _line(value: Any) -> bytes:
    """Return a value as a line."""
    text = json.dumps(value, default=_encoded).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _lines(file: BinaryIO) -> Iterator[tuple[Any, int]]:
    """Yield the values of whole lines up to the first other one, and where each ends."""
    end = 0
    while line := file.readline(_MOST_OF_A_LINE):
        end += len(line)
        text = line[9:-1]
        if line[-1:] != b"\n" or line[:9] != b"%08x " % zlib.crc32(text):
            return
        try:
            yield json.loads(text, object_hook=_decoded), end
        except (ValueError, TypeError, RecursionError):  # a forged one, with its checksum
            return


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(type(value).__name__)


def _decoded(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"], validate=True) if value.keys() == {"base64"} else value
