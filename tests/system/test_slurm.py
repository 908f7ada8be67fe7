"""The scripts of the page on SLURM, with four local tasks and stand-ins for its programs."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from nclone_env.jit import cache_root
from nclone_env.train import TrainConfig, load_checkpoint, train
from tests.docs.pages import ROOT

SCRIPTS = ROOT / "examples" / "slurm"
STEPS = 600_000

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Return what starts a task; ``requeued`` lists those that the script has asked to start again."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "nclone-env").write_text(f'#!/bin/bash\nexec {sys.executable} -m nclone_env "$@"\n')
    (programs / "scontrol").write_text(f'#!/bin/bash\necho "$@" >> {tmp_path}/requeued\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    known = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    known |= {"SLURM_ARRAY_JOB_ID": "7", "NCLONE_ENV_CACHE_DIR": str(cache_root())}  # as warm.sh has filled it

    def start(task, steps=40_000):
        own = {"SLURM_ARRAY_TASK_ID": str(task), "TIMESTEPS": str(steps), "LEVELS": "first-steps/01-walk"}
        return subprocess.Popen(["bash", str(SCRIPTS / "array.sh")], cwd=tmp_path, env={**known, **own})

    return start


def test_four_tasks_have_runs_of_their_own(cluster, tmp_path):
    for task in (0, 1, 100, 499):
        assert cluster(task).wait() == 0
    names = ["rate0.0003-seed0", "rate0.0003-seed1", "rate0.0005-seed0", "rate0.003-seed99"]
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == names
    assert all((tmp_path / "runs" / name / "evaluation.csv").is_file() for name in names)
    assert not (tmp_path / "requeued").exists()


def test_an_interrupted_task_is_requeued_and_ends_as_if_it_had_not_been(cluster, tmp_path):
    task, run = cluster(203, STEPS), tmp_path / "runs" / "rate0.001-seed3"
    while not (run / "learning_curve.csv").exists():
        assert task.poll() is None
        time.sleep(0.05)
    task.send_signal(signal.SIGTERM)
    assert task.wait() == 0
    assert (tmp_path / "requeued").read_text() == "requeue 7_203\n"
    assert load_checkpoint(run / "checkpoint.pt").counters["timesteps"] < STEPS
    assert cluster(203, STEPS).wait() == 0
    config = TrainConfig.of(
        levels=("first-steps/01-walk",),
        total_timesteps=STEPS,
        learning_rate=0.001,
        seed=3,
        output=tmp_path,
        name="whole",
    )
    whole = train(config).policy.state_dict()
    requeued = load_checkpoint(run / "checkpoint.pt").policy
    assert all(torch.equal(requeued[name], whole[name]) for name in whole)
    other = train(config.replace(name="other", seed=4)).policy.state_dict()
    assert not all(torch.equal(requeued[name], other[name]) for name in whole)


def test_the_scripts_are_those_of_bash():
    for script in SCRIPTS.glob("*.sh"):
        assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
