"""Everything but pictures for people works without OpenCV, which has no wheel for some Pythons."""

import subprocess
import sys

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
