"""Jobs: tasks on levels, and how their results become files."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from typing import Any, ClassVar, Self, get_type_hints

from nclone_env._files import UNREADABLE, claimed, expanded, open_regular
from nclone_env._processes import in_order, never
from nclone_env._version import __version__
from nclone_env.errors import ConfigError, LevelFormatError, NcloneError, check_argument, checked, plain, shortened
from nclone_env.jobs.shard import Journal, Merged, Shard, as_json
from nclone_env.level import LevelRef, OpenedPacks, distinct_names, resolve
from nclone_env.options import as_text, several
from nclone_env.options import plain as plain_value

_MOST_BYTES = 1 << 40


def ignore(result: Any) -> None:
    """Do nothing with a result."""


class Job(ABC):
    """Work on many levels, one task each, whose results do not depend on who computes them.

    A dataclass: its fields that compare are JSON values or tuples of them, from which other processes make it again.
    """

    result: ClassVar[Any] = Any
    """Annotation of the results of tasks, which those of a journal have to fit: of records the mapping of fields."""

    def __post_init__(self) -> None:
        """Make the fields values of JSON: any iterable, or one item, is several texts; numbers are those of Python."""
        hints = get_type_hints(type(self))
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if "tuple[str, ...]" in str(each.type):
                value = tuple(map(str, map(as_text, several(value))))
            elif each.compare:
                value = plain_value(value)
                value = value if isinstance(value, str | Mapping) or not isinstance(value, Iterable) else several(value)
            object.__setattr__(self, each.name, check_argument(each.name, hints[each.name], value))

    @property
    @abstractmethod
    def total(self) -> int:
        """Number of tasks."""

    @property
    def digest(self) -> str:
        """Of what the job reads; shards that have read something else are not joined."""
        return ""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The fields that compare."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.compare}  # type: ignore[arg-type]

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the job of such fields, as JSON gives them back."""
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in arguments.items()})

    def numbers(self, shard: Shard | None) -> range:
        """Return the numbers of the tasks of a shard; without one those of all."""
        return range(self.total) if shard is None else shard.numbers(self.total)

    def files(self, output: Path) -> Sequence[Path]:
        """Return what :meth:`write` writes; errors name what is wrong with ``output``."""
        return (output,)

    @abstractmethod
    def task(self, number: int) -> Callable[[], Any]:
        """Return a task, picklable; its result consists of JSON values and bytes, or is None if it was stopped."""

    @abstractmethod
    def write(self, output: Path, results: Iterable[Any]) -> None:
        """Write the files of results, which come in order."""


@dataclass(frozen=True)
class LevelJob(Job):
    """A task for each of some levels.

    Attributes:
        levels: built-in sets or levels by name, level files, folders or packs.
    """

    levels: tuple[str, ...]

    @cached_property
    def refs(self) -> tuple[LevelRef, ...]:
        """The levels; those of equal names get others, as in :func:`nclone_env.load_levels`."""
        packs: OpenedPacks = {}
        refs = tuple(ref for name in self.levels for ref in resolve(name, packs))
        if not refs:
            raise ConfigError("levels: expected at least one level, got none; name a set, a level or a file")
        names = distinct_names([(ref.name, str(ref.path)) for ref in refs])
        return tuple(replace(ref, name=name) for ref, name in zip(refs, names, strict=True))

    @property
    def total(self) -> int:
        """Number of levels."""
        return len(self.refs)

    @property
    def digest(self) -> str:
        """Of the names of the levels and the contents of their files."""
        digest = hashlib.sha256("\n".join(ref.name for ref in self.refs).encode())
        for path in dict.fromkeys(ref.path for ref in self.refs if ref.make is None):
            try:
                with open_regular(path, _MOST_BYTES) as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())  # type: ignore[arg-type]
            except OSError as error:
                raise LevelFormatError(plain(path), "file", "a readable level file", plain(error)) from error
        return digest.hexdigest()[:16]


