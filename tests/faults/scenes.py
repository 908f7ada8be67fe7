"""The kinds of files that the package writes: how to write an old and a new one of each, and how to read them."""

import dataclasses
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from nclone_env import _arrays, jit
from nclone_env._files import write_file
from nclone_env.cli.app import main
from nclone_env.generate.levels import CollectionFiles, PackEntry, write_collection
from nclone_env.level.load import load_level
from nclone_env.memory.explain.stats import compute_stats
from nclone_env.memory.show import write_reports
from nclone_env.replay.recording import Recording, load_recording
from nclone_env.replay.video import write_video
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from nclone_env.train.reports.plots import write_learning_curve
from nclone_env.train.runs.curve import LearningCurve

from ..memory import by_hand
from . import kernels

LEVELS = "first-steps/01-walk", "first-steps/02-step"
LEVEL = LEVELS[0]
RECORDED = ("--inputs", "50R", "--output", "{folder}/a.replay", "--force")
GENERATED = ("--output", "{folder}/pack.txt", "--count", "3", "--force", "--seed", "{version}")


def bytes_of(path: Path) -> object:
    """Return what makes two files the same."""
    return path.read_bytes()


@dataclass(frozen=True)
class Scene:
    """A kind of file."""

    name: str
    write: Callable[[Path, int], object]
    """Writes version 0 or 1 into a folder."""
    read: Callable[[Path], object] = bytes_of
    """Returns what must be that of one of the versions; raises an error if the file is damaged."""
    is_cache: bool = False
    """Whether it is no error if it cannot be written."""
    together: Callable[[Path], None] = lambda folder: None
    """Checks what must hold between several files."""


def checkpoint(version: int) -> Checkpoint:
    numbers = torch.arange(20_000, dtype=torch.float32) + version
    empty = {field.name: {} for field in dataclasses.fields(Checkpoint)[:-3]}
    return Checkpoint(**empty | {"policy": {"weights": numbers, "bias": numbers[:9]}, "curve": [{"updates": version}]})


def read_checkpoint(path: Path) -> object:
    loaded = load_checkpoint(path)
    tensors = ((name, hashlib.sha256(value.numpy().tobytes()).hexdigest()) for name, value in loaded.policy.items())
    return tuple(tensors), str(loaded.curve)


def write_latest_checkpoint(folder: Path, version: int) -> None:
    save_checkpoint(folder / "checkpoint.pt", checkpoint(version))


def rows(version: int) -> list[dict[str, float]]:
    names = ("success_rate", "min_success_rate", "mean_return")
    return [{"timesteps": 512 * (n + 1), **dict.fromkeys(names, n / 100 + version)} for n in range(50)]


def write_csv(folder: Path, version: int) -> None:
    curve = LearningCurve(folder, 50)
    for row in rows(version):
        curve.rows.append(row)
    curve.write_csv()


def write_png(folder: Path, version: int) -> None:
    write_learning_curve(rows(version), folder / "learning_curve.png", TrainConfig())


def write_level_csv(folder: Path, version: int) -> None:
    from nclone_env.train.runs.resume import write_level_table

    means = SimpleNamespace(
        level_names=("a", "b"), counts=np.array([1, 2]), means=lambda name: np.array([0.5, version], np.float64)
    )
    write_level_table(folder / "levels.csv", means, SimpleNamespace(weights=None), None)


def write_recording(folder: Path, version: int) -> None:
    Recording.of(load_level(LEVEL), bytes([2] * (50 + 50 * version))).save(folder / "run.replay")


def write_mp4(folder: Path, version: int) -> None:
    shades = np.random.default_rng(version).integers(0, 255, (12, 128, 192, 3), np.uint8)
    write_video(shades, folder / "run.mp4", 15)


def write_report(folder: Path, version: int) -> None:
    stats = compute_stats(by_hand.measurements(traced_per_step=version))
    write_reports(stats, folder, as_json=True, as_html=True)


def write_text(folder: Path, version: int) -> None:
    write_file(folder / "evaluation.txt", b"old or new\n" * (1_000 + version))


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    """Keep kernels and compiled levels in a folder."""
    before = os.environ.get("NCLONE_ENV_CACHE_DIR")
    os.environ["NCLONE_ENV_CACHE_DIR"] = str(folder)
    jit.cache_folder.cache_clear()
    try:
        yield
    finally:
        os.environ.pop("NCLONE_ENV_CACHE_DIR")
        os.environ |= {} if before is None else {"NCLONE_ENV_CACHE_DIR": before}
        jit.cache_folder.cache_clear()


