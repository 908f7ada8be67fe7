"""The environment on a device, here on a stand-in that runs the same programs on the processor: all bits are equal."""

import re

import gymnasium
import numpy as np
import pytest

from nclone_env import create_vector_environment, errors
from nclone_env.env.cuda import NPlusPlusCudaVectorEnv
from nclone_env.env.ids import ENVIRONMENT_ID
from nclone_env.errors import ActionError, ConfigError, MemoryLimitError
from nclone_env.level.build import everything

from .bases import QUICK_DEATH, QUICK_WIN, choices
from .processor import Processor, torch

COUNT = 5
OBSERVATIONS = (
    "game_state",
    "entity_states",
    "locals",
    "free_motion",
    "action_mask",
    "action_outcomes",
    "player_frame",
)
OPTIONS = {
    "levels": (everything(), QUICK_WIN, QUICK_DEATH),
    "observations": OBSERVATIONS,
    "observation": {"outcome_frames": 6, "locals_size": 17},
    "render": {"player_frame_size": 32},
    "max_frames": 120,
}
OTHER_MODES = ("NextStep", "Disabled")


def both(mode="SameStep", device=None, count=COUNT, **options):
    """Return the environment of the processor and that of a device."""
    chosen = {**OPTIONS, "autoreset_mode": mode, **options}
    return (
        create_vector_environment(None, count, num_threads=1, **chosen),
        create_vector_environment(None, count, device=device or Processor(), **chosen),
    )


def assert_equal(host, there):
    """Check that nested results are equal, byte by byte."""
    if isinstance(host, dict):
        assert host.keys() == there.keys()
        for name in host:
            assert_equal(host[name], there[name])
    else:
        assert isinstance(there, torch.Tensor)
        assert host.dtype.name == str(there.dtype).removeprefix("torch.")
        assert host.tobytes() == there.contiguous().numpy().tobytes()


def assert_same_step(host, there):
    """Check the results of a step; those of ended episodes are in the rows of their environments on a device."""
    for left, right in zip(host[:4], there[:4], strict=True):
        assert_equal(left, right)
    info, other = host[4], there[4]
    plain = {name: value for name, value in info.items() if "final" not in name}
    assert_equal(plain, {name: other[name] for name in plain})
    if "final_obs" not in info:
        assert not other.get("_final_obs", torch.zeros(1)).any()
        return
    ended = info["_final_obs"]
    assert_equal(ended, other["_final_obs"])
    assert_equal(info["final_obs"], {name: last[torch.from_numpy(ended)] for name, last in other["final_obs"].items()})
    names = [name for name in info["final_info"] if not name.startswith("_")]
    for name in names:
        assert_equal(info["final_info"][name][ended], other["final_info"][name][torch.from_numpy(ended)])


@pytest.mark.parametrize("mode", ["SameStep", *(pytest.param(mode, marks=pytest.mark.slow) for mode in OTHER_MODES)])
def test_every_bit_of_every_observation_is_that_of_the_processor(mode):
    host, there = both(mode)
    assert host.single_observation_space == there.single_observation_space
    assert host.metadata == there.metadata
    assert_equal(*(env.reset(seed=3)[0] for env in (host, there)))
    ends = 0
    for number, actions in enumerate(choices(90, COUNT).repeat(2, axis=0)):
        results = host.step(actions)
        assert_same_step(results, there.step(torch.from_numpy(actions)))
        over = results[2] | results[3]
        ends += int(over.sum())
        if mode == "Disabled" and number % 20 == 0:
            given = (over, torch.from_numpy(over))
            assert_equal(*(env.reset(options={"reset_mask": mask})[0] for env, mask in zip((host, there), given)))
    assert [host.get_state(index) for index in range(COUNT)] == [there.get_state(index) for index in range(COUNT)]
    assert ends > 10


def test_the_order_of_threads_changes_nothing_and_another_action_does():
    _, there = both()
    _, turned = both(device=Processor(lambda count: reversed(range(count))))
    for env in (there, turned):
        env.reset(seed=1)
    for actions in choices(60, COUNT):
        for left, right in zip(there.step(actions)[:4], turned.step(torch.from_numpy(actions))[:4], strict=True):
            assert_equal(numpy_of(left), right)
    states = [env.get_state(0) for env in (there, turned)]
    assert states[0] == states[1]
    turned.step((actions + 1) % 6)
    there.step(actions)
    assert there.get_state(0) != turned.get_state(0)


