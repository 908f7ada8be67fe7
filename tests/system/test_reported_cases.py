"""Situations from public reports and from attacks that no other test has: what a user expects of each.

Most cases are tested beside their module: files of other programs in `tests/level/formats` and `test_foreign_files`,
writers and names in `test_writers`, scripts under the profiler in `tests/profiler`, long numbers in
`test_long_numbers`, libraries in `tests/compat`.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import nclone_env
from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv, errors
from nclone_env.cli.app import main
from nclone_env.errors import ConfigError
from nclone_env.generate import generated_levels
from nclone_env.level.catalog import levels_folder
from nclone_env.level.formats.text import format_text
from nclone_env.level.load import load_level

from ..shared import each_value

STATE = "nclone/NPlusPlus-State-v0"


pytestmark = pytest.mark.usefixtures("folder")


# A limit of steps


def steps_until_truncated(envs) -> int:
    envs.reset(seed=0)
    for step in range(1, 50):
        if envs.step(envs.action_space.sample())[3].any():
            return step
    raise AssertionError


@pytest.mark.parametrize("mode", [None, "vector_entry_point", "sync"])
@pytest.mark.parametrize("frame_skip", [1, 4])
def test_a_limit_of_steps_holds_in_all_modes(mode, frame_skip):
    envs = gymnasium.make_vec(STATE, 2, vectorization_mode=mode, max_episode_steps=10, frame_skip=frame_skip)
    assert steps_until_truncated(envs) == 10
    envs.close()


def test_a_limit_of_steps_of_an_id_of_ones_own():
    entry = gymnasium.spec(STATE)
    gymnasium.register(
        "Mine/Short-v0",
        entry.entry_point,
        vector_entry_point=entry.vector_entry_point,
        max_episode_steps=7,
        kwargs=entry.kwargs,
    )
    try:
        assert steps_until_truncated(gymnasium.make_vec("Mine/Short-v0", 2)) == 7
    finally:
        del gymnasium.registry["Mine/Short-v0"]


def test_a_limit_of_steps_beyond_that_of_frames_changes_nothing():
    envs = NPlusPlusVectorEnv(num_envs=1, max_frames=8, frame_skip=4, max_episode_steps=10**9)
    assert steps_until_truncated(envs) == 2


@pytest.mark.parametrize("steps", [0, -1, 1.5, "10"])
def test_no_limit_of_steps(steps):
    with pytest.raises((ConfigError, TypeError), match="max_episode_steps"):
        NPlusPlusVectorEnv(num_envs=1, max_episode_steps=steps)


# A package in a zip file

ZIPPED = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
sys.path = ["app.zip", *(path for path in sys.path if "nclone" not in path)]
import nclone_env
assert "app.zip" in nclone_env.__file__
try:
    nclone_env.load_level("first-steps/01-walk") if {builtin} else None
except nclone_env.errors.UnknownLevelError as error:
    print(error)
if not {builtin}:
    print(nclone_env.load_level("a.toml").name)
"""


@pytest.mark.parametrize("builtin", [True, False])
def test_a_package_in_a_zip_file(builtin, folder):
    package = Path(nclone_env.__file__).parent
    with zipfile.ZipFile("app.zip", "w") as archive:
        for path in package.rglob("*.py"):
            archive.write(path, path.relative_to(package.parent))
        for path in levels_folder().rglob("*.toml"):
            archive.write(path, Path("nclone_env/_levels") / path.relative_to(levels_folder()))
    Path("a.toml").write_text(format_text(load_level("jumps/01-stairs").raw))
    code = ZIPPED.format(builtin=builtin)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, env=environment, cwd=folder
    )
    said = "in a zip file or not complete; install it" if builtin else "a.toml"
    assert said in done.stdout, done.stderr


# Folders with a colon, which ffmpeg takes for the name of a protocol


