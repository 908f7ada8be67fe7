"""The submission format, a zip file.

``submission.json`` states the track and the policy, the SHA-256 of every other member, and the scores. Each run n has
the members ``n-sampled-steps.npy`` (uint32), ``n-sampled-actions.npy`` (uint8) and ``n-sampled-ends.npy`` (``END`` of
``attempts``), the same with ``probable``, and possibly ``n-policy.pt``, a checkpoint, and ``n-curve.csv``, a learning
curve. Readers refuse members that are missing, unknown, too large for the track or of another digest.
"""

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env._files import UNREADABLE, open_regular, write_file
from nclone_env._version import __version__
from nclone_env.benchmark.attempts import END, Attempts, Run
from nclone_env.benchmark.scores import Score, scores
from nclone_env.benchmark.track import TRACK_NAMES, load_track
from nclone_env.errors import FormatError, plain, shortened

FORMAT = 1
_INDEX = "submission.json"
_KEYS = (
    *("format", "track", "track_digest", "mode", "budget", "title"),
    *("command", "versions", "runs", "members", "scores"),
)
_MOST_BYTES, _MOST_TEXT, _MOST_RUNS = 1 << 30, 1 << 20, 64
_MOST_POLICY = 1 << 28
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

    def save(self, path: str | Path) -> None:
        """Write the submission to a file.

        Raises:
            ConfigError: if there is no such track.
            OSError: if the file cannot be written.
        """
        write_file(Path(path), write_submission(self))


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
    members = {name: data for number, run in enumerate(submission.runs) for name, data in _members(number, run)}
    index = {
        "format": FORMAT,
        "track": track.name,
        "track_digest": track.digest,
        **{name: getattr(submission, name) for name in ("mode", "budget", "title", "command")},
        "versions": dict(submission.versions),
        "runs": [{"seed": run.seed, "claimed": dict(run.claimed)} for run in submission.runs],
        "members": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
        "scores": as_values(scores(track, submission.runs)) if submission.scores is None else submission.scores,
    }
    text = json.dumps(index, indent=1, sort_keys=True, allow_nan=False)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {_INDEX: text.encode(), **members}.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # without the time
    return stream.getvalue()


def as_values(found: Mapping[str, Score]) -> dict[str, dict[str, float | None]]:
    """Return scores as JSON values."""
    return {name: asdict(score) for name, score in found.items()}


def read_submission(source: str | Path | bytes) -> Submission:
    """Read a submission without playing it; see :func:`nclone_env.benchmark.verify`.

    Args:
        source: path or contents of the file.

    Raises:
        FormatError: if it is not a submission, damaged, or its members do not fit its track.
        OSError: if the file cannot be read.
    """
    name = "<bytes>" if isinstance(source, bytes) else plain(source)
    if not isinstance(source, bytes):
        with open_regular(Path(source), _MOST_BYTES) as file:
            source = file.read()
    try:
        with zipfile.ZipFile(io.BytesIO(source)) as archive:
            return _Reader(archive, name).submission()
    except FormatError:
        raise
    except UNREADABLE as error:
        raise FormatError(name, "file", "a submission, a zip file", shortened(str(error))) from error


