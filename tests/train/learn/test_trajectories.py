"""Intake of trajectories: content, reuse of memory, and errors that leave the content as it was."""

import itertools
import tracemalloc
from types import MappingProxyType

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.errors import MemoryLimitError, TrajectoryError
from nclone_env.train.learn import trajectories as module
from nclone_env.train.learn.trajectories import EpisodeData, Intake, TrajectoryBuffer

from .test_gae import run as estimated

FEATURES, ACTIONS = 988, 124
GAMMA, LAMBDA = 0.97, 0.9


def space(features=4, actions=3):
    boxes = {"vector": spaces.Box(-1, 1, (features,), np.float32), "picture": spaces.Box(0, 255, (2, 3, 1), np.uint8)}
    return spaces.Dict(boxes | {"action_mask": spaces.Box(0, 1, (actions,), np.int8)})


def episode(length, seed=0, features=4, actions=3, final=False, **fields):
    random = np.random.default_rng(seed)
    rows = length + final
    chosen = random.integers(0, actions, length)
    masks = (random.random((rows, actions)) < 0.5).astype(np.int8)
    masks[np.arange(length), chosen] = 1
    observations = {
        "vector": random.standard_normal((rows, features), np.float32),
        "picture": random.integers(0, 256, (rows, 2, 3, 1), np.uint8),
        "action_mask": masks,
    }
    floats = {name: random.standard_normal(length).astype(np.float32) for name in ("rewards", "values", "log_probs")}
    return EpisodeData(observations, chosen.astype(np.int8), **{**floats, **fields})


def buffer(features=4, actions=3, **arguments):
    return TrajectoryBuffer(space(features, actions), actions, **arguments)


def content(filled):
    """Return copies of everything a buffer holds."""
    tensors = {**filled.observations, **filled.steps}
    return {name: tensor.cpu().numpy().copy() for name, tensor in tensors.items()}


def expected(episodes):
    """Return what a buffer should hold of the given fields: everything concatenated."""
    lengths = [len(one.actions) for one in episodes]
    names = episodes[0].observations
    rows = {
        name: np.concatenate([one.observations[name][:n] for one, n in zip(episodes, lengths, strict=True)])
        for name in names
    }
    fields = ("actions", "rewards", "values", "log_probs")
    return rows | {name: np.concatenate([getattr(one, name) for one in episodes]) for name in fields}


def assert_holds(filled, episodes):
    got = content(filled)
    for name, array in expected(episodes).items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@pytest.mark.parametrize(("count", "length"), [(256, 20), (3, 1024)])
def test_large_intakes(count, length):
    sizes = {"features": FEATURES, "actions": ACTIONS}
    episodes = [episode(length, seed, final=seed % 2 == 1, **sizes) for seed in range(count)]
    filled = buffer(**sizes)
    taken = filled.fill(episodes, GAMMA, LAMBDA)
    rewards = np.concatenate([one.rewards for one in episodes])
    assert taken == Intake(count * length, count, pytest.approx(rewards.mean(dtype=np.float64)))
    assert filled.capacity == count * length
    assert_holds(filled, episodes)
    assert filled.episode_starts.tolist() == list(range(0, count * length + 1, length))


def test_reuse_allocates_nothing():
    sizes = {"features": FEATURES, "actions": ACTIONS}
    first, second = ([episode(20, seed + part, **sizes) for seed in range(64)] for part in (0, 100))
    filled = buffer(**sizes)

    def peak(episodes):
        tracemalloc.start()
        filled.fill(episodes, GAMMA, LAMBDA)
        held, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return held, most

    assert peak(first)[0] > 5_000_000, "control: the first intake allocates the buffer"
    reserved, addresses = filled.memory().total_bytes, [x.data_ptr() for x in filled.observations.values()]
    filled.fill(second, GAMMA, LAMBDA)
    held, most = peak(second[:50])
    assert held < 3_000, "nothing but the starts of the episodes is kept"
    assert most < 30_000, "arrays of single episodes"
    assert_holds(filled, second[:50])
    assert filled.memory().total_bytes == pytest.approx(reserved, abs=200)
    assert [x.data_ptr() for x in filled.observations.values()] == addresses
    assert filled.capacity == 64 * 20
    assert f"room for {64 * 20:,} steps" in filled.memory().name


