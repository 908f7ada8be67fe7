"""Without an optional library everything but its own purpose works, and one line says what to install."""

import importlib
import subprocess
import sys

import pytest

from nclone_env import NPlusPlusEnv
from nclone_env.cli.app import main
from nclone_env.errors import MissingExtraError
from nclone_env.replay import write_video

BLOCKED = """
import sys
sys.modules["cv2"] = None
import numpy as np
import nclone_env
from nclone_env.cli.app import main
from nclone_env.config import OBSERVATION_NAMES
"""
ENVIRONMENTS = """
envs = nclone_env.NPlusPlusVectorEnv(num_envs=2, levels="hazards", observations=OBSERVATION_NAMES)
envs.reset(seed=0)
for action in range(6):
    envs.step(np.full(2, action))
envs.close()
env = nclone_env.NPlusPlusEnv(levels="hazards", observations=("global_view", "player_frame"))
assert env.reset(seed=0)[0]["global_view"].any()
"""
COMMANDS = (
    ["levels", "validate", "jumps"],
    ["replay", "record", "jumps/01-stairs", "--inputs", "5R", "--output", "a.replay"],
    ["replay", "verify", "a.replay"],
    ["solve", "first-steps/01-walk", "--frames", "2000"],
    ["levels", "generate", "--count", "1", "--output", "p.txt", "--family", "pads"],
)


def run(code, folder):
    return subprocess.run([sys.executable, "-c", BLOCKED + code], cwd=folder, capture_output=True, text=True)


def test_environments_and_commands(tmp_path):
    done = run(f"{ENVIRONMENTS}for command in {COMMANDS!r}: assert main(command) == 0, command", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_pictures_for_people_need_it(tmp_path):
    code = 'env = nclone_env.NPlusPlusEnv(levels="jumps", render_mode="rgb_array"); env.reset(seed=0); env.render()'
    done = run(code, tmp_path)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("nclone_env.errors.MissingExtraError: pictures require OpenCV, which cannot be imported (")
    assert last.endswith("; run pip install opencv-python-headless")


def plot():
    from nclone_env.train.config import TrainConfig
    from nclone_env.train.reports.plots import write_learning_curve

    write_learning_curve([], "x", TrainConfig())


def track():
    from nclone_env.train import TrainConfig, train

    train(TrainConfig.of(output="runs", track="wandb"))


def adapter(name):
    return lambda: importlib.import_module(f"nclone_env.train.adapters.{name}")


PROFILE = ("profile", "--levels", "jumps", "--observations", "game_state")
NEEDS = {
    "data export": ("minari", ".[minari]", ("data", "export", "first-steps", "--name", "a-v0")),
    "a page, before the measurements": ("jinja2", ".[profile]", (*PROFILE, "--html")),
    "a profile of a library": ("stable_baselines3", ".[sb3]", ("profile", "sb3")),
    "policies of others": ("huggingface_hub", ".[hub]", ("watch", "hub:me/ninja")),
    "a window": ("pygame", ".[human]", lambda: NPlusPlusEnv(levels="jumps", render_mode="human").reset()),
    "a video": ("imageio_ffmpeg", ".[video]", lambda: write_video([], "x.mp4", 15)),
    "a plot": ("matplotlib", ".[train]", plot),
    "a tracker": ("wandb", ".[wandb]", track),
    "sb3": ("stable_baselines3", ".[sb3]", adapter("sb3")),
    "puffer": ("pufferlib", "pip install pufferlib", adapter("puffer")),
}
"""What needs a library: the library, what to install, and the arguments of a command, or a function."""


@pytest.mark.parametrize("what", NEEDS)
def test_a_library_is_named_with_its_extra(what, tmp_path, monkeypatch, capsys):
    library, extra, use = NEEDS[what]
    monkeypatch.chdir(tmp_path)
    for module in [name for name in sys.modules if name.partition(".")[0] == library] or [library]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"nclone_env.train.adapters.{what}", raising=False)
    if callable(use):
        with pytest.raises(MissingExtraError) as raised:
            use()
        said = str(raised.value)
    else:
        assert main(list(use)) == 2
        printed, said = capsys.readouterr()
        assert not printed or library == "stable_baselines3", "nothing is measured before"
    name = "pygame-ce" if library == "pygame" else library.replace("_", "-")
    assert f"{name} is not installed; run" in said
    assert extra in said
    assert not list(tmp_path.iterdir())
