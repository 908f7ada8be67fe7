"""The scripts of the page on SLURM, with four local tasks and stand-ins for its programs.

Tasks of a node run in control groups of their own, where this process may make some, as those of a cluster do.
"""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch

from nclone_env import machine
from nclone_env._cache import cache_root
from nclone_env.train import TrainConfig, load_checkpoint, train
from tests.docs.pages import ROOT

SCRIPTS = ROOT / "examples" / "slurm"
STEPS = 600_000
MEMORY = 500_000_000
LIMITS = {
    "memory": {"memory.max": f"{MEMORY}", "memory.limit_in_bytes": f"{MEMORY}"},
    "cpu": {"cpu.max": "100000 100000", "cpu.cfs_quota_us": "100000"},
}
"""Files of the limits by controller, in version 2 and in version 1: 500 MB and one core."""

pytestmark = pytest.mark.slow


def made_group(controller):
    """Return a new control group below the one of this process; OSError where none can be made."""
    own = next(folder for folder in machine._cgroups(controller) if folder.is_dir())
    group = own / f"nclone-env-{os.getpid()}"
    group.mkdir(exist_ok=True)
    files = [group / name for name in LIMITS[controller] if (group / name).exists()]
    if not files:
        raise OSError(f"{group} has no limits")
    files[0].write_text(LIMITS[controller][files[0].name])
    return group


@pytest.fixture
def node():
    """Control groups of 500 MB and one core."""
    groups = set()
    try:
        groups = {made_group(controller) for controller in LIMITS}
    except (OSError, StopIteration) as error:
        pytest.skip(f"this process may not limit others: {error}")
    yield groups
    for group in groups:
        group.rmdir()


def within(groups, command):
    """Return a command that runs another one in control groups."""
    enter = "".join(f"echo $$ > {group}/cgroup.procs && " for group in groups)
    return ["bash", "-c", f'{enter}exec "$@"', "bash", *map(str, command)]


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

    def start(task, steps=40_000, node=()):
        own = {"SLURM_ARRAY_TASK_ID": str(task), "TIMESTEPS": str(steps), "LEVELS": "first-steps/01-walk"}
        return subprocess.Popen(within(node, ["bash", SCRIPTS / "array.sh"]), cwd=tmp_path, env={**known, **own})

    return start


def test_tasks_have_runs_of_their_own(cluster, tmp_path):
    for task in (0, 499):
        assert cluster(task).wait() == 0
    names = ["rate0.0003-seed0", "rate0.003-seed99"]
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == names
    assert all((tmp_path / "runs" / name / "evaluation.csv").is_file() for name in names)
    assert not (tmp_path / "requeued").exists()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The policy of a run in this process that is not interrupted."""
    config = TrainConfig.of(
        levels=("first-steps/01-walk",),
        total_timesteps=STEPS,
        learning_rate=0.001,
        seed=3,
        output=tmp_path_factory.mktemp("whole"),
    )
    return train(config).policy.state_dict()


def check_requeued(cluster, tmp_path, whole, node):
    """Interrupt a task, start it again, and compare it with a run that is not interrupted."""
    task, run = cluster(203, STEPS, node), tmp_path / "runs" / "rate0.001-seed3"
    while not (run / "learning_curve.csv").exists():
        assert task.poll() is None
        time.sleep(0.05)
    task.send_signal(signal.SIGTERM)
    assert task.wait() == 0
    assert (tmp_path / "requeued").read_text() == "requeue 7_203\n"
    part = load_checkpoint(run / "checkpoint.pt")
    assert part.counters["timesteps"] < STEPS
    assert cluster(203, STEPS, node).wait() == 0
    requeued = load_checkpoint(run / "checkpoint.pt").policy
    assert all(torch.equal(requeued[name], whole[name]) for name in whole)
    assert not all(torch.equal(part.policy[name], whole[name]) for name in whole)


def test_an_interrupted_task_is_requeued_and_ends_as_if_it_had_not_been(cluster, tmp_path, whole):
    check_requeued(cluster, tmp_path, whole, node=())


def test_a_node_of_500_megabytes_and_one_core_ends_no_task(cluster, node, tmp_path, whole):
    """What does not fit is refused in one line, what fits has the results of a larger machine."""
    seen = (
        "from nclone_env.machine import available_bytes, available_cores; print(available_bytes(), available_cores())"
    )
    done = subprocess.run(within(node, [sys.executable, "-c", seen]), capture_output=True, text=True)
    left, cores = map(int, done.stdout.split())
    assert 0 < left <= MEMORY
    assert cores == 1
    check_requeued(cluster, tmp_path, whole, node)
    large = ["train", "--levels", "first-steps", "--num-envs", "65536", "--output", tmp_path / "large"]
    command = within(node, [sys.executable, "-m", "nclone_env", *large])
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.fullmatch(r"nclone-env: num_envs: 65,536 need .* but .* MB are available; at most .* fit\n", done.stderr)
    for group in node:
        for name in ("memory.events", "memory.oom_control"):
            if (group / name).exists():
                assert "oom_kill 0\n" in (group / name).read_text()


def test_the_scripts_are_those_of_bash():
    for script in SCRIPTS.glob("*.sh"):
        assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
