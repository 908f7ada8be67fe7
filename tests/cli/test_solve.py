"""The command ``nclone-env solve``."""

import json
import os
import signal

from nclone_env.cli import solve as solve_module
from nclone_env.cli.app import main
from nclone_env.jobs import solving
from nclone_env.level.build import build_room
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.replay.recording import load_recording

from ..shared import contents


def run(*words) -> int:
    return main(["solve", *map(str, words)])


def rows_in(folder):
    return [json.loads(line) for line in (folder / "solutions.jsonl").read_text().splitlines()]


def test_each_level_gets_a_row_and_a_verified_recording(folder, capsys):
    assert run("first-steps/06-hop", "jumps/01-stairs", "--frames", 50_000, "--output", "found") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["level", "completed", "frames", "gold", "seconds", "frames", "simulated"]
    assert [line.split()[:2] for line in lines[1:3]] == [["first-steps/06-hop", "yes"], ["jumps/01-stairs", "yes"]]
    assert lines[3].startswith("2 of 2 levels completed, 10")
    rows = rows_in(folder / "found")
    assert [row["level"] for row in rows] == ["first-steps/06-hop", "jumps/01-stairs"]
    for row in rows:
        recording = load_recording(folder / "found" / row["recording"])
        verdict = recording.verify()
        assert verdict.agrees
        assert (verdict.state, verdict.frames) == (8, row["frames"])
        assert recording.seed == 0
        assert row["score"] == 5400 + 120 * row["gold"] - row["frames"]
    won = {stage: sum(row["won"].get(stage, 0) for row in rows) for stage in ("shorter", "polished")}
    assert all(f"{stage} {frames:,}" in lines[4] for stage, frames in won.items() if frames)


def solved(folder, name, *words):
    assert run("first-steps", "--frames", 20_000, "--output", name, *words) == 0
    return [(row["level"], row["frames"]) for row in rows_in(folder / name)], {
        path.name: path.read_bytes() for path in (folder / name).glob("*.replay")
    }


def test_the_result_depends_on_the_seed_and_not_on_the_threads(folder):
    one, three, other = solved(folder, "a"), solved(folder, "b", "--threads", 3), solved(folder, "c", "--seed", 1)
    assert len(one[1]) == 6
    assert one == three
    assert one != other


def test_an_objective_counts_gold(folder, capsys):
    for objective in ("time", "all-gold"):
        words = ("first-steps/02-step", "--frames", 300_000, "--output", objective, "--objective", objective)
        assert run(*words) == 0
    (time,), (gold,) = rows_in(folder / "time"), rows_in(folder / "all-gold")
    assert gold["gold"] == gold["gold_total"] == 1
    assert gold["frames"] >= time["frames"]
    assert " 1/1 " in capsys.readouterr().out
    assert run("first-steps/02-step", "--objective", "speed") == 2


def test_a_ladder_gives_more_only_to_what_is_not_completed(folder):
    levels = ("first-steps/06-hop", "jumps/03-islands", "hazards/05-slalom")
    assert run(*levels, "--ladder", "20_000,2e5", "--output", "ladder") == 0
    for frames in (20_000, 200_000):
        assert run(*levels, "--frames", frames, "--output", frames) == 0
    few, many, ladder = (rows_in(folder / name) for name in ("20000", "200000", "ladder"))
    assert {row["completed"] for row in few} == {True, False}
    assert ladder == [one if one["completed"] else other for one, other in zip(few, many)]
    assert run(levels[0], "--ladder", "1s,10s", "--output", "timed") == 0
    assert rows_in(folder / "timed")[0]["completed"]


def test_levels_that_cannot_be_searched_are_named(folder, capsys):
    (folder / "nowhere").write_bytes(write_map(build_room().raw))
    assert run("nowhere", "first-steps/06-hop", "--frames", 20_000, "--output", ".") == 1
    out = capsys.readouterr().out
    assert "level: expected a level with an exit, got 'nowhere'" in out
    assert "1 of 2 levels completed" in out
    assert [bool(row["error"]) for row in rows_in(folder)] == [True, False]


