"""Masks against trying every action on a clone and comparing all bytes of the worlds."""

import threading
import time

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv
from nclone_env.env.compiled.masks import MASK_AT_END
from nclone_env.env.threads import Workers
from nclone_env.level.build import everything
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.sim.state import MOVER, NINJA_RECORD, copy_world, equal_worlds, worlds_of

from ...obs.levels import BUILT_IN
from ..bases import QUICK_DEATH, QUICK_WIN, choices


def brute_force(env: NPlusPlusEnv, helper: NPlusPlusEnv) -> list[int]:
    """Return the mask by the bytes of the worlds after each action."""
    state, futures = env.get_state(), []
    for action in range(6):
        helper.set_state(state)
        helper.step(action)
        futures.append(b"".join(array.tobytes() for array in helper.worlds))
    return [int(future not in futures[:action]) for action, future in enumerate(futures)]


def check_run(steps: int, seed: int, hold: int = 5, **fields) -> list[list[int]]:
    """Compare the masks of a random run; return them."""
    env = NPlusPlusEnv(observations="action_mask", **fields)
    helper = NPlusPlusEnv(observations="game_state", **fields)
    observation, _ = env.reset(seed=seed)
    masks, over = [], False
    for action in choices(steps // hold, 1, seed)[:, 0].repeat(hold):
        if over:
            assert observation["action_mask"].tolist() == list(MASK_AT_END)
            observation, over = env.reset()[0], False
            continue
        masks.append(observation["action_mask"].tolist())
        assert masks[-1] == brute_force(env, helper)
        observation, _, terminated, truncated, _ = env.step(action)
        assert observation in env.observation_space
        over = terminated or truncated
    return masks


@pytest.mark.parametrize("frame_skip", [1, 4])
@pytest.mark.parametrize("seed", [1, 2])
def test_masks_are_those_of_brute_force(frame_skip, seed):
    levels = (*BUILT_IN, QUICK_WIN, QUICK_DEATH, everything())
    masks = check_run(300, seed, levels=levels, frame_skip=frame_skip, max_frames=150)
    assert all(mask[0] == mask[3] == 1 for mask in masks)


def test_dying_leaves_only_the_choice_of_the_remembered_jump():
    """The frame after the fatal one: directions do nothing any more, but jump is still noted."""
    masks = check_run(60, 1, levels=QUICK_DEATH, frame_skip=1, max_frames=600) + [
        mask for seed in range(2, 6) for mask in check_run(300, seed, 30, levels=QUICK_DEATH, frame_skip=1)
    ]
    assert [1, 0, 0, 1, 0, 0] in masks


def test_every_bit_of_a_world_counts():
    levels = pack([load_level(everything())])
    sizes = [(2, count) for count in (levels.max_entities, levels.max_movers)]
    arrays = np.zeros(2, NINJA_RECORD), np.zeros(sizes[0], np.uint8), np.zeros(sizes[1], MOVER), np.zeros((2, 1000, 2))
    arrays[0]["frame"] = 1000  # all rows of the trail are written
    worlds = worlds_of(*arrays)
    assert equal_worlds(worlds, 0, 1)
    changes = [(worlds.ninjas, name) for name in NINJA_RECORD.names] + [(arrays[2][:, 3], name) for name in MOVER.names]
    for array, name in changes:
        array[name][1] = 1
        assert not equal_worlds(worlds, 0, 1), name
        copy_world(worlds, 0, worlds, 1)
    for array in (arrays[1], arrays[3].reshape(2, -1)):
        for place in (0, array.shape[1] - 1):
            array[1, place] = 1
            assert not equal_worlds(worlds, 0, 1)
            array[1, place] = 0
    worlds.ninjas["vx"][1] = -0.0
    assert not equal_worlds(worlds, 0, 1)


@pytest.mark.parametrize(("num_envs", "threads"), [(1, 1), (7, 3), (64, 5), (5, 5), (1000, 16)])
def test_no_two_concurrent_calls_have_the_same_worker_slot(num_envs, threads):
    workers = Workers(num_envs, threads)
    lock, busy, shared, calls = threading.Lock(), set(), [], []

    def task(worker, first, last):
        with lock:
            shared.extend(busy & {worker})
            busy.add(worker)
        time.sleep(0.001)
        with lock:
            busy.remove(worker)
            calls.append((worker, first, last))

    for _ in range(5):
        workers.run(task, 0, num_envs)
        assert sorted(index for _, first, last in calls for index in range(first, last)) == list(range(num_envs))
        assert len(calls) >= min(threads, num_envs)
        assert all(0 <= worker < workers.count for worker, _, _ in calls)
        calls.clear()
    workers.close()
    assert not shared
