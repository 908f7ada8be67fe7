"""The division of a run's environments into groups."""

import pytest

from nclone_env.train.runs.run import group_sizes


@pytest.mark.parametrize(
    ("num_envs", "sizes"),
    [
        (1, [1]),
        (20, [20]),
        (33, [16, 17]),
        (256, [128] * 2),
        (1024, [128] * 8),
        (4096, [256] * 16),
        (1 << 20, [1 << 16] * 16),  # as many as two bytes number
    ],
)
def test_the_groups_of_a_run(num_envs, sizes):
    assert group_sizes(num_envs) == sizes
