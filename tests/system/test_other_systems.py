"""The core path on other systems than Linux, as far as ``tests.platform_shim`` can pretend."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDDEN = """
import tests.platform_shim as shim
shim.hide()
import os
os.fsync = lambda descriptor: None
import numpy as np
for name in ("fcntl", "resource"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(name)
assert not os.path.exists("/proc/self") and not hasattr(os, "fork")
"""
CORE = """
import nclone_env
env = nclone_env.NPlusPlusEnv(levels="first-steps", observations=("game_state", "action_mask"))
env.reset(seed=0)
env.step(2)
envs = nclone_env.NPlusPlusVectorEnv(num_envs=256, num_threads=2)
envs.reset(seed=0)
envs.step(np.zeros(256, np.int64))
envs.close()
from nclone_env.cli.app import main
"""
COMMANDS = (
    ["levels", "list", "jumps"],
    ["levels", "validate", "jumps"],
    ["levels", "convert", "jumps/01-stairs", "a.toml"],
    ["levels", "show", "a.toml"],
    ["replay", "record", "a.toml", "--inputs", "5R", "--output", "a.replay"],
    ["replay", "verify", "a.replay"],
    ["replay", "convert", "a.replay", "b.replay"],
    ["levels", "cache"],
    ["solve", "first-steps/01-walk", "--frames", "2000"],
    ["gallery", "first-steps/01-walk"],
    ["gallery", "first-steps/01-walk", "--force"],
    ["levels", "generate", "--count", "1", "--output", "p.txt", "--family", "pads"],
)
TRAIN = "train --levels first-steps/01-walk --total-timesteps 256 --num-envs 8 --num-steps 16 --num-minibatches 2"


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    paths = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-c", HIDDEN + code], cwd=folder, env=os.environ | paths, capture_output=True, text=True
    )


@pytest.mark.slow
def test_the_core_path_and_training(tmp_path):
    trains = [[*TRAIN.split(), "--episodes", "1", "--no-video"]] if importlib.util.find_spec("torch") else []
    done = run(f"{CORE}for command in {[*COMMANDS, *trains]!r}: assert main(command) == 0, command", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.rglob(".nclone_env-*"))


def test_two_writers_without_fcntl(tmp_path):
    hold = "from pathlib import Path; from nclone_env.cli.output import check_free; check_free(Path('a.toml'), False)\n"
    second = (
        "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-m', 'nclone_env', *sys.argv]).returncode)"
    )
    code = f"{hold}import sys\nsys.argv = {COMMANDS[2]!r}\n{second}"
    done = run(code, tmp_path)
    assert done.returncode == 2
    assert "another process is writing there" in done.stderr
