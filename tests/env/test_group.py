"""Groups of environments stepped in the background: the same as all at once, in any order."""

from __future__ import annotations

import os

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusVectorEnv, errors

from .bases import assert_same, choices

N = 7


def make(**options):
    return NPlusPlusVectorEnv(None, N, **{"levels": ("hazards", "first-steps"), "max_frames": 100} | options)


def rows(step, first, last):
    """Return what a step says of some environments."""
    observations, *results, info = step
    arrays = {name: array[first:last] for name, array in observations.items()}
    arrays |= {str(i): array[first:last] for i, array in enumerate(results)}
    return arrays | {
        name: array[first:last] for name, array in info.items() if not name.endswith(("final_obs", "info"))
    }


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("num_groups", [1, 2, 3])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_groups_do_what_all_do(mode, num_groups, num_threads):
    together = make(autoreset_mode=mode)
    groups = make(autoreset_mode=mode, num_groups=num_groups, num_threads=num_threads)
    together.reset(seed=3)
    groups.reset(seed=3)
    edges = [N * g // num_groups for g in range(num_groups + 1)]
    order = np.random.default_rng(0)
    for actions in choices(80, N):
        expected = together.step(actions)
        for g in order.permutation(num_groups):
            groups.send(actions[edges[g] : edges[g + 1]], g)
        for g in order.permutation(num_groups):
            got = groups.recv(g)
            assert_same(rows(got, 0, N), rows(expected, edges[g], edges[g + 1]))
    groups.close()


def test_a_group_may_run_ahead_of_another():
    groups, alone = make(num_groups=2), make()
    groups.reset(seed=3)
    alone.reset(seed=3)
    script = choices(40, N)
    for actions in script:
        groups.send(actions[:3], 0)
        groups.recv(0)
    for actions in script:
        groups.send(actions[3:], 1)
        last = groups.recv(1)
        expected = alone.step(actions)
    assert_same(rows(last, 0, N), rows(expected, 3, N))


def test_groups_write_into_the_arrays_of_the_caller():
    envs = make(num_groups=2, observations="game_state")
    envs.reset(seed=3)
    out = {"game_state": np.full((3, 30), 7, np.float32)}
    envs.send([2, 2, 2], 0, out=out)
    assert envs.recv(0)[0]["game_state"] is out["game_state"]
    assert not (out["game_state"] == 7).all(axis=1).any()


def test_calls_in_the_wrong_order_are_refused():
    envs = make(num_groups=2, observations="game_state")
    with pytest.raises(errors.ResetNeededError, match=r"send\(\) was called before the first reset"):
        envs.send([0, 0, 0], 0)
    envs.reset(seed=1)
    with pytest.raises(errors.StepOrderError, match=r"recv\(\) was called before send\(\)"):
        envs.recv(1)
    envs.send([0, 0, 0], 0)
    with pytest.raises(errors.StepOrderError, match=r"send\(\) was called twice for group 0; call recv\(0\)"):
        envs.send([0, 0, 0], 0)
    for call in (envs.reset, lambda: envs.step([0] * N), lambda: envs.gather(range(N)), lambda: envs.get_state(0)):
        with pytest.raises(errors.StepOrderError, match=r"while a step of group 0 is sent; call recv\(0\)"):
            call()
    envs.recv(0)
    envs.step([0] * N)
    with pytest.raises(errors.ConfigError, match="group: expected a whole number from 0 to 1, got 2"):
        envs.recv(2)


@pytest.mark.parametrize(("group", "actions", "named"), [(0, [0, 9, 0], 1), (1, [0, 9, 0, 0], 4)])
def test_a_wrong_action_is_named_by_its_environment_in_the_batch(group, actions, named):
    envs = make(num_groups=2, observations="game_state")
    envs.reset(seed=1)
    with pytest.raises(errors.ActionError, match=rf"expected 0\.\.5, got 9 in environment {named}$"):
        envs.send(actions, group)


def test_close_waits_for_what_was_sent():
    envs = make(num_groups=2, observations="game_state")
    envs.reset(seed=1)
    envs.send([0, 0, 0], 0)
    envs.close()
    with pytest.raises(errors.ClosedError):
        envs.recv(0)


def test_stacks_and_groups_exclude_each_other():
    with pytest.raises(errors.ConfigError, match="num_groups: expected 1 with a frame_stack, got 2"):
        make(num_groups=2, observation={"frame_stack": 4})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_threads_are_restarted_in_a_forked_child():
    envs = make(num_threads=2, observations="game_state")
    envs.reset(seed=1)
    envs.step([2] * N)
    expected_envs = make(num_threads=1, observations="game_state")
    expected_envs.reset(seed=1)
    expected_envs.step([2] * N)
    expected = expected_envs.step([5] * N)[0]["game_state"].tobytes()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, envs.step([5] * N)[0]["game_state"].tobytes())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == expected
    os.waitpid(child, 0)
    assert envs.step([5] * N)[0]["game_state"].tobytes() == expected
