"""Two processes that write to one place at the same time, again and again: what one of them says it wrote is there."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from nclone_env.cli.app import main
from nclone_env.level.load import load_levels
from nclone_env.replay.recording import load_recording

RACES = {"solve": 50, "record": 50, "generate": 50, "train": 50}
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


def solved(number: int, place: str) -> bool:
    """Whether a place holds the whole work of one process, and nothing of the other."""
    (file,) = Path(place).glob("*.replay")
    rows = Path(place, "solutions.jsonl").read_text().splitlines()
    return len(rows) == 1 and f'"{LEVELS[number]}"' in rows[0] and load_recording(file).verify().agrees


def recorded(number: int, place: str) -> bool:
    return len(load_recording(Path(f"{place}.replay")).inputs) == 30 + number


def generated(number: int, place: str) -> bool:
    (file,) = Path(f"{place}-recordings").glob("*.replay")
    (level,) = load_levels(f"{place}.txt")
    row = Path(f"{place}.jsonl").read_text()
    return file.name in row and load_recording(file).level.digest == level.raw.digest and f"-{number}-0" in file.name


def trained(number: int, place: str) -> bool:
    from nclone_env.train.runs.checkpoint import load_checkpoint

    content = load_checkpoint(Path(place) / "checkpoint.pt")
    levels = content.train_config["levels"]
    names = ("checkpoint.pt", "learning_curve.csv", "levels.csv", "evaluation.csv")
    return LEVELS[number] in levels and all((Path(place) / name).exists() for name in names)


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
        last = [side for side in range(2) if ends[side] == 0]
        if set(ends) - {0, 2} or not last or not any(holds(side, f"place{number}") for side in last):
            lost.append(f"place{number}: {ends}")
        if len(last) == 2 and name != "train":  # the second found a place that was taken, without --force
            lost.append(f"place{number}: both wrote")
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
