"""The submission format, a zip file.

``submission.json`` states the track and the policy, the SHA-256 of every other member, and the scores. Each run n has
the members ``n-sampled-steps.npy`` (uint32), ``n-sampled-actions.npy`` (uint8) and ``n-sampled-ends.npy`` (``END`` of
``attempts``), the same with ``probable``, and possibly ``n-policy.pt``, a checkpoint, and ``n-curve.csv``, a learning
curve. Members are stored or deflated. Readers refuse members that are missing, unknown, packed otherwise, too large for
the track or of another digest, and archives that unpack to more than ``_MOST_BYTES``.

A submission that a program made is checked as one that was read: :func:`check_submission`.
"""

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from nclone_env._files import UNREADABLE, check_directory, open_regular, write_file
from nclone_env._version import __version__
from nclone_env.benchmark.attempts import END, Attempts, Run
from nclone_env.benchmark.scores import Score, scores
from nclone_env.benchmark.track import TRACK_NAMES, Track, load_track
from nclone_env.errors import FormatError, checked, is_plain, plain, shortened
from nclone_env.game import NUM_ACTIONS

FORMAT = 1
_INDEX = "submission.json"
_KEYS = (
    *("format", "track", "track_digest", "mode", "budget", "title"),
    *("command", "versions", "runs", "members", "scores"),
)
_MOST_BYTES, _MOST_TEXT, _MOST_RUNS, _MOST_TITLE = 1 << 27, 1 << 20, 64, 100
"""Most bytes of all members together, bytes of the index, runs, and characters of the title."""
_MOST_DIRECTORY = 1 << 16
"""Bytes of the directory of members."""
_NUMBERS = 2**31
"""Of seeds."""
_ARRAYS: Mapping[str, np.dtype] = {"steps": np.dtype("<u4"), "actions": np.dtype("u1"), "ends": END}
_KINDS = ("sampled", "probable")


@dataclass(frozen=True, eq=False)
class Submission:
    """A result on a track.

    Attributes:
        track: name of the track.
        mode: observations that the policy uses, a name in ``track.modes``.
        budget: name in ``track.budgets``.
        title: name of the algorithm.
        runs: one for each seed.
        command: command that made the result.
        versions: versions of the software that made it.
        scores: the scores it states; None: those of the runs.
    """

    track: str
    mode: str
    budget: str
    title: str
    runs: tuple[Run, ...]
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=lambda: own_versions())
    scores: Mapping[str, Any] | None = None

    @checked()
    def save(self, path: str | Path) -> None:
        """Write the submission to a file.

        Raises:
            FormatError: if it contradicts its track, or is too large.
            OSError: if the file cannot be written.
        """
        check_submission(self)
        write_file(path, write_submission(self))


def own_versions() -> dict[str, str]:
    """Return the versions of this package and of what its results may depend on."""
    from importlib.metadata import version

    return {
        "nclone_env": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba")},
    }


def write_submission(submission: Submission) -> bytes:
    """Return the contents of the file."""
    track = load_track(submission.track)
    members = {
        f"{number}-{name}": part if isinstance(part, bytes) else saved(part)
        for number, run in enumerate(submission.runs)
        for name, part in _parts(run).items()
    }
    index = {
        "format": FORMAT,
        "track": track.name,
        "track_digest": track.digest,
        **{name: getattr(submission, name) for name in ("mode", "budget", "title", "command")},
        "versions": dict(submission.versions),
        "runs": [{"seed": int(run.seed), "claimed": dict(run.claimed)} for run in submission.runs],
        "members": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
        "scores": as_values(scores(track, submission.runs)) if submission.scores is None else submission.scores,
    }
    text = _json(index, indent=1, sort_keys=True)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {_INDEX: text.encode(), **members}.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # without the time
    return stream.getvalue()


def as_values(found: Mapping[str, Score]) -> dict[str, dict[str, float | None]]:
    """Return scores as JSON values."""
    return {name: asdict(score) for name, score in found.items()}