@settings(max_examples=40)
@given(lengths=st.lists(st.integers(0, 9), max_size=12), data=st.data())
def test_any_split_has_the_same_content(lengths, data):
    """The same steps as one episode and as many; parts that go on are bootstrapped with the next value."""
    whole = episode(sum(lengths), 3, terminated=True)
    edges = np.cumsum([0, *lengths])
    parts = []
    for first, last in itertools.pairwise(edges):
        fields = {name: getattr(whole, name)[first:last] for name in ("rewards", "values", "log_probs")}
        rows = {name: array[first:last] for name, array in whole.observations.items()}
        follows = float(whole.values[last]) if last < edges[-1] else 0.0
        done = bool(last == edges[-1])
        parts.append(EpisodeData(rows, whole.actions[first:last], **fields, terminated=done, bootstrap_value=follows))
    given_parts = parts if data.draw(st.booleans()) else iter(parts)
    together, split = buffer(), buffer()
    one_step = 0.0  # with this lambda a bootstrapped part equals the whole
    together.fill([whole], GAMMA, one_step)
    taken = split.fill(given_parts, GAMMA, one_step)
    assert (taken.steps, taken.episodes) == (sum(lengths), len(lengths))
    for name, array in content(together).items():
        np.testing.assert_array_equal(content(split)[name], array, err_msg=name)


def test_advantages_are_those_of_a_rollout():
    """A rollout of T steps of N environments, cut into its episodes, against the estimator of rollouts."""
    random = np.random.default_rng(2)
    steps, count = 40, 7
    rewards, final = (random.normal(size=(steps, count)).astype(np.float32) for _ in range(2))
    values = random.normal(size=(steps + 1, count)).astype(np.float32)
    terminated, truncated = random.random((2, steps, count)) < 0.1
    advantages, returns = estimated(rewards, values, terminated, truncated, final, GAMMA, LAMBDA)
    episodes, places = [], []
    for i in range(count):
        ends = np.flatnonzero(terminated[:, i] | truncated[:, i]) + 1
        edges = sorted({0, *ends.tolist(), steps})
        for first, last in itertools.pairwise(edges):
            cut = truncated[last - 1, i]
            rows = {n: a[first:last] for n, a in episode(steps).observations.items()}
            rows["action_mask"] = np.ones_like(rows["action_mask"])
            episodes.append(
                EpisodeData(
                    rows,
                    np.zeros(last - first, np.int64),
                    rewards[first:last, i],
                    values[first:last, i],
                    terminated=bool(terminated[last - 1, i]),
                    bootstrap_value=float(final[last - 1, i] if cut else values[last, i]),
                )
            )
            places.append((slice(first, last), i))
    filled = buffer()
    filled.fill(episodes, GAMMA, LAMBDA)
    got = content(filled)
    for number, place in enumerate(places):
        own = slice(*filled.episode_starts[number : number + 2])
        np.testing.assert_array_equal(got["advantages"][own], advantages[place])
        np.testing.assert_array_equal(got["returns"][own], returns[place])
    assert len(episodes) > 20


def test_generators_may_reuse_their_arrays():
    episodes = [episode(length, length) for length in (3, 0, 5)]
    shared = episode(5, 9, final=True)

    def reusing():
        for one in episodes:
            n = len(one.actions)
            for name in ("actions", "rewards", "values", "log_probs"):
                getattr(shared, name)[:n] = getattr(one, name)
            for name, array in one.observations.items():
                shared.observations[name][:n] = array
            fields = {name: getattr(shared, name)[:n] for name in ("rewards", "values", "log_probs")}
            yield EpisodeData({k: a[:n] for k, a in shared.observations.items()}, shared.actions[:n], **fields)

    filled = buffer()
    assert filled.fill(reusing(), GAMMA, LAMBDA).steps == 8
    assert_holds(filled, episodes)


@pytest.mark.parametrize("nothing", [[], iter(()), [episode(0)], [episode(0, final=True), episode(0)]])
def test_nothing_to_take_in(nothing):
    filled = buffer()
    filled.fill([episode(5)], GAMMA, LAMBDA)
    taken = filled.fill(nothing, GAMMA, LAMBDA)
    assert taken.steps == 0
    assert np.isnan(taken.mean_reward)
    assert all(len(array) == 0 for array in content(filled).values())
    assert filled.capacity == 5
    empty = buffer()
    assert empty.fill([], GAMMA, LAMBDA).episodes == 0


