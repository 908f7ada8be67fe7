"""Tables that other processes wrote: journals of shards, learning curves, results, reports of memory, solutions.

Most are lines of JSON or CSV. An input is one that the package wrote, with damaged bytes, or with lines and values
exchanged before it was sealed again.
"""

import csv
import gzip
import io
import json
import random
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from nclone_env.benchmark.entries import read_curve
from nclone_env.errors import CheckpointError, ConfigError, FormatError, NcloneError, UnknownLevelError, is_plain
from nclone_env.gallery.entries import read_table
from nclone_env.jobs import Generating, Shard, Solving, Validating, merge, run
from nclone_env.jobs.job import Job, _header
from nclone_env.jobs.shard import Journal
from nclone_env.jobs.solving import TABLE, Row, rows_before
from nclone_env.level.load import load_levels
from nclone_env.memory.explain.stats import compute_stats
from nclone_env.memory.show import comparison, json_text
from nclone_env.replay.recording import load_any_recording, load_recording, load_verified
from nclone_env.replay.verification import verify
from tests.memory.by_hand import measurements

from .accidents import VALUES, drawn, with_other_parts
from .files import _HOSTILE, any_run, collections, json_of, mutant, packs, peers, recordings, with_other_values
from .target import SOURCE, Target, in_file

_SHARD = Shard(1, 1)
_LEVELS = ("first-steps/01-walk", "jumps/01-stairs")
_JOURNAL = Path(SOURCE) / _SHARD.file
_OUTPUT = "out.txt"
_CELLS = (
    "",
    "0",
    "-1",
    "nan",
    "inf",
    "1e999",
    "9" * 5000,
    "x" * 140_000,
    '"',
    "\x1b[31m",
    "é",
    "1_0",
    "0x1",
    "True",
    " 5 ",
)
_WORDS = (b",", b"\n", b'"', b"\r", b"{", b"}", b"\xff", b"\0", b"null", b"[" * 10**5, b"1e999")


def with_other_lines(rng: random.Random, lines: list[bytes]) -> list[bytes]:
    """Return lines of which one may be missing, be there twice, or be in another place."""
    changed, share = list(lines), rng.random()
    place = rng.randrange(len(changed))
    if share < 0.1:
        del changed[place]
    elif share < 0.2:
        changed.insert(place, rng.choice(changed))
    elif share < 0.3:
        rng.shuffle(changed)
    return changed


# Journals


@lru_cache(maxsize=1)
def journals() -> list[bytes]:
    """Return the journals of a check, of a search and of a generated pack, on two levels each."""
    _, rows, files = collections()[0]
    solved = [
        {"row": vars(Row(name, completed=True, frames=90, won={"trim": 5}, recording=file)), "files": {file: data}}
        for name, (file, data) in zip(_LEVELS, files)
    ]
    made = [
        {"line": line + b"\n", "row": json.loads(row), "file": file, "recording": data}
        for line, row, (file, data) in zip(collections()[0][0].splitlines(), rows.splitlines(), files)
    ]
    with tempfile.TemporaryDirectory() as folder:
        run(Validating(_LEVELS), folder, shard=_SHARD)
        found = [(Path(folder) / _SHARD.file).read_bytes()]
    return [*found, _journal(Solving(_LEVELS, frames=(100, 200)), solved), _journal(Generating(count=2), made)]


def _journal(job: Job, results: Sequence[Any]) -> bytes:
    """Return the journal of a job with given results."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _SHARD.file
        journal = Journal(path, _header(job), job.numbers(_SHARD))
        for number, result in enumerate(results):
            journal.add(number, result)
        journal.close()
        return path.read_bytes()


def other_journal(rng: random.Random, data: bytes) -> bytes:
    """Exchange parts of the job or of results, or lines; the checksums of the lines are right again."""
    values = [json.loads(line[9:]) for line in data.splitlines()]
    place = rng.choice((0, rng.randrange(len(values))))
    values[place] = with_other_parts(rng, values[place], lambda rng: drawn(rng, (*VALUES, *_HOSTILE, *_NAMES)))
    share = rng.random()
    if share < 0.2:
        values[place] = drawn(rng, VALUES)
    elif share < 0.4:
        values = [json.loads(line[9:]) for line in data.splitlines()]  # lines alone may change
    texts = with_other_lines(rng, [json_of(rng, value) for value in values])
    return b"".join(b"%08x %s\n" % (zlib.crc32(text), text) for text in texts)


_NAMES = ("../x", "/dev/zero", "Evaluating", "Showing", "Solving", "builtin", {"base64": "AA=="}, {"base64": "\xff"})


def read_journal(data: bytes) -> None:
    """Go on with a journal, and merge it; nothing may be written but the output, and what is named after it."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(folder) / _JOURNAL
        place.parent.mkdir()
        place.write_bytes(data)
        try:
            with suppress(ConfigError):  # the journal of another job
                job = Validating(_LEVELS)
                Journal(_copied(place), _header(job), job.numbers(_SHARD)).close()
            merge([place.parent], Path(folder) / _OUTPUT)
        finally:
            names = {path.name for path in Path(folder).iterdir()} - {SOURCE}
            assert all(name.startswith(Path(_OUTPUT).stem) for name in names), names
            assert place.read_bytes() == data


