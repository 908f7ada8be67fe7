"""No two runs mix: folders are chosen, refused, locked and cleared."""

import csv
import os
import shutil

import pytest
import torch

from nclone_env._files import fill_file, temporary_beside, write_file
from nclone_env.errors import CheckpointError, RunFolderError
from nclone_env.train import Hooks, load_checkpoint, train
from nclone_env.train.policies.files import checkpoint_file
from nclone_env.train.runs import resume
from nclone_env.train.runs.curve import Rows
from nclone_env.train.runs.folder import RunFolder, config_in, lock_folder

from ..runs import config, contents, shown, untimed
from ..stub import LineWorld


@pytest.fixture
def claim():
    """Claim folders as ``train`` does; they are released at the end of the test."""
    claimed = []

    def call(*arguments, **options):
        claimed.append(lock_folder(*arguments, **options))
        return claimed[-1]

    yield call
    for folder in claimed:
        folder.close()


def make_run(path):
    path.mkdir(parents=True)
    (path / "checkpoint.pt").write_bytes(b"x")
    (path / "notes.txt").write_text("mine")
    return path


def test_runs_without_a_name_are_numbered(tmp_path, claim):
    settings = config(tmp_path, levels=("jumps", "east"), seed=3)
    first, second = claim(settings), claim(settings)
    assert first.path == tmp_path / "jumps+east-seed3"
    assert second.path == tmp_path / "jumps+east-seed3-2", "another process trains in the first"
    make_run(tmp_path / "jumps+east-seed3-3")
    assert claim(settings).path == tmp_path / "jumps+east-seed3-4"
    assert config_in(second, settings).run_folder == second.path


def test_a_named_folder_with_a_run_is_refused(tmp_path, claim):
    path = make_run(tmp_path / "mine")
    with pytest.raises(RunFolderError) as refusal:
        claim(config(tmp_path, name="mine"))
    assert str(refusal.value) == (
        f"{path}: the folder holds another run; pass --resume {path} to continue it, another --name, "
        "or --overwrite to replace it"
    )
    assert claim(config(tmp_path, name="mine"), overwrite=True).path == path
    assert (path / "checkpoint.pt").exists(), "it is removed only once the new run has begun"


@pytest.mark.parametrize("left", ["best.pt", "learning_curve.csv", "tensorboard"])
def test_a_folder_with_parts_of_a_run_is_refused_without_the_offer_to_resume(tmp_path, claim, left):
    (tmp_path / "mine" / left).mkdir(parents=True)
    with pytest.raises(RunFolderError, match="holds another run; pass another --name, or --overwrite to replace it"):
        claim(config(tmp_path, name="mine"))


def test_other_files_do_not_make_a_run(tmp_path, claim):
    (tmp_path / "mine").mkdir()
    for name in ("notes.txt", "checkpoint-x.pt", "checkpoint-1.txt"):
        (tmp_path / "mine" / name).write_text("")
    assert claim(config(tmp_path, name="mine")).path == tmp_path / "mine"


def test_two_trainings_in_one_folder_are_refused(tmp_path, claim):
    claim(config(tmp_path, name="mine"))
    for source in (None, tmp_path / "mine" / "checkpoint.pt"):
        with pytest.raises(RunFolderError, match="mine: another process is training in this folder; wait for it, or"):
            claim(config(tmp_path, name="mine"), source, overwrite=True)


def test_a_folder_that_stays_empty_is_removed(tmp_path):
    RunFolder(tmp_path / "deep" / "mine").close()
    assert not (tmp_path / "deep" / "mine").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("")
    RunFolder(tmp_path / "other").close()
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["notes.txt"]


def test_remains_of_interrupted_writes_are_removed(tmp_path):
    path = make_run(tmp_path / "mine")
    remains = [f".nclone_env-0123abcd.{name}" for name in ("checkpoint.pt", "best.pt", "episode.mp4")]
    for name in (*remains, ".checkpoint.pt"):
        (path / name).write_bytes(b"half")
    with temporary_beside(path / "evaluation.txt") as used:
        RunFolder(path).close()
        names = {entry.name for entry in path.iterdir()}
    assert names == {used.name, ".checkpoint.pt", "checkpoint.pt", "notes.txt", ".lock"}


