"""A policy on a device: the choice of the device, what is refused, and random numbers equal to the processor's."""

import numpy as np
import pytest
import torch

from nclone_env.errors import ConfigError
from nclone_env.sim import splitmix
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.device import Repeated, hashed, learning_device, on_host, sampled, uniform_numbers
from nclone_env.train.policies.sampling import sample_actions, uniform
from nclone_env.train.ranks import ALONE, Ranks

CPU = torch.device("cpu")


def test_the_device_of_a_run(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    pictures = TrainConfig.of(device="auto", observations=("player_frame",))
    assert [learning_device(config, ALONE) for config in (TrainConfig(), pictures)] == [None, None]
    with pytest.raises(
        ConfigError, match=r"device: expected a GPU for cuda, but PyTorch .*; use --device cpu, or install"
    ):
        learning_device(TrainConfig.of(device="cuda"), ALONE)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    current = [1]
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[-1])
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr("nclone_env.env.cuda.device_of", lambda name: name)
    gpu = "cuda:1"
    assert learning_device(TrainConfig.of(device="cpu"), ALONE) is None
    assert learning_device(TrainConfig.of(device="auto"), ALONE) is None, "without pictures the processor is faster"
    paths = pictures.replace(observations=("player_frame", "reachability"))
    assert learning_device(paths, ALONE) is None, "environments on a GPU do not observe it"
    assert learning_device(pictures.replace(learner="other"), ALONE) is None
    assert learning_device(pictures, ALONE) == learning_device(TrainConfig.of(device="cuda"), ALONE) == gpu
    for local in (1, 0):  # a job of two machines
        for config in (pictures, TrainConfig.of(device="cuda")):
            assert learning_device(config, Ranks(2 + local, 4, 2, local)) == f"cuda:{local}"
    assert learning_device(pictures, Ranks(0, 3, 3)) is None
    with pytest.raises(ConfigError, match=r"device: expected a GPU for each of the 3 ranks of this machine, got 2; "):
        learning_device(TrainConfig.of(device="cuda"), Ranks(0, 3, 3))
    with pytest.raises(ConfigError, match=r"device: expected cpu with learner 'other', got cuda; .*use --device cpu"):
        learning_device(TrainConfig.of(device="cuda", learner="other"), ALONE)


def test_random_bits_are_those_of_the_processor():
    numbers = [0, 1, 2**31 - 1, 2**63 - 1, -(2**63), -1, *np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 50)]
    expected = [int(splitmix(np.uint64(int(number) % 2**64))) for number in numbers]
    assert [number % 2**64 for number in hashed(torch.tensor(numbers)).tolist()] == expected


def test_random_numbers_are_those_of_the_processor():
    environments, steps = torch.arange(5), 10**9 + torch.arange(4)
    for seed in (0, 2**31 - 1):
        got = uniform_numbers(seed, environments, steps)
        expected = [[uniform(seed, i, 10**9 + t) for i in range(5)] for t in range(4)]
        assert got.dtype == torch.float32
        assert got.numpy().tobytes() == np.array(expected, np.float32).tobytes()
    assert not torch.equal(got, uniform_numbers(1, environments, steps))


@pytest.mark.parametrize("masked", [False, True])
def test_actions_are_those_of_the_processor(masked):
    random, count = np.random.default_rng(3), 4000
    logits = random.normal(0, 3, (count, 6)).astype(np.float32)
    masks = (random.random((count, 6)) < 0.5).astype(np.int8) | np.eye(6, dtype=np.int8)[random.integers(0, 6, count)]
    actions, log_probs = np.zeros(count, np.int64), np.zeros(count, np.float32)
    given = masks if masked else np.zeros((0, 6), np.int8)
    sample_actions(logits.copy(), given, 7, 0, 11, np.zeros_like(logits), actions, log_probs)
    drawn = uniform_numbers(7, torch.arange(count), torch.tensor([11]))[0]
    mask = torch.from_numpy(masks) if masked else None
    got, got_log_probs = sampled(torch.from_numpy(logits), mask, drawn)
    assert np.array_equal(got.numpy(), actions)
    np.testing.assert_allclose(got_log_probs.numpy(), log_probs, rtol=1e-5, atol=1e-5)
    other, _ = sampled(torch.from_numpy(logits), mask, drawn.flip(0))
    assert not np.array_equal(other.numpy(), actions)


def test_the_ends_of_the_range_draw_possible_actions():
    logits = torch.tensor([[0.0, 200.0, 1.0, 0.0, 0.0, 0.0], [0.0] * 6])
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 0, 0]])
    for number, expected in ((0.0, [1, 1]), (1 - 2.0**-24, [1, 3]), (1.5, [1, 3])):  # 1.5: beyond any sum
        actions, log_probs = sampled(logits, mask, torch.full((2,), number))
        assert actions.tolist() == expected
        assert torch.isfinite(log_probs).all()


def test_work_is_repeated():
    done = []
    work = Repeated(lambda: done.append(1), CPU)
    work()
    work()
    assert done == [1, 1]


def test_work_is_recorded_on_a_gpu(monkeypatch):
    """At the second call, when nothing is left to allocate; the third only replays it."""
    done = []
    inside = lambda name: lambda *given, **named: Inside(name, done)  # noqa: E731
    for name in ("device", "stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, inside(name))
    for name in ("Stream", "current_stream", "CUDAGraph"):
        monkeypatch.setattr(torch.cuda, name, lambda name=name: Inside(name, done))
    work = Repeated(lambda: done.append("work"), torch.device("cuda", 1))
    expected = (["device", "stream", "work"], ["device", "graph", "work", "replay"], ["device", "replay"])
    for calls in expected:
        work()
        assert done == calls
        done.clear()


class Inside:
    """Stands for parts of ``torch.cuda``; notes what is entered and replayed."""

    def __init__(self, name, done):
        self.name, self.done = name, done

    def __enter__(self):
        self.done.append(self.name)

    def __exit__(self, *error):
        return None

    def wait_stream(self, other):
        assert other.name in ("Stream", "current_stream")

    def replay(self):
        self.done.append("replay")


def test_arrays_and_tensors_on_the_host():
    array = np.arange(3)
    assert on_host(array) is array
    assert on_host(torch.arange(3)).tolist() == [0, 1, 2]
