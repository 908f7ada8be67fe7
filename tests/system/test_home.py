"""``~`` is the home folder in every path that a public function takes: shells do not see those of programs."""

import importlib
import inspect
import pkgutil
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import nclone_env
from nclone_env.benchmark import played, read_submission, training_levels
from nclone_env.benchmark import verify as verify_submission
from nclone_env.benchmark.track import load_track
from nclone_env.cli.app import main
from nclone_env.errors import CheckpointError, ConfigError, MissingExtraError
from nclone_env.gallery import check_output, collect, write_site
from nclone_env.jobs import Shard, Validating, merge, run
from nclone_env.level import known_solutions, load_level
from nclone_env.level.catalog import levels_folder
from nclone_env.memory import profile
from nclone_env.plan import solve
from nclone_env.replay import Recording, load_recording, write_video
from nclone_env.replay import verify as verify_replay
from nclone_env.sim import Session, simulate

from ..benchmark.bases import honest
from ..level.level_bases import make_attract

WALK = "first-steps/01-walk"
CONFIG = nclone_env.EnvironmentConfig(observations="game_state")


def recording() -> Recording:
    return Recording.of(WALK, np.frombuffer(known_solutions()[WALK], np.uint8))


def film(path):
    pytest.importorskip("imageio_ffmpeg")
    write_video([np.zeros((16, 16, 3), np.uint8)] * 3, path, 10)


def read_packs(path):
    with pytest.raises(ConfigError, match="with SHA-256"):  # of another file: it was read
        training_levels(load_track("Game-v1"), dict.fromkeys(load_track("Game-v1").packs, path))


def train_from(option):
    def train(path):
        from nclone_env.train import TrainConfig, train

        with pytest.raises(CheckpointError, match="expected"):  # of other options: it was read
            train(TrainConfig.of(levels=WALK, hidden_size=3), **{option: path})

    return train


def torch(name):
    def call(*arguments):
        pytest.importorskip("torch")
        return getattr(importlib.import_module("nclone_env.train"), name)(*arguments)

    return call


READERS = {
    "load_level.source": ("walk.toml", load_level),
    "simulate.level": ("walk.toml", lambda path: simulate(path, np.zeros(3, np.uint8))),
    "solve.level": ("walk.toml", lambda path: solve(path, frames=100)),
    "Session.levels": ("walk.toml", Session),
    "Recording.of.level": ("walk.toml", lambda path: Recording.of(path, np.zeros(3, np.uint8))),
    "load_policy.path": ("policy.pt", torch("load_policy")),
    "load_policy.levels": (
        "walk.toml",
        lambda path: nclone_env.NPlusPlusEnv(torch("load_policy")("builtin", path).environment),
    ),
    "load_checkpoint.path": ("policy.pt", torch("load_checkpoint")),
    "train.resume": ("policy.pt", train_from("resume")),
    "train.init": ("policy.pt", train_from("init")),
    "demonstrate.sources": ("walk.replay", lambda path: torch("demonstrate")([path], CONFIG)),
    "read_recipe.path": ("run.toml", torch("read_recipe")),
    "load_recording.path": ("walk.replay", load_recording),
    "collect.names": ("walk.toml", lambda path: collect(path, [], pytest.fail)),
    "collect.recordings": ("walk.replay", lambda path: collect([], [path], pytest.fail)),
    "verify.file": ("attract", verify_replay),
    "known_solutions.folder": ("levels", lambda path: known_solutions(path)[WALK]),
    "read_submission.source": ("result.zip", read_submission),
    "verify.source": ("result.zip", verify_submission),
    "played.sources": ("result.zip", lambda path: played([path], CONFIG)),
    "training_levels.packs": ("walk.toml", read_packs),
    "merge.folders": ("shards", lambda path: merge([path], Path("~/merged"))),
}
WRITERS = {
    "Recording.save.path": lambda path: recording().save(path),
    "Submission.save.path": lambda path: honest().save(path),
    "merge.output": lambda path: merge(["~/shards"], path),
    "run.output": lambda path: run(Validating(levels=(WALK,)), path),
    "write_site.output": lambda path: write_site(path, "title", [], []),
    "profile.output_dir": lambda path: profile(output_dir=path, trace=False).__enter__().__exit__(None, None, None),
    "write_video.path": film,
}
ELSEWHERE = {
    "TrainConfig.output": "an option: tests/test_options.py",
    "Watch.output_dir": "made by profile",
    "check_output.output": "below",
    **dict.fromkeys(("Recipe.path", "Recipe.init", "Recipe.check_inputs.init"), "of what read_recipe has read"),
    **dict.fromkeys(("evaluate.packs", "played.packs", "verify.packs"), "read as by training_levels"),
}