def numpy_of(value):
    """Return nested results as NumPy arrays."""
    return {name: numpy_of(each) for name, each in value.items()} if isinstance(value, dict) else value.numpy()


def test_what_is_rare_is_done_as_by_the_processor():
    host, there = both(observation={**OPTIONS["observation"], "dtype": "float16"})
    calls = (
        lambda env: env.reset(seed=[5, None, 7, 8, 9], options={"level": [0, 1, None, 2, 0]})[0],
        lambda env: env.set_state(1, env.get_state(0))[0],
        lambda env: env.copy_world(0, 3)[0],
        lambda env: env.gather([4, 3, 2, 1, 0])[0],
        lambda env: env.reseed([9, None, 8, 7, 6]),
        lambda env: env.assign_levels([0, None, 1, 2, None]),
        lambda env: env.set_level_weights([1, 0, 2]),
        lambda env: env.set_starts([env.get_state(0)], 0.7),
        lambda env: env.set_start_shares(0.2),
        lambda env: env.exchange_levels((QUICK_WIN, everything())),
        lambda env: env.reset(options={"state": [env.get_state(0), None, None, None, env.get_state(0)]})[0],
    )
    steps = iter(choices(20 * len(calls), COUNT, seed=8))
    for call in calls:
        left, right = call(host), call(there)
        if left is not None:
            assert_equal({name: np.asarray(each) for name, each in left.items()}, right)
        for _ in range(20):
            actions = next(steps)
            assert_same_step(host.step(actions), there.step(torch.from_numpy(actions)))
    assert host.level_names == there.level_names
    assert there.worlds.ninjas.tobytes() == host.worlds.ninjas.tobytes()
    assert np.array_equal(host.pictures([1])[0], there.pictures([1])[0])


def test_all_states_are_copied_together(monkeypatch):
    host, there = both()
    for env in (host, there):
        env.reset(seed=2)
    pulled, pull = [], NPlusPlusCudaVectorEnv._pull
    monkeypatch.setattr(NPlusPlusCudaVectorEnv, "_pull", lambda *given: (pulled.append(given), pull(*given)))
    before = there.get_states()
    assert before == [host.get_state(index) for index in range(COUNT)]
    for actions in choices(30, COUNT):
        there.step(torch.from_numpy(actions))
    pulled.clear()
    changed = there.get_states()
    assert len(pulled) == 1
    with pytest.raises(errors.SnapshotError):
        there.set_states([*before[1:], b"no snapshot"])
    with pytest.raises(errors.ConfigError, match="states: expected 5 snapshots, one per environment, got 4"):
        there.set_states(before[1:])
    pulled.clear()
    assert there.get_states() == changed != before
    there.set_states(before)
    assert len(pulled) == 2
    assert there.get_states() == before
    for actions in choices(20, COUNT):
        assert_same_step(host.step(actions), there.step(torch.from_numpy(actions)))


def test_weights_and_shares_leave_the_state_on_the_device(monkeypatch):
    envs = host, there = both()
    for env in envs:
        env.reset(seed=2)
        env.set_starts([env.get_state(0)], 0.1)

    def refuse(*names):
        raise AssertionError("the state is read")

    monkeypatch.setattr(there, "_pull", refuse)
    for env in envs:
        env.set_level_weights([1, 0, 2])
        env.set_start_shares(0.6)
    for actions in choices(60, COUNT):
        assert_same_step(host.step(actions), there.step(torch.from_numpy(actions)))
    with pytest.raises(AssertionError, match="the state is read"):
        there.assign_levels([0, 1, 2, 0, 1])


@pytest.mark.parametrize("chance", [0.0, 0.5])
@pytest.mark.parametrize("space", ["discrete", "multi_discrete"])
def test_the_taken_actions_are_those_of_the_processor(space, chance):
    random = np.random.default_rng(2)
    envs = both(observations=("game_state",), action_repeat_probability=chance, action_space=space)
    for each in envs:
        each.reset(seed=4)
        each.action_space.seed(5)
    for step in range(12):
        given = random.integers(2, size=(COUNT, 2)) if space == "multi_discrete" else random.integers(6, size=COUNT)
        for each, actions in zip(envs, (given, given if step % 2 else torch.from_numpy(given)), strict=True):
            each.step(actions)
        assert_equal(*(each.taken_actions for each in envs))
    for each in envs:
        each.close()


