"""A snapshot brings an environment back, in any environment with the same levels; nothing else passes for one."""

import base64
import hashlib
import multiprocessing
import pickle
import struct
import zlib
from copy import deepcopy

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv, errors
from nclone_env.config import OBSERVATION_NAMES
from nclone_env.env.snapshot import write_snapshot
from nclone_env.errors import SnapshotError
from nclone_env.level.build import build_room, moving
from nclone_env.sim.state import world_at

from . import peek
from .bases import ENVIRONMENT_ID, QUICK_DEATH, QUICK_WIN, RIGHT, WALK, assert_same, choices, copies
from .stored import STORED

LEVELS = (moving(), "hazards", moving((70, 44), "other"))
FIELDS = {"levels": LEVELS, "max_frames": 160, "observations": OBSERVATION_NAMES}
SMALL = {"levels": (QUICK_WIN, QUICK_DEATH, WALK), "observations": "game_state"}
STEPS = 150


def make(**fields) -> NPlusPlusEnv:
    return NPlusPlusEnv(**FIELDS | fields)


def make_vector(num_envs: int = 3, mode=AutoresetMode.NEXT_STEP, **fields) -> NPlusPlusVectorEnv:
    return NPlusPlusVectorEnv(None, num_envs, autoreset_mode=mode, **FIELDS | fields)


def tail(env: NPlusPlusEnv, actions, over: bool = False) -> list:
    """Return everything that an environment says from now on; it is reset in the step after an end."""
    said = []
    for action in actions:
        if over:
            said.append((env.reset(), None))
            over = False
            continue
        observation, *rest = env.step(action)
        over = rest[1] or rest[2]
        said.append((observation, rest))
    return [pickle.dumps((copies(row[0] if isinstance(row, tuple) else row), rest)) for row, rest in said]


def mid_run(steps: int = 30, seed: int = 3, **fields) -> NPlusPlusEnv:
    """Return an environment in the middle of an episode."""
    env = make(**fields)
    env.reset(seed=seed)
    for action in choices(steps, 1)[:, 0]:
        if any(env.step(action)[2:4]):
            env.reset()
    return env


@pytest.mark.parametrize("steps", [0, 7, 33])
def test_the_tail_is_the_same_under_another_seed(steps):
    env, other = mid_run(steps), make()
    other.reset(seed=99)
    other.step(RIGHT)
    state = env.get_state()
    actions = choices(STEPS, 1, 8)[:, 0]
    expected = tail(env, actions)
    assert len(set(expected)) > STEPS // 2
    assert tail(other, actions) != expected, "without the snapshot it is another"
    other.set_state(bytearray(state))
    assert tail(other, actions) == expected
    env.set_state(state)
    assert tail(env, actions) == expected
    assert tail(env, actions) != expected


def test_a_state_is_bytes_that_change_with_every_step():
    env = mid_run()
    states = [env.get_state()]
    for _ in range(5):
        env.step(RIGHT)
        states.append(env.get_state())
    assert all(type(state) is bytes for state in states)
    assert len(set(states)) == 6
    assert len(set(map(len, states))) == 1
    assert env.get_state() == states[-1]


def test_set_state_returns_what_the_step_returned():
    env, other = mid_run(), make()
    observation, _, _, _, info = env.step(RIGHT)
    restored, restored_info = other.set_state(env.get_state())
    assert_same(restored, observation)
    assert restored_info == info
    assert other.get_state() == env.get_state()


@pytest.mark.parametrize("index", [0, 1])
def test_the_end_of_an_episode_is_restored_too(index):
    env, other = NPlusPlusEnv(**SMALL), NPlusPlusEnv(**SMALL)
    env.reset(seed=0, options={"level": index})
    while not any((last := env.step(RIGHT))[2:4]):
        pass
    observation, info = other.set_state(env.get_state())
    assert_same(observation, last[0])
    assert info == last[4]
    assert info["outcome"] == ("won", "died")[index]
    with pytest.raises(errors.ResetNeededError, match="after the end of the episode"):
        other.step(0)
    assert other.reset()[1] == env.reset()[1]
    other.step(0)


