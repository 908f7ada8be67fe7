"""Two processes that write to one place at the same time, again and again: what one of them says it wrote is there."""

import json
import multiprocessing
import os
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from nclone_env.cli.app import main
from nclone_env.level.load import load_levels
from nclone_env.replay.recording import load_recording

RACES = {"solve": 30, "record": 50, "generate": 30, "train": 10}
"""Of each kind; trainings take long."""
LEVELS = ("first-steps/01-walk", "first-steps/02-step")
TRAIN = "--total-timesteps 128 --num-envs 8 --num-steps 16 --num-minibatches 2 --episodes 1 --no-video --hidden-size 8"


def solve(number: int, place: str) -> list[str]:
    return ["solve", LEVELS[number], "--frames", "6000", "--output", place]


def record(number: int, place: str) -> list[str]:
    return ["replay", "record", LEVELS[number], "--inputs", f"{30 + number}R", "--output", f"{place}.replay"]


def generate(number: int, place: str) -> list[str]:
    words = ["--count", "1", "--seed", str(number), "--family", "pads", "--processes", "1"]
    return ["levels", "generate", *words, "--output", f"{place}.txt"]


def train(number: int, place: str) -> list[str]:
    return ["train", "--levels", LEVELS[number], "--output", ".", "--name", place, "--overwrite", *TRAIN.split()]


def solved(sides: list[int], place: str) -> bool:
    """Whether a folder holds the whole work of these processes; a later search adds its level to an earlier one's."""
    rows = [json.loads(line) for line in Path(place, "solutions.jsonl").read_text().splitlines()]
    files = {row["recording"]: load_recording(Path(place, row["recording"])) for row in rows}
    whole = {path.name for path in Path(place).glob("*.replay")} == set(files)
    levels = sorted(row["level"] for row in rows)
    return whole and levels == [LEVELS[side] for side in sides] and all(file.verify().agrees for file in files.values())


def recorded(sides: list[int], place: str) -> bool:
    """Whether a file is the work of the only process that wrote it; the other found it there."""
    return [len(load_recording(Path(f"{place}.replay")).inputs)] == [30 + side for side in sides]


def generated(sides: list[int], place: str) -> bool:
    """Whether a pack, its table and its recording are the work of the only process that wrote them."""
    (file,) = Path(f"{place}-recordings").glob("*.replay")
    (level,) = load_levels(f"{place}.txt")
    row = Path(f"{place}.jsonl").read_text()
    whole = file.name in row and load_recording(file).level.digest == level.raw.digest
    return whole and [f"-{side}-0" in file.name for side in sides] == [True]


def trained(sides: list[int], place: str) -> bool:
    """Whether a run is the whole work of one of the processes; the later one overwrites it."""
    from nclone_env.train.policies.checkpoint import load_checkpoint

    content = load_checkpoint(Path(place) / "checkpoint.pt")
    names = ("checkpoint.pt", "learning_curve.csv", "levels.csv", "evaluation.csv")
    whole = all((Path(place) / name).exists() for name in names)
    return whole and any(LEVELS[side] in content.train_config["levels"] for side in sides)


KINDS = {"solve": (solve, solved), "record": (record, recorded), "generate": (generate, generated)}
KINDS["train"] = (train, trained)


def runner(number: int, name: str, barrier: Barrier, statuses: list) -> None:
    """Run a command in each race, at the same time as the other process."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    words, races = KINDS[name][0], RACES[name]
    for race in range(races):
        barrier.wait(300)
        status = main(words(number, f"place{race}"))
        sys.stdout.flush()
        statuses[number * races + race] = status


def race(name: str) -> tuple[int, int, list[str]]:
    """Return the commands that were refused and that succeeded, and where work was lost."""
    (words, holds), races = KINDS[name], RACES[name]
    main(words(0, "warm"))  # compiles, before the fork
    context = multiprocessing.get_context("fork")
    barrier, statuses = context.Barrier(2), context.Array("i", 2 * races)
    racers = [context.Process(target=runner, args=(number, name, barrier, statuses)) for number in range(2)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(1500)
        assert racer.exitcode == 0
    lost, refused, wrote = [], 0, 0
    for number in range(races):
        ends = [statuses[number], statuses[races + number]]
        refused, wrote = refused + ends.count(2), wrote + ends.count(0)
        sides = [side for side in range(2) if ends[side] == 0]
        if set(ends) - {0, 2} or not sides or not holds(sides, f"place{number}"):
            lost.append(f"place{number}: {ends}")
    return refused, wrote, lost


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_lost(name, tmp_path, monkeypatch, capsys):
    if name == "train":
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (refused, wrote, lost), races = race(name), RACES[name]
    with capsys.disabled():
        sys.stdout.write(f"\n{name}: {races} races, {wrote} wrote, {refused} refused, {len(lost)} lost\n")
    assert not lost
    assert wrote >= races
    assert wrote + refused == 2 * races
    assert not list(tmp_path.rglob(".nclone_env-*"))