def test_rows_of_the_caller_are_written_in_place_and_actions_are_not_copied():
    host, there = both()
    host.reset(seed=2), there.reset(seed=2)
    rollout = {
        spec: torch.zeros((4, *space.shape), dtype=getattr(torch, space.dtype.name))
        for spec, space in there.observation_space.items()
    }
    rewards = torch.zeros((4, COUNT), dtype=torch.float32)
    actions = torch.from_numpy(choices(4, COUNT))
    for step in range(4):
        out = {name: rows[step] for name, rows in rollout.items()} | {"rewards": rewards[step]}
        seen, given, *_ = there.step(actions[step], out=out)
        assert given.data_ptr() == rewards[step].data_ptr()
        assert seen["game_state"].data_ptr() == rollout["game_state"][step].data_ptr()
        expected, reward, *_ = host.step(actions[step].numpy())
        assert_equal(expected, {name: rows[step] for name, rows in rollout.items()})
        assert reward.astype(np.float32).tobytes() == rewards[step].numpy().tobytes()
    with pytest.raises(errors.BufferError, match=r"out\['game_state'\]: expected a contiguous tensor, torch.float32"):
        there.step(actions[0], out={**out, "game_state": torch.zeros(1)})
    with pytest.raises(errors.BufferError, match="out: expected the keys"):
        there.step(actions[0], out={"other": rewards[0]})


def test_a_wrong_action_leaves_its_environment_and_is_told():
    _, there = both()
    there.reset(seed=0)
    before = [there.get_state(index) for index in range(COUNT)]
    there.step(torch.tensor([0, 6, 1, -1, 2]))
    with pytest.raises(ActionError, match="expected 0 to 5"):
        there.synchronize()
    after = [there.get_state(index) for index in range(COUNT)]
    assert [left == right for left, right in zip(before, after, strict=True)] == [False, True, False, True, False]
    for wrong, message in ((torch.zeros(COUNT), "integer dtype"), (torch.zeros(2, dtype=torch.int64), "shape")):
        with pytest.raises(ActionError, match=message):
            there.step(wrong)
    with pytest.raises(ActionError, match="expected 0"):
        there.step(np.full(COUNT, 7))


def test_pairs_of_direction_and_jump_are_actions():
    host, there = both(action_space="multi_discrete")
    host.reset(seed=4), there.reset(seed=4)
    for actions in choices(20, COUNT):
        pairs = np.stack([actions % 3, actions // 3], axis=1)
        assert_same_step(host.step(pairs), there.step(torch.from_numpy(pairs)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observations": "graph"}, "observations: expected none of graph, reachability with device='cuda'"),
        ({"observations": ("reachability", "game_state")}, r"got \['reachability'\]"),
        ({"observation": {"frame_stack": 2}, "observations": "game_state"}, "frame_stack: expected 1"),
        ({"reward_function": lambda event: 0.0}, "reward_function: expected None"),
        ({"observation_function": lambda *_: None}, "observation_function: expected None"),
        ({"num_threads": 2}, "num_threads: expected None"),
        ({"gymnasium_infos": True}, "gymnasium_infos: expected False"),
    ],
)
def test_what_a_device_cannot_do_is_refused_by_name(options, message):
    with pytest.raises(ConfigError, match=message):
        NPlusPlusCudaVectorEnv(None, 2, device=Processor(), **{**OPTIONS, **options})


def test_more_environments_than_fit_are_refused():
    class Small(Processor):
        def free_bytes(self):
            return 100_000

    with pytest.raises(MemoryLimitError, match=r"num_envs: 4,000 need .* allowed; at most \d+ fit"):
        NPlusPlusCudaVectorEnv(None, 4000, device=Small(), levels="first-steps", observations="game_state")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(
    "make",
    [
        lambda device: create_vector_environment(None, 2, device=device),
        lambda device: gymnasium.make_vec(ENVIRONMENT_ID, 2, device=device),
    ],
)
def test_without_a_gpu_one_line_says_what_is_missing(make):
    with pytest.raises(ConfigError, match=re.escape("device: expected a GPU for 'cuda', got none (torch ")):
        make("cuda")
    with pytest.raises(ConfigError, match="device: expected 'cpu', 'cuda' or 'cuda:1', got 'gpu'"):
        make("gpu")
    assert make("cpu").num_envs == 2
