"""Whose memory it is what a call returns: recycled, the caller's, or a ring's; and what a step allocates."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusVectorEnv, errors

from ..bases import assert_same, choices, copies

RESULTS = {"rewards": np.float64, "terminations": np.bool_, "truncations": np.bool_, "gold": np.int16}


def make(num_envs=4, **options):
    return NPlusPlusVectorEnv(None, num_envs, **{"levels": "hazards", "max_frames": 60} | options)


def arrays_of(step) -> dict[str, np.ndarray]:
    """Return every array that a step returned, by name."""
    observations, rewards, terminations, truncations, info = step
    flat = {**observations, "rewards": rewards, "terminations": terminations, "truncations": truncations}
    for key, value in info.items():
        flat |= {f"{key}/{name}": array for name, array in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def addresses(step) -> set[int]:
    return {array.ctypes.data for array in arrays_of(step).values()}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_everything_that_is_kept_stays_as_it_was(mode):
    envs = make(autoreset_mode=mode)
    envs.reset(seed=1)
    kept = [envs.step(actions) for actions in choices(60, 4)]
    expected = [copies(arrays_of(step)) for step in kept]
    for actions in choices(60, 4, seed=6):
        envs.step(actions)
    for step, before in zip(kept, expected, strict=True):
        assert_same(arrays_of(step), before)


@pytest.mark.parametrize("ring", [1, 2, 3])
def test_a_ring_hands_the_same_arrays_out_in_turn(ring):
    envs, plain = make(copy=False, ring=ring), make()
    envs.reset(seed=1)
    plain.reset(seed=1)
    places = []
    for actions in choices(3 * ring, 4):
        step = envs.step(actions)
        assert_same(arrays_of(step), arrays_of(plain.step(actions)))
        places.append(addresses(step) - {envs.step.__self__._all._memory._all_mask.ctypes.data})
    assert places[:ring] == places[ring : 2 * ring] == places[2 * ring :]
    for i in range(ring):
        for j in range(i):
            assert not places[i] & places[j]


def test_with_a_ring_of_two_the_last_batch_is_still_there():
    envs = make(copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
    last, _ = envs.reset(seed=1)
    for actions in choices(40, 4):
        before = copies(last)
        step = envs.step(actions)
        assert_same(last, before)
        last = step[0]


def test_a_ring_costs_its_batches_and_no_more():
    envs = make(copy=False)
    envs.reset(seed=1)
    for actions in choices(4, 4):
        step = envs.step(actions)
    size = envs.memory().total_bytes
    for actions in choices(20, 4):
        step = envs.step(actions)
    assert envs.memory().total_bytes == size
    ring = next(node for _, node in envs.memory().walk() if node.name == "ring")
    everything = sum(array.nbytes for name, array in arrays_of(step).items() if not name.startswith("_"))
    assert ring.total_bytes == 2 * (everything + 4)  # and which episodes ended, a byte each


def test_results_go_into_the_arrays_of_the_caller_too():
    envs, plain = make(), make()
    out = {name: np.full(space.shape, 7, space.dtype) for name, space in envs.observation_space.items()}
    out |= {name: np.full(4, 7, dtype) for name, dtype in RESULTS.items()}
    envs.reset(seed=1, out=out)
    plain.reset(seed=1)
    for actions in choices(60, 4):
        step = envs.step(actions, out=out)
        assert step[1] is out["rewards"]
        assert step[2] is out["terminations"]
        assert step[3] is out["truncations"]
        assert step[4]["gold"] is out["gold"]
        assert_same(arrays_of(step), arrays_of(plain.step(actions)))


def test_results_of_another_dtype_are_refused():
    envs = make(observations="game_state")
    out = {"game_state": np.zeros((4, 30), np.float32)}
    envs.reset(seed=1)
    for name, expected, got in (("rewards", "float64 or float32", "float16"), ("gold", "int16", "int32")):
        with pytest.raises(errors.BufferError, match=rf"out\['{name}'\]: expected {expected} \(4,\), got {got} \(4,\)"):
            envs.step([0, 0, 0, 0], out=out | {name: np.zeros(4, got)})


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_rewards_can_be_written_as_float32(mode):
    envs, plain = make(autoreset_mode=mode, observations="game_state"), make(autoreset_mode=mode)
    out = {"game_state": np.zeros((4, 30), np.float32), "rewards": np.full(4, 7, np.float32)}
    envs.reset(seed=1, out=out)
    plain.reset(seed=1)
    assert not out["rewards"].any()
    rounded = 0
    for actions in choices(60, 4):
        rewards, exact = envs.step(actions, out=out)[1], plain.step(actions)[1]
        assert rewards is out["rewards"]
        assert rewards.tobytes() == exact.astype(np.float32).tobytes()
        rounded += int((rewards != exact).sum())
    assert rounded > 20


@pytest.mark.parametrize(("name", "value"), [("ring", 0), ("ring", 1.5), ("num_groups", 0), ("num_groups", 5)])
def test_numbers_of_batches_and_groups_are_checked(name, value):
    with pytest.raises(errors.ConfigError, match=f"{name}: expected a whole number from 1 to"):
        make(**{name: value})


def peaks(envs, steps, **arguments) -> list[int]:
    """Return the peaks of traced memory of vector steps, bytes above what was there before each."""
    found = []
    for row in steps[:20]:
        envs.step(row, **arguments)
    tracemalloc.start()
    try:
        for row in steps[20:]:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            envs.step(row, **arguments)
            found.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return found


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("observations", ["game_state", ("game_state", "player_frame", "global_view")])
def test_a_step_with_out_allocates_less_than_a_kilobyte(mode, observations):
    envs = make(256, num_threads=1, autoreset_mode=mode, observations=observations)
    out = {name: np.zeros(space.shape, space.dtype) for name, space in envs.observation_space.items()}
    envs.reset(seed=1, out=out)
    assert max(peaks(envs, choices(60, 256), out=out)) < 1024


def test_a_step_in_a_ring_allocates_less_than_a_kilobyte():
    envs = make(256, num_threads=1, copy=False)
    envs.reset(seed=1)
    assert max(peaks(envs, choices(60, 256))) < 1024


def test_a_default_step_allocates_views_alone():
    envs = make(256, num_threads=1)
    envs.reset(seed=1)
    assert max(peaks(envs, choices(60, 256))) < 8 * 1024
