"""The command ``nclone-env levels generate``."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nclone_env._processes import in_order, processes
from nclone_env.cli.app import main
from nclone_env.errors import ConfigError
from nclone_env.game import CELEBRATING
from nclone_env.generate import levels
from nclone_env.generate.levels import CollectionFiles, write_collection
from nclone_env.level.load import load_level, load_levels
from nclone_env.replay.recording import load_recording

from ..processes import Numbers
from ..shared import contents

PYTHONPATH = str(Path(__file__).parents[2])
FAST = ("--family", "slopes", "caves")


def run(*words) -> int:
    return main(["levels", "generate", *map(str, words)])


def alone(*words) -> int:
    """Run the command without other processes, whose start takes longer than the few levels of a test."""
    return run(*words, "--processes", 1)


def test_a_pack_a_table_and_recordings_agree(folder, capsys):
    assert alone("--output", "made/pack.txt", "--count", 4, "--seed", 3, *FAST) == 0
    out = capsys.readouterr().out
    assert "wrote 4 levels to made/pack.txt" in out
    assert re.search(r"rejected sketches: .*other split \d", out)
    levels = load_levels(["made/pack.txt"])
    rows = [json.loads(line) for line in (folder / "made/pack.jsonl").read_text().splitlines()]
    assert [row["family"] for row in rows] == ["slopes", "caves"] * 2
    for number, (level, row) in enumerate(zip(levels, rows, strict=True)):
        assert level.raw.title == row["name"] == f"{row['family']} train 3-{number}"
        assert level.raw.digest == row["digest"]
        assert load_level(f"made/pack.txt#{row['name']}").raw.digest == row["digest"]
        recording = load_recording(folder / "made/pack-recordings" / row["recording"])
        assert recording.level.digest == row["digest"]
        verdict = recording.verify()
        assert (verdict.agrees, verdict.state, verdict.frames) == (True, CELEBRATING, row["shortest"])
        assert 0 <= row["difficulty"] <= 100
    assert len(list((folder / "made/pack-recordings").iterdir())) == 4
    assert not list(folder.glob("made/.*"))


def test_the_bytes_depend_on_the_seed_and_not_on_the_processes(folder):
    for name, words in (("one", ()), ("two", ("--processes", 2)), ("other", ("--seed", 1))):
        assert run("--output", f"{name}/pack.txt", "--count", 2, "--processes", 1, *words, *FAST) == 0
    one, two, other = (contents(folder / name) for name in ("one", "two", "other"))
    assert one == two
    assert one["pack.txt"] != other["pack.txt"]


def test_fewer_levels_are_the_first_ones(folder):
    words = ("--seed", 3, "--family", "slopes")
    for count in (3, 1):
        assert alone("--output", f"{count}.txt", "--count", count, *words) == 0
    three, one = ((folder / f"{count}.txt").read_bytes().splitlines() for count in (3, 1))
    assert three[:1] == one
    assert alone("--output", "last.txt", "--first", 1, "--count", 2, *words) == 0
    assert (folder / "last.txt").read_bytes().splitlines() == three[1:]
    assert sorted(path.name[:12] for path in (folder / "last-recordings").iterdir()) == ["000-slopes-t", "001-slopes-t"]


def test_files_are_overwritten_on_request_only(folder, capsys):
    (folder / "pack.jsonl").write_text("mine")
    assert alone("--output", "pack.txt", "--count", 1, *FAST) == 2
    assert "pack.jsonl: already exists; --force overwrites it" in capsys.readouterr().err
    assert contents(folder) == {"pack.jsonl": b"mine"}
    assert alone("--output", "pack.txt", "--count", 1, "--force", *FAST) == 0
    assert alone("--output", "pack.txt", "--count", 1, "--force", *FAST) == 0
    assert len(contents(folder)) == 3


def test_shards_are_merged_to_the_files_of_one_process(folder, capsys):
    words = ("--count", 5, "--first", 3, *FAST)
    assert alone("--output", "one/pack.txt", *words) == 0
    for number in (2, 1, 2):
        assert alone("--output", "parts", "--shard", f"{number}/2", *words) == 0
    assert main(["merge", "parts", "--output", "joined/pack.txt"]) == 0
    assert contents(folder / "joined") == contents(folder / "one")
    assert len(contents(folder / "one")) == 7
    assert run("--output", "one/pack.txt", "--shard", "1/2", *words) == 2
    assert "output: expected a folder, got one/pack.txt, which is a file" in capsys.readouterr().err


def test_levels_that_are_complete_when_a_stop_is_requested_are_not_lost(folder):
    seen = []
    with processes(2) as executor:
        for number in in_order(Numbers(folder).tasks(), executor, lambda: len(seen) >= 4):
            seen.append(number)
            if len(seen) == 4:
                wait_until(lambda: len(list(folder.iterdir())) >= 6)  # others are made meanwhile
    made = [int(path.name.partition("-")[0]) for path in folder.iterdir()]
    assert seen == sorted(made)
    assert 6 <= len(seen) < 1000


WAITING = """
import sys, time
from pathlib import Path
from nclone_env._processes import processes
from nclone_env._processes import in_order
from tests.processes import Numbers