def test_a_clone_goes_its_own_way():
    env = mid_run()
    state = env.get_state()
    clone = env.clone()
    assert clone.levels[0] is env.levels[0]
    assert clone.level_set is env.level_set
    clone.step(RIGHT)
    assert env.get_state() == state
    actions = choices(40, 1)[:, 0]
    clone.set_state(state)
    assert tail(clone, actions) == tail(env, actions)
    clone.close()
    env.get_state()


def test_a_clone_is_as_far_as_its_source():
    new = make().clone()
    with pytest.raises(errors.ResetNeededError, match=r"step\(\) was called before the first reset"):
        new.step(0)
    env = NPlusPlusEnv(**SMALL)
    env.reset(options={"level": 0})
    while not any(env.step(RIGHT)[2:4]):
        pass
    with pytest.raises(errors.ResetNeededError, match="after the end of the episode"):
        env.clone().step(0)


@pytest.mark.parametrize("copy", [deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("steps", [None, 0, 5])
def test_a_copied_environment_has_the_same_future(copy, steps):
    env = gymnasium.make(ENVIRONMENT_ID, levels="jumps", max_frames=200)
    if steps is not None:
        env.reset(seed=4)
        for _ in range(steps):
            env.step(2)
    other = copy(env)
    assert other.spec == env.spec
    assert other.unwrapped.config == env.unwrapped.config
    if steps is not None:
        assert other.unwrapped.np_random_seed == env.unwrapped.np_random_seed == 4
    if steps is None:
        with pytest.raises(gymnasium.error.ResetNeeded):
            other.step(2)
        env.reset(seed=1)
        other.reset(seed=1)
    for _ in range(10):
        (left, *rest), (right, *others) = env.step(4), other.step(4)
        assert_same(left, right)
        assert rest == others
    env.step(2)
    assert env.unwrapped.get_state() != other.unwrapped.get_state()


@pytest.mark.parametrize("copy", [deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("begun", [False, True])
def test_a_copied_environment_goes_on_with_the_random_numbers(copy, begun):
    env = NPlusPlusEnv(levels=("first-steps", "jumps", "hazards"), observations="game_state")
    env.np_random = np.random.default_rng(3)
    env.np_random.random(7)
    if begun:
        env.reset()
    other, fresh = copy(env), np.random.default_rng(3)
    drawn = other.np_random.random(5).tolist()
    assert drawn == env.np_random.random(5).tolist()
    assert drawn != fresh.random(5).tolist()
    assert [other.reset()[1]["level"] for _ in range(9)] == [env.reset()[1]["level"] for _ in range(9)]
    assert other.np_random is not env.np_random


def test_vector_environments_say_that_they_cannot_be_copied():
    envs = NPlusPlusVectorEnv(levels="jumps", num_envs=2)
    for copy in (deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"make another one with the same config, .* get_state\(\)"):
            copy(envs)
    envs.close()


def test_a_copy_in_a_fresh_process_goes_on_alike():
    """As vectorised environments of other libraries make theirs; a pickle contains a state."""
    env = mid_run()
    actions = choices(60, 1, 8)[:, 0]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(tail, (env, actions)) == tail(env, actions)


# Starts


def test_an_episode_starts_from_a_snapshot():
    env, other = mid_run(5), make()
    state = env.get_state()
    before = env.step(RIGHT)
    observation, info = other.reset(seed=8, options={"state": state})
    assert info["level"] == before[4]["level"]
    assert (info["episode_steps"], info["episode_return"], info["frames"]) == (0, 0.0, 0)
    assert info["episode_frames"] == before[4]["episode_frames"] - before[4]["frames"]
    after = other.step(RIGHT)
    assert_same(after[0], before[0])
    assert after[1:4] == before[1:4]
    assert after[4]["episode_return"] == after[1]
    assert after[4]["episode_steps"] == 1
    assert_same(env.set_state(state)[0], observation)


def test_the_random_choices_stay_those_of_the_environment():
    state = mid_run(5).get_state()
    env, other = make(), make()
    env.reset(seed=8)
    other.reset(seed=8, options={"state": state})
    assert [env.reset()[1] for _ in range(9)] == [other.reset()[1] for _ in range(9)]


@pytest.mark.parametrize("mask", [None, np.array([True, False, True])])
def test_vector_environments_start_from_a_snapshot(mask):
    env, envs = mid_run(5), make_vector()
    state = env.get_state()
    envs.reset(seed=5)
    envs.step([0, 0, 0])
    untouched = envs.get_state(1)
    observations, info = envs.reset(options={"state": state} | ({} if mask is None else {"reset_mask": mask}))
    expected = env.set_state(state)[0]
    for index in (0, 2) if mask is not None else (0, 1, 2):
        assert_same({name: array[index] for name, array in observations.items()}, expected)
        assert info["episode_steps"][index] == 0
    assert (envs.get_state(1) == untouched) == (mask is not None)


def test_wrong_starts():
    env = NPlusPlusEnv(**SMALL)
    env.reset(seed=1, options={"level": 0})
    while not any(env.step(RIGHT)[2:4]):
        pass
    over = env.get_state()
    for kind in (env, NPlusPlusVectorEnv(None, 2, **SMALL)):
        with pytest.raises(SnapshotError, match="expected an episode in progress, got one that is over"):
            kind.reset(seed=2, options={"state": over})
        with pytest.raises(errors.ConfigError, match="expected either 'level' or 'state', got both"):
            kind.reset(options={"state": over, "level": 0})
        with pytest.raises(SnapshotError, match="expected the bytes that get_state"):
            kind.reset(options={"state": None})
    assert env.get_state() == over


def test_an_episode_does_not_start_where_no_frame_is_left():
    state = mid_run(5, observations="game_state", max_frames=400).get_state()  # 20 frames
    for kind in (make, make_vector):
        env = kind(observations="game_state", max_frames=20)
        first = env.reset(seed=2)[1]["level"]
        with pytest.raises(
            SnapshotError, match=r"^state: ninjas\.frame: expected less than max_frames, 20, got 20; take"
        ):
            env.reset(seed=9, options={"state": state})
        assert np.array_equal(env.reset(seed=2)[1]["level"], first)
        env = kind(observations="game_state", max_frames=21)
        env.reset(options={"state": state})
        *_, truncated, info = env.step(np.zeros(env.action_space.shape, int))
        assert np.all(truncated)
        assert np.all(info["frames"] == 1)


# Vector environments


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_one_of_many_is_restored(mode):
    envs, others = make_vector(3, mode), make_vector(3, mode)
    envs.reset(seed=1)
    others.reset(seed=50)
    actions = choices(STEPS, 3)
    for row in actions[:33]:
        envs.step(row)
    _, info = others.set_state(2, envs.get_state(1))
    assert others.get_state(2) == envs.get_state(1)
    assert info["level"] == peek.step_arrays(envs).results["level"][1]
    said = others.get_state(0)
    for number, row in enumerate(actions[33:]):
        left, rewards, *ends, info = envs.step(row)
        if number == 0:
            assert said == others.get_state(0)
        right, other_rewards, *other_ends, other_info = others.step(row[[0, 2, 1]])
        assert_same({n: a[1] for n, a in left.items()}, {n: a[2] for n, a in right.items()})
        assert rewards[1] == other_rewards[2]
        assert [end[1] for end in ends] == [end[2] for end in other_ends]
        for name in ("level", "episode_return", "outcome", "frames"):
            assert info[name][1] == other_info[name][2]


def test_states_pass_between_single_and_vector_environments():
    env, envs = mid_run(), make_vector()
    envs.reset(seed=0)
    observation, info = envs.set_state(1, env.get_state())
    assert_same(observation, env.set_state(envs.get_state(1))[0])
    assert {name: info[name] for name in ("frames", "gold", "episode_return")} == {
        name: env.set_state(env.get_state())[1][name] for name in ("frames", "gold", "episode_return")
    }
    assert all(type(value) in (int, float) for value in info.values())


def test_a_copy_is_what_its_source_was():
    envs = make_vector()
    envs.reset(seed=3)
    for row in choices(20, 3):
        observations, *_ = envs.step(row)
    states = [envs.get_state(index) for index in range(3)]
    observation, _ = envs.copy_world(0, 2)
    assert_same(observation, {name: array[0] for name, array in observations.items()})
    assert [envs.get_state(index) for index in range(3)] == [states[0], states[1], states[0]]


@pytest.mark.parametrize("indices", [[0, 1, 2], [2, 0, 1], [1, 1, 1], np.array([2, 2, 0], np.uint8)])
def test_environments_are_gathered_from_any(indices):
    envs = make_vector()
    envs.reset(seed=3)
    for row in choices(20, 3):
        observations, *_ = envs.step(row)
    before = copies(observations)
    for _ in range(2):
        states = [envs.get_state(index) for index in range(3)]
        gathered, info = envs.gather(indices)
        assert [envs.get_state(index) for index in range(3)] == [states[index] for index in indices]
        before = {name: array[np.asarray(indices)] for name, array in before.items()}
        assert_same(gathered, before)
        assert info["episode_steps"].tolist() == peek.step_arrays(envs).episodes["steps"].tolist()
    envs.step([0, 0, 0])


def test_gathering_writes_where_it_is_told_and_reports_its_memory():
    envs = make_vector(4, observations="game_state")
    envs.reset(seed=0)
    storage = np.zeros((4, 30), np.float32)
    for _ in range(2):  # what is beside ``out`` is made first
        envs.step([0] * 4, out={"game_state": storage})
    before = envs.memory().total_bytes
    observations, _ = envs.gather([3, 2, 1, 0], out={"game_state": storage})
    assert observations["game_state"] is storage
    assert storage.any()
    worlds = sum(array.nbytes for array in envs.worlds)
    assert envs.memory().total_bytes == before + worlds
    envs.gather([0, 0, 0, 0], out={"game_state": storage})
    assert envs.memory().total_bytes == before + worlds


@pytest.mark.parametrize("call", ["get_state", "set_state", "copy_world", "gather"])
def test_wrong_calls_of_vector_environments(call):
    envs = make_vector(2, observations="game_state")
    arguments = {"get_state": [0], "set_state": [0, b""], "copy_world": [0, 1], "gather": [[0, 1]]}[call]
    with pytest.raises(errors.ResetNeededError, match=rf"{call}\(\) was called before the first reset"):
        getattr(envs, call)(*arguments)
    envs.reset()
    for wrong in (2, -1, 0.5, None):
        bad = [[0, wrong]] if call == "gather" else [wrong, *arguments[1:]]
        with pytest.raises(errors.ConfigError, match=r"(index|source|indices): expected"):
            getattr(envs, call)(*bad)
    envs.close()
    with pytest.raises(errors.ClosedError):
        getattr(envs, call)(*arguments)


def test_wrong_calls_of_single_environments():
    env = make(observations="game_state")
    with pytest.raises(errors.ResetNeededError, match=r"get_state\(\) was called before the first reset"):
        env.get_state()
    env.close()
    for call in (env.get_state, env.clone, lambda: env.set_state(b"")):
        with pytest.raises(errors.ClosedError):
            call()


def test_gather_refuses_other_shapes():
    envs = make_vector(2, observations="game_state")
    envs.reset()
    for wrong in ([0], [[0, 1]], [True, False], [0.0, 1.0], "01", [[0], [0, 1]]):
        with pytest.raises(errors.ConfigError, match=r"indices: expected whole numbers of shape \(2,\), got"):
            envs.gather(wrong)


def test_an_ended_episode_has_no_place_where_none_ends():
    env = NPlusPlusEnv(**SMALL)
    env.reset(options={"level": 0})
    while not any(env.step(RIGHT)[2:4]):
        pass
    envs = NPlusPlusVectorEnv(None, 2, autoreset_mode="SameStep", **SMALL)
    envs.reset(seed=0)
    before = envs.get_state(0)
    with pytest.raises(SnapshotError, match="end and begin in the same step here, got one that is over"):
        envs.set_state(0, env.get_state())
    assert envs.get_state(0) == before


# What is refused


def refused(env: NPlusPlusEnv, data, message: str | None = None) -> None:
    """Check that a state is refused and nothing is changed by it."""
    before = env.get_state()
    with pytest.raises(SnapshotError, match=message):
        env.set_state(data)
    assert env.get_state() == before


@pytest.fixture(scope="module")
def pair() -> tuple[NPlusPlusEnv, bytes]:
    """Return an environment, and the state of another with the same levels."""
    env, other = (mid_run(9, seed, observations="game_state") for seed in (1, 2))
    return env, other.get_state()


def test_every_truncated_prefix_is_refused(pair):
    env, state = pair
    for length in range(len(state)):
        refused(env, state[:length])
    refused(env, state + b"\0", "expected .* bytes as the header says")


def test_every_flipped_byte_is_refused(pair):
    env, state = pair
    for place in range(len(state)):
        for change in (0x01, 0x80, 0xFF):
            data = bytearray(state)
            data[place] ^= change
            refused(env, bytes(data))
    env.set_state(state)


def sealed(data: bytes) -> bytes:
    """Return a snapshot with its checksum made right."""
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def test_messages_name_what_was_expected_and_what_came(pair):
    env, state = pair
    refused(env, b"PK" + state[2:], r"state: offset 0: expected a snapshot, which begins with .*, got b'PK")
    refused(env, state[:8] + b"\3\0\0\0" + state[12:], "offset 8: expected format version 2 or less, got 3")
    refused(env, state[:20], "expected at least 52 bytes, got the end")
    refused(env, state[:-1], rf"expected {len(state)} bytes as the header says, got {len(state) - 1}")
    refused(env, state[:-1] + b"\0", "expected the checksum, got another: it was damaged")
    refused(env, "text", "state: type: expected the bytes that .* returned, got str")
    refused(env, sealed(state[:100] + bytes(state[101:105]) + state[100:]), "bytes as the header says")


def test_forged_level_numbers_are_refused(pair):
    env, state = pair
    ninjas = env.worlds.ninjas.dtype
    place = 48 + ninjas.fields["level"][1]
    forged = sealed(state[:place] + struct.pack("<i", 700) + state[place + 4 :])
    refused(env, forged, r"ninjas\.level: expected a level from 0 to 6, got 700")


def test_rows_of_another_size_are_refused(pair):
    env, _ = pair
    world = world_at(env.worlds, 0)
    wider = world._replace(entity_states=np.zeros(len(world.entity_states) + 8, np.uint8))
    arrays = peek.step_arrays(env)
    data = write_snapshot(peek.digest(env), wider, arrays.episodes, arrays.results)
    refused(env, data, r"size: expected \d+ bytes, got \d+")


@pytest.mark.parametrize(
    "levels",
    ["hazards", LEVELS[::-1], (moving(title="renamed"), *LEVELS[1:]), (*LEVELS[:2], moving((72, 44), "other"))],
)
def test_states_of_other_level_sets_are_refused(pair, levels):
    _, state = pair
    other = make(levels=levels, observations="game_state")
    other.reset(seed=0)
    refused(other, state, "expected the level set of this environment .* got another, with digest [0-9a-f]{16}; use")


def test_other_settings_do_not_matter(pair):
    _, state = pair
    other = make(observations=("game_state", "global_view"), frame_skip=1, max_frames=4000, reward={"gold": 1.0})
    observation, _ = other.set_state(state)
    assert set(observation) == {"game_state", "global_view"}
    assert other.step(RIGHT)[4]["frames"] == 1


def test_the_error_survives_a_process_boundary():
    error = SnapshotError("state", "offset 8", "format version 2 or less", "3")
    message = "state: offset 8: expected format version 2 or less, got 3"
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == message


@pytest.mark.parametrize("weight", [-1e7, 1e9, -1e300])
def test_rewards_of_any_size_are_restored(weight):
    """Returns are beyond what coordinates may be after some steps."""
    env = NPlusPlusEnv(levels="first-steps/01-walk", reward={"time": weight})
    env.reset(seed=0)
    for _ in range(100):
        env.step(0)
    expected = env.step(0)[4]["episode_return"]
    assert abs(expected) > 2**29
    assert env.set_state(env.get_state())[1]["episode_return"] == expected


def followed() -> NPlusPlusVectorEnv:
    """Return three environments, two of them on levels with evil ninjas."""
    ends = ("exit 160 57", "exit_switch 150 57")
    rooms = (("evil_ninja 46 58",), ("zap_drone 60 50 0 1", "gold 44 58"), ("evil_ninja 60 58",) * 3)
    levels = tuple(build_room(*ends, *lines) for lines in rooms)
    envs = NPlusPlusVectorEnv(
        None, 3, levels=levels, observations="game_state", max_frames=600, autoreset_mode="SameStep"
    )
    envs.reset(seed=0, options={"level": [0, 1, 2]})
    return envs


def test_stored_snapshots_of_version_1_have_the_same_future():
    """They are as large as the largest level needs, with the trail as a ring."""
    data = zlib.decompress(base64.b85decode(STORED))
    stored = [data[first : first + len(data) // 3] for first in range(0, len(data), len(data) // 3)]
    assert [int.from_bytes(state[8:12], "little") for state in stored] == [1] * 3
    played, restored = followed(), followed()
    for _ in range(45):
        played.step([2, 2, 2])
    for index, state in enumerate(stored):
        restored.set_state(index, state)
    assert [restored.get_state(i) for i in range(3)] == [played.get_state(i) for i in range(3)]
    said = hashlib.sha256()
    for step in range(60):
        observations, rewards, *_ = restored.step([1 + step % 2, 3, 5 if step % 9 < 5 else 2])
        said.update(observations["game_state"].tobytes() + rewards.tobytes())
    assert said.hexdigest()[:16] == "511d696f802f52c0"


def test_a_trail_that_is_too_long_for_the_time_limit_is_refused():
    envs = followed()
    for _ in range(45):
        envs.step([2, 2, 2])
    state = envs.get_state(0)
    other = NPlusPlusVectorEnv(None, 1, levels=envs.level_set.levels, observations="game_state", max_frames=60)
    other.reset(seed=0)
    before = other.get_state(0)
    with pytest.raises(SnapshotError, match="trail: expected at most 60 positions, as of this max_frames, got"):
        other.set_state(0, state)
    assert other.get_state(0) == before


@pytest.mark.parametrize("number", [2**31 - 1, -1, 7])
def test_the_number_of_an_episode_wraps_without_a_warning(number, recwarn):
    """A forged one may be the greatest; kernels wrap it, too."""
    env = NPlusPlusEnv(**SMALL)
    env.reset(seed=1)
    env._batch.episodes["number"][0] = number
    env.reset(options={"state": env.get_state()})
    assert env._batch.episodes["number"][0] == (number + 1 if number < 2**31 - 1 else -(2**31))
    assert not recwarn.list