def test_fields_that_are_missing():
    filled = buffer()
    filled.fill([episode(4, values=None, log_probs=None, terminated=True)], 0.5, 1.0)
    got = content(filled)
    assert np.isnan(got["log_probs"]).all()
    r = got["rewards"].astype(float)
    discounted = [sum(0.5 ** (k - t) * r[k] for k in range(t, 4)) for t in range(4)]
    np.testing.assert_allclose(got["returns"], discounted, rtol=1e-5)  # float32 sums


def spoiled(**changes):
    one = episode(5, 1)
    rows = dict(one.observations)
    fields = {"actions": one.actions, "rewards": one.rewards}
    for name, value in changes.items():
        (rows if name in rows else fields)[name] = value
    return EpisodeData(rows, **fields)


ONLY_FIRST = np.tile(np.array([1, 0, 0], np.int8), (5, 1))
FAULTS = {
    r"observations\['vector'\]: expected float32 of shape \(5, 4\) or, with the final observation, \(6, 4\), got "
    r"float64 of shape \(5, 4\)": {"vector": np.zeros((5, 4))},
    r"observations\['vector'\].*got float32 of shape \(4, 4\)": {"vector": np.zeros((4, 4), np.float32)},
    r"observations\['picture'\].*got a list": {"picture": [1]},
    r"actions: expected an integer array of shape \(T,\), got float64": {"actions": np.zeros(5)},
    r"actions: expected an integer array.*shape \(5, 1\)": {"actions": np.zeros((5, 1), np.int64)},
    r"actions: expected numbers from 0 to 2, got 3 at step 2; number them so": {"actions": np.array([0, 1, 3, 0, 0])},
    r"actions: expected numbers from 0 to 2, got -1": {"actions": np.array([0, 1, -1, 0, 0])},
    r"rewards: expected floats of shape \(5,\), got int64": {"rewards": np.zeros(5, np.int64)},
    r"rewards: expected floats of shape \(5,\), got float32 of shape \(6,\)": {"rewards": np.zeros(6, np.float32)},
    r"got action 2 at step 1, which its mask excludes": {
        "actions": np.array([0, 2, 0, 0, 0]),
        "action_mask": ONLY_FIRST,
    },
}


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("message", FAULTS)
def test_faults_are_named_before_anything_changes(message, lazily):
    filled = buffer()
    filled.fill([episode(9, 8)], GAMMA, LAMBDA)
    before = content(filled)
    episodes = [episode(3), episode(0), spoiled(**FAULTS[message])]
    with pytest.raises(TrajectoryError, match="^trajectory 2: .*" + message):
        filled.fill(iter(episodes) if lazily else episodes, GAMMA, LAMBDA)
    after = content(filled)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    filled.fill([spoiled()], GAMMA, LAMBDA)
    assert not np.array_equal(before["vector"], content(filled)["vector"]), "control: without fault it is taken in"


def test_names_of_observations():
    one = episode(2)
    other = EpisodeData({"vector": one.observations["vector"]}, one.actions)
    more = EpisodeData({**one.observations, "sound": one.observations["vector"]}, one.actions)
    for faulty in (other, more):
        with pytest.raises(TrajectoryError, match=r"expected the names \['action_mask', 'picture', 'vector'\], got"):
            buffer().fill([one, faulty], GAMMA, LAMBDA)


@pytest.mark.parametrize("lazily", [False, True])
def test_the_first_faulty_trajectory_is_named(lazily):
    shapes, masked = (spoiled(**FAULTS[next(each for each in FAULTS if text in each)]) for text in ("float64", "mask"))
    both = spoiled(actions=np.array([0, 2, 0, 7, 0]), action_mask=ONLY_FIRST)
    for faulty, message in (
        ([episode(3), masked, shapes], "^trajectory 1: actions: expected actions that the mask allows"),
        ([episode(3), shapes, masked], r"^trajectory 1: observations\['vector'\]"),
        ([both], "^trajectory 0: actions: expected numbers .* 7 at step 3"),
    ):
        with pytest.raises(TrajectoryError, match=message) as error:
            buffer().fill(iter(faulty) if lazily else faulty, GAMMA, LAMBDA)
        assert error.value.__cause__ is None
        assert error.value.__suppress_context__ or error.value.__context__ is None, "one error, not two"


def test_a_generator_is_not_read_behind_a_fault():
    episodes = iter([episode(3), spoiled(actions=np.full(5, 3)), episode(2)])
    with pytest.raises(TrajectoryError, match=r"^trajectory 1: "):
        buffer().fill(episodes, GAMMA, LAMBDA)
    assert len(list(episodes)) == 1