def _copied(path: Path) -> Path:
    """Return a copy of a file: a shard that goes on cuts what is damaged off its end."""
    return Path(shutil.copy(path, path.with_name("copy")))


# Tables of CSV


@lru_cache(maxsize=1)
def curves() -> list[bytes]:
    """Return the learning curve of a short run."""
    from nclone_env.train.runs.curve import LearningCurve

    with tempfile.TemporaryDirectory() as folder:
        curve = LearningCurve(Path(folder), 5)
        for update in range(1, 5):
            curve.rows.append({"timesteps": 512 * update, "steps_per_second": 1e4 / update, "success_rate": update / 8})
        return [curve.write_csv().read_bytes()]


def results() -> list[bytes]:
    """Return the results of an evaluation."""
    rows = [f"{mode},jumps/{number},5,{number / 4},9" for mode in ("sampled", "probable") for number in range(3)]
    return ["\n".join(("mode,level,timesteps,success_rate,episodes", *rows, "")).encode()]


def other_cells(rng: random.Random, data: bytes) -> bytes:
    """Exchange, add or remove cells and rows."""
    rows = list(csv.reader(io.StringIO(data.decode())))
    for _ in range(rng.randint(1, 3)):
        row = rng.choice(rows)
        place, cell = rng.randrange(len(row) + 1), rng.choice((*_CELLS, str(drawn(rng, VALUES))))
        row[place : place + rng.choice((0, 1, 1, 1))] = [cell] * rng.choice((0, 1, 1, 1, 30))
        row[:] = row or [""]
    text = io.StringIO()
    csv.writer(text, lineterminator=rng.choice(("\n", "\n", "\r\n", "\r"))).writerows(rows)
    encoding = rng.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"))
    return b"".join(with_other_lines(rng, text.getvalue().encode(encoding, "replace").splitlines(keepends=True)))


def read_learning_curve(data: bytes) -> None:
    text, seconds = in_file(read_curve, data)
    assert text == data
    json.dumps(seconds, allow_nan=False)


def read_results(data: bytes) -> None:
    from nclone_env.train.reports.comparison import _read_results

    for rates in in_file(lambda path: _read_results(path, 5), data).values():
        assert all(0 <= rate <= 1 for rate in rates.values())


# Recipes


@lru_cache(maxsize=1)
def recipes() -> list[bytes]:
    """Return what a run writes about itself, and a few options."""
    from nclone_env.train import TrainConfig
    from nclone_env.train.ranks import ALONE
    from nclone_env.train.runs.record import RECORD, note_resumption, write_record

    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig.of(levels=("jumps",))
        write_record(Path(folder), config, None, ALONE, None)
        note_resumption(Path(folder), config.replace(total_timesteps=10**6), 1024)
        return [(Path(folder) / RECORD).read_bytes(), b'levels = ["jumps"]\nframe_skip = 2\n[reward]\ndeath = -1.0\n']


def other_options(rng: random.Random, data: bytes) -> bytes:
    """Give a key another value, or a table another name."""
    lines = data.splitlines(keepends=True)
    place = rng.randrange(len(lines))
    key, equals, _ = lines[place].partition(b" = ")
    value = json.dumps(drawn(rng, VALUES), default=str).encode()
    others = b"[run]\n", b"[reward.time]\n", b"run = 5\n", b"[[run.resumed]]\n", b"[run.levels]\n", b"[run.options]\n"
    other = rng.choice(others)
    lines[place] = key + equals + value + b"\n" if equals else other
    return b"".join(lines)


