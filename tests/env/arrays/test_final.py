"""Last observations in same-step mode: one row per episode that ended, in the order of environments, safe to keep."""

from __future__ import annotations

import mmap

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusVectorEnv
from nclone_env.env.arrays.final import FinalPool, sort_rows
from nclone_env.memory.process import committed_tree_bytes
from nclone_env.obs.spec import ObservationSpec

from ..bases import QUICK_DEATH, QUICK_WIN, WALK, assert_same, choices, copies

LEVELS = (QUICK_WIN, QUICK_DEATH, "hazards")
CONTRACTS = {"default": {}, "out": {}, "ring of 1": {"copy": False, "ring": 1}, "ring of 3": {"copy": False, "ring": 3}}


def make(num_envs, **options):
    fields = {"levels": LEVELS, "max_frames": 100, "autoreset_mode": AutoresetMode.SAME_STEP}
    return NPlusPlusVectorEnv(None, num_envs, **fields | options)


def outputs(envs) -> dict[str, np.ndarray]:
    return {name: np.zeros(space.shape, space.dtype) for name, space in envs.observation_space.items()}


def finals(envs, steps=150, seed=1, **arguments):
    """Yield the mask of ended episodes and copies of their last observations, for every step with any."""
    envs.reset(seed=seed, **arguments)
    for actions in choices(steps, envs.num_envs):
        info = envs.step(actions, **arguments)[4]
        if "final_obs" in info:
            yield info["_final_obs"].copy(), copies(info["final_obs"])
    envs.close()


def final_bytes(envs) -> int:
    """Return the reported bytes of final observations."""
    return sum(node.own_bytes for _, node in envs.memory().walk() if node.name == "final observations")


def committed(envs) -> int:
    """Return the bytes of the environments in pages that were written."""
    return committed_tree_bytes(envs.memory())


@pytest.mark.parametrize("observation", [{}, {"dtype": "float16"}, {"frame_stack": 2}], ids=str)
def test_rows_do_not_depend_on_threads(observation):
    names = ("game_state", "player_frame", "action_mask", "reachability")
    fields = {"observations": names, "observation": observation}
    one, many, others = (
        list(finals(make(40, num_threads=threads, **fields), seed=seed)) for threads, seed in ((1, 1), (3, 1), (1, 2))
    )
    assert len(one) == len(many) > 20
    for (ended, rows), (again, same) in zip(one, many, strict=True):
        assert ended.tolist() == again.tolist()
        assert {len(array) for array in rows.values()} == {ended.sum()}
        assert_same(rows, same)
    assert any(ended.tolist() != other.tolist() for (ended, _), (other, _) in zip(one, others))


@pytest.mark.parametrize("contract", CONTRACTS)
def test_rows_are_the_same_in_all_contracts(contract):
    envs, plain = make(12, **CONTRACTS[contract]), make(12)
    arguments = {"out": outputs(envs)} if contract == "out" else {}
    for (ended, rows), (expected, same) in zip(finals(envs, **arguments), finals(plain), strict=True):
        assert ended.tolist() == expected.tolist()
        assert_same(rows, same)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_kept_rows_never_change(contract):
    envs = make(12, **CONTRACTS[contract])
    arguments = {"out": outputs(envs)} if contract == "out" else {}
    envs.reset(seed=1, **arguments)
    kept = []
    for actions in choices(300, 12):
        info = envs.step(actions, **arguments)[4]
        if "final_obs" in info:
            rows = dict(info["final_obs"])
            kept.append((rows, copies(rows)))
    assert len(kept) > 20
    for rows, before in kept:
        assert_same(rows, before)


def test_dropped_rows_are_used_again():
    envs = make(12, copy=False, observations="game_state")
    envs.reset(seed=1)
    owners, ends = set(), 0
    for actions in choices(200, 12):
        rows = envs.step(actions)[4].get("final_obs", {})
        owners |= {id(array.base) for array in rows.values()}
        ends += len(rows)
    assert len(owners) <= 2 < ends


