"""Seeds, single environments, and copies of a process: the same seed gives the same bytes.

Threads, batches, contracts and snapshots are compared with golden hashes in
``tests/profiling/checks/test_determinism.py``, another process in ``tests/env/test_snapshot.py``.
"""

import os
import signal

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.jit.private import IS_INTERPRETED
from nclone_env.level.build import moving
from nclone_env.sim.session import Session

from ..env.bases import assert_same, choices, copies, single_digest, vector_digests
from ..processes import flushing

FIELDS = {"levels": ("hazards", "first-steps"), "max_frames": 200}
MOVING = {"levels": (moving(), moving((70, 44), "other"), "hazards"), "max_frames": 240}


@pytest.fixture(scope="module")
def six() -> list[str]:
    """Return what six environments with the seeds 11 to 16 do among entities that move."""
    return vector_digests(11, 6, num_threads=1, **MOVING)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(six):
    assert vector_digests(11, 6, num_threads=1, **MOVING) == six
    others = vector_digests(40, 6, num_threads=1, **MOVING)
    assert all(left != right for left, right in zip(six, others))
    assert len(set(six)) == 6


@pytest.mark.parametrize("index", [0, 3])
def test_a_single_environment_does_what_one_of_many_does(six, index):
    env = NPlusPlusEnv(**MOVING)
    actions = choices(300, 6)[:, index]
    assert single_digest(env, 11 + index, actions) == six[index]
    assert single_digest(env, 11 + index, actions) == six[index]


def test_a_list_of_seeds_gives_each_environment_its_own():
    envs = NPlusPlusVectorEnv(None, 3, observations="game_state", levels=("first-steps", "jumps", "hazards"))
    by_list = [envs.reset(seed=[7, 5, 9])[1]["level"], *(envs.reset()[1]["level"] for _ in range(12))]
    for i, seed in enumerate([7, 5, 9]):
        alone = [envs.reset(seed=seed)[1]["level"][0], *(envs.reset()[1]["level"][0] for _ in range(12))]
        assert alone == [levels[i] for levels in by_list]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_an_environment_goes_on_in_a_forked_process():
    envs = NPlusPlusVectorEnv(None, 4, **FIELDS, num_threads=2)
    envs.reset(seed=1)
    actions = choices(40, 4)
    for row in actions[:20]:
        envs.step(row)
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        _report_and_exit(envs, actions[20:], sender)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        reported = pipe.read()
    status = os.waitpid(child, 0)[1]
    assert (status, reported) == (0, _last_bytes(envs, actions[20:]))
    envs.close()


def _report_and_exit(envs, actions, sender) -> None:
    """Play on in the child; leave at once, without the exit handlers of the tests. Who waits for threads is ended."""
    signal.alarm(30)
    code = 1
    try:
        os.write(sender, _last_bytes(envs, actions))
        envs.close()
        code = 0
    finally:
        os._exit(code)


def _last_bytes(envs, actions) -> bytes:
    for row in actions:
        observations, rewards, *_ = envs.step(row)
    return observations["game_state"].tobytes() + rewards.tobytes()


def test_a_refused_call_changes_nothing():
    left, right = (NPlusPlusVectorEnv(None, 2, observations="game_state") for _ in range(2))
    for envs in (left, right):
        envs.reset(seed=5)
    expected = copies(right.step([2, 2])[0])
    for wrong in ([2, 6], [2.0, 2.0], [2]):
        with pytest.raises(ValueError, match="action: expected"):
            left.step(wrong)
    assert_same(left.step([2, 2])[0], expected)


def test_environments_without_a_seed_choose_differently_from_the_first_reset():
    def drawn() -> tuple[int, ...]:
        envs = NPlusPlusVectorEnv(None, 64, **FIELDS)
        _, info = envs.reset(seed=[3] * 32 + [None] * 32)
        envs.close()
        return tuple(info["level"].tolist())

    first, second = drawn(), drawn()
    assert first[:32] == second[:32] == (first[0],) * 32
    assert first[32:] != second[32:]
    assert len(set(first[32:])) > 1


COMPILED = pytest.mark.skipif(IS_INTERPRETED, reason="Python itself computes in the mode of the thread")
INPUTS = bytes([2] * 30 + [0] * 6000)
"""The ninja runs, then stands until its speed is a denormal number."""


@COMPILED
def test_a_ninja_stands_still_alike():
    def played(inputs: bytes) -> np.ndarray:
        return Session("first-steps/01-walk").record(inputs, entities=False).ninjas

    expected = played(INPUTS)
    with flushing():
        found = played(INPUTS)
    assert found.tobytes() == expected.tobytes()
    speeds = expected["vx"].view(np.uint64)
    assert (speeds[speeds << 1 != 0] & (0x7FF << 52) == 0).any(), "no speed is a denormal number: nothing was tested"
    assert played(INPUTS[:29] + bytes(6001)).tobytes() != expected.tobytes()


@COMPILED
@pytest.mark.parametrize("num_threads", [1, 2])
def test_environments_stand_still_alike(num_threads):
    def played() -> bytes:
        envs = NPlusPlusVectorEnv(
            levels="first-steps/01-walk",
            num_envs=4,
            num_threads=num_threads,
            observations="game_state",
            frame_skip=60,
            max_frames=10_000,
            reward_function=lambda event: event["vx"] * 0.5,
        )
        envs.reset(seed=0)
        rewards = [envs.step(np.full(4, 2 if step == 0 else 0))[1].tobytes() for step in range(100)]
        worlds = b"".join(envs.get_state(index) for index in range(4))
        envs.close()
        return worlds + b"".join(rewards)

    expected = played()
    with flushing():
        assert played() == expected
    rewards = np.frombuffer(expected[-100 * 4 * 8 :], np.uint64)
    assert (rewards[rewards << 1 != 0] & (0x7FF << 52) == 0).any(), "no reward is a denormal number: nothing was tested"