def write_levels(folder: Path, version: int) -> None:
    layout = {"numbers": np.dtype(np.float32), "bytes": np.dtype(np.uint8)}
    made = {"numbers": np.arange(50_000, dtype=np.float32), "bytes": np.arange(100, dtype=np.uint8)}
    with cache_in(folder):
        found = _arrays.cached_arrays("levels", f"{version}", layout, lambda: made)
    assert all((found[name] == made[name]).all() for name in layout), "the cache gives other arrays than were made"


def write_kernel(folder: Path, version: int) -> None:
    values = np.arange(5, dtype=(np.int64, np.float64)[version])
    with cache_in(folder):
        assert jit.kernel(kernels.total)(values) == 10, "the cache gives the code of another kernel"


def read_kernel(path: Path) -> object:
    data = path.read_bytes()
    assert int.from_bytes(data[:4], "little") == zlib.crc32(data[4:]), f"{path}: damaged"
    return None  # compiled code has no canonical bytes


def write_pack(folder: Path, version: int) -> None:
    def entries():
        for number in range(4 + version):
            name = f"{number:03d}-{version}.replay"
            line = f"{name}\n".encode()
            yield PackEntry(line, {"recording": name, "rejected": {}}, name, line * 2_000)

    write_collection(CollectionFiles(folder / "pack.txt"), entries())


def check_pack(folder: Path) -> None:
    pack = folder / "pack.txt"
    for name in pack.read_text().splitlines() if pack.exists() else ():
        assert (folder / "pack-recordings" / name).exists(), f"the pack names {name}, which is not there"


def write_in_place(folder: Path, version: int) -> None:
    with (folder / "file").open("wb", buffering=0) as file:
        for part in range(3):
            file.write(bytes([version, part]) * 100)


def write_after_removal(folder: Path, version: int) -> None:
    (folder / "file").unlink(missing_ok=True)
    write_file(folder / "file", bytes([version]) * 100)


def write_regardless(folder: Path, version: int) -> None:
    with suppress(OSError):
        write_file(folder / "file", bytes([version]) * 100)


def check_generated(folder: Path) -> None:
    table, pack = folder / "pack.jsonl", folder / "pack.txt"
    if pack.exists():
        levels = {load_level(f"{pack}#{number}").raw.digest for number in range(len(pack.read_text().splitlines()))}
        recorded = {load_recording(path).level.digest for path in (folder / "pack-recordings").iterdir()}
        assert levels <= recorded, "a level of the pack has no recording"
        assert table.exists()


def command(*arguments: str) -> Callable[[Path, int], object]:
    """Return a writer that runs a command; ``{folder}``, ``{level}`` and ``{version}`` stand for those of a version."""

    def write(folder: Path, version: int) -> int:
        with redirect_stdout(StringIO()):
            return main([part.format(folder=folder, level=LEVELS[version], version=version) for part in arguments])

    return write


def read_untimed(path: Path) -> object:
    if path.suffix != ".jsonl":
        return path.read_bytes()
    return [json.loads(line) | {"seconds": None} for line in path.read_text().splitlines()]


SCENES = (
    Scene("checkpoint", write_latest_checkpoint, read_checkpoint),
    Scene("learning_curve.csv", write_csv),
    Scene("learning_curve.png", write_png),
    Scene("levels.csv", write_level_csv),
    Scene("recording", write_recording),
    Scene("video", write_mp4),
    Scene("memory reports", write_report),
    Scene("text, table", write_text),
    Scene("level library", write_levels, is_cache=True),
    Scene("kernel cache", write_kernel, read_kernel, is_cache=True),
    Scene("generated pack", write_pack, together=check_pack),
    Scene("levels convert", command("levels", "convert", "{level}", "{folder}/level.map", "--force")),
    Scene("levels show", command("levels", "show", "{level}", "--output", "{folder}/level.png", "--force")),
    Scene("replay record", command("replay", "record", "{level}", *RECORDED)),
    Scene("solve", command("solve", "{level}", "--frames", "5000", "--output", "{folder}", "--force"), read_untimed),
    Scene("levels generate", command("levels", "generate", *GENERATED), read_untimed, together=check_generated),
)

CONTROLS = (
    Scene("control: in place", write_in_place),
    Scene("control: removal", write_after_removal),
    Scene("control: regardless", write_regardless),
)
"""Wrong ways to write, which a sweep must find."""