@checked()
def run(
    job: Job,
    output: str | Path,
    executor: Executor | None = None,
    on_result: Callable[[Any], None] = ignore,
    *,
    shard: Shard | None = None,
    stop: Callable[[], bool] = never,
) -> bool:
    """Do a job and write its files, or do a shard of it, whose results are kept in a journal.

    What an earlier call has done of a shard is not done again.

    Args:
        job: the job.
        output: file or folder, as the command of the job has it; with a shard the folder of its journal, which shards
            may share.
        executor: computes the tasks: a pool of threads or processes, or one of ``concurrent.futures`` form of another
            library. Without one this thread does.
        on_result: called with each new result.
        shard: which part of the job to do; None: all.
        stop: asked before each task whether to stop; later results of a shard are done again by the next call.

    Returns:
        Whether all is done.

    Raises:
        ConfigError: if the job cannot write there, or the journal there is of another job or in use.
    """
    if shard is not None:
        return _run_shard(job, expanded(output), shard, executor, on_result, stop)
    output = expanded(output)
    with _claimed(job, output):
        job.write(output, _told(in_order(map(job.task, job.numbers(None)), executor, stop), on_result))
    return not stop()


def _claimed(job: Job, output: Path) -> AbstractContextManager[None]:
    """Claim what a job writes."""
    files = job.files(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    return claimed(*files)


def _told(results: Iterable[Any], on_result: Callable[[Any], None]) -> Iterator[Any]:
    """Yield results that there are, and call a function with each that was taken: an error of it loses no result."""
    for result in results:
        if result is not None:  # else that of a task that was stopped
            yield result
            on_result(result)


def _run_shard(
    job: Job,
    folder: Path,
    shard: Shard,
    executor: Executor | None,
    on_result: Callable[[Any], None],
    stop: Callable[[], bool],
) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    numbers = job.numbers(shard)
    journal = Journal(folder / shard.file, _header(job), numbers)
    try:
        due = [number for number in numbers if number not in journal.done]
        for result, number in zip(in_order(map(job.task, due), executor, stop), due):
            if stop():  # it may be the one of a task that was stopped
                break
            journal.add(number, result)
            on_result(result)
        return len(journal.done) == len(numbers)
    finally:
        journal.close()


@checked()
def merge(folders: str | Path | Iterable[str | Path], output: str | Path) -> None:
    """Write the files of a job from the journals of all its shards, the same as :func:`run` does.

    Args:
        folders: of the journals.
        output: file or folder, as the command of the job has it.

    Raises:
        ConfigError: if a shard is missing, incomplete or of another job, or levels have changed.
    """
    job, results = merged([expanded(folder) for folder in several(folders)])
    output = expanded(output)
    with _claimed(job, output):
        job.write(output, results)


def merged(folders: Sequence[Path]) -> tuple[Job, Merged]:
    """Return a job and its results from the journals of all its shards."""
    results = Merged.of(folders)
    kind = getattr(import_module("nclone_env.jobs"), str(results.header["job"]), None)
    if not (isinstance(kind, type) and issubclass(kind, Job)) or isabstract(kind):
        raise ConfigError(f"folders: expected shards of a job, got those of {shortened(results.header['job'])}")
    try:
        job = kind.from_arguments(results.header["arguments"])
        header = as_json(_header(job))
    except ConfigError as error:
        raise ConfigError(f"{results.journals[0]}: {error}; start the shards again") from error
    except (NcloneError, OSError):
        raise
    except UNREADABLE as error:
        where = f"expected arguments of {kind.__name__} in {results.journals[0]}"
        raise ConfigError(f"folders: {where}, got others; start the shards again") from error
    if header != results.header:
        expected = "the levels and the version of the package that its shards had"
        raise ConfigError(f"folders: expected {expected}, got others; start the shards again in another folder")
    return job, replace(results, result=job.result)


def _header(job: Job) -> dict[str, Any]:
    facts = {"version": __version__, "levels": job.digest, "total": job.total}
    return {"job": type(job).__name__, "arguments": dict(job.arguments), **facts}