def test_levels_that_are_not_completed_have_no_recording(folder, capsys):
    assert run("hazards/05-slalom", "--frames", 1, "--output", ".") == 0
    (row,) = rows_in(folder)
    assert (row["completed"], row["frames"], row["recording"]) == (False, 0, None)
    assert not list(folder.glob("*.replay"))
    assert "0 of 1 levels completed" in capsys.readouterr().out


def interrupt_searches(monkeypatch):
    """Let each search begin with Ctrl-C."""

    def stopping(level, **arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return search(level, **arguments)

    search = solving.solve
    monkeypatch.setattr(solving, "solve", stopping)


def test_another_level_is_added_and_only_the_same_one_refused(folder, capsys):
    assert run("first-steps/06-hop", "--frames", 20_000, "--output", "a") == 0
    assert run("first-steps/01-walk", "jumps/01-stairs", "--frames", 20_000, "--output", "a") == 0
    names = ["first-steps/01-walk", "jumps/01-stairs", "first-steps/06-hop"]
    assert [row["level"] for row in rows_in(folder / "a")] == names
    before = contents(folder / "a")
    capsys.readouterr()
    assert run("hazards/01-mind-the-mine", "jumps/01-stairs", "--frames", 1, "--output", "a") == 2
    assert capsys.readouterr().err == (
        "nclone-env: output: a/solutions.jsonl has a row of jumps/01-stairs already; "
        "--force replaces it, or name another folder\n"
    )
    assert contents(folder / "a") == before


def test_a_file_of_a_user_with_the_name_of_a_recording_is_kept(folder, capsys):
    mine = folder / "000-first-steps-01-walk.replay"
    mine.write_text("mine")
    assert run("first-steps/01-walk", "--frames", 20_000, "--output", ".") == 2
    assert f"{mine.name} already exists; --force replaces it, or name another folder" in capsys.readouterr().err
    assert mine.read_text() == "mine"


def test_a_row_is_replaced_on_request_with_its_recording(folder):
    assert run("first-steps/06-hop", "first-steps/01-walk", "--frames", 20_000, "--output", "a") == 0
    old = {row["level"]: row["recording"] for row in rows_in(folder / "a")}
    assert run("first-steps/01-walk", "--frames", 20_000, "--output", "a", "--force") == 0
    new = {row["level"]: row["recording"] for row in rows_in(folder / "a")}
    assert new["first-steps/06-hop"] == old["first-steps/06-hop"]
    assert new["first-steps/01-walk"] != old["first-steps/01-walk"]
    assert {path.name for path in (folder / "a").glob("*.replay")} == set(new.values())


def test_kernels_are_compiled_before_the_table_and_the_clock(folder, capsys, monkeypatch):
    said = []
    monkeypatch.setattr(solve_module, "compile_kernels", lambda: said.append(capsys.readouterr().out))
    monkeypatch.setattr(solve_module.time, "perf_counter", lambda: said.append("clock") or 0.0)
    assert run("first-steps/06-hop", "--frames", 1, "--output", ".") == 0
    assert said[:2] == ["", "clock"]
    assert capsys.readouterr().out.startswith("level ")


def test_an_interrupted_command_keeps_the_rows_of_the_others(folder, capsys, monkeypatch):
    levels = ("first-steps/06-hop", "first-steps/01-walk")
    assert run(*levels, "--frames", 20_000, "--output", "a", "--force") == 0
    before = {row["level"]: row for row in rows_in(folder / "a")}

    interrupt_searches(monkeypatch)
    assert run(*levels, "--frames", 30_000, "--output", "a", "--force") == 130
    after = {row["level"]: row for row in rows_in(folder / "a")}
    assert list(after) == list(levels)
    assert after[levels[1]] == before[levels[1]]
    (folder / "a" / "solutions.jsonl").write_text("[1]\n")
    assert run(*levels, "--frames", 30_000, "--output", "a", "--force") == 2
    assert "output: expected the rows of 'solve' in a/solutions.jsonl, got others" in capsys.readouterr().err


def test_a_terminal_shows_what_goes_on(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert run("first-steps/06-hop", "--frames", 20_000, "--output", ".") == 0
    out = capsys.readouterr().out
    assert "\r\x1b[K[0/1] first-steps/06-hop: searching" in out
    assert "frames after" in out
