"""Generated levels in a running training: the same bits whatever the threads, the speed of the generator and stops.

Rooms that are made at once stand in for the generator, except in the last tests.
"""

import functools
import time
import types

import numpy as np
import pytest
import torch

from nclone_env.cli.app import main
from nclone_env.errors import CheckpointError, ConfigError
from nclone_env.game import CELEBRATING, INPUT_RIGHT
from nclone_env.generate.families import DEFAULT_FAMILIES, FAMILY_NAMES
from nclone_env.generate.families.table import FAMILIES
from nclone_env.generate.levels import generate_level
from nclone_env.level import level_set
from nclone_env.level.build import build_room
from nclone_env.level.load import load_level
from nclone_env.sim.trajectory import simulate
from nclone_env.train.config import TrainConfig
from nclone_env.train.hooks import Hooks
from nclone_env.train.levels import sources, stream
from nclone_env.train.levels.sources import Collection, evaluated_levels
from nclone_env.train.loop import train
from nclone_env.train.runs.checkpoint import load_checkpoint, save_checkpoint

from .. import runs
from ..runs import contents, until, untimed

pytestmark = pytest.mark.usefixtures("at_once")
FIXED = "first-steps/06-hop"
CASES = pytest.mark.parametrize(
    "fields",
    [
        {},
        {"levels": (FIXED, "generated"), "starts": ("known",), "max_frames": 400, "frame_skip": 10},
        {
            "levels": (FIXED, "generated"),
            "mirrored": True,
            "starts": ("planned",),
            "curriculum": "progress",
            "held_out": 0.5,
            "evaluation_interval": 3,
            "split_seed": 3,
            "max_frames": 400,
            "frame_skip": 10,
        },
    ],
    ids=["alone", "beside a fixed level", "with everything"],
)


@functools.cache
def room(family, seed, number, split):
    """Return a room whose exit is the farther away, the higher the number is."""
    place = 60 + 4 * (number % 11)
    level = build_room(f"exit {place + 10} 57", f"exit_switch {place} 57", title=f"{family} {split} {seed}-{number}")
    states = simulate(level, np.full(300, INPUT_RIGHT, np.uint8)).state
    inputs = np.full(int(np.flatnonzero(states == CELEBRATING)[0]) + 1, INPUT_RIGHT, np.uint8)
    return types.SimpleNamespace(level=level, inputs=inputs, rejected={"no solution found": 99})


class Here:
    """Computes in this process, when the answer is wanted."""

    def __init__(self):
        self.asked = []

    def submit(self, function, *args):
        self.asked.append((function, args))

    def result(self):
        function, args = self.asked.pop(0)
        return function(*args)

    def ready(self, seconds):
        return True

    def close(self):
        self.asked.clear()


class Early(Here):
    """Computes when it is asked."""

    def submit(self, function, *args):
        answer = function(*args)
        super().submit(lambda: answer)


@pytest.fixture
def rooms(monkeypatch):
    monkeypatch.setattr(stream, "Background", Here)
    monkeypatch.setattr(
        sources, "generate_level", lambda family, seed, number, split, difficulty: room(family, seed, number, split)
    )


def config(tmp_path, **fields):
    """Return a run of 9 updates with exchanges before the 4th and the 7th."""
    defaults = {"levels": ("generated",), "generated_count": 3, "generated_interval": 3, "max_frames": 160}
    defaults |= {"frame_skip": 8, "total_timesteps": 32 * 16 * 9, "held_out": 0.0}
    return runs.config(tmp_path, **{**defaults, **fields})


def same(one, other):
    return contents(one.checkpoint) == contents(other.checkpoint)


def stopped_after(updates, settings, source=None):
    return train(settings, until(updates), resume=source)


@CASES
def test_threads_and_a_generator_that_is_early_or_late_change_nothing(tmp_path, rooms, monkeypatch, fields):
    late = train(config(tmp_path, name="late", num_threads=1, **fields))
    monkeypatch.setattr(stream, "Background", Early)
    early = train(config(tmp_path, name="early", num_threads=2, **fields))
    assert same(early, late)
    assert untimed(early.curve) == untimed(late.curve)
    other = train(config(tmp_path, name="other", num_threads=2, seed=1, **fields))
    assert not same(other, late)
    assert [index for index, row in enumerate(late.curve) if "wait_seconds" in row] == [3, 6]