def read_options(data: bytes) -> None:
    from nclone_env.train import TrainConfig, read_recipe

    recipe = in_file(read_recipe, data)
    recipe.differences()
    with suppress(ConfigError):  # of other levels
        recipe.check_inputs(TrainConfig.of(levels=("jumps",)), None)


# JSON


@lru_cache(maxsize=1)
def profiles() -> list[bytes]:
    """Return a profile of memory."""
    return [json_text(compute_stats(measurements())).encode()]


def other_values(rng: random.Random, data: bytes) -> bytes:
    """Exchange one to three parts of JSON."""
    return json_of(rng, with_other_values(rng, json.loads(data), (*VALUES, *_HOSTILE)))


def compare_profiles(data: bytes) -> None:
    """Compare a profile with an undamaged one, in both directions; the text is plain and short."""
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder) / f"{SOURCE}.json", Path(folder) / "good.json"
        one.write_bytes(data)
        other.write_bytes(profiles()[0])
        for pair in ((one, other), (other, one)):
            text, _ = comparison(*pair, 0.0, 0.0)
            assert all(character == "\n" or is_plain(character) for character in text), text[:500]
            assert len(text) < 100_000


@lru_cache(maxsize=1)
def tables() -> list[bytes]:
    """Return the table of searches on two levels."""
    rows = [vars(Row(name, completed=True, frames=5, recording="0.replay")) for name in ("a/1", "a/2")]
    return ["".join(f"{json.dumps(row)}\n" for row in rows).encode()]


def other_rows(rng: random.Random, data: bytes) -> bytes:
    rows = [other_values(rng, line) if rng.random() < 0.6 else line for line in data.splitlines()]
    return b"\n".join(with_other_lines(rng, rows)) + b"\n"


def read_rows(data: bytes) -> None:
    """Read the table of searches, and as the table of a generated pack."""
    with tempfile.TemporaryDirectory(prefix=SOURCE) as folder:
        path = Path(folder) / TABLE
        path.write_bytes(data)
        rows_before(Path(folder), {"a/3"})
        read_table(path)


# Files of levels and recordings by their path, also packed


def opened() -> list[bytes]:
    """Return levels and recordings, and two of them in gzip."""
    return [*packs()[:2], recordings()[0], peers()[0], gzip.compress(packs()[0], mtime=0)]


def other_packed(rng: random.Random, data: bytes) -> bytes:
    """Return a file of levels or a recording in gzip, damaged within or without."""
    inner = rng.choice((any_run, lambda rng: rng.choice(packs()), lambda rng: bytes(rng.choice((0, 10**6, 10**7)))))(
        rng
    )
    whole = gzip.compress(inner, 1, mtime=0)
    return whole[: rng.randrange(len(whole))] + rng.choice((b"", whole)) if rng.random() < 0.5 else whole


def read_opened(data: bytes) -> None:
    """Read a file by its path, as levels and as a recording."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # levels of a pack that are left out
        path, errors = Path(folder) / f"{SOURCE}.txt", []
        path.write_bytes(data)
        readers = _load_levels, _load_folder, load_recording, load_any_recording, load_verified, verify
        for read in readers:
            try:
                read(path)
            except (FormatError, UnknownLevelError) as error:
                errors.append(error)
        if len(errors) == len(readers):
            raise errors[0]


def _load_levels(path: Path) -> None:
    load_levels([str(path)])


def _load_folder(path: Path) -> None:
    load_levels([str(path.parent)])


TARGETS = (
    Target("journal", journals, mutant(journals, other_journal, words=_WORDS), read_journal, (NcloneError,), source=""),
    Target("curve", curves, mutant(curves, other_cells, words=_WORDS), read_learning_curve, (FormatError, OSError)),
    Target("recipe", recipes, mutant(recipes, other_options, words=_WORDS), read_options, (ConfigError,)),
    Target("results", results, mutant(results, other_cells, words=_WORDS), read_results, (CheckpointError,)),
    Target("profile", profiles, mutant(profiles, other_values, words=_WORDS), compare_profiles, (ConfigError,)),
    Target("solutions", tables, mutant(tables, other_rows, words=_WORDS), read_rows, (ConfigError, FormatError)),
    Target("opened", opened, mutant(opened, other_packed), read_opened, (FormatError,)),
)
