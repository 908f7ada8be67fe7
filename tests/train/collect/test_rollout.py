"""Rollout storage: written in place by groups of environments, never reallocated, rows aligned."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from nclone_env.train.collect.rollout import RolloutStorage

SPACE = spaces.Dict(
    {"game_state": spaces.Box(-1, 1, (3,), np.float32), "picture": spaces.Box(0, 255, (4, 4, 1), np.uint8)}
)
GROUPS = ((0, 4), (4, 6))


def fill(columns):
    """Record a rollout in which every entry encodes its place: step * 100 + environment."""
    labels = np.arange(columns.first, columns.last)
    columns.reset_outputs()["game_state"][:] = labels[:, None]
    while not columns.full:
        t = columns.cursor
        label = labels + 100 * t
        columns.row("actions")[:], columns.row("log_probs")[:], columns.row("values")[:] = label, label, 10 * label
        columns.step_outputs()["game_state"][:] = (labels + 100 * (t + 1))[:, None]
        columns.record_outcome(-labels - 100 * t, labels == t, labels == t + 1)


def filled(length=4):
    """Return a storage of 6 environments that its two groups have filled."""
    storage = RolloutStorage(length, 6, SPACE)
    for first, last in GROUPS:
        fill(storage.columns(first, last))
    storage.arrays.advantages[:] = storage.arrays.log_probs + 0.5
    storage.arrays.returns[:] = storage.arrays.log_probs + 0.25
    return storage


def addresses(storage):
    arrays = {**storage.arrays._asdict(), **storage.observation_arrays}
    return {name: array.ctypes.data for name, array in arrays.items()}


def test_flat_views_share_memory():
    storage = RolloutStorage(4, 6, SPACE)
    for name, array in storage.flat_observations.items():
        assert array.ctypes.data == storage.observation_arrays[name].ctypes.data
    for name, array in storage.learning_fields._asdict().items():
        assert array.ctypes.data == getattr(storage.arrays, name).ctypes.data


def test_environment_writes_the_row_the_policy_reads_next():
    storage = filled()
    for t in range(5):
        assert (storage.observation_arrays["game_state"][t, :, 0] == np.arange(6) + 100 * t).all()
    assert (storage.arrays.rewards[2] == -np.arange(6) - 200).all()
    assert storage.arrays.terminated[2].tolist() == [False, False, True, False, False, False]
    assert storage.arrays.truncated[2].tolist() == [False, False, False, True, False, False]


def test_overflow_is_refused():
    columns = filled().columns(4, 6)
    fill(columns)
    for call in (lambda: columns.row("actions"), lambda: columns.record_outcome(*[np.zeros(2)] * 3)):
        with pytest.raises(RuntimeError, match=r"all 4 steps of the rollout are recorded; call restart\(\)"):
            call()
    assert columns.row("values").shape == (2,), "the values have a row for the end of the rollout"


def test_restart_moves_only_the_cursor():
    storage = filled()
    columns = storage.columns(0, 6)
    fill(columns)
    before, values = addresses(storage), [array.copy() for array in storage.arrays]
    columns.restart()
    assert columns.cursor == 0
    assert addresses(storage) == before
    for array, value in zip(storage.arrays, values):
        np.testing.assert_array_equal(array, value)


def test_continue_from_end_keeps_the_last_observations():
    storage = filled()
    before = addresses(storage)
    storage.continue_from_end()
    assert storage.columns(1, 6).observation()["game_state"][:, 0].tolist() == [400 + i for i in range(1, 6)]
    assert addresses(storage) == before


def test_gathered_observations_are_aligned_with_the_fields():
    storage = filled()
    order = np.random.default_rng(1).permutation(24)
    buffers = storage.observation_buffers(24)
    storage.gather(torch.from_numpy(order), buffers)
    fields = storage.learning_fields
    labels = fields.actions[order]
    assert labels.tolist() == [100 * (step // 6) + step % 6 for step in order]
    np.testing.assert_array_equal(buffers["game_state"][:, 0].numpy(), labels)
    np.testing.assert_array_equal(fields.log_probs[order], labels)
    np.testing.assert_array_equal(fields.advantages[order], labels + 0.5)
    np.testing.assert_array_equal(fields.returns[order], labels + 0.25)
    assert buffers["picture"].shape == (24, 4, 4, 1)


def test_memory_counts_every_buffer():
    storage = filled()
    steps = 24 * (8 + 4 + 4 + 1 + 1 + 4 + 4 + 4) + 30 * 4
    observations = 30 * (3 * 4 + 16)
    assert storage.memory().total_bytes == observations + steps
