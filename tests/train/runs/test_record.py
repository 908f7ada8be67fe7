"""What a run was, in its folder: the file repeats it to the bit, and tells what has changed since."""

import re
import shlex
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from nclone_env.cli.app import main
from nclone_env.errors import ConfigError
from nclone_env.level.load import load_levels
from nclone_env.train import TrainConfig, read_recipe, train
from nclone_env.train.ranks import ALONE
from nclone_env.train.runs.record import write_record

from ..runs import config, contents, shown, until
from ..stub import LineWorld

SMALL = shlex.split(
    "--num-envs 8 --num-steps 16 --max-frames 80 --hidden-size 8 --num-threads 1 --no-video --episodes 1"
)

SHORT = ["--no-video", "--episodes", "1"]


def test_a_run_repeats_another_to_the_bit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = "--levels first-steps --held-out 0.3 --curriculum progress --learning-rate 3e-3 --reward.death -2 --seed 3"
    assert main(["train", *SMALL, *first.split(), "--total-timesteps", "384", "--name", "first", *SHORT]) == 0
    for name, more in (("second", ()), ("third", ("--seed", "4"))):
        given = "--config", f"runs/first{'/run.toml' if name == 'third' else ''}"
        assert main(["train", *given, "--name", name, *SHORT, *more]) == 0
    one, same, other = (contents(f"runs/{name}/checkpoint.pt") for name in ("first", "second", "third"))
    assert one == same
    assert one["policy"] != other["policy"]
    kept = [read_recipe(f"runs/{name}") for name in ("first", "second", "third")]
    assert kept[0].config == kept[1].config == kept[2].config.replace(seed=3)
    assert kept[0].config.ppo.learning_rate == 3e-3
    assert kept[0].made["levels"] == kept[1].made["levels"]
    assert len(kept[0].made["levels"]) == 6
    assert kept[0].differences() == []


LEVELS = ("first-steps/01-walk", "first-steps/06-hop")


@pytest.mark.parametrize("fields", [{}, {"mirrored": True}, {"starts": ("known",), "max_frames": 400}], ids=str)
def test_the_record_takes_the_levels_that_the_run_has_loaded(tmp_path, monkeypatch, fields):
    def refuse(*_):
        raise AssertionError("loaded again")

    expected = {level.name: level.raw.digest for level in load_levels(LEVELS)}
    with monkeypatch.context() as patch:
        patch.setattr("nclone_env.train.runs.record.load_levels", refuse)
        train(config(tmp_path, levels=LEVELS, name="own", total_timesteps=512, **fields))
    assert read_recipe(tmp_path / "own").made["levels"] == expected
    train(config(tmp_path, levels=LEVELS, name="others", total_timesteps=512), make_envs=LineWorld)
    assert read_recipe(tmp_path / "others").made["levels"] == expected, "environments of a user load none"


@pytest.fixture
def recorded(tmp_path):
    """Return what writes the record of a run, and reads it."""

    def record(settings, init=None):
        write_record(tmp_path, settings, init, ALONE, None)
        return read_recipe(tmp_path)

    return record


ODD = 'a "b"\\c\x7f\t\n\udce9 \u00e9 \U0001f600 = [#'


def test_every_option_comes_back(tmp_path, recorded):
    (tmp_path / "a.replay").write_bytes(b"1")
    settings = TrainConfig.of(
        levels="first-steps", starts=(ODD, str(tmp_path / "a.replay")), learning_rate=1e-5, learner=ODD,
        reward={"shaping": 1.0}, stop_at_success=0.5, global_view_size=(100, 200), track="none", num_threads=3,
        total_timesteps=10**12,
    )  # fmt: skip
    read = recorded(settings, "generated")
    assert read.config == settings
    assert str(read.init) == "generated"
    assert list(read.made["files"]) == [str(tmp_path / "a.replay"), "generated"]
    assert read.differences() == []
    read.path.write_bytes(b"\xef\xbb\xbf" + read.path.read_bytes().replace(b"\n", b"\r\n"))  # as editors save it
    assert read_recipe(read.path).config == settings


