"""The division of a run's environments into groups."""

import pytest
import torch

from nclone_env.train.runs.run import group_sizes

DEVICE = torch.device("meta")


@pytest.mark.parametrize(
    ("num_envs", "device", "sizes"),
    [
        (1, None, [1]),
        (20, None, [20]),
        (33, None, [16, 17]),
        (256, None, [128] * 2),
        (1024, None, [128] * 8),
        (1024, DEVICE, [512] * 2),
        (4096, None, [256] * 16),
        (4096, DEVICE, [512] * 8),
        (16384, DEVICE, [1024] * 16),
    ],
)
def test_the_groups_of_a_run(num_envs, device, sizes):
    assert group_sizes(num_envs, device) == sizes