@CASES
def test_a_resumed_run_is_the_whole_run(tmp_path, rooms, fields):
    whole = train(config(tmp_path, name="whole", **fields))
    for updates in (2, 3, 4, 6):
        part = stopped_after(updates, config(tmp_path, name=f"part {updates}", **fields))
        assert part.counters.updates == updates
        ended = train(config(tmp_path, **fields), resume=part.checkpoint)
        assert same(ended, whole)
        assert untimed(ended.curve) == untimed(whole.curve)
        tables = [(tmp_path / name / "levels.csv").read_text() for name in (f"part {updates}", "whole")]
        assert tables[0] == tables[1]


@pytest.mark.parametrize("polls", [0, 5])
def test_a_run_that_waits_for_levels_can_be_stopped(tmp_path, rooms, monkeypatch, polls):
    """The levels of the first exchange are never there; the run is asked to stop after it has looked some times."""
    whole = train(config(tmp_path, name="whole"))
    rows, looked = [], []

    class Never(Here):
        def ready(self, seconds):
            looked.append(seconds)
            time.sleep(0.001)
            return False

    monkeypatch.setattr(stream, "Background", Never)
    part = train(
        config(tmp_path, name="part"),
        Hooks(on_update=rows.append, stop=lambda: len(rows) == 3 and len(looked) >= polls),
    )
    assert (part.interrupted, part.counters.updates, len(looked)) == (True, 3, polls)
    monkeypatch.setattr(stream, "Background", Here)
    assert same(train(config(tmp_path), resume=part.checkpoint), whole)


def test_what_was_waited_before_the_levels_came_is_counted(tmp_path, rooms, monkeypatch):
    class Slow(Here):
        looked = 0

        def ready(self, seconds):
            time.sleep(0.01)
            self.looked += 1
            return self.looked % 4 == 0

    monkeypatch.setattr(stream, "Background", Slow)
    waits = [row["wait_seconds"] for row in train(config(tmp_path)).curve if "wait_seconds" in row]
    assert len(waits) == 2
    assert min(waits) >= 0.04


def test_a_resume_that_forgets_the_levels_is_noticed(tmp_path, rooms, monkeypatch):
    part = stopped_after(4, config(tmp_path, name="part"))
    monkeypatch.setattr("nclone_env.train.runs.begin.saved_levels", lambda source: {})
    with pytest.raises(CheckpointError, match=r"it cannot be restored: .*use the same levels"):
        train(config(tmp_path), resume=part.checkpoint)


def test_a_checkpoint_is_read_once(tmp_path, rooms, monkeypatch):
    part = stopped_after(4, config(tmp_path, name="part"))
    read, load = [], torch.load
    monkeypatch.setattr(torch, "load", lambda path, **options: read.append(path) or load(path, **options))
    train(config(tmp_path), resume=part.checkpoint)
    assert read.count(part.checkpoint) == 1


def test_episodes_end_on_their_level_and_new_ones_begin_on_the_next(tmp_path, rooms):
    latest, older = tmp_path / "run" / "checkpoint.pt", []
    keep = Hooks(on_update=lambda row: older.append(load_checkpoint(latest).generated))  # of the update before
    result = train(config(tmp_path, name="run", checkpoint_interval=1, curriculum="progress"), keep)
    older = older[1:]
    kept = [(state["begun"], state["numbers"].tolist(), state["current"]) for state in older]
    assert kept[0] == kept[2] == (0, [0, 1, 2], 3)
    assert kept[3] == kept[5] == (3, [3, 4, 5, 0, 1, 2], 3)
    assert kept[6] == (6, [6, 7, 8, 3, 4, 5], 3)
    table = (tmp_path / "run" / "levels.csv").read_text().splitlines()
    assert [line.split(",")[0].split("-")[-1] for line in table[1:]] == ["6", "7", "8"]
    counted = sum(int(line.split(",")[2]) for line in table[1:])
    assert 0 < counted < result.counters.episodes


