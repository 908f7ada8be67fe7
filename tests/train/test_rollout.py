"""Rollout storage: written in place, never reallocated, rows aligned."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from nclone_env.train.rollout import RolloutStorage

SPACE = spaces.Dict(
    {"game_state": spaces.Box(-1, 1, (3,), np.float32), "picture": spaces.Box(0, 255, (4, 4, 1), np.uint8)}
)


def filled(length=4, num_envs=6, minibatch=8):
    """Return a storage in which every entry encodes its place: step * 100 + environment."""
    storage = RolloutStorage(length, num_envs, SPACE, minibatch)
    labels = np.arange(num_envs)
    storage.reset_outputs()["game_state"][:] = labels[:, None]
    for t in range(length):
        label = torch.from_numpy(labels + 100 * t)
        storage.record(label, label.float(), 10 * label.float())
        storage.step_outputs()["game_state"][:] = (labels + 100 * (t + 1))[:, None]
        storage.record_outcome(-labels - 100 * t, labels == t, labels == t + 1)
        storage.advance()
    storage.arrays.advantages[:] = storage.arrays.log_probs + 0.5
    storage.arrays.returns[:] = storage.arrays.log_probs + 0.25
    return storage


def addresses(storage):
    arrays = {**storage.arrays._asdict(), **storage.observation_arrays}
    tensors = {**storage.tensors._asdict(), **storage.observations}
    return {name: (array.ctypes.data, tensors[name].data_ptr()) for name, array in arrays.items()}


def test_arrays_and_tensors_share_memory():
    for array, tensor in addresses(RolloutStorage(4, 6, SPACE, 8)).values():
        assert array == tensor


def test_environment_writes_the_row_the_policy_reads_next():
    storage = filled()
    for t in range(5):
        assert (storage.observations["game_state"][t, :, 0].numpy() == np.arange(6) + 100 * t).all()
    assert (storage.arrays.rewards[2] == -np.arange(6) - 200).all()
    assert storage.arrays.terminated[2].tolist() == [False, False, True, False, False, False]
    assert storage.arrays.truncated[2].tolist() == [False, False, False, True, False, False]


def test_overflow_is_refused():
    storage = filled()
    six = [torch.zeros(6)] * 3
    calls = (lambda: storage.record(*six), lambda: storage.record_outcome(*six))
    for call in (storage.step_outputs, storage.advance, *calls):
        with pytest.raises(RuntimeError, match=r"all 4 steps of the rollout are stored; call clear\(\)"):
            call()


def test_last_values_need_a_full_rollout():
    with pytest.raises(RuntimeError, match="only 0 of 4 steps are stored"):
        RolloutStorage(4, 6, SPACE, 8).record_last_values(torch.zeros(6))


def test_clear_moves_only_the_cursor():
    storage = filled()
    before, values = addresses(storage), [array.copy() for array in storage.arrays]
    storage.clear()
    assert storage.cursor == 0
    assert addresses(storage) == before
    for array, value in zip(storage.arrays, values):
        np.testing.assert_array_equal(array, value)


def test_continue_from_end_keeps_the_last_observations():
    storage = filled()
    before = addresses(storage)
    storage.continue_from_end()
    assert storage.observation()["game_state"][:, 0].tolist() == [400 + i for i in range(6)]
    assert addresses(storage) == before


def test_minibatches_cover_every_step_once_with_aligned_fields():
    storage = filled()
    generator = torch.Generator().manual_seed(1)
    orders = []
    for _ in range(2):
        seen = []
        for batch in storage.minibatches(generator):
            label = batch.actions.float()
            assert torch.equal(batch.log_probs, label)
            assert torch.equal(batch.advantages, label + 0.5)
            assert torch.equal(batch.returns, label + 0.25)
            assert torch.equal(batch.observations["game_state"][:, 0], label)
            assert batch.observations["picture"].shape == (8, 4, 4, 1)
            seen += batch.actions.tolist()
        assert sorted(seen) == [100 * t + i for t in range(4) for i in range(6)]
        orders.append(seen)
    assert orders[0] != orders[1], "each epoch has its own order"


def test_minibatches_reuse_their_buffers():
    storage = filled()
    generator = torch.Generator()
    pointers = {batch.observations["picture"].data_ptr() for _ in range(3) for batch in storage.minibatches(generator)}
    assert len(pointers) == 1


def test_minibatch_size_must_divide():
    with pytest.raises(ValueError, match="minibatch_size: expected a divisor of 24, got 7"):
        RolloutStorage(4, 6, SPACE, 7)


def test_memory_counts_every_buffer():
    storage = filled()
    minibatch = 8 * (3 * 4 + 16 + 8 + 3 * 4)
    steps = 24 * (8 + 4 + 4 + 1 + 1 + 4 + 4 + 4) + 30 * 4
    observations = 30 * (3 * 4 + 16)
    assert storage.memory().total_bytes == observations + steps + minibatch + 24 * 8