def test_written_files_reach_the_disk_before_their_name(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    write_file(tmp_path / "a", b"x")
    temporary, folder = calls
    assert temporary.endswith(".a")
    assert temporary != str(tmp_path / "a"), "it is synchronised under its temporary name"
    assert folder == str(tmp_path)
    with pytest.raises(ZeroDivisionError):
        fill_file(tmp_path / "a", lambda path: 1 / 0)
    assert (tmp_path / "a").read_bytes() == b"x"
    assert os.listdir(tmp_path) == ["a"]


def test_a_checkpoint_is_named_by_file_or_folder(tmp_path):
    path = make_run(tmp_path / "mine")
    assert checkpoint_file(str(path)) == checkpoint_file(path / "checkpoint.pt") == path / "checkpoint.pt"
    for wrong in (tmp_path, tmp_path / "mine" / "best.pt"):
        with pytest.raises(CheckpointError, match=r"\.pt: expected a checkpoint file, but the file does not exist"):
            checkpoint_file(wrong)


def test_a_refused_run_changes_nothing(tmp_path):
    first = train(config(tmp_path, name="run"), make_envs=LineWorld)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(RunFolderError):
        train(config(tmp_path, name="run", seed=1), make_envs=LineWorld)
    with pytest.raises(CheckpointError):
        train(config(tmp_path, hidden_size=8), resume=first.checkpoint, make_envs=LineWorld)
    assert before == {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}


def test_overwrite_replaces_the_run(tmp_path):
    train(config(tmp_path, name="run", checkpoint_interval=1), make_envs=LineWorld)
    (tmp_path / "run" / "notes.txt").write_text("mine")
    other = config(tmp_path, name="run", seed=1)
    train(other, make_envs=LineWorld, overwrite=True)
    alone = train(config(tmp_path, name="alone", seed=1), make_envs=LineWorld)
    assert contents(tmp_path / "run" / "checkpoint.pt") == contents(alone.checkpoint)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {path.name for path in (tmp_path / "alone").iterdir()} | {"notes.txt"}
    assert len(list((tmp_path / "run" / "tensorboard").iterdir())) == 1


def test_overwrite_removes_nothing_before_the_new_checkpoint_is_complete(tmp_path, monkeypatch):
    train(config(tmp_path, name="run", checkpoint_interval=1), make_envs=LineWorld)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    monkeypatch.setattr(resume, "save_checkpoint", lambda path, checkpoint: path.write_bytes(b"half") / 0)
    with pytest.raises(ZeroDivisionError):
        train(config(tmp_path, name="run", seed=1), make_envs=LineWorld, overwrite=True)
    assert before == {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}


def test_a_checkpoint_that_torch_cannot_write_is_named(tmp_path, monkeypatch):
    def fail(fields, path):
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534")

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(OSError, match="torch cannot write it; the disk may be full") as error:
        train(config(tmp_path, name="run"), make_envs=LineWorld)
    assert error.value.filename == str(tmp_path / "run" / "checkpoint.pt")


def test_the_latest_checkpoint_and_the_best_are_kept(tmp_path):
    settings = config(tmp_path, name="run", total_timesteps=512 * 12, max_frames=240)
    settings = settings.replace(checkpoint_interval=3)
    result = train(settings, make_envs=LineWorld)
    folder = tmp_path / "run"
    assert sorted(path.name for path in folder.glob("*.pt")) == ["best.pt", "checkpoint.pt"]
    saved = [result.curve[updates - 1] for updates in (3, 6, 9, 12)]
    known = [row for row in saved if row["min_success_rate"] == row["min_success_rate"]]
    assert 0 < len(known) < len(saved), "the first are nan and never the best"
    best = max(known, key=lambda row: (row["min_success_rate"], row["success_rate"], row["mean_return"]))
    assert Rows.of(load_checkpoint(folder / "best.pt").curve)[-1] == best


@pytest.mark.usefixtures("at_once")
def test_resume_of_an_older_checkpoint_discards_only_when_told(tmp_path):
    settings = config(tmp_path, name="run", checkpoint_interval=1)
    older = tmp_path / "run" / "older.pt"

    def keep(row):
        if row["updates"] == 3:
            shutil.copyfile(tmp_path / "run" / "checkpoint.pt", older)  # of the update before

    whole = contents(train(settings, Hooks(on_update=keep), make_envs=LineWorld).checkpoint)
    unnamed = config(tmp_path, checkpoint_interval=1)
    message = "resuming from older.pt would discard what follows it in checkpoint.pt; pass another --name"
    with pytest.raises(RunFolderError, match=message):
        train(unnamed, resume=older, make_envs=LineWorld)
    branch = train(config(tmp_path, name="branch"), resume=older, make_envs=LineWorld)
    assert contents(branch.checkpoint) == whole
    rewound = train(config(tmp_path, total_timesteps=512 * 2), resume=older, make_envs=LineWorld, overwrite=True)
    assert contents(rewound.checkpoint)["counters"]["updates"] == 2


def table(folder):
    with (folder / "learning_curve.csv").open() as file:
        return [int(row["timesteps"]) for row in csv.DictReader(file)]


def test_curves_continue_without_repeated_rows(tmp_path):
    """The run fails after its third update, of which TensorBoard and the CSV know; the checkpoint is the second's."""

    def fail(row):
        if row["updates"] == 3:
            raise KeyboardInterrupt

    settings = config(tmp_path, name="run", checkpoint_interval=2)
    with pytest.raises(KeyboardInterrupt):
        train(settings, hooks=Hooks(on_update=fail), make_envs=LineWorld)
    folder = tmp_path / "run"
    assert shown(folder) == table(folder) == [512, 1024, 1536]
    result = train(config(tmp_path), resume=folder, make_envs=LineWorld)
    assert result.checkpoint.parent == folder
    assert shown(folder) == table(folder) == [512, 1024, 1536, 2048]
    branch = train(config(tmp_path, name="branch", total_timesteps=512 * 5), resume=folder, make_envs=LineWorld)
    assert shown(tmp_path / "branch") == table(tmp_path / "branch") == [512 * update for update in range(1, 6)]
    assert untimed(branch.curve)[:4] == untimed(result.curve)