@checked()
def read_submission(source: str | Path | bytes) -> Submission:
    """Read a submission without playing it; see :func:`nclone_env.benchmark.verify`.

    Args:
        source: path or contents of the file.

    Raises:
        FormatError: if it is not a submission, damaged, or its members do not fit its track.
        OSError: if the file cannot be read.
    """
    if isinstance(source, bytes):
        return _read_archive(io.BytesIO(source), "<bytes>")
    with open_regular(source, _MOST_BYTES + _MOST_TEXT) as file:
        return _read_archive(file, plain(source))


def _read_archive(file: BinaryIO, name: str) -> Submission:
    try:
        check_directory(file, _MOST_DIRECTORY)
        with zipfile.ZipFile(file) as archive:
            found = _Reader(archive, name).submission()
        check_submission(found, name)
    except FormatError:
        raise
    except UNREADABLE as error:
        raise FormatError(name, "file", "a submission, a zip file", shortened(str(error))) from error
    return found


class _Reader:
    """Reads the members of an archive; ``name`` is that of the file."""

    def __init__(self, archive: zipfile.ZipFile, name: str):
        self._archive, self._name = archive, name
        names = archive.namelist()
        size = sum(member.file_size for member in archive.infolist())
        if size > _MOST_BYTES:
            self._refuse("members", f"at most {_MOST_BYTES:,} bytes in all", f"{size:,}")
        if len(set(names)) < len(names) or _INDEX not in names:
            self._refuse("members", f"different names, one of them {_INDEX}", shortened(names))
        self._index = self._read_index()
        self._track = load_track(self._index["track"])
        expected = sorted([_INDEX, *self._index["members"]])
        if sorted(names) != expected:
            self._refuse("members", f"those that {_INDEX} lists", shortened(sorted(set(names) ^ set(expected))))

    def submission(self) -> Submission:
        index, runs = self._index, []
        for number, row in enumerate(index["runs"]):
            if not (isinstance(row, dict) and set(row) == {"seed", "claimed"}):
                self._refuse(f"runs[{number}]", "an object with seed and claimed", shortened(row))
            runs.append(self._run(number, row))
        used = {f"{number}-{name}" for number, run in enumerate(runs) for name in _parts(run)}
        if used != set(index["members"]):
            self._refuse("members", "those of its runs", shortened(sorted(used ^ set(index["members"]))))
        names = ("track", "mode", "budget", "title", "command", "versions", "scores")
        return Submission(runs=tuple(runs), **{name: index[name] for name in names})

    def _read_index(self) -> dict[str, Any]:
        index = json.loads(self._read(_INDEX, _MOST_TEXT))
        if not isinstance(index, dict) or set(index) != set(_KEYS):
            self._refuse(_INDEX, f"an object with the keys {', '.join(_KEYS)}", shortened(index))
        for key, kind in {"track": str, "runs": list, "members": dict, "scores": dict}.items():
            if not isinstance(index[key], kind):
                self._refuse(f"{_INDEX}: {key}", kind.__name__, shortened(index[key]))
        if index["format"] != FORMAT or type(index["format"]) is not int:
            self._refuse(f"{_INDEX}: format", str(FORMAT), shortened(index["format"]))
        track = _track_of(index["track"], self._name)
        if index["track_digest"] != track.digest:
            self._refuse(f"{_INDEX}: track_digest", track.digest, shortened(index["track_digest"]))
        if len(index["runs"]) > _MOST_RUNS:
            self._refuse(f"{_INDEX}: runs", f"1 to {_MOST_RUNS}", str(len(index["runs"])))
        return index

    def _run(self, number: int, row: Mapping[str, Any]) -> Run:
        members = self._index["members"]
        probable = self._attempts(number, "probable", 1) if f"{number}-probable-steps.npy" in members else None
        optional = {"policy": f"{number}-policy.pt", "curve": f"{number}-curve.csv"}
        found = {key: self._member(name, _MOST_BYTES) for key, name in optional.items() if name in members}
        sampled = self._attempts(number, "sampled", self._track.attempts)
        return Run(row["seed"], sampled, probable, row["claimed"], **found)

    def _attempts(self, number: int, kind: str, attempts: int) -> Attempts:
        """Read the episodes of a run, as many as the track asks for."""
        episodes = len(self._track.levels) * attempts
        steps = self._array(number, kind, "steps", episodes)
        actions = self._array(number, kind, "actions", min(int(steps.sum(dtype=np.int64)), _MOST_BYTES))
        return Attempts(steps, actions, self._array(number, kind, "ends", episodes))

    def _array(self, number: int, kind: str, name: str, size: int) -> np.ndarray:
        member, dtype = f"{number}-{kind}-{name}.npy", _ARRAYS[name]
        head = _head(size, dtype)
        data = self._member(member, len(head) + size * dtype.itemsize)
        if not data.startswith(head) or len(data) != len(head) + size * dtype.itemsize:
            self._refuse(member, f"({size},) {dtype.name}", f"another array of {len(data):,} bytes")
        return np.frombuffer(data, dtype, offset=len(head)).copy()  # kernels take writable arrays

    def _member(self, name: str, most: int) -> bytes:
        data = self._read(name, most)
        if hashlib.sha256(data).hexdigest() != self._index["members"].get(name):
            self._refuse(name, f"the SHA-256 that {_INDEX} states", "another one")
        return data

    def _read(self, name: str, most: int) -> bytes:
        """Return a member of at most so many bytes; of one that has more than it states, no more are decompressed."""
        try:
            member = self._archive.getinfo(name)
        except KeyError:
            self._refuse("members", name, "none of this name")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            self._refuse(name, "a member that is stored or deflated", f"compression {member.compress_type}")
        if member.file_size > most:
            self._refuse(name, f"at most {most:,} bytes", f"{member.file_size:,}")
        with self._archive.open(member) as file:
            return file.read(member.file_size + 1)  # without a number, zipfile unpacks 2 GB before it looks at the size

    def _refuse(self, where: str, expected: str, got: str) -> NoReturn:
        raise FormatError(self._name, where, expected, got)