def paths_of_public_functions() -> set[str]:
    """Return the arguments that are annotated as paths or sources of levels, of all public functions and methods."""
    found = set()
    rooms = [f"nclone_env.{room.name}" for room in pkgutil.iter_modules(nclone_env.__path__) if room.ispkg]
    for room in map(importlib.import_module, ["nclone_env", *rooms]):
        for name in getattr(room, "__all__", ()):
            with suppress(ImportError, MissingExtraError):
                public = getattr(room, name)
                found |= {each for called, function in _calls(name, public) for each in _paths(called, function)}
    return found


def _calls(name, public):
    yield name, public
    is_job = inspect.isclass(public) and hasattr(public, "arguments")  # whose paths are those of jobs.run
    for each in vars(public) if inspect.isclass(public) and not is_job else ():
        if not each.startswith("_"):
            yield f"{name}.{each}", getattr(public, each)


def _paths(name, function):
    with suppress(TypeError, ValueError):  # no function
        for argument in inspect.signature(function).parameters.values():
            hint = str(argument.annotation)
            is_path = any(word in hint for word in ("Path", "LevelSource")) and "PathsName" not in hint
            if is_path and "Callable" not in hint and name not in ("TrainResult",):
                yield f"{name}.{argument.name}"


def test_all_are_tested():
    assert paths_of_public_functions() == {*READERS, *WRITERS, *ELSEWHERE}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    shutil.copytree(levels_folder(), folder / "levels")
    shutil.copyfile(levels_folder() / f"{WALK}.toml", folder / "walk.toml")
    shutil.copyfile(Path(nclone_env.__file__).parent / "policies" / "builtin.pt", folder / "policy.pt")
    (folder / "run.toml").write_text('levels = ["jumps"]')
    recording().save(folder / "walk.replay")
    honest().save(folder / "result.zip")
    (folder / "attract").write_bytes(make_attract(load_level(WALK).raw, known_solutions()[WALK]))
    run(Validating(levels=(WALK,)), folder / "shards", shard=Shard(1, 1))
    return folder


@pytest.fixture
def home(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(files))
    monkeypatch.setenv("USERPROFILE", str(files))
    return files


@pytest.mark.parametrize("name", READERS)
def test_reads(home, name):
    file, read = READERS[name]
    read(f"~/{file}")
    read(Path("~") / file)


@pytest.mark.parametrize("name", WRITERS)
def test_writes(home, name, tmp_path):
    for given in (f"~/{name}.mp4", Path("~") / f"{name}.2.mp4"):
        WRITERS[name](given)
        assert (home / Path(given).name).exists()
    assert list(tmp_path.iterdir()) == []


def test_commands_read_it_behind_an_equals_sign(home):
    pytest.importorskip("cv2")
    for status in (0, 2):  # the second asks before it overwrites
        assert main(["levels", "show", "~/walk.toml", "--output=~/shown.png"]) == status
    assert (home / "shown.png").exists()


def test_a_folder_is_checked(home):
    with pytest.raises(ConfigError, match="with other files"):
        check_output("~/levels", force=True)
