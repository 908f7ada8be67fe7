"""Observations are safe to keep, cost nothing when dropped, and go where the caller wants them."""

import numpy as np
import pytest

from nclone_env import NPlusPlusVectorEnv, errors

from ..bases import choices

STATE = np.zeros((2, 30), np.float32)


def read_only() -> np.ndarray:
    array = STATE.copy()
    array.flags.writeable = False
    return array


def unaligned() -> np.ndarray:
    return np.zeros(STATE.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(STATE.shape)


def recycled(envs) -> int:
    """Return the bytes of the pool of observations."""
    return next(node for _, node in envs.memory().walk() if node.name == "recycled observations").total_bytes


@pytest.mark.parametrize(
    "part",
    [
        lambda observations: observations["game_state"][1],
        lambda observations: observations["game_state"][:, 3:5].T,
        lambda observations: memoryview(observations["game_state"]),
        lambda observations: observations["game_state"].view(np.uint32).reshape(-1),
    ],
    ids=["row", "transposed", "memoryview", "reinterpreted"],
)
def test_a_kept_part_is_as_safe_as_the_whole(part):
    envs = NPlusPlusVectorEnv(None, 2, observations="game_state")
    envs.reset(seed=1)
    kept = part(envs.step([2, 5])[0])
    expected = np.array(kept)
    for _ in range(20):
        envs.step([2, 5])
    assert np.array(kept).tobytes() == expected.tobytes()


@pytest.mark.parametrize("num_envs", [1, 16])
def test_dropped_observations_cost_no_memory(num_envs):
    envs = NPlusPlusVectorEnv(None, num_envs, levels="hazards", max_frames=100)
    observations, _ = envs.reset()
    sizes = set()
    for actions in choices(1000, num_envs):
        observations = envs.step(actions)[0]
        sizes.add(envs.memory().total_bytes)
    assert len(sizes) == 1
    two_batches = 2 * sum(array.nbytes for array in observations.values())
    pool = next(node for _, node in envs.memory().walk() if node.name == "recycled observations")
    assert pool.total_bytes == two_batches


def test_memory_grows_with_what_is_kept_and_is_used_again():
    envs = NPlusPlusVectorEnv(None, 2, observations="game_state")
    kept = [envs.reset()[0]]
    before = recycled(envs)
    kept += [envs.step([0, 0])[0] for _ in range(9)]
    grown = recycled(envs)
    assert (before, grown) == (STATE.nbytes, 10 * STATE.nbytes)
    addresses = {id(observations["game_state"].base) for observations in kept}
    del kept
    again = [envs.step([0, 0])[0] for _ in range(10)]
    assert {id(observations["game_state"].base) for observations in again} == addresses
    assert recycled(envs) == grown


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ([STATE], r"out: expected a mapping with the keys \['game_state'\] and any of \['rewards', .*\], got list"),
        (STATE, r"out: expected a mapping with the keys \['game_state'\] and any of .*, got ndarray"),
        ({"state": STATE}, r"the keys \['game_state'\] and any of .*, got \['state'\]"),
        ({"game_state": STATE, "player_frame": STATE}, r"got \['game_state', 'player_frame'\]"),
        ({"game_state": STATE.tolist()}, r"expected a NumPy array, float32 \(2, 30\), got list; pass tensor.numpy"),
        ({"game_state": STATE.astype(np.float64)}, r"expected float32 \(2, 30\), got float64 \(2, 30\)"),
        ({"game_state": STATE.astype(">f4")}, r"expected float32 \(2, 30\), got >f4 \(2, 30\)"),
        ({"game_state": STATE[:1]}, r"expected float32 \(2, 30\), got float32 \(1, 30\)"),
        ({"game_state": np.zeros((30, 2), np.float32).T}, r"expected a C-contiguous, aligned array, got strides"),
        ({"game_state": unaligned()}, "expected a C-contiguous, aligned array, got an unaligned one"),
        ({"game_state": read_only()}, "expected a writable array, got a read-only one; pass a copy"),
    ],
)
def test_wrong_buffers_are_refused_and_nothing_is_played(out, message):
    envs = NPlusPlusVectorEnv(None, 2, observations="game_state")
    envs.reset(seed=1)
    for call in (lambda: envs.step([0, 0], out=out), lambda: envs.reset(out=out)):
        with pytest.raises(errors.BufferError, match=message) as caught:
            call()
        assert str(caught.value).startswith("out")
    assert envs.step([0, 0])[4]["episode_frames"].tolist() == [4, 4]