class Special(np.ndarray):
    """What is no plain array, such as a memory map."""


@pytest.mark.parametrize("window", [1, 4, 4096])
@pytest.mark.parametrize("lazily", [False, True])
def test_mixed_trajectories(window, lazily, monkeypatch):
    """Final observations, missing fields, subclasses of arrays, other dtypes and other mappings, cut into blocks."""
    monkeypatch.setattr(module, "_WINDOW", window)
    episodes = [
        episode(3, 1, final=True),
        episode(0, 2),
        episode(6, 3, rewards=None, log_probs=None),
        episode(2, 4, values=np.array([0.5, 0.25])),
        episode(4, 5, values=None, log_probs=np.zeros(4, np.float16), final=True),
    ]
    kinds = [np.uint64, np.int64, np.int32, np.uint8, np.int16]
    given = [
        EpisodeData(
            MappingProxyType({name: array.view(Special) for name, array in one.observations.items()}),
            one.actions.astype(kind),
            *(getattr(one, name) for name in ("rewards", "values", "log_probs")),
        )
        for one, kind in zip(episodes, kinds, strict=True)
    ]
    for one, missing in itertools.product(episodes, ("rewards", "values", "log_probs")):
        if getattr(one, missing) is None:
            blank = np.nan if missing == "log_probs" else 0
            object.__setattr__(one, missing, np.full(len(one.actions), blank, np.float32))
    filled = buffer()
    assert filled.fill(iter(given) if lazily else given, GAMMA, LAMBDA).steps == 15
    assert_holds(filled, episodes)


def test_another_device_is_filled_through_windows(monkeypatch):
    """The path of accelerators, on whatever is here: a window of 7 steps, and episodes across its edges."""
    monkeypatch.setattr(module, "_WINDOW", 7)
    device = "cuda" if torch.cuda.is_available() else "meta"
    episodes = [episode(length, length) for length in (3, 0, 9, 20, 1, 2)]
    filled = buffer(device=device)
    copied = {}
    if device == "meta":  # keeps no content: remember what is copied
        monkeypatch.setattr(
            torch.Tensor,
            "__setitem__",
            lambda self, key, value: copied.setdefault((tuple(self.shape), self.dtype), []).append(
                (key, value.numpy().copy())
            ),
        )
    filled.fill(episodes, GAMMA, LAMBDA)
    assert all(tensor.device.type == device for tensor in filled.observations.values())
    if device == "cuda":
        assert_holds(filled, episodes)
        return
    transfers = copied[((35, 4), torch.float32)]
    assert [(key.start, key.stop) for key, _ in transfers] == [(0, 7), (7, 14), (14, 21), (21, 28), (28, 35)]
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in transfers]), expected(episodes)["vector"])


def test_stacks_do_not_cross_episodes():
    episodes = [episode(length, length) for length in (2, 0, 4)]
    filled = buffer(frame_stack=3)
    filled.fill(episodes, GAMMA, LAMBDA)
    out = filled.observation_buffers(6)
    assert out["action_mask"].shape == (6, 3), "masks are not stacked"
    filled.gather(torch.arange(6), out)
    rows = content(filled)["vector"]
    wanted = [[0, 0, 0], [0, 0, 1], [2, 2, 2], [2, 2, 3], [2, 3, 4], [3, 4, 5]]
    np.testing.assert_array_equal(out["vector"].numpy(), rows[np.array(wanted)])
    np.testing.assert_array_equal(out["action_mask"].numpy(), content(filled)["action_mask"])


def test_steps_that_do_not_fit_are_refused_before_they_are_allocated(monkeypatch):
    filled, each = buffer(), 4 * 4 + 6 + 3 + 8 + 5 * 4
    filled.fill([episode(50)], GAMMA, LAMBDA)
    monkeypatch.setattr("nclone_env.machine._SMALL", 0)
    monkeypatch.setattr("nclone_env.machine.available_bytes", lambda: 100 * each)
    with pytest.raises(MemoryLimitError, match=r"trajectories: steps: 101 need .* at most 100 fit"):
        filled.fill([episode(50), episode(51)], GAMMA, LAMBDA)
    assert (filled.num_steps, filled.capacity) == (0, 0)
    assert filled.fill([episode(50), episode(50)], GAMMA, LAMBDA).steps == 100