class _Reader:
    """Reads the members of an archive; ``name`` is that of the file."""

    def __init__(self, archive: zipfile.ZipFile, name: str):
        self._archive, self._name = archive, name
        names = archive.namelist()
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
            if not (isinstance(row, dict) and set(row) == {"seed", "claimed"} and isinstance(row["claimed"], dict)):
                self._refuse(f"runs[{number}]", "an object with seed and claimed", shortened(row))
            if type(row["seed"]) is not int or not 0 <= row["seed"] < 2**31:
                self._refuse(f"runs[{number}].seed", "a number from 0 to 2147483647", shortened(row["seed"]))
            runs.append(self._run(number, row))
        used = {name for number, run in enumerate(runs) for name, _ in _members(number, run)}
        if used != set(index["members"]):
            self._refuse("members", "those of its runs", shortened(sorted(used ^ set(index["members"]))))
        names = ("track", "mode", "budget", "title", "command", "versions", "scores")
        return Submission(runs=tuple(runs), **{name: index[name] for name in names})

    def _read_index(self) -> dict[str, Any]:
        index = json.loads(self._read(_INDEX, _MOST_TEXT))
        if not isinstance(index, dict) or set(index) != set(_KEYS):
            self._refuse(_INDEX, f"an object with the keys {', '.join(_KEYS)}", shortened(index))
        kinds = {"runs": list, "members": dict, "versions": dict, "scores": dict}
        for key in _KEYS[1:]:
            if not isinstance(index[key], kinds.get(key, str)):
                self._refuse(f"{_INDEX}: {key}", kinds.get(key, str).__name__, shortened(index[key]))
        if index["format"] != FORMAT or type(index["format"]) is not int:
            self._refuse(f"{_INDEX}: format", str(FORMAT), shortened(index["format"]))
        if index["track"] not in TRACK_NAMES:
            self._refuse(f"{_INDEX}: track", f"one of {', '.join(TRACK_NAMES)}", shortened(index["track"]))
        track = load_track(index["track"])
        for key, got, known in (
            ("track_digest", index["track_digest"], (track.digest,)),
            ("mode", index["mode"], track.modes),
            ("budget", index["budget"], tuple(track.budgets)),
        ):
            if got not in known:
                self._refuse(f"{_INDEX}: {key}", " or ".join(known), shortened(got))
        if not 1 <= len(index["runs"]) <= _MOST_RUNS:
            self._refuse(f"{_INDEX}: runs", f"1 to {_MOST_RUNS}", str(len(index["runs"])))
        return index

    def _run(self, number: int, row: Mapping[str, Any]) -> Run:
        members = self._index["members"]
        probable = self._attempts(number, "probable", 1) if f"{number}-probable-steps.npy" in members else None
        optional = {"policy": (f"{number}-policy.pt", _MOST_POLICY), "curve": (f"{number}-curve.csv", _MOST_POLICY)}
        found = {key: self._member(*place) for key, place in optional.items() if place[0] in members}
        sampled = self._attempts(number, "sampled", self._track.attempts)
        return Run(row["seed"], sampled, probable, row["claimed"], **found)

    def _attempts(self, number: int, kind: str, attempts: int) -> Attempts:
        """Read the episodes of a run, as many as the track asks for."""
        episodes, most = len(self._track.levels) * attempts, self._track.max_steps
        steps = self._array(number, kind, "steps", episodes)
        if not 1 <= steps.min() <= steps.max() <= most:
            self._refuse(f"{number}-{kind}-steps.npy", f"1 to {most} steps", f"{steps.min()} to {steps.max()}")
        actions = self._array(number, kind, "actions", int(steps.sum(dtype=np.int64)))
        if actions.max() > 5:
            self._refuse(f"{number}-{kind}-actions.npy", "actions 0 to 5", str(actions.max()))
        return Attempts(steps, actions, self._array(number, kind, "ends", episodes))

    def _array(self, number: int, kind: str, name: str, size: int) -> np.ndarray:
        member, dtype = f"{number}-{kind}-{name}.npy", _ARRAYS[name]
        data = self._member(member, 1000 + size * dtype.itemsize)
        array = np.load(io.BytesIO(data), allow_pickle=False)
        if array.dtype != dtype or array.shape != (size,) or saved(array) != data:
            self._refuse(member, f"({size},) {dtype.name}", f"{array.shape} {array.dtype.name}")
        return array

    def _member(self, name: str, most: int) -> bytes:
        data = self._read(name, most)
        if hashlib.sha256(data).hexdigest() != self._index["members"].get(name):
            self._refuse(name, f"the SHA-256 that {_INDEX} states", "another one")
        return data

    def _read(self, name: str, most: int) -> bytes:
        """Return a member, of which no more than ``most`` bytes are decompressed."""
        try:
            with self._archive.open(name) as file:
                data = file.read(most + 1)
        except KeyError:
            self._refuse("members", name, "none of this name")
        if len(data) > most:
            self._refuse(name, f"at most {most:,} bytes", "more")
        return data

    def _refuse(self, where: str, expected: str, got: str) -> Any:
        raise FormatError(self._name, where, expected, got)


def _members(number: int, run: Run) -> list[tuple[str, bytes]]:
    """Return names and contents of the members of a run."""
    parts = [
        (f"{number}-{kind}-{name}.npy", saved(np.asarray(getattr(attempts, name), dtype)))
        for kind in _KINDS
        for name, dtype in _ARRAYS.items()
        if (attempts := getattr(run, kind)) is not None
    ]
    optional = ((f"{number}-policy.pt", run.policy), (f"{number}-curve.csv", run.curve))
    return parts + [(name, data) for name, data in optional if data is not None]


def saved(array: np.ndarray) -> bytes:
    """Return an array as the contents of an ``.npy`` file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()
