"""The subcommands ``train`` and ``evaluate`` end to end, on a toy environment, and ``compare`` on short runs."""

import csv
import shutil
from pathlib import Path

import pytest

from nclone_env.cli.app import main
from nclone_env.cli.policies import evaluate
from nclone_env.cli.train import train
from nclone_env.errors import MissingExtraError
from nclone_env.level.formats.pack_text import write_pack
from nclone_env.level.load import load_levels
from nclone_env.replay.recording import WatchedRun
from nclone_env.train import require_training_extra
from nclone_env.train.collect import environments
from nclone_env.train.config import TrainConfig
from nclone_env.train.hooks import Hooks
from nclone_env.train.loop import train as learn
from nclone_env.train.policies.checkpoint import load_checkpoint, restore_config
from nclone_env.train.reports import plots, report
from nclone_env.train.reports.report import RESULT_COLUMNS
from nclone_env.train.runs.survival import Survival

from ..replay.bases import WINNABLE
from ..train.runs import config as short_run
from ..train.stub import LineWorld

RESULTS = ",".join(RESULT_COLUMNS) + "\n512,a,sampled,10,0.5,0,0,\n512,a,random,10,0.1,0,0,\n256,b,argmax,10,0.1,0,0,\n"


@pytest.fixture
def toy(monkeypatch):
    def make(config, num_envs, autoreset_mode, num_threads):
        assert autoreset_mode.value in ("SameStep", "Disabled")  # training, evaluation
        assert num_threads == 1
        return LineWorld(config, num_envs)

    monkeypatch.setattr(environments, "NPlusPlusVectorEnv", make)
    monkeypatch.setattr(
        report, "evaluated_run", lambda episode, config: WatchedRun(WINNABLE, [2] * len(episode.actions))
    )


@pytest.fixture
def empty_pictures(monkeypatch):
    """Leave curves undrawn, which takes longer than a short run."""
    monkeypatch.setattr(plots, "_png", lambda figure: b"")


@pytest.mark.usefixtures("empty_pictures")
def test_a_run_shorter_than_an_update_says_how_long_it_is(toy, tmp_path, capsys):
    for steps, is_said in ((100, True), (512, False)):
        options = {"num_envs": 32, "num_steps": 16, "max_frames": 80, "num_threads": 1, "output": tmp_path}
        config = TrainConfig.of(total_timesteps=steps, name=str(steps), **options)
        assert train(config, episodes=1, video=False) == 0
        printed = capsys.readouterr().out
        assert ("one update is 512 steps (32 environments x 16 steps), and the run makes one" in printed) == is_said
        assert "total_timesteps reached after 512 timesteps" in printed


