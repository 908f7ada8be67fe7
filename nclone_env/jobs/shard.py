"""Shards: parts of a job that know nothing of each other, each with its results in a journal.

A journal is a text of one line for the job and one for each result: a CRC-32 in hex digits and JSON, in which bytes are
``{"base64": ...}``. A killed process leaves whole lines and possibly a part of one; the next one goes on behind the
last whole line.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from nclone_env._files import lock_descriptor
from nclone_env.errors import ConfigError, FormatError, shortened

_NAME = re.compile(r"shard-([0-9]{1,9})-of-([0-9]{1,9})\.journal")


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
        self._file = path.open("ab+")
        try:
            if not lock_descriptor(self._file.fileno()):
                raise ConfigError(f"{path}: another process works on this shard; wait for it")
            self._file.seek(0)
            lines, place = _lines(self._file), 0
            for number, (value, end) in enumerate(lines):
                if number == 0 and value != as_json(header):
                    expected = "the journal of the same levels, options and version"
                    raise ConfigError(f"{path}: expected {expected}, got another; name another folder")
                self.done, place = number, end
            if not place and path.read_bytes().count(b"\n"):
                raise ConfigError(f"{path}: expected the journal of a shard, got another file; name another folder")
            self._file.truncate(place)
            if not place:
                self.done = -1
                self.add(header)
        except BaseException:
            self.close()
            raise

    def add(self, value: Any) -> None:
        """Append a result."""
        text = json.dumps(value, default=_encoded).encode()
        self._file.write(b"%08x %s\n" % (zlib.crc32(text), text))
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
    """

    header: Mapping[str, Any]
    journals: Sequence[Path]

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
        shards = [Shard(number, count) for number in range(1, count + 1)]
        for shard in (*shards, *found):
            if shard not in found or shard.count != count:
                problem = f"no {shard.file}" if shard not in found else f"also {found[shard]}"
                raise ConfigError(f"folders: expected all {count} shards of one job, got {problem}")
        journals = [found[shard] for shard in shards]
        headers = [_complete(path, shard) for path, shard in zip(journals, shards)]
        for path, header in zip(journals, headers):
            if header != headers[0]:
                raise ConfigError(f"folders: expected shards of one job, got others in {journals[0]} and {path}")
        return cls(headers[0], journals)

    def __iter__(self) -> Iterator[Any]:
        """Yield the results."""
        for path in self.journals:
            with path.open("rb") as file:
                yield from (value for value, _ in islice(_lines(file), 1, None))


def checked(name: str) -> str:
    """Return the name of a file in a result."""
    if Path(name).name != name or name == "..":
        raise FormatError("journal", "result", "the name of a file without a folder", shortened(name))
    return name


def as_json(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return a header as a journal gives it back."""
    read: dict[str, Any] = json.loads(json.dumps(header))
    return read


def _complete(path: Path, shard: Shard) -> dict[str, Any]:
    """Return the header of a journal that has all results of the shard."""
    with path.open("rb") as file:
        lines = _lines(file)
        header, end = next(lines, (None, 0))
        if not isinstance(header, dict) or not {"job", "arguments", "total"} <= header.keys():
            raise FormatError(str(path), "line 1", "the journal of a shard", "another text; start the shard again")
        ends = [end, *(end for _, end in lines)]
    expected, done = len(shard.numbers(header["total"])), len(ends) - 1
    if done != expected or ends[-1] != path.stat().st_size:
        raise ConfigError(f"{path}: expected {expected} results, got {done} whole ones; start the shard again")
    return header


def _lines(file: BinaryIO) -> Iterator[tuple[Any, int]]:
    """Yield the values of whole lines up to the first other one, and where each ends."""
    end = 0
    for line in file:
        end += len(line)
        text = line[9:-1]
        if line[-1:] != b"\n" or line[:9] != b"%08x " % zlib.crc32(text):
            return
        yield json.loads(text, object_hook=_decoded), end


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(type(value).__name__)


def _decoded(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} else value
