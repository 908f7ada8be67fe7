"""The commands ``nclone-env watch`` and ``nclone-env play``."""

import dataclasses
import itertools
import shutil

import numpy as np
import pytest
import torch

from nclone_env.benchmark import load_track
from nclone_env.cli.app import main
from nclone_env.cli.replay import _save_beside
from nclone_env.cli.watch import Views, _rounds
from nclone_env.config import EnvironmentConfig
from nclone_env.errors import CheckpointError
from nclone_env.game import CELEBRATING
from nclone_env.level.build import build_room
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.level import Level
from nclone_env.render.window import Window
from nclone_env.replay import watch
from nclone_env.replay.recording import Recording, WatchedRun, load_recording
from nclone_env.sim.trajectory import simulate
from nclone_env.train import load_policy
from nclone_env.train.collect.evaluate import episode_inputs, evaluate, evaluated_run
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.checkpoint import load_checkpoint, save_checkpoint
from nclone_env.train.policies.network import ActorCritic

from ..docs.pages import ROOT
from ..level.level_bases import make_attract
from ..replay.bases import DEADLY, RIGHT, WINNABLE
from ..replay.test_verification import DEATH
from ..train.runs import checkpoint_of

MINED = Level(build_room("mine 60 58", "exit 100 58", "exit_switch 110 58").raw, "mined")
OPEN = Level(WINNABLE.raw, "open")
ENVIRONMENT = EnvironmentConfig(levels=(MINED, OPEN), observations=("game_state",), max_frames=400)
ALWAYS_RIGHT = 2  # an action


def runner(towards=ALWAYS_RIGHT):
    """Return a policy whose most probable action is always the same."""
    policy = ActorCritic({"game_state": (30,)}, hidden_size=8)
    with torch.no_grad():
        for parameter in policy.actor.parameters():
            parameter.zero_()
        policy.actor.bias[towards] = 1.0
    return policy


@pytest.mark.parametrize("levels", [["a"], ["a", "b"], ["d", "e", "f", "g", "h"]])
def test_a_live_run_of_other_levels_takes_the_views_of_the_one_before(levels):
    """``train --overwrite`` has replaced it."""
    runs = {0: ["a", "b", "c"]}
    views = Views([lambda number: [WatchedRun(OPEN, [], label) for label in runs.get(number, levels)]], 9)
    shown = [[run.label for run in itertools.islice(each, 11)] for each in views.runs(endless=True)]
    assert [each[0] for each in shown] == ["a", "b", "c"]
    assert {label for each in shown for label in each[1:]} == set(levels), "all are shown in turn"


def write_checkpoint(path, levels=("first-steps/01-walk", "first-steps/02-step")):
    config = TrainConfig.of(hidden_size=8, levels=levels, max_frames=60)
    save_checkpoint(path, checkpoint_of(config, runner()))