def check_submission(found: Submission, source: str = "submission") -> None:
    """Check what a submission states, so that it can be played and shown; it may be of a file or of a program."""
    track = _track_of(found.track, source)
    check_entry(found.title, found.runs, source)
    stated = {"versions": found.versions, "scores": {} if found.scores is None else found.scores}
    for number, run in enumerate(found.runs):
        where = f"runs[{number}]"
        if not isinstance(run, Run):
            raise FormatError(source, where, "a Run", shortened(run))
        if not isinstance(run.seed, Integral) or isinstance(run.seed, bool) or not 0 <= run.seed < _NUMBERS:
            raise FormatError(source, f"{where}.seed", f"a number from 0 to {_NUMBERS - 1}", shortened(run.seed))
        stated[f"{where}.claimed"] = run.claimed
        _check_attempts(track, run.sampled, track.attempts, source, f"{where}.sampled")
        if run.probable is not None:
            _check_attempts(track, run.probable, 1, source, f"{where}.probable")
        for name in ("policy", "curve"):
            if not isinstance(getattr(run, name), bytes | None):
                raise FormatError(source, f"{where}.{name}", "bytes", shortened(getattr(run, name)))
    for name, known in {"mode": track.modes, "budget": tuple(track.budgets)}.items():
        if not isinstance(got := getattr(found, name), str) or got not in known:
            raise FormatError(source, name, " or ".join(known), shortened(got))
    if not isinstance(found.command, str):
        raise FormatError(source, "command", "text", shortened(found.command))
    for name, value in stated.items():
        try:
            text = _json(value, sort_keys=True)
        except (TypeError, ValueError, RecursionError):
            text = ""
        if not text.startswith("{"):
            raise FormatError(source, name, "an object of JSON values", shortened(value))
        if len(text) > _MOST_TEXT:
            raise FormatError(source, name, f"at most {_MOST_TEXT:,} characters of JSON", f"{len(text):,}")
    for name, score in (found.scores or {}).items():
        values = score.values() if isinstance(score, Mapping) else (score,)
        if any(isinstance(value, bool) or not isinstance(value, Real | None) for value in values):  # true equals 1
            raise FormatError(source, f"scores: {shortened(name)}", "numbers by name", shortened(score))
    parts = [part for run in found.runs for part in _parts(run).values()]
    size = sum(len(part) if isinstance(part, bytes) else part.nbytes for part in parts)
    if size > _MOST_BYTES:
        raise FormatError(source, "runs", f"at most {_MOST_BYTES:,} bytes", f"{size:,}; leave policies out")