def test_the_dict_is_emptied_when_its_turn_is_over():
    envs = make(12)
    out = outputs(envs)
    envs.reset(seed=1, out=out)
    for actions in choices(60, 12):
        info = envs.step(actions, out=out)[4]
        if "final_obs" in info:
            assert info["final_obs"]
            envs.step(actions, out=out)
            assert not info["final_obs"]
            return
    raise AssertionError("no episode ended")


@pytest.mark.parametrize("num_threads", [1, 2])
def test_rows_of_groups(num_threads):
    together, groups = make(9), make(9, num_groups=2, num_threads=num_threads)
    together.reset(seed=3)
    groups.reset(seed=3)
    ends = 0
    for actions in choices(300, 9):
        info = together.step(actions)[4]
        groups.send(actions[:4], 0)
        groups.send(actions[4:], 1)
        parts = [groups.recv(group)[4] for group in (0, 1)]
        if "final_obs" not in info:
            assert not any("final_obs" in part for part in parts)
            continue
        ends += 1
        for name, rows in info["final_obs"].items():
            pieces = [part["final_obs"][name] for part in parts if "final_obs" in part]
            assert np.concatenate(pieces).tobytes() == rows.tobytes()
    assert ends > 20
    groups.close()


def test_memory_comes_down_after_a_time_limit_ended_all_episodes():
    envs = make(300, levels=WALK, max_frames=40, observations=("game_state", "player_frame", "global_view"))
    out = outputs(envs)
    for array in out.values():
        array.fill(1)
    batch = sum(array.nbytes for array in out.values())
    envs.reset(seed=1, out=out)
    still = np.zeros(300, np.int64)
    for episode in range(3):
        for _ in range(8 if episode else 9):
            *_, info = envs.step(still, out=out)
            assert "final_obs" not in info
        before, reported = committed(envs), final_bytes(envs)
        assert reported < batch / 4
        *_, truncated, info = envs.step(still, out=out)
        assert truncated.all()
        assert final_bytes(envs) > batch
        after_end = committed(envs)
        assert after_end - before > batch / 2  # negative control: the rows were there
        envs.step(still, out=out)
        assert final_bytes(envs) < batch / 4
        if hasattr(mmap, "MADV_DONTNEED"):
            assert after_end - committed(envs) > batch / 2, episode


def test_few_ends_cost_few_rows():
    envs = make(400, levels="hazards", max_frames=5000, observations=("game_state", "player_frame"))
    out = outputs(envs)
    envs.reset(seed=1, out=out)
    most = 0
    for actions in choices(120, 400):
        *_, info = envs.step(actions, out=out)
        most = max(most, int(info["_final_obs"].sum()) if "final_obs" in info else 0)
    row = sum(array.nbytes for array in out.values()) // 400
    assert 2 < most < 60
    assert final_bytes(envs) <= (most + 1) * row


def test_sorting_rows_equals_indexing():
    draw = np.random.default_rng(0)
    for _ in range(200):
        n = int(draw.integers(1, 30))
        ended = draw.random(n) < draw.random()
        count, width = int(ended.sum()), int(draw.integers(0, 20))
        places, sources = np.full(n, -1, np.int32), np.zeros(n, np.int32)
        places[ended] = draw.permutation(count)
        rows = draw.integers(0, 256, (n + 1, width)).astype(np.uint8)
        expected = rows[places[ended]]
        sort_rows(ended, places, sources, rows)
        np.testing.assert_array_equal(rows[:count], expected)


def test_released_pages_are_given_back_and_others_kept():
    pool = FinalPool([ObservationSpec("bytes", (mmap.PAGESIZE,), np.dtype(np.uint8), 0, 255, "any")], 100)
    rows = pool.take()
    rows.arrays["bytes"][:] = 7
    rows.fill(100)
    assert pool.take() is rows
    kept = rows.memory().own_bytes // mmap.PAGESIZE
    assert 8 <= kept < 30
    if hasattr(mmap, "MADV_DONTNEED"):
        assert (rows.arrays["bytes"][:kept] == 7).all()
        assert not rows.arrays["bytes"][kept:].any()