def test_other_levels_files_and_versions_are_told(tmp_path, recorded, monkeypatch):
    monkeypatch.chdir(tmp_path)
    walk, replay = tmp_path / "own.toml", tmp_path / "a.replay"
    assert main(["levels", "convert", "first-steps/01-walk", str(walk)]) == 0
    replay.write_bytes(b"1")
    settings = config(tmp_path, levels=str(walk), starts=str(replay))
    read = recorded(settings)
    read.check_inputs(settings, None)
    replay.write_bytes(b"2")
    with pytest.raises(
        ConfigError, match=r"run.toml: files: expected .*a.replay with the digest 6b86b273, as in that "
    ):
        read.check_inputs(settings, None)
    read.check_inputs(settings.replace(starts=()), None)
    replay.write_bytes(b"1")
    assert main(["levels", "convert", "first-steps/02-step", str(walk), "--force"]) == 0
    with pytest.raises(
        ConfigError, match=r"run.toml: levels: expected .* digest .*, got one with .*; restore it, or ta"
    ):
        read.check_inputs(settings, None)
    read.check_inputs(settings.replace(levels="first-steps"), None)
    path = tmp_path / "run.toml"
    path.write_text(path.read_text().replace('numba = "', 'numba = "0.'))
    (said,) = read_recipe(path).differences()
    assert said.startswith("numba: 0.0.")


def test_a_resumed_run_says_where_and_with_what(tmp_path):
    settings = config(tmp_path, name="a")
    train(settings, until(2), make_envs=LineWorld)
    more = settings.replace(total_timesteps=512 * 8, stop_at_success=0.9)
    for _ in range(2):
        train(more, until(1), make_envs=LineWorld, resume=tmp_path / "a")
    recipe = read_recipe(tmp_path / "a")
    assert recipe.config == settings.replace(name="", output="runs")
    one, two = recipe.made["resumed"]
    assert (one["timesteps"], two["timesteps"]) == (1024, 1536)
    assert one["options"] == {"total_timesteps": 4096, "stop_at_success": 0.9}
    assert recipe.differences()[0].startswith("resumed after 1024 timesteps with total_timesteps 4096, stop_at_success")
    train(settings.replace(name="b"), until(1), make_envs=LineWorld, resume=tmp_path / "a")
    assert read_recipe(tmp_path / "b").made["continued"] == str(tmp_path / "a" / "checkpoint.pt")


def test_compare_tells_what_else_differs(tmp_path, capsys):
    settings = config(tmp_path, total_timesteps=512, learning_rate=1e-3)
    for seed in range(3):
        train(settings.replace(seed=seed, name=f"{seed}"), make_envs=LineWorld)
    folders = [str(tmp_path / f"{seed}") for seed in range(3)]
    output = ["--output", str(tmp_path / "comparison.png"), "--force"]
    assert main(["compare", *folders, *output]) == 0
    assert "differs" not in capsys.readouterr().out
    path = tmp_path / "2" / "run.toml"
    text = re.sub(r'(walk" = ")\w{8}', r"\g<1>0123abcd", path.read_text())
    path.write_text(re.sub(r'commit = ".*"', 'commit = "abc"', text))
    (tmp_path / "1" / "run.toml").unlink()
    assert main(["compare", *folders, *output]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "differs" in line]
    assert len(lines) == 2
    assert re.fullmatch(rf"commit differs: .* in {folders[0]}, abc in {folders[2]}", lines[0])
    assert re.fullmatch(rf"level first-steps/01-walk differs: \w+ in {folders[0]}, 0123abcd in {folders[2]}", lines[1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rat = 1", r"recipe.toml: options: unknown field 'learning_rat'; did you mean 'learning_rate'\?"),
        ("learning_rate = 7", "recipe.toml: learning_rate: expected a number .*, got 7"),
        ("seed = ", "recipe.toml: Invalid value"),
        ("num_steps = 5k", "recipe.toml: Expected .*; numbers are written 5000000, 5_000_000 or 5e6, and texts in "),
        ("run = 1", "recipe.toml: run, init: expected a table and a text"),
        ("[run]\nnumba = 1", r"recipe.toml: run.numba: expected a text, got 1; leave it out"),
        ("[run]\ntime = 1979-05-27", r"recipe.toml: run.time: expected a text, got datetime.date"),
        ("[run]\nlevels = ['a']", r"recipe.toml: run.levels: expected a table, got \['a'\]"),
        ("[run.levels]\n'a\\n' = 3", r"recipe.toml: run.levels.'a.*': expected a digest, got 3"),
        ("[run]\nresumed = [3]", r"recipe.toml: run.resumed\[0\]: expected a table, got 3"),
        ("[[run.resumed]]\ntimesteps = 'a'", r"recipe.toml: run.resumed\[0\].timesteps: expected a whole number"),
        ("[[run.resumed]]\n[[run.resumed]]\noptions = 3", r"recipe.toml: run.resumed\[1\].options: expected a table"),
        ("seed = 1".encode("utf-16"), "recipe.toml: expected a text of options in UTF-8, got 18 other bytes"),
        (None, "config: expected a file of options, the folder of a run .*, or one of .*, got .*No such file"),
    ],
)
def test_what_is_no_recipe_is_refused_in_one_line(tmp_path, text, message, capsys):
    path = tmp_path / "recipe.toml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=f"^[^\\n]*{message}[^\\n]*$"):
        read_recipe(path)
    assert main(["train", "--config", str(path)]) == 2
    assert main(["train", "--config", str(path), "--resume", str(tmp_path)]) == 2
    assert "config: expected none with --resume" in capsys.readouterr().err