def test_the_first_episodes_on_new_levels_are_counted(tmp_path, rooms):
    result = train(config(tmp_path, name="run"))
    measured = [row["new_level_success"] for row in result.curve if "new_level_success" in row]
    assert len(measured) == 2
    assert all(0 <= share <= 1 for share in measured)
    level_stream = object.__new__(stream.LevelStream)
    level_stream.plan = types.SimpleNamespace(kept=1, in_use=3)
    level_stream.first_met = np.zeros((1, 4), np.int8)
    episodes = np.zeros(6, [("level", "i4"), ("start", "i4"), ("success", "?")])
    episodes["level"] = [0, 1, 1, 2, 2, 3]  # kept, new, new, new, new, one that has left
    episodes["start"] = [-1, -1, -1, 0, -1, -1]
    episodes["success"] = [1, 0, 1, 0, 1, 1]
    level_stream.meet(np.array([0, 1, 1, 2, 2, 3]), episodes)
    assert level_stream.first_met.tolist() == [[0, 1, 2, 0]]
    level_stream.meet(np.array([1, 3]), episodes[[2, 1]])
    assert level_stream.first_met.tolist() == [[0, 1, 2, 1]]


def test_many_exchanges_hold_no_more_levels_than_one(tmp_path, rooms):
    held = []
    fields = {"total_timesteps": 32 * 16 * 40, "held_out": 0.5}
    train(config(tmp_path, name="run", **fields), Hooks(on_update=lambda row: held.append(len(level_set._held))))
    assert max(held[4:]) == held[4]