def _check_attempts(track: Track, given: Attempts, attempts: int, source: str, where: str) -> None:
    """Check the episodes of a run, as many as the track asks for."""
    episodes = len(track.levels) * attempts
    if not isinstance(given, Attempts):
        raise FormatError(source, where, "Attempts", shortened(given))
    for name, dtype in _ARRAYS.items():
        array, shape = getattr(given, name), (episodes,)
        if name == "actions":
            shape = (int(given.steps.sum(dtype=np.int64)),)
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
            got = f"{array.shape} {array.dtype.name}" if isinstance(array, np.ndarray) else shortened(array)
            raise FormatError(source, f"{where}.{name}", f"{shape} {dtype.name}", got)
        if name == "steps" and not 1 <= array.min() <= array.max() <= track.max_steps:
            raise FormatError(source, f"{where}.steps", f"1 to {track.max_steps}", f"{array.min()} to {array.max()}")
    if given.actions.max() > NUM_ACTIONS - 1:
        raise FormatError(source, f"{where}.actions", f"0 to {NUM_ACTIONS - 1}", str(given.actions.max()))


def check_entry(title: str, runs: Sequence[Any], source: str = "submission") -> None:
    """Check what is known before anything is played: the title, and the number of runs."""
    if not (isinstance(title, str) and 0 < len(title) <= _MOST_TITLE and title.strip() and all(map(is_plain, title))):
        raise FormatError(source, "title", f"1 to {_MOST_TITLE} printable characters", shortened(title))
    if not isinstance(runs, Sequence) or not 1 <= len(runs) <= _MOST_RUNS:
        got = str(len(runs)) if isinstance(runs, Sequence) else shortened(runs)
        raise FormatError(source, "runs", f"1 to {_MOST_RUNS}", got)


def _track_of(name: Any, source: str) -> Track:
    """Return the track that a submission names."""
    if not isinstance(name, str) or name not in TRACK_NAMES:
        raise FormatError(source, "track", f"one of {', '.join(TRACK_NAMES)}", shortened(name))
    return load_track(name)


def _json(value: Any, **options: Any) -> str:
    """Return JSON; numbers may be those of NumPy, as algorithms count with, and mappings of any kind."""
    return json.dumps(value, allow_nan=False, default=_plain_value, **options)


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.number | np.bool_):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


def _parts(run: Run) -> dict[str, np.ndarray | bytes]:
    """Return what the members of a run hold, by their names without its number."""
    found: dict[str, np.ndarray | bytes] = {}
    for kind in _KINDS:
        if (attempts := getattr(run, kind)) is not None:
            found |= {f"{kind}-{name}.npy": getattr(attempts, name) for name in _ARRAYS}
    optional = {"policy.pt": run.policy, "curve.csv": run.curve}
    return found | {name: data for name, data in optional.items() if data is not None}


def saved(array: np.ndarray) -> bytes:
    """Return an array as the contents of an ``.npy`` file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _head(size: int, dtype: np.dtype) -> bytes:
    """Return what :func:`saved` writes before the numbers of an array (size,)."""
    stream, description = io.BytesIO(), np.lib.format.dtype_to_descr(dtype)
    header = {"descr": description, "fortran_order": False, "shape": (size,)}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()