@pytest.mark.parametrize("place", ["01:56", "concat:a|b"])
def test_a_video_in_a_folder_with_a_colon(place, capfd):
    pytest.importorskip("imageio_ffmpeg")
    main(["replay", "record", "jumps/01-stairs", "--inputs", "3R", "--output", "a.replay"])
    Path(place).mkdir(parents=True)
    for name in (f"{place}/a.mp4", f"{place.split('/')[0]}.mp4"):
        assert main(["watch", "a.replay", "--output", name]) == 0, capfd.readouterr().err
        assert Path(name).read_bytes()[4:8] == b"ftyp"
    assert "a.replay" in os.listdir()


# Memory and threads that run out


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 3 GiB"),
        RuntimeError("can't start new thread"),
        BrokenProcessPool("A process in the process pool was terminated abruptly while the future was running"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        ImportError("libgomp.so.1: cannot allocate memory in static TLS block"),
    ],
)
def test_errors_of_memory_are_one_line(error, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr("nclone_env.cli.levels.list_levels", fail)
    assert main(["levels", "list"]) == 1
    said = capsys.readouterr().err
    cause = (
        "a worker process was ended: by a system without memory" if "process" in str(error) else "not enough memory: "
    )
    assert said.startswith(f"nclone-env: {cause}")
    assert len(said.splitlines()) == 1


# Mappings and arrays that answer otherwise the second time


class Changing(Mapping):
    """Gives the good array first, then another one."""

    def __init__(self, good: np.ndarray, then: np.ndarray):
        self.arrays, self.asked = [good, then], 0

    def __getitem__(self, name: str) -> np.ndarray:
        self.asked += 1
        return self.arrays[min(self.asked - 1, 1)]

    def __iter__(self) -> Iterator[str]:
        return iter(("game_state",))

    def __len__(self) -> int:
        return 1


class Liar(np.ndarray):
    """Says that it has the right shape and type."""

    shape = (2, 30)
    dtype = np.dtype(np.float32)


class Growing(dict):
    """Has another key each time that it is asked for its items."""

    def items(self):
        self[f"more {len(self)}"] = np.zeros(1)
        return super().items()


def good() -> np.ndarray:
    return np.zeros((2, 30), np.float32)


@pytest.mark.parametrize("then", [np.zeros(1, np.float32), np.zeros((2, 30), np.int8), None])
def test_a_mapping_of_outputs_is_read_once(then):
    envs, out = NPlusPlusVectorEnv(None, 2, observations="game_state"), Changing(good(), then)
    observations, _ = envs.reset(seed=0, out=out)
    assert out.asked == 1
    assert observations["game_state"] is out.arrays[0]
    assert out.arrays[0].any()


@pytest.mark.parametrize(
    "out",
    [
        lambda: {"game_state": np.zeros(3, np.float32).view(Liar)},
        lambda: {"game_state": np.zeros((2, 30), np.int8).view(Liar)},
        lambda: Growing(game_state=good()),
        lambda: {"game_state": good()[:1].view(Liar)},
    ],
)
def test_arrays_that_lie_are_refused(out):
    envs = NPlusPlusVectorEnv(None, 2, observations="game_state")
    with pytest.raises(errors.BufferError):
        envs.reset(seed=0, out=out())
    envs.reset(seed=0, out={"game_state": good().view(Liar)})  # the truth


# Values that are no arrays


def without_array(error: Exception) -> object:
    """Return what raises an error as it becomes an array: a tensor on a GPU, with gradients or of bfloat16 does."""

    class Tensor:
        def __array__(self, dtype=None, copy=None):
            raise error

        def __repr__(self):
            return "Tensor"

    return Tensor()


@pytest.mark.parametrize(
    "value",
    [
        without_array(TypeError("can't convert cuda:0 device type tensor.\nUse Tensor.cpu()")),
        without_array(RuntimeError("Can't call numpy() on Tensor that requires grad. Use Tensor.cpu()")),
    ],
)
def test_what_cannot_be_an_array_is_an_error_of_the_argument(value):
    from nclone_env.sim import Session

    single, envs = NPlusPlusEnv(observations="game_state"), NPlusPlusVectorEnv(None, 2, observations="game_state")
    single.reset()
    envs.reset()
    session = Session("first-steps/01-walk", 2)
    for call, error, name in (
        (single.step, errors.ActionError, "action"),
        (envs.step, errors.ActionError, "action"),
        (envs.gather, ConfigError, "indices"),
        (session.start, errors.LevelIndexError, "levels"),
        (session.tick, errors.InputsError, "inputs"),
        (session.play, errors.InputsError, "inputs"),
        (session.gather, errors.WorldIndexError, "indices"),
        (lambda given: nclone_env.simulate("first-steps/01-walk", given), errors.InputsError, "inputs"),
    ):
        with pytest.raises(error, match=rf"^{name}: expected .*, got Tensor: .*Use Tensor\.cpu\(\)$"):
            call(value)


def test_observations_that_cannot_be_arrays_are_named():
    pytest.importorskip("torch")
    from nclone_env.train import load_policy

    value, policy = without_array(TypeError("no such dtype")), load_policy("builtin")
    with pytest.raises(ConfigError, match=r"^observation: \w+: expected an array, got Tensor: no such dtype$"):
        policy.act(dict.fromkeys(policy.network.observation_shapes, value))


# Names that no system takes

LONG = "x" * 5000
NAMED = (
    "watch,{}",
    "evaluate,{}",
    "play,{}",
    "play,first-steps,--ghost,{}",
    "gallery,{},--output,a",
    "gallery,--recordings,{},--output,a",
    "solve,{},--output,a",
    "merge,{},--output,a",
    "replay,verify,{}",
    "replay,convert,{},a.replay",
    "levels,show,{}",
    "benchmark,verify,{}",
    "benchmark,submit,{},--track,Planning-v1",
    "profile,script,{}",
    "train,--config,{}",
    "train,--resume,{}",
    "train,--init,{}",
    "train,--levels,{}",
    "train,--starts,{}",
    "train,--warm-start,{}",
)


@pytest.mark.parametrize(("command", "name"), each_value(NAMED, [LONG, "y" * 300]))
def test_a_name_longer_than_the_system_takes_is_no_such_file(command, name, capsys):
    args = command.format(name).split(",")
    assert main(args) in (1, 2)  # 1: of several that were asked for, one is none
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert name[:30] in told.err + told.out
    assert len(told.err.splitlines()) <= 1
    assert len(told.err) < 1000


@pytest.mark.parametrize(
    ("command", "name"),
    each_value([*NAMED, "gallery,--recordings,{},--output,a", "watch,{},--output,a.mp4"], ["/dev/zero", "pipe"]),
)
def test_what_has_no_end_is_refused_unread(command, name, capsys):
    os.mkfifo("pipe")
    assert main(command.format(name).split(",")) in (1, 2)
    told = capsys.readouterr()
    assert name in told.err + told.out
    assert "Traceback" not in told.err
    assert len(told.err.splitlines()) <= 2  # what is left out, and that nothing is left


@pytest.mark.parametrize("field", ["output", "name", "levels", "starts", "warm_start", "learner"])
def test_a_zero_byte_in_an_option_is_refused_in_one_line(field, folder, capsys):
    (folder / "run.toml").write_text(f'{field} = "a\\u0000b"\nnum_envs = 1\nnum_steps = 8\ntotal_timesteps = 8\n')
    assert main(["train", "--config", "run.toml"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "a\\x00" in line


# Libraries that are there and fail


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import six_that_is_not_there", "No module named 'six_that_is_not_there'"),
        ("raise ImportError('libGL.so.1: cannot open\\nshared object')", "libGL.so.1: cannot open shared object"),
        ("from os import absent", "cannot import name 'absent' from 'os'"),
    ],
)
def test_a_library_that_cannot_be_imported_is_told_in_one_line(source, said, folder, monkeypatch):
    (folder / "a_library.py").write_text(source)
    monkeypatch.setitem(sys.modules, "a_library", None)
    del sys.modules["a_library"]
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(errors.MissingExtraError) as caught:
        errors.optional_module("a_library", "train")
    assert str(caught.value).startswith(f"a-library is installed, but cannot be imported: {said}")
    assert "\n" not in str(caught.value)
    with pytest.raises(errors.MissingExtraError, match="no-library-at-all is not installed; run pip install"):
        errors.optional_module("no_library_at_all.part", "train")


# One for several, and any iterable


def takers():
    """Return functions that take several sources, each with one, and what it makes of them as text."""
    from nclone_env.benchmark import played
    from nclone_env.gallery import collect
    from nclone_env.jobs import Shard, Showing, Solving, Validating, merge, run
    from nclone_env.train import demonstrate, load_policy

    config = nclone_env.EnvironmentConfig(observations="game_state")
    run(Validating(levels="first-steps/01-walk"), "parts", shard=Shard(1, 1))

    def merged(folders):
        merge(folders, "merged.jsonl")
        return Path("merged.jsonl").read_text()

    walk = "first-steps/01-walk"
    return {
        "demonstrate": (walk, lambda given: demonstrate(given, config).sources),
        "played": (walk, lambda given: played(given, config).levels),
        "load_policy": (walk, lambda given: load_policy("builtin", given).environment.levels),
        "collect": (walk, lambda given: len(collect(given, [], pytest.fail))),
        "Validating": (walk, lambda given: Validating(levels=given).arguments),
        "Solving": (walk, lambda given: Solving(levels=given).arguments),
        "Showing": (walk, lambda given: Showing(levels="jumps", recordings=given).arguments),
        "generated_levels": ("rooms", lambda given: next(generated_levels(given, 1)).level.raw.digest),
        "merge": ("parts", merged),
    }


def test_one_is_several_and_so_is_any_iterable():
    for name, (one, take) in takers().items():
        expected = str(take((one,)))
        for given in (one, [one], {one}, {one: 1}.keys(), iter((one,)), np.array(one)):
            assert str(take(given)) == expected, (name, given)


def test_jobs_take_paths(folder):
    from nclone_env.jobs import Validating

    assert Validating(levels=Path("a.toml")).levels == (os.path.join(os.curdir, "a.toml"),)  # no built-in name
    assert Validating(levels=[folder / "a.toml", "jumps"]).levels == (str(folder / "a.toml"), "jumps")


# Numbers of NumPy, as sweeps give them


@pytest.mark.parametrize("kind", [np.int64, np.uint8, lambda number: np.array(number)])
def test_jobs_and_recordings_with_numbers_of_numpy_are_those_of_python(kind, folder):
    from nclone_env.jobs import Generating, Shard, Solving, run
    from nclone_env.replay import Recording, load_recording

    walk = "first-steps/01-walk"
    for name, job, same in (
        ("solve", Solving(levels=walk, frames=kind(200), seed=kind(3)), Solving(levels=(walk,), frames=200, seed=3)),
        ("several", Solving(levels=walk, frames=[kind(9), 9]), Solving(levels=(walk,), frames=(9, 9))),
        (
            "generate",
            Generating(count=kind(1), families="rooms", difficulty=np.array([0, 100])),
            Generating(count=1, families=("rooms",), difficulty=(0, 100)),
        ),
    ):
        assert job == same
        for number, each in enumerate((job, same)):
            run(each, folder / f"{name}-{number}", shard=Shard(1, 1))
        one, two = ((folder / f"{name}-{number}" / Shard(1, 1).file).read_bytes() for number in range(2))
        assert one.splitlines()[0] == two.splitlines()[0]
    settings = {"seed": kind(3), "rate": np.float32(0.5), "flags": (np.bool_(True), np.str_("a")), "path": folder}
    recording = Recording.of(walk, [2] * 5, settings, np.int64(7))
    recording.save("a.replay")
    read = load_recording("a.replay")
    assert read.settings == {"seed": 3, "rate": 0.5, "flags": [True, "a"], "path": str(folder)}
    assert read.seed == 7