@pytest.fixture
def folder(folder, monkeypatch):
    """The current directory, with a run and two recordings."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    write_checkpoint(folder / "run" / "checkpoint.pt")
    Recording.of(DEADLY, [RIGHT] * 20).save(folder / "a.replay")
    Recording.of(WINNABLE, [RIGHT] * 30).save(folder / "b.replay")
    return folder


@pytest.fixture
def pictures(monkeypatch):
    """The pictures that windows show, at most 100 each; then they are closed."""
    pytest.importorskip("pygame")
    shown = []

    class Recorded(Window):
        def __init__(self, size, title, closing_key):
            super().__init__(size, title, 0, closing_key)
            shown.append([])

        def show(self, picture):
            shown[-1].append(picture.copy())
            if len(shown[-1]) == 100:
                self._pygame.event.post(self._pygame.event.Event(self._pygame.QUIT))
            return super().show(picture)

    monkeypatch.setattr(watch, "Window", Recorded)
    return shown


def test_an_episode_is_played_as_it_is_evaluated():
    policy = runner()
    died, won = evaluate(policy, ENVIRONMENT, "argmax", 1)
    for result, level in ((died, MINED), (won, OPEN)):
        inputs = list(episode_inputs(policy, ENVIRONMENT, level, "argmax", 0))
        assert inputs == [RIGHT] * int(result.mean_frames)
    assert simulate(OPEN, inputs).state[-1] == CELEBRATING
    assert won.won
    again = evaluated_run(won, ENVIRONMENT)
    assert again.level.name == won.level
    assert again.inputs[: len(inputs)] == inputs


def test_a_policy_plays_ahead_as_it_is_evaluated(folder):
    with_candidates, alone = (
        _rounds((folder / "run",), ("first-steps/06-hop",), "sampled", 3, False, candidates)[0](0)[0]
        for candidates in (4, 1)
    )
    policy = load_policy(folder / "run", ("first-steps/06-hop",))
    (played,) = evaluate(policy.network, policy.environment, "sampled", 1, 3, candidates=4)
    inputs = list(with_candidates.inputs)
    assert inputs == played.inputs(policy.environment)[: len(inputs)].tolist()
    assert inputs != list(alone.inputs)


def test_a_folder_is_a_run_or_the_recordings_in_it(folder):
    runs = _rounds((folder,), (), "sampled", 0, False)[0](0)
    assert [list(run.inputs) for run in runs] == [[RIGHT] * 20, [RIGHT] * 30]
    Recording.of(DEADLY, [RIGHT]).save(folder / "run" / "a.replay")
    assert len(_rounds((folder / "run",), (), "sampled", 0, False)[0](0)) == 2, "a policy on its levels"


def test_a_folder_of_submissions_is_their_episodes(folder, capsys):
    shutil.copy(ROOT / "docs" / "submissions" / "builtin-exit.zip", folder / "EXIT.ZIP")
    runs = _rounds((folder,), (), "sampled", 0, False)[0](0)
    assert len(runs) == 2 + len(load_track("Builtin-v1").levels)
    assert len(_rounds((folder / "EXIT.ZIP",), (), "sampled", 0, False)[0](0)) == len(runs) - 2
    for name, count in (("a.replay", 17), ("b.replay", 16)):
        (folder / name).unlink()
        assert main(["gallery", "--recordings", str(folder), "--output", "site", "--force"]) == 0
        assert f"wrote {count} levels and {count} runs" in capsys.readouterr().out
    (folder / "class" / "alice").mkdir(parents=True)
    with pytest.raises(CheckpointError, match=r"; name the folders in it, as .*class/\* does in a shell; or name a"):
        _rounds((folder / "class",), (), "sampled", 0, False)


def test_an_episode_ends_at_the_limit_of_frames():
    standing = list(episode_inputs(runner(0), ENVIRONMENT.replace(max_frames=42), MINED, "argmax", 0))
    assert standing == [0] * 42


def test_a_checkpoint_is_watched_in_a_window(folder, pictures):
    assert main(["watch", "run", "--scale", "0.6"]) == 0
    (shown,) = pictures
    assert len(shown) == 100
    middle = len(shown[0]) // 2  # the two levels lie one above the other: they are flat
    for cell in (slice(0, middle - 20), slice(middle + 20, None)):
        moved = [(one[cell] != other[cell]).any() for one, other in itertools.pairwise(shown)]
        assert all(moved[:59]), "60 frames of an episode"
        assert not any(moved[61:])


def test_a_live_policy_is_read_again_when_its_run_has_written_it(folder):
    file = folder / "run" / "checkpoint.pt"
    (live,) = _rounds((folder / "run",), (), "argmax", 0, True)
    (fixed,) = _rounds((folder / "run",), (), "argmax", 0, False)
    before = [list(run.inputs) for run in live(0)]
    assert live(0)[0].label == "0 steps  Walk   first-steps/01-walk"
    stored = load_checkpoint(file)
    save_checkpoint(file, dataclasses.replace(stored, policy=runner(0).state_dict(), counters={"timesteps": 4096}))
    later = live(1)
    assert later[0].label == "4,096 steps  Walk   first-steps/01-walk"
    assert [list(run.inputs) for run in later] != before
    assert [list(run.inputs) for run in fixed(1)] == before
    file.write_bytes(b"half")
    assert len(live(2)) == len(later), "a file that cannot be read leaves the policy as it was"


def test_recordings_are_watched_again_and_again(folder, pictures):
    assert main(["watch", "a.replay", "b.replay", "--views", "1", "--scale", "0.2"]) == 0
    assert main(["watch", "a.replay", "b.replay", "--views", "1", "--scale", "0.2", "--argmax"]) == 0
    shown, again = pictures
    assert all((one == other).all() for one, other in zip(shown, again, strict=True))
    assert (shown[20] == shown[80]).all(), "the end stays for a second"
    assert (shown[80] != shown[81]).any(), "the next one"
    assert (shown[81] != shown[0]).any()


def test_a_video_of_both(folder, capsys):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    command = ["watch", "run/checkpoint.pt", "a.replay", "--levels", "first-steps/01-walk", "--scale", "0.4"]
    assert main([*command, "--output", "x.mp4"]) == 0
    assert capsys.readouterr().out == "A  run/checkpoint.pt\nB  a.replay\nwrote x.mp4 (2.0 s)\n"
    reader = imageio_ffmpeg.read_frames("x.mp4")
    facts = next(reader)
    assert facts["fps"] == 60
    frames = [np.frombuffer(frame, np.uint8) for frame in reader]
    assert len(frames) == 61 + 60
    assert (frames[0] != frames[20]).mean() > 0.001
    assert main([*command, "--output", "x.mp4"]) == 2
    assert "x.mp4: already exists; --force overwrites it" in capsys.readouterr().err


def test_a_video_of_a_recording(folder, capsys):
    """All frames, and its end for a second: of a GIF every second picture."""
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    count = (DEATH + 63) // 2
    (folder / "good").write_bytes(make_attract(DEADLY.raw, bytes([RIGHT] * (DEATH + 1))))
    (folder / "y.gif").mkdir()
    assert main(["watch", "good", "--output", "y.gif", "--force"]) == 2
    assert "y.gif: expected the name of a file to write, got a folder; name another" in capsys.readouterr().err
    assert main(["watch", "good", "--scale", "0.1", "--output", "x.GIF"]) == 0
    assert capsys.readouterr().out == f"wrote x.GIF ({count / 30:.1f} s)\n"
    reader = imageio_ffmpeg.read_frames("x.GIF")
    next(reader)
    assert len(list(reader)) == count


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (b"", "an empty file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(30), "a PNG picture"),
        (b"\0\0\0\x20ftypisom" + bytes(30), "an MP4 video"),
        (b'title = "Hop"\nmode = "solo"\n', "a text that begins with 'title = \"Hop\"'"),
        (bytes(2000), "2000 other bytes"),
    ],
)
def test_watch_says_what_another_file_looks_like(folder, capsys, data, got):
    (folder / "x").write_bytes(data)
    assert main(["watch", "x"]) == 2
    error = capsys.readouterr().err
    expected = "expected a checkpoint, the folder of a run, or a recording (a .replay or an attract file)"
    fix = "name what nclone-env train, play or replay record wrote"
    assert error == f"nclone-env: sources: {expected}, got 'x', {got}; {fix}\n"
    assert main(["replay", "convert", "x", "y.replay"]) == 2
    error = capsys.readouterr().err
    expected = "expected a recording: a .replay, an attract file or a recording of nclone"
    assert error == f"nclone-env: x: file: {expected}, got {got}\n"


def test_watch_says_where_a_recording_is_damaged(folder, capsys):
    data = (folder / "a.replay").read_bytes()
    (folder / "a.replay").write_bytes(data[:-1])
    assert main(["watch", "a.replay"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("nclone-env: a.replay: ")
    assert "sources: " not in error


def test_play_saves_runs_under_free_names(folder, press, capsys):
    press(["s", "right", "right", "s", "r", "left", "s", "escape"])
    assert main(["play", "first-steps/01-walk", "--scale", "0.1"]) == 0
    names = ["first-steps-01-walk.replay", "first-steps-01-walk-2.replay"]
    assert [load_recording(folder / name).inputs.tolist() for name in names] == [[2, 2], [4]]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in lines] == [f"saved to {name}" for name in names]
    assert all(load_recording(folder / name).verify().agrees for name in names)


def test_play_without_levels_begins_with_the_first(folder, press, capsys):
    press(["right", "s", "n", "right", "s", "escape"])
    assert main(["play", "--scale", "0.1", "--output", "new/run"]) == 0
    assert {path.name for path in (folder / "new" / "run").glob("*.replay")} == {
        "first-steps-01-walk.replay",
        "first-steps-02-step.replay",
    }


def test_what_cannot_be_saved_is_said(folder, press, capsys):
    press(key for key in ("right", "s", "escape") if not shutil.rmtree(folder / "new", ignore_errors=True))
    assert main(["play", "first-steps/01-walk", "--scale", "0.1", "--output", "new"]) == 0
    assert "not saved: new/first-steps-01-walk.replay cannot be written" in capsys.readouterr().out


def test_a_run_that_cannot_be_recorded_does_not_end_the_game(folder, press, capsys, monkeypatch):
    monkeypatch.setattr("nclone_env.replay.recording.MAX_FRAMES", 2)
    press(["right", "right", "right", "s", "r", "right", "s", "escape"])
    assert main(["play", "first-steps/01-walk", "--scale", "0.1"]) == 0
    refused, saved = capsys.readouterr().out.splitlines()
    assert refused.startswith("not saved: ")
    assert refused.endswith("inputs: expected at most 2 frames, got 3")
    assert saved == "saved to first-steps-01-walk.replay (1 frames)"


def test_names_of_files_fit(tmp_path, capsys):
    for name, file in (("a/level with\na name " + "x" * 300, "x" * 100), ("\u6c34", "run")):
        recording = Recording.of(DEADLY, [RIGHT], {"level": name})
        assert _save_beside(recording, tmp_path) == f"saved to {tmp_path / file}.replay (1 frames)"


def test_ghosts_need_a_level_that_is_played(folder, press, capsys):
    (folder / "deadly").write_bytes(write_map(DEADLY.raw))
    press(["right", "escape"])
    assert main(["play", "deadly", "--ghost", "a.replay", "--scale", "0.1"]) == 0
    assert main(["play", "deadly", "--ghost", "b.replay", "--scale", "0.1"]) == 2
    error = capsys.readouterr().err
    assert "ghost: b.replay: expected a recording of a level that is played (deadly), got a recording of" in error
