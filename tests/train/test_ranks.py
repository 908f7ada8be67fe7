"""Two ranks train as one process does, and a job that loses one continues; see ``ranked.py``."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from nclone_env.errors import ConfigError
from nclone_env.train import Hooks, Ranks, load_checkpoint, train
from nclone_env.train.learn.ppo import combine_moments, own_steps, shuffle
from nclone_env.train.ranks import ALONE

from ..processes import REPOSITORY
from .ranked import ON_DEVICES, UPDATES, on_a_stand_in, settings
from .runs import contents, until


def call(*command):
    """Run a module in a process; return what it and its ranks printed."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def prepare(folder):
    """Run in one process what the ranks continue."""
    train(settings(folder, "one, part"), until(2))
    (folder / "lost").mkdir()
    train(settings(folder / "lost", ""), Hooks(stop=lambda: True))  # the folder of another run: not to be continued


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of the runs of one process and of two ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    train(settings(folder, "one"))
    train(settings(folder, "one, memory", recurrent_size=8))
    with on_a_stand_in():
        for name, fields in ON_DEVICES.items():
            train(settings(folder, f"one, {name}", **fields))
    prepare(folder)
    call("tests.train.ranked", "compare", folder, "killed", folder / "lost")
    return folder


def parameters(folder, name):
    state = load_checkpoint(folder / name / "checkpoint.pt").policy
    return np.concatenate([state[key].flatten().numpy() for key in sorted(state)])


def distance(folder, one, other):
    """Return the largest difference of two runs' parameters, relative to the largest parameter."""
    a, b = parameters(folder, one), parameters(folder, other)
    return np.abs(a - b).max() / np.abs(a).max()


def test_two_ranks_equal_one_process(runs):
    one, two = contents(runs / "one" / "checkpoint.pt"), contents(runs / "two" / "checkpoint.pt")
    assert two["counters"] == one["counters"]
    assert two["counters"]["updates"] == UPDATES
    assert two["counters"]["episodes"] > 10
    for part in ("environments", "observations"):
        assert two[part] == one[part], "the same actions on the same levels, to the bit"
    assert distance(runs, "one", "two") < 1e-5
    for expected, got in zip(one["curve"], two["curve"], strict=True):
        for name in ("entropy", "value_loss", "grad_norm", "success_rate", "mean_return"):
            assert float(got[name]) == pytest.approx(float(expected[name]), rel=1e-4, nan_ok=True), name


def test_two_ranks_train_a_memory_as_one_process(runs):
    one, two = (contents(runs / f"{name}, memory" / "checkpoint.pt") for name in ("one", "two"))
    assert two["environments"] == one["environments"], "the same actions, to the bit"
    assert distance(runs, "one, memory", "two, memory") < 1e-5


def test_two_ranks_with_a_device_each_play_what_one_plays(runs):
    """With a policy that does not change, to the bit; one that learns from whole batches rounds sums otherwise."""
    one, two = (contents(runs / f"{name}, device, still" / "checkpoint.pt") for name in ("one", "two"))
    for part in ("environments", "observations", "episodes", "counters"):
        assert two[part] == one[part]
    assert two["counters"]["episodes"] > 10
    assert distance(runs, "one, device, whole", "two, device, whole") < 1e-5
    assert distance(runs, "one, device", "two, device") > 1e-3, "other minibatches"


def test_a_resumed_run_of_two_ranks_with_devices_is_the_whole_run(runs):
    assert contents(runs / "part, device" / "checkpoint.pt") == contents(runs / "two, device" / "checkpoint.pt")


def test_minibatches_that_ranks_with_devices_cannot_share_are_named(runs):
    message = (runs / "uneven-1.txt").read_text()
    assert message.startswith("ConfigError: num_envs: expected a multiple of 16, as each of the 2 ranks takes an equal")
    assert message.endswith("got 6; pass --num-envs 16")


def test_another_seed_gives_another_run(runs):
    assert distance(runs, "two", "other") > 1e-2


def test_ranks_that_do_not_add_up_their_gradients_are_found(runs):
    """Negative control: without the all-reduce the parameters of the ranks differ, and the next checkpoint says so."""
    message = (runs / "apart-0.txt").read_text()
    assert message.startswith(f"RankError: update {UPDATES}: the parameters of the ranks differ")
    assert "connection to another rank was lost" not in message


