"""Files of other people: every level of the packs beside the checkout, and every recording, is read and played."""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv
from nclone_env.config import OBSERVATION_NAMES
from nclone_env.errors import FormatError, LevelFormatError
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.level import RawLevel, count_exits, validate
from nclone_env.level.load import load_levels
from nclone_env.render.picture import level_picture
from nclone_env.replay.recording import Recording, load_any_recording, load_verified
from nclone_env.sim.trajectory import simulate

from ..shared import SHARED, needs_shared

pytestmark = needs_shared

PACKS = sorted((SHARED / "maps").rglob("*.txt")) if SHARED else []
DAMAGED = {("SL2.txt", 213)}
"""Levels whose lines end too early."""
UNLIKE = {
    "20251023_113733_train_simple_100004.replay": "a guard starts later here (physics 03, section 4)",
    "20251023_153053_train_very_simple_100024.replay": "its map is shifted by a byte",
    "20251023_153108_train_very_simple_100038.replay": "its map is shifted by a byte",
}
"""Recordings that do not end as their files state, and why."""
RECORDINGS = sorted((SHARED / "recordings-peer").glob("*.replay")) if SHARED else []
FRAMES = 300


@dataclass
class Totals:
    levels: int = 0
    read: int = 0
    observed: int = 0
    warnings: int = 0
    refused: list[tuple[str, int]] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"levels read {self.read} of {self.levels}, observed {self.observed}, warnings {self.warnings}, "
            f"refused {self.refused}"
        )


def sources() -> Iterator[tuple[Path, int, LevelFile]]:
    for path in PACKS:
        file = LevelFile.open(path)
        assert file.pack is not None
        yield from ((path, number, file) for number in range(len(file.pack)))


def check_level(raw: RawLevel, random: np.random.Generator) -> None:
    """Validate, write, play and draw a level."""
    assert read_map(write_map(raw)).digest == raw.digest
    assert read_map(write_map(raw)).title == raw.title
    run = simulate(raw, np.repeat(random.integers(0, 8, FRAMES // 4), 4))
    assert len(run) == FRAMES
    assert np.isfinite([run.x, run.y, run.xspeed, run.yspeed]).all()
    picture = level_picture(raw, scale=0.5)
    assert picture.shape == (300, 528, 3)
    assert picture.any()


def observe(raw: RawLevel) -> None:
    """Step an environment with all observations once, which must be in their spaces."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # slow levels
        env = NPlusPlusEnv(levels=(raw,), observations=OBSERVATION_NAMES)
        assert env.observation_space.contains(env.reset(seed=0)[0])
        assert env.observation_space.contains(env.step(2)[0])
        env.close()


def sweep(every: int, observe_every: int) -> Totals:
    """Check each ``every``-th level of all packs."""
    totals, random = Totals(), np.random.default_rng(0)
    for path, number, file in list(sources())[::every]:
        totals.levels += 1
        try:
            raw = file.level(number)
        except LevelFormatError:
            totals.refused.append((path.name, number))
            continue
        totals.read += 1
        findings = validate(raw)
        totals.warnings += sum(finding.severity == "warning" for finding in findings)
        check_level(raw, random)
        if totals.read % observe_every == 1 and count_exits(raw.records):
            observe(raw)
            totals.observed += 1
    return totals


def test_a_sample_of_the_levels():
    totals = sweep(every=201, observe_every=20)
    assert set(totals.refused) <= DAMAGED
    assert totals.read > 35


@pytest.mark.slow
def test_one_level_in_forty(capsys):
    totals = sweep(every=40, observe_every=20)
    with capsys.disabled():
        sys.stdout.write(f"\n{totals}\n")
    assert set(totals.refused) <= DAMAGED
    assert totals.read >= 200


@pytest.mark.slow
def test_totals(capsys):
    """Every level is read, and every recording verified."""
    read, refused = 0, []
    for path, number, file in sources():
        try:
            file.level(number)
            read += 1
        except LevelFormatError as error:
            refused.append((path.name, number, str(error)))
    found = agreeing(RECORDINGS)
    unlike = sorted({path.name for path in RECORDINGS} - set(found))
    with capsys.disabled():
        sys.stdout.write(f"\nlevels read: {read:,} of {read + len(refused):,}\n")
        sys.stdout.writelines(f"  refused: {message}\n" for *_, message in refused)
        sys.stdout.write(f"recordings that end as their file says: {len(found)} of {len(RECORDINGS)}\n")
        sys.stdout.writelines(f"  not: {name}: {UNLIKE.get(name)}\n" for name in unlike)
    assert {(name, number) for name, number, _ in refused} == DAMAGED
    assert set(unlike) == UNLIKE.keys()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number"), [("SS2.txt", 9), ("SSS.txt", 12), ("SSS.txt", 18), ("SSS2.txt", 22)], ids=str
)
def test_levels_of_the_game_that_are_out_of_the_ordinary(name, number):
    """Hundreds of doors, and a title with a typographic apostrophe."""
    path = SHARED / "maps" / "public" / "000_met_1" / name
    raw = LevelFile.open(path).level(number)
    check_level(raw, np.random.default_rng(0))
    observe(raw)


def test_a_pack_with_a_damaged_line_loads_the_others():
    path = SHARED / "maps" / "public" / "000_met_1" / "SL2.txt"
    with pytest.warns(RuntimeWarning, match=r"left out: .*SL2\.txt: line 214: expected 0 toggle_mine records"):
        levels = load_levels(path)
    assert len(levels) == len(LevelFile.open(path).pack) - 1
    with pytest.raises(LevelFormatError, match="line 214"):
        load_levels(f"{path}#213")


def agreeing(paths: list[Path]) -> list[str]:
    """Return which recordings reach the exit as their files state; others must be read and refused by a message."""
    found = []
    for path in paths:
        try:
            file, verdict = load_verified(path)
        except FormatError:
            continue
        assert verdict.frames == len(file.inputs)
        if verdict.agrees:
            found.append(path.name)
            assert verdict.end >= verdict.frames - 1
    return found


def test_recordings_of_people_win():
    found = agreeing(RECORDINGS)
    assert {path.name for path in RECORDINGS} - set(found) == UNLIKE.keys()
    assert len(found) >= 62


def test_a_recording_that_was_changed_disagrees(tmp_path):
    data = bytearray(RECORDINGS[0].read_bytes())
    data[-250:] = bytes(250)
    (tmp_path / "other.replay").write_bytes(data)
    file, verdict = load_verified(tmp_path / "other.replay")
    assert not verdict.agrees
    assert "does not reach the exit, not as" in verdict.reason
    assert len(file.level.notes) == 1


def test_recordings_are_converted(tmp_path):
    recording = load_any_recording(RECORDINGS[0])
    recording.save(tmp_path / "mine.replay")
    read = load_any_recording(tmp_path / "mine.replay")
    assert isinstance(read, Recording)
    assert read.verify().agrees
    assert read.inputs.tobytes() == recording.inputs.tobytes()