if __name__ == "__main__":
    with processes(2) as executor:
        made = in_order(Numbers(Path(sys.argv[1])).tasks(), executor)
        print([next(made) for _ in range(4)], flush=True)
        time.sleep(600)
"""


def test_workers_end_when_the_command_is_killed(folder):
    (folder / "made").mkdir()
    (folder / "waiting.py").write_text(WAITING)
    words = [sys.executable, folder / "waiting.py", folder / "made"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": PYTHONPATH}) as command:
        assert command.stdout.readline() == b"[0, 1, 2, 3]\n"
        workers = {int(path.name.partition("-")[2]) for path in (folder / "made").iterdir()} - {command.pid}
        assert workers
        assert all(is_running(worker) for worker in workers)
        command.kill()
    for worker in workers:
        wait_until(lambda: not is_running(worker))  # noqa: B023


def is_running(number):
    status = Path(f"/proc/{number}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(is_so, seconds=600):
    for _ in range(seconds * 20):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError(f"not so after {seconds} s")


def test_recordings_of_others_are_not_removed(folder):
    words = ("--output", "pack.txt", "--seed", 3, *FAST)
    assert alone(*words, "--count", 2) == 0
    (folder / "pack-recordings" / "my-best-run.replay").write_text("mine")
    assert alone(*words, "--count", 1, "--force") == 0
    names = sorted(path.name for path in (folder / "pack-recordings").iterdir())
    assert names == ["000-slopes-train-3-0.replay", "my-best-run.replay"]


def test_names_that_are_none_of_a_pack_are_refused(folder, capsys):
    (folder / "made").mkdir()
    names = {"a.jsonl": "'a.jsonl', the name of its table", ".": "'.', a folder", "made": "'made', a folder"}
    for name, got in names.items():
        assert run("--output", name, "--count", 1) == 2
        assert f"output: expected the file name of a pack, such as pack.txt, got {got}" in capsys.readouterr().err
    assert contents(folder) == {}


def test_an_error_keeps_what_is_complete(folder, monkeypatch):
    def failing():
        yield levels.entry_of(levels.generate_level("slopes", 3), 0)
        raise ConfigError("difficulty: expected another")

    with pytest.raises(ConfigError, match="another"):
        write_collection(CollectionFiles(folder / "pack.txt"), failing())
    assert len(load_levels([folder / "pack.txt"])) == 1


def test_nothing_is_written_if_there_is_no_level(folder):
    assert write_collection(CollectionFiles(folder / "pack.txt"), iter(())) == 0
    assert contents(folder) == {}
    assert list(folder.iterdir()) == []


def test_a_solution_that_does_not_win_is_never_written(monkeypatch):
    made = levels.generate_level("slopes", 3, 0)
    object.__setattr__(made, "inputs", made.inputs[:-1])
    with pytest.raises(RuntimeError, match="not reproduced"):
        levels.entry_of(made, 0)
