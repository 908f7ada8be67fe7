"""The subcommand ``compare`` on short runs."""

import shutil

import pytest

from nclone_env.cli.app import main
from nclone_env.train.hooks import Hooks
from nclone_env.train.loop import train
from nclone_env.train.reports.report import RESULT_COLUMNS

from ..train.runs import config

RESULTS = ",".join(RESULT_COLUMNS) + "\n512,a,sampled,10,0.5,0,0,\n512,a,random,10,0.1,0,0,\n256,b,argmax,10,0.1,0,0,\n"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs of one update: two seeds, and another learning rate; one was evaluated."""
    folder = tmp_path_factory.mktemp("runs")
    for name, fields in (("a", {}), ("b", {"seed": 1}), ("c", {"learning_rate": 0.1})):
        train(config(folder, levels=("first-steps/01-walk",), total_timesteps=32 * 16, name=name, **fields))
    (folder / "c" / "evaluation.csv").write_text(RESULTS)
    return folder


@pytest.fixture
def copies(runs, tmp_path, monkeypatch):
    for folder in runs.iterdir():
        shutil.copytree(folder, tmp_path / folder.name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_tables_and_plot(copies, capsys):
    assert main(["compare", "a", "b", "c", "--rate", "0.01"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["level", "learning_rate", "0.003", "learning_rate", "0.1"]
    assert printed[1].split() == ["a", "-", "50.0%"]
    assert printed[3].split()[:5] == ["runs", "seeds", "timesteps", "sampled", "random"]
    assert printed[4].split()[:6] == ["learning_rate", "0.003", "2", "512", "-", "-"]
    assert printed[5].split()[:6] == ["learning_rate", "0.1", "1", "512", "50.0%", "10.0%"]
    assert printed[7].split()[-4:] == ["reached", "1%", "timesteps", "seconds"]
    assert printed[9].split()[:3] == ["learning_rate", "0.1", "50.0%"]
    assert printed[-1] == "wrote comparison.png"
    assert (copies / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_one_group(copies, capsys):
    assert main(["compare", "a", "b/checkpoint.pt", "--output", "x.png"]) == 0
    assert "all runs      2" in capsys.readouterr().out


def refused(capsys, *arguments):
    assert main(["compare", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_wrong_arguments(copies, capsys):
    assert "runs: expected folders of runs, got none; pass for example runs/*" in refused(capsys)
    assert "runs: expected at least one run to compare, got none" in refused(capsys, "nowhere")
    assert "rate: expected a number above 0 and at most 1, got 90.0" in refused(capsys, "a", "--rate", "90")
    assert "output: expected a name ending in .png" in refused(capsys, "a", "--output", "x.svg")


def test_folders_that_are_left_out(copies, capsys):
    shutil.copytree("a", "a-2")
    train(
        config(copies, levels=("first-steps/01-walk",), total_timesteps=32 * 16, name="young"), Hooks(stop=lambda: True)
    )
    assert main(["compare", "a", "a-2", "young", "nowhere"]) == 1
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [
        "left out: a-2/checkpoint.pt: the same options and seed as a",
        "left out: young/checkpoint.pt: no update was made yet",
        "left out: nowhere: expected a checkpoint file, but the file does not exist; pass the folder of a run or a "
        "checkpoint in it",
    ]
    assert "all runs      1" in captured.out


@pytest.mark.parametrize(
    "text",
    [
        "x\n1\n",
        "mode\nsampled\n",
        "\xff\xfe",
        *(f"timesteps,mode,level,success_rate\n512,sampled,a,{rate}\n" for rate in ("much", "nan", "inf", "-5", "1.5")),
    ],
)
def test_a_damaged_table_of_results(copies, capsys, text):
    (copies / "c" / "evaluation.csv").write_bytes(text.encode("latin-1"))
    message = "evaluation.csv: expected a table with the columns timesteps, level, mode, episodes, success_rate"
    assert message in refused(capsys, "c")


def test_results_from_elsewhere_reach_the_terminal_with_escapes(copies, capsys):
    rows = "\n".join(f"512,{name},sampled,10,0.5,0,0," for name in ("a\x1b]0;title\x07", "b\u202e", "c\x00"))
    (copies / "c" / "evaluation.csv").write_text(f"{','.join(RESULT_COLUMNS)}\n{rows}\n", encoding="utf-8")
    assert main(["compare", "a", "b", "c"]) == 0
    said = capsys.readouterr()
    assert "\\x1b]0;title\\x07" in said.out
    assert all(line.isprintable() for line in (said.out + said.err).split("\n"))


def test_an_endless_table_of_results(copies, capsys):
    (copies / "c" / "evaluation.csv").unlink()
    (copies / "c" / "evaluation.csv").symlink_to("/dev/zero")
    assert "evaluation.csv: expected a table of results, got expected a file, got a device or pipe" in refused(
        capsys, "c"
    )
