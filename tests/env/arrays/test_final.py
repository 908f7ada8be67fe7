"""Last observations of episodes, and frame stacks."""

import mmap

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusVectorEnv
from nclone_env.env.arrays.final import FinalPool, sort_rows
from nclone_env.memory.measure.process import committed_tree_bytes
from nclone_env.obs.spec import ObservationSpec

from ..bases import QUICK_DEATH, QUICK_WIN, WALK, assert_same, choices, copies

LEVELS = (QUICK_WIN, QUICK_DEATH, "hazards")

NUM_ENVS, DEPTH = 6, 3
FIELDS = {"levels": (QUICK_WIN, QUICK_DEATH, "hazards"), "max_frames": 60}
NAMES = ("game_state", "player_frame", "action_mask", "entity_states")


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


@pytest.mark.parametrize("observation", [{}, {"dtype": "float16", "frame_stack": 2}], ids=str)
def test_rows_do_not_depend_on_threads(observation):
    names = ("game_state", "player_frame", "action_mask", "reachability", "action_outcomes")
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


def test_rows_are_the_same_beside_arrays_of_the_caller():
    envs, plain = make(12), make(12)
    for (ended, rows), (expected, same) in zip(finals(envs, out=outputs(envs)), finals(plain), strict=True):
        assert ended.tolist() == expected.tolist()
        assert_same(rows, same)


def test_kept_rows_never_change():
    envs = make(12)
    out = outputs(envs)
    envs.reset(seed=1, out=out)
    kept = []
    for actions in choices(300, 12):
        info = envs.step(actions, out=out)[4]
        if "final_obs" in info:
            rows = dict(info["final_obs"])
            kept.append((rows, copies(rows)))
    assert len(kept) > 20
    for rows, before in kept:
        assert_same(rows, before)


def test_dropped_rows_are_used_again():
    envs = make(12, observations="game_state")
    envs.reset(seed=1, out=(out := outputs(envs)))
    owners, ends = set(), 0
    for actions in choices(200, 12):
        rows = envs.step(actions, out=out)[4].get("final_obs", {})
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


class Queue:
    """Stacks of single observations, in the naive way."""

    def __init__(self):
        self.observations = []

    def start(self, observation):
        self.observations = [copies(observation)] * DEPTH
        return self

    def push(self, observation):
        self.observations = [*self.observations[1:], copies(observation)]
        return self

    def __call__(self) -> dict[str, np.ndarray]:
        newest = self.observations[-1]
        return {
            name: newest[name] if name == "action_mask" else np.stack([one[name] for one in self.observations])
            for name in newest
        }


def row(observations, i):
    return {name: array[i] for name, array in observations.items()}


def pair(mode=AutoresetMode.NEXT_STEP, names=NAMES, num_threads=1):
    return (
        NPlusPlusVectorEnv(
            None,
            NUM_ENVS,
            observations=names,
            autoreset_mode=mode,
            num_threads=num_threads,
            observation={"frame_stack": depth},
            **FIELDS,
        )
        for depth in (1, DEPTH)
    )


def check(stacked, queues) -> None:
    for i, queue in enumerate(queues):
        assert_same(row(stacked, i), queue())


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_stacks_of_a_vector_environment(mode, num_threads):
    plain, envs = pair(mode, num_threads=num_threads)
    first, stacked = plain.reset(seed=3)[0], envs.reset(seed=3)[0]
    assert stacked in envs.observation_space
    queues = [Queue().start(row(first, i)) for i in range(NUM_ENVS)]
    check(stacked, queues)
    was_over, ends = np.zeros(NUM_ENVS, np.bool_), 0
    for actions in choices(100, NUM_ENVS):
        left, right = plain.step(actions), envs.step(actions)
        over = left[2] | left[3]
        ends += int(over.sum())
        places = np.cumsum(over) - 1
        for i, queue in enumerate(queues):
            if mode is AutoresetMode.SAME_STEP and over[i]:
                last, stacked = (row(step[4]["final_obs"], places[i]) for step in (left, right))
                assert_same(stacked, queue.push(last)())
                queue.start(row(left[0], i))
            elif mode is AutoresetMode.NEXT_STEP and was_over[i]:
                queue.start(row(left[0], i))
            else:
                queue.push(row(left[0], i))
        check(right[0], queues)
        if mode is AutoresetMode.DISABLED and over.any():
            first, stacked = (e.reset(options={"reset_mask": over})[0] for e in (plain, envs))
            for i in np.flatnonzero(over):
                queues[i].start(row(first, i))
            check(stacked, queues)
        was_over = over
    assert ends > 20


def test_kept_stacks_never_change_and_out_is_written():
    plain, envs = pair()
    out = {name: np.zeros(space.shape, space.dtype) for name, space in envs.observation_space.items()}
    queues = [Queue().start(row(plain.reset(seed=1)[0], i)) for i in range(NUM_ENVS)]
    kept = [envs.reset(seed=1)[0]]
    expected = [copies(kept[0])]
    for k, actions in enumerate(choices(10, NUM_ENVS)):
        left = plain.step(actions)[0]
        stacked = envs.step(actions, out=out if k % 2 else None)[0]
        if k % 2:
            assert all(stacked[name] is out[name] for name in out)
        else:
            kept.append(stacked)
            expected.append(copies(stacked))
        check(stacked, [queue.push(row(left, i)) for i, queue in enumerate(queues)])
    for left, right in zip(kept, expected):
        assert_same(left, right)


def test_a_snapshot_begins_a_stack_and_a_copy_takes_it_along():
    plain, envs = pair(AutoresetMode.DISABLED, ("game_state",))
    plain.reset(seed=1)
    envs.reset(seed=1)
    for _ in range(4):
        left, right = plain.step([2] * NUM_ENVS)[0], copies(envs.step([2] * NUM_ENVS)[0])
    assert_same(envs.copy_world(0, 1)[0], row(right, 0))
    state = envs.get_state(2)
    restored = envs.set_state(3, state)[0]
    assert_same(restored, Queue().start(row(left, 2))())
    order = [5, 4, 3, 2, 1, 0]
    before = copies(envs.reset(options={"reset_mask": np.zeros(NUM_ENVS, np.bool_)})[0])
    gathered = envs.gather(order)[0]
    np.testing.assert_array_equal(gathered["game_state"], before["game_state"][order])
    after = copies(envs.step([0] * NUM_ENVS)[0])
    np.testing.assert_array_equal(after["game_state"][:, :-1], before["game_state"][order][:, 1:])
    started = envs.reset(options={"state": state})[0]["game_state"]
    np.testing.assert_array_equal(started, np.repeat(left["game_state"][2:3, None], DEPTH, 1).repeat(NUM_ENVS, 0))


def test_stacks_are_reported_and_cost_nothing_unless_asked_for():
    plain, envs = pair(names=("game_state",))
    plain.reset()
    envs.reset()
    names = [{node.name: node.total_bytes for _, node in e.memory().walk()} for e in (plain, envs)]
    assert names[1][f"frame stack of {DEPTH}"] == DEPTH * NUM_ENVS * 120
    assert names[1]["recycled observations"] == DEPTH * NUM_ENVS * 120
    assert not any(name.startswith("frame stack") for name in names[0])
