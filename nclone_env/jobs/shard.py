"""Shards: parts of a job that know nothing of each other, each with its results in a journal.

A journal is a text of one line for the job and one for each result, with the number of its task: a CRC-32 in hex digits
and JSON, in which bytes are ``{"base64": ...}``. A killed process leaves whole lines and possibly a part of one; the
next one goes on behind the last whole line. A line that was damaged later is left out, and its result computed again:
it then follows the others. Nothing is written to a file that does not begin as this journal does.
"""

from __future__ import annotations

import base64
import json
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, BinaryIO, Literal, NamedTuple, TypedDict, Union, get_args, get_origin, get_type_hints

from nclone_env._files import inner_folders, lock_descriptor, open_regular
from nclone_env.errors import ConfigError, FormatError, check_integer, checked, plain, shortened

_NAME = re.compile(r"shard-([0-9]{1,9})-of-([0-9]{1,9})\.journal")
_LONGEST_NAME = 200  # bytes; systems allow 255
_MOST_BYTES, _MOST_OF_A_LINE, _MOST_RESULTS = 1 << 40, 1 << 26, 1 << 40
_NAMED = 5  # damaged lines
_DAMAGED = object()
"""In place of the value of a line that is not whole."""


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

    def __post_init__(self) -> None:
        count = check_integer("count", self.count, low=1, high=10**9)
        number = check_integer("number", self.number, low=1, high=count)
        for name, value in (("count", count), ("number", number)):
            object.__setattr__(self, name, value)

    @classmethod
    @checked()
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
    """The results of a shard, appended to a file; results that are there are kept.

    ``numbers`` are those of the tasks of the shard, ``done`` of the tasks that have a result.
    """

    def __init__(self, path: Path, header: Mapping[str, Any], numbers: range):
        if path.exists():
            open_regular(path, _MOST_BYTES).close()
        self._file = path.open("ab+")
        try:
            if not lock_descriptor(self._file.fileno()):
                raise ConfigError(f"{path}: another process works on this shard; wait for it")
            self.done = self._take_over(path, header, numbers)
        except BaseException:
            self.close()
            raise

    def _take_over(self, path: Path, header: Mapping[str, Any], numbers: range) -> set[int]:
        """Write the header, or check that it is there and cut what follows the last whole line; find the results."""
        first = _line(header)
        self._file.seek(0)
        value = _value(self._file.readline(_MOST_OF_A_LINE))
        if value is _DAMAGED:
            self._file.seek(0)
            if not first.startswith(self._file.read(len(first) + 1)):  # else it was killed as it wrote the header
                raise ConfigError(f"{path}: expected the journal of a shard, got another file; name another folder")
            self._file.truncate(0)
            self._file.write(first)
            self._file.flush()
            return set()
        if value != as_json(header):
            expected = "the journal of the same levels, options and version"
            raise ConfigError(f"{path}: expected {expected}, got another; name another folder")
        found = _found(self._file, numbers)
        if found.damaged and len(found.places) < len(numbers):
            said = f"{found.damage} and left out; what is missing is computed again"
            warnings.warn(f"{path}: {said}", RuntimeWarning, stacklevel=4)
        self._file.truncate(found.end)
        return set(found.places)

    def add(self, number: int, value: Any) -> None:
        """Append the result of a task."""
        self._file.write(_line([number, value]))
        self._file.flush()
        self.done.add(number)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(frozen=True)
class Merged:
    """The results of all shards of a job, annotated as ``result``; iterate to read them, in the order of the levels."""

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
            got = f"none in {', '.join(map(str, folders))}{inner_folders(folders[0])}" if folders else "no folder"
            raise ConfigError(f"folders: expected journals of --shard, got {got}")
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
        """Yield the results."""
        for index, path in enumerate(self.journals, start=1):
            numbers = Shard(index, len(self.journals)).numbers(self.header["total"])
            with open_regular(path, _MOST_BYTES) as file:
                file.readline(_MOST_OF_A_LINE)
                places = _found(file, numbers).places
                for number in numbers:
                    place = file.seek(places.get(number, 0))
                    value = _result(file.readline(_MOST_OF_A_LINE), numbers)
                    if value is None or not _conforms(value[1], self.result):
                        expected = f"a result of {self.header['job']}"
                        raise FormatError(str(path), f"offset {place}", expected, "another; start the shard again")
                    yield value[1]


def file_name(name: str) -> str:
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
        header = _value(file.readline(_MOST_OF_A_LINE))
        if not _conforms(header, _Header) or not 0 < header["total"] <= _MOST_RESULTS:
            raise FormatError(str(path), "line 1", "the journal of a shard", "another text; start the shard again")
        numbers = shard.numbers(header["total"])
        found = _found(file, numbers)
    if len(found.places) != len(numbers):
        got = f"{len(found.places)} whole ones{f', {found.damage}' if found.damaged else ''}"
        raise ConfigError(f"{path}: expected {len(numbers)} results, got {got}; start the shard again")
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


def _value(line: bytes) -> Any:
    """Return the value of a line, ``_DAMAGED`` if it is not whole."""
    text = line[9:-1]
    if line[-1:] != b"\n" or line[:9] != b"%08x " % zlib.crc32(text):
        return _DAMAGED
    try:
        return json.loads(text, object_hook=_decoded)
    except (ValueError, TypeError, RecursionError):  # a forged one, with its checksum
        return _DAMAGED


def _result(line: bytes, numbers: range) -> tuple[int, Any] | None:
    """Return the number of a task and its result; None if a line is not whole, or of no task of these."""
    value = _value(line)
    is_result = isinstance(value, list) and len(value) == 2 and type(value[0]) is int and value[0] in numbers
    return (value[0], value[1]) if is_result else None


class _Found(NamedTuple):
    """The lines of a journal that follow its header."""

    places: Mapping[int, int]
    """Offset of the result of each task, by its number."""
    damaged: Sequence[int]
    """Number of each line that is not whole, from 2, without one that has no end."""
    end: int
    """Offset behind the last whole line."""

    @property
    def damage(self) -> str:
        """The damaged lines, as a sentence."""
        named, more = self.damaged[:_NAMED], len(self.damaged) - _NAMED
        numbers = ", ".join(map(str, named)) + (f" and {more} more" if more > 0 else "")
        return f"line {numbers} is damaged" if len(self.damaged) == 1 else f"lines {numbers} are damaged"


def _found(file: BinaryIO, numbers: range) -> _Found:
    """Find the results of tasks in a journal that was read up to the end of its header."""
    places: dict[int, int] = {}
    damaged: list[int] = []
    place = end = file.tell()
    for row, line in enumerate(iter(partial(file.readline, _MOST_OF_A_LINE), b""), start=2):
        result = _result(line, numbers)
        if result is not None:
            places.setdefault(result[0], place)
            end = place + len(line)
        elif line.endswith(b"\n"):
            damaged.append(row)
        place += len(line)
    return _Found(places, damaged, end)


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(type(value).__name__)


def _decoded(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"], validate=True) if value.keys() == {"base64"} else value