@pytest.mark.usefixtures("empty_pictures")
def test_a_run_on_very_many_levels_ends_with_a_sample_of_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "_EPISODES_IN_ALL", 7)
    monkeypatch.setattr(report, "_LEAST_EPISODES", 2)
    monkeypatch.setattr("nclone_env.train.reports.plots.MOST_LEVELS", 7 // 2)
    levels = load_levels("first-steps")
    smallest = sorted(level.raw.digest for level in levels)[:3]
    options = {"num_envs": 32, "num_steps": 16, "total_timesteps": 512, "max_frames": 80, "num_threads": 1}

    def played(name, seed, episodes=None):
        config = TrainConfig.of(**options, output=tmp_path, name=name, seed=seed)
        assert train(config, episodes=episodes, video=False) == 0
        with (tmp_path / name / "evaluation.csv").open() as file:
            rows = list(csv.DictReader(file))
        counts = {int(row["episodes"]) for row in rows}
        return [row["level"] for row in rows if row["mode"] == "sampled"], counts, capsys.readouterr().out

    said = f"a sample of 3 out of {len(levels)} levels; nclone-env evaluate plays all\n"
    for seed in (0, 1):
        names, counts, printed = played(f"seed{seed}", seed)
        assert names == [level.name for level in levels if level.raw.digest in smallest]
        assert counts == {2}
        assert said in printed
        assert (tmp_path / f"seed{seed}" / "evaluation.txt").read_text().endswith(said)
    names, counts, printed = played("all", 0, episodes=2)
    assert (names, counts) == ([level.name for level in levels], {2})
    assert "a sample of" not in printed
    assert main(["evaluate", str(tmp_path / "seed0"), "--no-video"]) == 0
    assert "a sample of" not in capsys.readouterr().out


def test_train_then_evaluate(toy, tmp_path, capsys):
    config = TrainConfig.of(
        num_envs=32, num_steps=16, total_timesteps=1024, max_frames=80, num_threads=1, output=tmp_path, name="toy"
    )
    assert train(config, episodes=20) == 0
    printed = capsys.readouterr().out
    assert "training on first-steps with 32 environments" in printed
    assert "total_timesteps reached after 1,024 timesteps" in printed
    assert "20 episodes per level" in printed
    written = {path.name for path in (tmp_path / "toy").iterdir()}
    files = {
        ".lock",
        "run.toml",
        "checkpoint.pt",
        "best.pt",
        "learning_curve.csv",
        "learning_curve.png",
        "levels.csv",
        "evaluation.txt",
        "evaluation.csv",
        "episode.mp4",
    }
    assert written == files | {"tensorboard"}
    table = (tmp_path / "toy" / "evaluation.txt").read_text()
    assert table in printed

    other = tmp_path / "other"
    command = ["evaluate", str(tmp_path / "toy"), "--episodes", "20", "--output", str(other)]
    assert main(command) == 0
    assert (other / "evaluation.txt").read_text() == table, "the same policy and seed give the same table"
    assert {path.name for path in other.iterdir()} == {"evaluation.txt", "evaluation.csv", "episode.mp4"}
    for name in ("evaluation.txt", "episode.mp4"):
        for path in other.iterdir():
            path.unlink()
        (other / name).write_text("mine")
        assert main(command) == 2
        assert f"{name}: already exists; --force overwrites it" in capsys.readouterr().err
        assert [(path.name, path.read_text()) for path in other.iterdir()] == [(name, "mine")]
    assert main([*command, "--no-video", "--force"]) == 0
    assert (other / "evaluation.txt").read_text() == table
    assert (other / "episode.mp4").read_text() == "mine"


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


FULL = OSError(28, "No space left on device")
BROKEN = {
    "a plot on a full disk": ("nclone_env.train.reports.plots.write_learning_curve", FULL, "learning_curve.png"),
    "no folder for Matplotlib": (
        "nclone_env.train.reports.plots._panels",
        RuntimeError("no cache"),
        "learning_curve.png",
    ),
    "OpenCV cannot load": ("nclone_env.replay.run_pictures", ImportError("libGL.so.1"), "episode.mp4"),
    "no encoder": ("nclone_env.replay.write_video", MissingExtraError("imageio-ffmpeg"), "episode.mp4"),
    "a full disk": ("nclone_env.train.reports.report.write_file", FULL, "evaluation.txt"),
    "no room for the rows": ("nclone_env.train.runs.curve.LearningCurve.write_csv", FULL, "learning_curve.csv"),
    "no room for what the run is": ("nclone_env.train.runs.record.write_file", FULL, "run.toml"),
    "no room for the levels": ("nclone_env.train.runs.resume.write_level_table", FULL, "levels.csv"),
    "events that cannot be written": ("torch.utils.tensorboard.SummaryWriter.add_scalar", FULL, "tensorboard"),
    "events that cannot be closed": ("torch.utils.tensorboard.SummaryWriter.close", FULL, "tensorboard"),
    "TensorBoard cannot load": ("torch.utils.tensorboard.SummaryWriter", TypeError("descriptors"), "tensorboard"),
}


@pytest.mark.usefixtures("empty_pictures")
@pytest.mark.parametrize("what", BROKEN)
def test_a_finished_run_stays_finished_whatever_shows_it(what, toy, tmp_path, monkeypatch, capsys):
    place, error, left_out = BROKEN[what]
    monkeypatch.setattr(place, failing(error))
    words = arguments("--output", str(tmp_path), "--name", "toy")
    assert main([word for word in words if word != "--no-video" or left_out != "episode.mp4"]) == 0
    captured = capsys.readouterr()
    said = [line for line in captured.err.splitlines() if "RuntimeWarning" in line]
    assert len(said) == 1, captured.err
    assert f"{left_out} is left out: {type(error).__name__}: {error}" in said[0]
    assert "2 episodes per level" in captured.out
    written = {path.name for path in (tmp_path / "toy").iterdir()}
    expected = {"checkpoint.pt", "evaluation.txt", "evaluation.csv", "learning_curve.csv", "learning_curve.png"}
    assert expected - {left_out} <= written


@pytest.mark.usefixtures("empty_pictures")
def test_held_out_levels_and_an_initial_policy(tmp_path, capsys):
    small = ["--num-envs", "8", "--num-steps", "16", "--total-timesteps", "256", "--max-frames", "80", "--no-video"]
    common = ["train", *small, "--hidden-size", "8", "--output", str(tmp_path), "--episodes", "3"]
    levels = ["first-steps/01-walk", "first-steps/02-step", "first-steps/06-hop"]
    first = [*common, "--name", "first", "--levels", *levels, "--held-out", "0.34", "--evaluation-attempts", "2"]
    assert main([*first, "--curriculum", "progress"]) == 0
    printed = capsys.readouterr().out
    assert "held out " in printed
    assert "any of 2" in printed
    table = list(csv.DictReader((tmp_path / "first" / "levels.csv").open()))
    (out,) = (row["level"] for row in table if row["held_out"] == "yes")
    assert sorted(row["level"] for row in table) == levels

    checkpoint = str(tmp_path / "first" / "checkpoint.pt")
    assert main(["evaluate", checkpoint, "--episodes", "4", "--attempts", "3", "--no-video"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "any of 3" in lines[0]
    assert [line.split()[0] for line in lines if line.endswith("held out")] == [out]
    assert sum(line.startswith("mean, ") for line in lines) == 2
    trained = next(name for name in levels if name != out)
    written = (tmp_path / "first" / "evaluation.csv").read_bytes()
    assert main(["evaluate", checkpoint, "--episodes", "2", "--candidates", "3", "--seed", "5", "--no-video"]) == 0
    assert capsys.readouterr().out.splitlines()[-2] == "sampled ones are the best of 3 candidates of each decision"
    assert (tmp_path / "first" / "evaluation.csv").read_bytes() == written, "it is about the policy alone"
    command = ["evaluate", checkpoint, "--episodes", "1", "--no-video", "--levels", trained]
    assert main(command) == 0
    assert "held out" not in capsys.readouterr().out

    assert main([*common, "--name", "second", "--init", str(tmp_path / "first"), "--starts", "known"]) == 2
    assert "within max_frames, 80" in capsys.readouterr().err
    assert main([*common, "--name", "second", "--init", str(tmp_path / "first"), "--hidden-size", "16"]) == 2
    assert "pass --hidden-size 8" in capsys.readouterr().err
    assert main([*common, "--name", "second", "--init", str(tmp_path / "first")]) == 0


def arguments(*more):
    return ["train", "--num-envs", "32", "--num-steps", "16", "--total-timesteps", "1024", "--max-frames", "80",
            "--num-threads", "1", "--episodes", "2", "--no-video", *more]  # fmt: skip


@pytest.mark.usefixtures("empty_pictures")
def test_a_run_that_only_survives_names_what_teaches(toy, tmp_path, monkeypatch, capsys):
    found = Survival(5, 1000, (400, 900), (1.8, 0.7))
    (tmp_path / "own.txt").write_bytes(write_pack([level.raw for level in load_levels("first-steps")]))
    monkeypatch.setattr("nclone_env.train.loop.survival_of", lambda run: found)
    ends = {
        "first-steps": "; --starts planned begins episodes along solutions\n",
        str(tmp_path / "own.txt"): "; --config game-lookahead begins episodes along solutions\n",
    }
    for number, (levels, end) in enumerate(ends.items()):
        words = "--config", "defaults", "--levels", levels, "--output", str(tmp_path), "--name", str(number)
        assert main(arguments(*words)) == 0
        said = f"the run learns to stay alive, not to reach the exit: {found}{end}"
        assert capsys.readouterr().out.count(said) == 1
    monkeypatch.setattr("nclone_env.train.loop.survival_of", lambda run: None)
    assert main(arguments("--output", str(tmp_path), "--name", "control")) == 0
    assert "stay alive" not in capsys.readouterr().out


@pytest.mark.usefixtures("empty_pictures")
def test_resume_takes_the_options_of_the_run_but_for_those_given(toy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments("--hidden-size", "24", "--name", "first")) == 0
    quick = ("--episodes", "2", "--no-video")
    assert main(["train", "--resume", "runs/first", "--total-timesteps", "2048", *quick]) == 0
    printed = capsys.readouterr().out
    assert "resuming runs/first: on first-steps with 32 environments; writing to runs/first\n" in printed
    content = load_checkpoint("runs/first/checkpoint.pt")
    config = restore_config(content)
    assert (config.hidden_size, config.total_timesteps, config.name) == (24, 2048, "first")
    assert content.counters["timesteps"] == 2048
    assert (
        main(["train", "--resume=runs/first/checkpoint.pt", "--total-timesteps=2560", "--name", "second", *quick]) == 0
    )
    assert load_checkpoint("runs/second/checkpoint.pt").counters["timesteps"] == 2560
    assert load_checkpoint("runs/first/checkpoint.pt").counters["timesteps"] == 2048
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["first", "second"]
    assert evaluate(tmp_path / "runs" / "first", episodes=2, video=False) == 0


@pytest.mark.usefixtures("empty_pictures")
def test_a_run_is_replaced_on_request(toy, tmp_path, monkeypatch, capsys):
    """What is refused otherwise: tests/train/runs/test_folder.py."""
    monkeypatch.chdir(tmp_path)
    assert main(arguments()) == 0
    assert "writing to runs/first-steps-seed0\n" in capsys.readouterr().out
    assert main(arguments("--name", "first-steps-seed0", "--seed", "1", "--overwrite")) == 0
    assert load_checkpoint("runs/first-steps-seed0/checkpoint.pt").train_config["seed"] == 1


def test_missing_torch_is_named(monkeypatch):
    monkeypatch.setattr("nclone_env.train.find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(MissingExtraError, match=r'training requires torch; run pip install "\.\[train\]"'):
        require_training_extra()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs of one update: two seeds, and another learning rate; one was evaluated."""
    folder = tmp_path_factory.mktemp("runs")
    for name, fields in (("a", {}), ("b", {"seed": 1}), ("c", {"learning_rate": 0.1})):
        learn(short_run(folder, levels=("first-steps/01-walk",), total_timesteps=32 * 16, name=name, **fields))
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
    assert [line.split() for line in printed[:3]] == [
        ["runs", "a"],
        ["learning_rate", "0.003", "-"],
        ["learning_rate", "0.1", "50.0%"],
    ]
    assert printed[4].split()[:5] == ["runs", "seeds", "timesteps", "sampled", "random"]
    assert printed[5].split()[:6] == ["learning_rate", "0.003", "2", "512", "-", "-"]
    assert printed[6].split()[:6] == ["learning_rate", "0.1", "1", "512", "50.0%", "10.0%"]
    assert printed[8].split()[-4:] == ["reached", "1%", "timesteps", "seconds"]
    assert printed[10].split()[:3] == ["learning_rate", "0.1", "50.0%"]
    assert printed[-1] == "wrote comparison.png"
    assert (copies / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_asks_before_it_overwrites(copies, capsys):
    for name in ("comparison.png", "values.csv"):
        Path(name).write_text("mine")
        assert main(["compare", "a", "--csv", "values.csv"]) == 2
        assert f"{name}: already exists; --force overwrites it" in capsys.readouterr().err
        assert Path(name).read_text() == "mine"
        Path(name).unlink()
    for _ in range(2):
        assert main(["compare", "a", "--csv", "values.csv", "--force"]) == 0


def test_tables_are_printed_without_a_plot(copies, capsys, monkeypatch):
    monkeypatch.setattr("nclone_env.train.reports.plots._panels", failing(ImportError("libfreetype.so: no such file")))
    assert main(["compare", "a", "--csv", "values.csv"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "wrote values.csv"
    assert said.err == (
        "nclone-env: RuntimeWarning: comparison.png is left out: ImportError: libfreetype.so: no such file\n"
    )
    assert not Path("comparison.png").exists()
    monkeypatch.undo()
    monkeypatch.chdir(copies)
    assert main(["compare", "a", "--output", "a/checkpoint.pt/x.png"]) == 2, (
        "a place that cannot be written is an error"
    )


def test_one_group(copies, capsys):
    assert main(["compare", "a", "b/checkpoint.pt", "--output", "x.png"]) == 0
    assert "all runs      2" in capsys.readouterr().out


def refused(capsys, *arguments):
    assert main(["compare", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_folders_that_are_left_out(copies, capsys):
    shutil.copytree("a", "a-2")
    learn(
        short_run(copies, levels=("first-steps/01-walk",), total_timesteps=32 * 16, name="young"),
        Hooks(stop=lambda: True),
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


def test_a_damaged_table_of_results(copies, capsys):
    rates = ("much", "nan", "inf", "-5", "1.5")
    rows = [f"timesteps,mode,level,success_rate\n512,sampled,a,{rate}\n" for rate in rates]
    for text in ("x\n1\n", "mode\nsampled\n", "\xff\xfe", *rows):
        (copies / "c" / "evaluation.csv").write_bytes(text.encode("latin-1"))
        message = "evaluation.csv: expected a table with the columns timesteps, level, mode, episodes, success_rate"
        assert message in refused(capsys, "c"), text


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