def test_tensorboard_shows_the_options(tmp_path):
    settings = config(tmp_path, name="a", total_timesteps=512)
    train(settings, make_envs=LineWorld)
    events = EventAccumulator(str(tmp_path / "a" / "tensorboard"))
    events.Reload()
    data = HParamsPluginData.FromString(events.summary_metadata["_hparams_/session_start_info"].plugin_data.content)
    values = {
        name: value.number_value or value.string_value or value.bool_value
        for name, value in data.session_start_info.hparams.items()
    }
    assert values["learning_rate"] == 3e-3
    assert values["levels"] == "first-steps"
    assert values["stop_at_success"] == "none"
    assert values["reward.death"] == -1.5
    assert values["anneal"] == 1
    assert shown(tmp_path / "a") == [512]


def test_a_run_without_a_tracker(tmp_path):
    train(config(tmp_path, name="a", total_timesteps=512, track="none"), make_envs=LineWorld)
    assert not (tmp_path / "a" / "tensorboard").exists()


@pytest.mark.parametrize(
    "source",
    [
        "raise ImportError('no protobuf')",
        "import protobuf_that_is_not_there",
        "raise TypeError('Descriptors cannot be created directly')",
        "def init(**options):\n    raise ValueError('api_key not configured')\n",
        "class Run:\n    def log(self, row, step): raise OSError('offline')\ndef init(**options): return Run()\n",
    ],
)
def test_a_run_goes_on_without_a_tracker_that_fails(tmp_path, monkeypatch, source):
    (tmp_path / "libraries").mkdir()
    (tmp_path / "libraries" / "wandb.py").write_text(source)
    monkeypatch.setitem(sys.modules, "wandb", None)  # what was there comes back in the end
    del sys.modules["wandb"]
    monkeypatch.syspath_prepend(tmp_path / "libraries")
    with pytest.warns(RuntimeWarning, match="wandb is left out: ") as warned:
        ended = train(config(tmp_path, name="a", track="wandb"), make_envs=LineWorld)
    assert len(warned) == 1
    control = train(config(tmp_path, name="b", track="none"), make_envs=LineWorld)
    assert contents(ended.checkpoint)["policy"] == contents(control.checkpoint)["policy"]


def test_weights_and_biases_gets_curve_and_options(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    for name, value in {"MODE": "offline", "SILENT": "true", "CONSOLE": "off"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    settings = config(tmp_path, name="a", track="wandb", num_threads=1)
    train(settings, until(2), make_envs=LineWorld)
    train(settings, make_envs=LineWorld, resume=tmp_path / "a")
    runs = list((tmp_path / "a" / "wandb").glob("offline-run-*/*.wandb"))
    assert len({path.stem for path in runs}) == 1, "one run, continued"
    written = b"".join(path.read_bytes() for path in runs)
    assert all(name in written for name in (b"clone_kl_coef", b"min_success_rate"))