def test_a_resumed_run_of_two_ranks_is_the_whole_run(runs):
    assert contents(runs / "part" / "checkpoint.pt") == contents(runs / "two" / "checkpoint.pt")


def test_a_run_of_one_process_can_be_resumed_by_two_ranks(runs):
    assert contents(runs / "one, part" / "checkpoint.pt")["counters"]["updates"] == UPDATES
    assert distance(runs, "one", "one, part") < 1e-5


def test_every_rank_gets_the_errors_of_the_first(runs):
    for rank in "01":
        message = (runs / f"taken-{rank}.txt").read_text()
        assert message.startswith(f"RunFolderError: {runs / 'two'}: the folder holds another run; pass --resume")


def test_environments_that_do_not_divide_are_named(runs):
    message = (runs / "odd-1.txt").read_text()
    assert message.startswith("ConfigError: num_envs: expected a multiple of the 2 ranks")
    with pytest.raises(ConfigError, match=r"got 32; pass --num-envs 33"):
        Ranks(0, 3).share(32)


def test_a_job_that_loses_a_rank_ends_as_an_undisturbed_one(runs):
    lost = runs / "lost"
    assert "connection to another rank was lost" in (lost / "lost-0.txt").read_text()
    assert (lost / "updates-0-0.txt").read_text() == "1 2 3"
    assert not (lost / "updates-0-1.txt").exists(), "killed"
    assert (lost / "updates-1-1.txt").read_text() == "3 4", "from the checkpoint after update 2"
    latest = lost / "first-steps-seed3-2" / "checkpoint.pt"
    assert contents(latest) == contents(runs / "two" / "checkpoint.pt")
    other = contents(lost / "first-steps-seed3" / "checkpoint.pt")
    assert other["counters"]["updates"] == 0, "as it was"
    assert not (lost / "first-steps-seed3-3").exists()


@pytest.mark.slow
def test_torchrun_starts_the_same_ranks(runs, tmp_path):
    """The tests above call what ``torchrun`` calls."""
    prepare(tmp_path)
    command = ("torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1")
    printed = call(*command, "-m", "tests.train.ranked", "killed", tmp_path / "lost")
    assert "connection to another rank was lost" in printed
    latest = tmp_path / "lost" / "first-steps-seed3-2" / "checkpoint.pt"
    assert contents(latest) == contents(runs / "two" / "checkpoint.pt")


def test_shares_are_all_environments_in_order():
    assert [i for rank in range(3) for i in Ranks(rank, 3).share(12)] == list(range(12))
    assert ALONE.share(7) == range(7)


def test_the_minibatches_of_the_ranks_are_those_of_one_process():
    num_envs, num_steps, minibatches = 12, 8, 4
    whole = np.zeros(num_envs * num_steps, np.int64)
    shuffle(whole, 5, 1, 2)
    found = [[] for _ in range(minibatches)]
    for rank in range(3):
        share = Ranks(rank, 3).share(num_envs)
        for minibatch, rows in enumerate(own_steps(whole.reshape(minibatches, -1), num_envs, share)):
            steps, own = np.divmod(rows, len(share))
            found[minibatch] += (steps * num_envs + own + share.start).tolist()
    for minibatch, steps in enumerate(np.split(whole, minibatches)):
        assert sorted(found[minibatch]) == sorted(steps)


def test_moments_of_parts_are_those_of_the_whole():
    values = np.random.default_rng(0).normal(3, 2, 100)
    pieces = [values[:1], values[1:40], values[40:]]
    parts = np.array([[(len(piece), piece.mean(), piece.std())] for piece in pieces] + [[(0, 0.0, 0.0)]])
    assert combine_moments(parts)[0] == pytest.approx([values.mean(), values.std()], rel=1e-12)
    assert combine_moments(parts[1:2])[0].tolist() == [pieces[1].mean(), pieces[1].std()], "to the bit"


def test_one_process_tells_itself():
    array = np.array([1.5])
    ALONE.add_up(array)
    assert array == [1.5]
    assert ALONE.exchange("a") == ALONE.gather("a") == ["a"]
    assert ALONE.from_first(lambda: torch.ones(1)) == 1
