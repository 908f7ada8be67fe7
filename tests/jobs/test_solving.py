"""Searches in shards and on executors."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from nclone_env.cli.app import main
from nclone_env.errors import FormatError
from nclone_env.jobs import Solving, run

from ..shared import contents

JOB = Solving(("first-steps", "jumps/01-stairs"), frames=20_000)


@pytest.fixture
def one(tmp_path):
    run(JOB, tmp_path / "one")
    return contents(tmp_path / "one")


def test_shards_of_the_command_are_merged_to_the_files_of_one_process(tmp_path, monkeypatch, capsys, one):
    monkeypatch.chdir(tmp_path)
    words = ("solve", "first-steps", "jumps/01-stairs", "--frames", "20000")
    for number in (2, 1, 2):
        assert main([*words, "--shard", f"{number}/2", "--output", "parts"]) == 0
    assert main(["merge", "parts", "--output", "joined"]) == 0
    assert capsys.readouterr().out.endswith("wrote joined, 7 results of 2 shards\n")
    assert main([*words, "--output", "whole"]) == 0
    assert contents(tmp_path / "joined") == contents(tmp_path / "whole") == one
    assert len(one) == 8
    assert main(["merge", "parts", "--output", "joined"]) == 2
    assert "joined: already exists; --force overwrites it" in capsys.readouterr().err
    assert main(["merge", "parts", "--output", "joined", "--force"]) == 0
    assert contents(tmp_path / "joined") == one


def test_levels_of_equal_names_are_told_apart(tmp_path):
    for name in ("anna", "ben"):
        assert main(["levels", "convert", "jumps/01-stairs", str(tmp_path / name / "mine.toml")]) == 0
    job = Solving((tmp_path / "anna", tmp_path / "ben" / "mine.toml", "jumps/01-stairs"), frames=20_000)
    assert [ref.name for ref in job.refs] == ["anna/mine.toml", "ben/mine.toml", "jumps/01-stairs"]
    assert [job.task(number)()["row"]["level"] for number in range(3)] == [ref.name for ref in job.refs]


@pytest.mark.slow
def test_processes_make_the_files_of_one(tmp_path, one):
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        run(JOB, tmp_path / "pool", executor)
    assert contents(tmp_path / "pool") == one


def test_threads_make_the_files_of_one(tmp_path, one):
    with ThreadPoolExecutor(3) as executor:
        run(JOB, tmp_path / "pool", executor)
    assert contents(tmp_path / "pool") == one


def test_a_shard_ended_by_a_signal_keeps_no_part_of_a_search(tmp_path, monkeypatch, one):
    from tests.cli.test_solve import interrupt_searches

    monkeypatch.chdir(tmp_path)
    words = ("solve", "first-steps", "jumps/01-stairs", "--frames", "20000", "--shard", "1/1", "--output", "parts")
    with monkeypatch.context() as context:
        interrupt_searches(context)
        assert main(list(words)) == 130
    assert main(list(words)) == 0
    assert main(["merge", "parts", "--output", "joined"]) == 0
    assert contents(tmp_path / "joined") == one


@pytest.mark.parametrize(
    "name", ["../out.replay", "/tmp/out.replay", "a/b.replay", "..", "\ud800", "a\0", "\x1b", "a" * 201]
)
def test_files_never_leave_the_folder(tmp_path, name):
    row = {"level": "jumps/01-stairs"}
    with pytest.raises(FormatError, match="journal: result: expected the plain name of a file without a folder, got"):
        JOB.write(tmp_path / "in", [{"row": row, "files": {name: b"x"}}])
    assert list(tmp_path.rglob("*.replay")) == []