def test_levels_that_take_too_long_or_are_known_are_left_out(monkeypatch):
    monkeypatch.setattr(
        sources, "generate_level", lambda family, seed, number, split, difficulty: room(family, seed, number, split)
    )
    lengths = [len(room("rooms", 0, number, "train").inputs) for number in range(11)]
    every = Collection(("rooms",), (0, 100), 300, 0, "train")
    assert [made.number for made in every.take(0, 4)] == [0, 1, 2, 3]
    short = Collection(("rooms",), (0, 100), lengths[4], 0, "train")
    assert [made.number for made in short.take(3, 4)] == [3, 4, 11, 12]
    one, four = (room("rooms", 0, number, "train").level for number in (1, 4))
    known = Collection(("rooms",), (0, 100), 300, 0, "train", frozenset([one.raw.digest, four.name]))
    assert [made.number for made in known.take(0, 4)] == [0, 2, 3, 5]
    with pytest.raises(ConfigError, match="a solution of at most 9 frames, got none in 4,000 sketches"):
        Collection(("rooms",), (0, 100), 9, 0, "train").take(0, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"generated_count": 0}, "generated_count: expected a whole number from 1 to 65536, got 0"),
        (
            {"generated_interval": 2},
            "generated_interval: expected at least 5 updates of 64 steps, the longest episode, got 2",
        ),
        ({"generated_families": ("rooms", "castles")}, "generated_families: expected some of rooms, .*, got 'castles'"),
        ({"generated_families": ()}, "generated_families: expected some of rooms, .*, got none"),
        (
            {"generated_difficulty": "20-60"},
            r"generated_difficulty: expected two numbers such as 20\.\.60, got '20-60'",
        ),
        (
            {"generated_difficulty": "60..20"},
            r"generated_difficulty: expected a range within 0\.\.100, .*, got 60\.\.20",
        ),
        (
            {"levels": "jumps", "generated_count": 5},
            "generated_count: expected the default .*, got 5; add 'generated' to levels",
        ),
        (
            {"levels": "jumps", "generated_families": "caves"},
            r"generated_families: expected the default .*, got \('caves',\); add 'generated' to levels",
        ),
    ],
)
def test_refusals(fields, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig.of(**{"levels": ("generated",), **fields})


def test_the_families_are_those_of_the_generator():
    assert tuple(FAMILIES) == FAMILY_NAMES
    assert TrainConfig().generated.families == DEFAULT_FAMILIES


def test_known_starts_need_a_fixed_level(tmp_path, rooms):
    with pytest.raises(ConfigError, match="starts: expected planned with generated levels alone, got known"):
        train(config(tmp_path, starts=("known",)))


class Closed(Here):
    """Counts how often it is closed."""

    count = 0

    def close(self):
        super().close()
        Closed.count += 1


@pytest.mark.parametrize(
    "name", ["nclone_env.train.runs.run.make_policy", "nclone_env.train.levels.stream.LevelStream"]
)
def test_a_run_that_cannot_begin_leaves_no_process(tmp_path, rooms, monkeypatch, name):
    monkeypatch.setattr(stream, "Background", Closed)
    monkeypatch.setattr(Closed, "count", 0)
    train(config(tmp_path, total_timesteps=32 * 16))
    assert Closed.count == 1

    def fail(*args, **fields):
        raise MemoryError

    monkeypatch.setattr(name, fail)
    with pytest.raises(MemoryError):
        train(config(tmp_path, total_timesteps=32 * 16))
    assert Closed.count == 2


def test_a_run_without_further_levels_is_saved(tmp_path, rooms, monkeypatch):
    def fail(self, updates):
        raise ConfigError("generated_difficulty: none")

    whole = train(config(tmp_path, name="whole", checkpoint_interval=99))
    with monkeypatch.context() as patch:
        patch.setattr(stream.LevelStream, "advance", fail)
        with pytest.raises(ConfigError, match="none"):
            train(config(tmp_path, name="part", checkpoint_interval=99))
    part = tmp_path / "part" / "checkpoint.pt"
    assert load_checkpoint(part).counters["updates"] == 3
    assert same(train(config(tmp_path, checkpoint_interval=99), resume=part), whole)


def test_damaged_levels_in_a_checkpoint_are_named_as_damage(tmp_path, rooms):
    path = train(config(tmp_path, total_timesteps=32 * 16)).checkpoint
    checkpoint = load_checkpoint(path)
    del checkpoint.generated["lengths"]
    save_checkpoint(path, checkpoint)
    with pytest.raises(CheckpointError, match="it cannot be restored: 'lengths'"):
        train(config(tmp_path), resume=path)


def test_levels_that_take_turns_do_not_end_a_run():
    with pytest.raises(ConfigError, match="stop_at_success: expected None with generated levels"):
        TrainConfig.of(levels=("generated",), stop_at_success=0.9)


def test_policies_are_evaluated_on_held_out_levels(rooms):
    settings = TrainConfig.of(levels=(FIXED, "generated"), held_out=0.125, split_seed=5, generated_families=("caves",))
    names = [load_level(level).name for level in evaluated_levels(settings)]
    assert names == [FIXED, *(f"caves held-out 5-{number}" for number in range(8))]
    assert len(evaluated_levels(TrainConfig.of(levels=("generated",)))) == 16
    assert evaluated_levels(TrainConfig()) == ("first-steps",)


@pytest.mark.slow
def test_the_command_line_streams_levels(tmp_path, capsys):
    """The levels are those of ``levels generate`` with the seed of the run."""
    sizes = [
        "--num-envs",
        "8",
        "--num-steps",
        "16",
        "--hidden-size",
        "16",
        "--total-timesteps",
        "1024",
        "--num-minibatches",
        "1",
    ]
    levels = ["--levels", "generated", "--generated-families", "pads", "caves", "--generated-count", "2"]
    turns = [
        "--generated-interval",
        "4",
        "--max-frames",
        "250",
        "--frame-skip",
        "8",
        "--seed",
        "7",
        "--held-out",
        "0.5",
    ]
    where = ["--output", str(tmp_path), "--name", "run", "--episodes", "1", "--no-video"]
    assert main(["train", *sizes, *levels, *turns, *where]) == 0
    assert "new levels" in capsys.readouterr().out
    state = load_checkpoint(tmp_path / "run" / "checkpoint.pt").generated
    for number, name, tiles in zip(state["numbers"].tolist(), state["names"], state["tiles"], strict=True):
        made = generate_level(("pads", "caves")[number % 2], 7, number)
        assert name == made.level.name
        assert (tiles.numpy() == made.level.raw.tiles).all()
