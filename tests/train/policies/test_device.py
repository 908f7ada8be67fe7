"""Where the policy of a run is computed: the choice, and what is refused."""

import pytest
import torch

from nclone_env.errors import ConfigError
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.device import is_pinned, learning_device
from nclone_env.train.ranks import ALONE, Ranks

CPU = torch.device("cpu")


def test_the_device_of_a_run(monkeypatch):
    several = Ranks(0, 2, 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    pictures = TrainConfig.of(device="auto", observations=("player_frame",))
    assert [learning_device(config, ALONE) for config in (TrainConfig(), pictures)] == [None, None]
    with pytest.raises(
        ConfigError, match=r"device: expected a GPU for cuda, but PyTorch .*; use --device cpu, or install"
    ):
        learning_device(TrainConfig.of(device="cuda"), ALONE)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    gpu = torch.device("cuda", 1)
    assert learning_device(TrainConfig.of(device="cpu"), ALONE) is None
    assert learning_device(pictures, ALONE) == gpu
    assert learning_device(TrainConfig.of(device="auto"), ALONE) is None, "without pictures the processor is faster"
    assert learning_device(pictures, several) is None
    assert learning_device(TrainConfig.of(device="cuda"), ALONE) == gpu
    with pytest.raises(
        ConfigError, match=r"device: expected cpu with several ranks, got cuda with 2; .*use --device cpu"
    ):
        learning_device(TrainConfig.of(device="cuda"), several)
    assert [is_pinned(device) for device in (None, CPU, gpu)] == [False, False, True]
