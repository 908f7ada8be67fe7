"""Start states: episodes of a vector environment that begin in the worlds of snapshots."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv, errors
from nclone_env.env.compiled.records import EPISODE, RESULT
from nclone_env.env.compiled.starts import START
from nclone_env.level.build import build_room, everything, moving
from nclone_env.sim.state import MOVER, NINJA_RECORD

from ..bases import QUICK_DEATH, QUICK_WIN, RIGHT, WALK, assert_same, choices

LEVELS = (QUICK_WIN, QUICK_DEATH, WALK, moving())
OPTIONS = {"levels": LEVELS, "observations": ("game_state", "entity_states", "reachability"), "max_frames": 120}
NO_START = -1
WALKING, MOVING = 2, 3


def make(num_envs: int = 4, mode=AutoresetMode.SAME_STEP, **fields) -> NPlusPlusVectorEnv:
    return NPlusPlusVectorEnv(None, num_envs, autoreset_mode=mode, **OPTIONS | fields)


def snapshots(level: int, count: int, **fields) -> list[bytes]:
    """Return snapshots of a level, each a step of right after the one before."""
    env = NPlusPlusEnv(**OPTIONS | fields)
    env.reset(seed=0, options={"level": level})
    states = []
    for _ in range(count):
        env.step(RIGHT)
        states.append(env.get_state())
    return states


STATES = [*snapshots(MOVING, 3), *snapshots(WALKING, 2)]
OWN_STATES = {MOVING: [0, 1, 2], WALKING: [3, 4]}


def starts_drawn(envs, resets: int) -> np.ndarray:
    return np.array([envs.reset()[1]["start"].copy() for _ in range(resets)])


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_an_episode_from_a_start_state_is_one_reset_to_the_snapshot(mode):
    """Byte for byte: observations, rewards and ends, of the first episode of each environment and of the next ones."""
    envs, others = make(3, mode), make(3, mode)
    envs.assign_levels([WALKING] * 3)
    others.assign_levels([WALKING] * 3)
    envs.set_starts(STATES[3:4])
    observations, info = envs.reset(seed=1)
    expected, _ = others.reset(seed=1, options={"state": STATES[3]})
    assert info["start"].tolist() == [0, 0, 0]
    assert_same(observations, expected)
    ends = 0
    for number, actions in enumerate(choices(150, 3)):
        step, other = envs.step(actions), others.step(actions)
        over = other[2] | other[3]
        ends += over.sum()
        for left, right in zip(step[1:4], other[1:4], strict=True):
            assert left.tobytes() == right.tobytes(), number
        if mode is AutoresetMode.SAME_STEP and over.any():
            for name, array in other[4]["final_obs"].items():
                assert array.tobytes() == step[4]["final_obs"][name].tobytes()
            assert (step[4]["final_info"]["start"][over] == 0).all()
            assert (other[4]["final_info"]["start"][over] == NO_START).all()
            restart(others, over)
        elif mode is AutoresetMode.NEXT_STEP and (began := other[4]["frames"] == 0).any():
            restart(others, began)
        elif mode is AutoresetMode.DISABLED and over.any():
            envs.reset(options={"reset_mask": over})
            restart(others, over)
        assert_same(envs.gather(np.arange(3))[0], others.gather(np.arange(3))[0])
    assert ends > 3


def test_another_start_state_gives_other_bytes():
    envs, others = make(2), make(2)
    for vector, states in ((envs, STATES[3:4]), (others, STATES[4:5])):
        vector.assign_levels([WALKING] * 2)
        vector.set_starts(states)
    left, right = (vector.reset(seed=1)[0]["game_state"] for vector in (envs, others))
    assert left.tobytes() != right.tobytes()


def restart(others, mask: np.ndarray) -> None:
    """Begin the episodes of some environments again in the snapshot."""
    others.reset(options={"state": STATES[3], "reset_mask": mask})


def test_states_and_starts_of_levels_are_drawn_as_often_as_their_shares_say():
    envs = make(64)
    envs.set_starts(STATES, 0.6)
    envs.reset(seed=3)
    rows = np.array([np.stack([info["level"], info["start"]]) for info in (envs.reset()[1] for _ in range(150))])
    levels, starts = rows[:, 0].ravel(), rows[:, 1].ravel()
    for level in range(4):
        played = starts[levels == level]
        own = OWN_STATES.get(level, [])
        expected = {number: 0.6 / len(own) for number in own}
        expected[NO_START] = 1.0 - sum(expected.values())
        assert set(played.tolist()) <= set(expected)
        for number, chance in expected.items():
            deviation = np.sqrt(len(played) * chance * (1 - chance))
            assert abs((played == number).sum() - chance * len(played)) <= 4 * deviation
    assert 0.2 < (levels == MOVING).mean() < 0.3  # levels are drawn as without start states


@pytest.mark.parametrize(
    ("share", "allowed"),
    [
        (0.0, {NO_START}),
        (1.0, {0, 1, 2}),
        ([0.0, 1.0, 0.0, 0.0, 0.0], {1}),
        ([0.0, 0.5, 0.5, 1.0, 0.0], {1, 2}),
        ([0.25, 0.0, 0.25, 0.0, 1.0], {0, 2, NO_START}),
        (np.array([0, 0, 1, 0, 0]), {2}),
    ],
)
def test_shares_of_0_and_1_are_exact(share, allowed):
    envs = make(16)
    envs.assign_levels([MOVING] * 16)
    envs.set_starts(STATES)
    envs.set_start_shares(share)
    envs.reset(seed=5)
    assert set(starts_drawn(envs, 60).ravel().tolist()) == allowed


def test_shares_can_change_between_episodes():
    envs = make(8)
    envs.assign_levels([MOVING] * 8)
    envs.set_starts(STATES, [0, 0, 1, 0, 0])
    assert set(envs.reset(seed=0)[1]["start"]) == {2}
    envs.set_start_shares([1, 0, 0, 0, 0])
    assert set(envs.step([0] * 8)[4]["start"]) == {2}  # these episodes began before
    assert set(envs.reset()[1]["start"]) == {0}
    envs.set_starts()
    assert set(envs.reset()[1]["start"]) == {NO_START}


def test_the_draw_depends_on_seed_and_episode_number_alone():
    envs, again, threads, other = make(8), make(8), make(8, num_threads=3), make(8)
    drawn = []
    for vector, seed in ((envs, 7), (again, 7), (threads, 7), (other, 1007)):
        vector.set_starts(STATES, 0.7)
        vector.reset(seed=seed)
        drawn.append(starts_drawn(vector, 40))
    assert drawn[0].tobytes() == drawn[1].tobytes() == drawn[2].tobytes()
    assert drawn[0].tobytes() != drawn[3].tobytes()
    one = make(1)
    one.set_starts(STATES, 0.7)
    one.reset(seed=7 + 5)
    assert starts_drawn(one, 40)[:, 0].tolist() == drawn[0][:, 5].tolist()


def test_the_draw_does_not_depend_on_what_happens_within_episodes():
    still, busy = make(4), make(4)
    drawn = []
    for vector, action in ((still, 0), (busy, RIGHT)):
        vector.assign_levels([MOVING] * 4)
        vector.set_starts(STATES, 0.7)
        vector.reset(seed=2)
        starts = []
        for _ in range(20):
            vector.step([action] * 4)
            starts.append(vector.reset()[1]["start"].tolist())
        drawn.append(starts)
    assert drawn[0] == drawn[1]


def test_start_states_do_not_change_the_levels_drawn():
    envs, plain = make(8), make(8)
    envs.set_starts(STATES, 0.9)
    for vector in (envs, plain):
        vector.reset(seed=11)
    for _ in range(30):
        assert envs.reset()[1]["level"].tolist() == plain.reset()[1]["level"].tolist()


def test_a_requested_level_begins_at_its_start():
    envs = make(4)
    envs.set_starts(STATES)
    _, info = envs.reset(seed=0, options={"level": MOVING})
    assert info["start"].tolist() == [NO_START] * 4
    assert info["episode_frames"].tolist() == [0] * 4
    _, info = envs.reset(options={"state": STATES[0]})
    assert info["start"].tolist() == [NO_START] * 4


def test_steps_and_return_count_from_the_start_state():
    envs = make(2)
    envs.assign_levels([WALKING] * 2)
    envs.set_starts(STATES[4:])
    _, info = envs.reset(seed=0)
    assert info["episode_frames"].tolist() == [8, 8]
    assert info["episode_steps"].tolist() == [0, 0]
    assert info["episode_return"].tolist() == [0.0, 0.0]
    rewards, info = (step := envs.step([RIGHT] * 2))[1], step[4]
    assert info["episode_steps"].tolist() == [1, 1]
    assert info["episode_return"].tolist() == rewards.tolist()


def test_start_states_survive_gathering_and_snapshots_keep_the_start():
    envs = make(4)
    envs.assign_levels([MOVING] * 4)
    envs.set_starts(STATES, 0.5)
    envs.reset(seed=1)
    while len(set(started := envs.step([0] * 4)[4]["start"].tolist())) < 3:
        envs.reset()
    _, info = envs.gather([3, 2, 1, 0])
    assert info["start"].tolist() == started[::-1]
    state = envs.get_state(0)
    envs.set_starts(STATES, 1.0)
    assert NO_START not in starts_drawn(envs, 10)
    envs.gather([0, 1, 2, 3])
    assert NO_START not in starts_drawn(envs, 10)
    assert envs.set_state(2, state)[1]["start"] == started[-1]
    assert envs.get_state(2) == state


def test_start_states_are_in_the_memory_tree():
    envs = make()
    before = envs.memory().total_bytes
    envs.set_starts(iter(STATES))
    header = envs.level_set.arrays.header[[MOVING] * 3 + [WALKING] * 2]
    rows = header["entity_count"].sum() + header["mover_count"].sum() * MOVER.itemsize
    node = next(node for _, node in envs.memory().walk() if node.name == "start states")
    assert all(leaf.shared for leaf in node.children)
    assert envs.memory().total_bytes == before + len(STATES) * (START.itemsize + NINJA_RECORD.itemsize) + rows
    envs.set_start_shares(0.5)
    envs.set_starts()
    assert envs.memory().total_bytes == before


def test_every_byte_of_a_world_is_restored():
    """Also on levels that need less room than others of the set, and with the trail that evil ninjas follow."""
    followed = build_room(*["evil_ninja 66 58"] * 2, "exit 150 10", "exit_switch 140 10")
    options = {"levels": (*LEVELS, everything(), followed), "max_frames": 300}
    env, states = NPlusPlusEnv(**OPTIONS | options), []
    for level, steps in ((5, 40), (4, 9), (MOVING, 9), (WALKING, 9)):
        env.reset(seed=0, options={"level": level})
        for _ in range(steps):
            assert not any(env.step(RIGHT)[2:4])
            states.append(env.get_state())
    envs = make(1, **options)
    size = EPISODE.itemsize + RESULT.itemsize + 4
    worlds = [state[48:-size] for state in states]
    assert len(set(worlds)) == len(worlds)
    without = NINJA_RECORD.itemsize + len(env.level_set.entities_of(5)) + 2 * MOVER.itemsize
    assert len(worlds[39]) > without + 16 * 80, "it has a trail"
    envs.set_starts(states)
    envs.reset(seed=0)
    for number, world in enumerate(worlds):
        envs.reset(options={"state": states[(number + 7) % len(states)]})  # leaves another world behind
        envs.set_start_shares((np.arange(len(states)) == number).astype(float))
        envs.assign_levels([int(np.frombuffer(world, NINJA_RECORD, 1)["level"][0])])
        assert envs.reset()[1]["start"].tolist() == [number]
        assert envs.get_state(0)[48:-size] == world


def over_state() -> bytes:
    env = NPlusPlusEnv(**OPTIONS)
    env.reset(seed=0, options={"level": 0})
    while not any(env.step(RIGHT)[2:4]):
        pass
    return env.get_state()


def other_levels_state() -> bytes:
    env = NPlusPlusEnv(**OPTIONS | {"levels": LEVELS[:2]})
    env.reset(seed=0)
    return env.get_state()


@pytest.mark.parametrize(
    ("states", "share", "error", "message"),
    [
        (lambda: [STATES[0], b"x"], 1.0, "SnapshotError", r"states\[1\]: offset 0: expected a snapshot"),
        (lambda: [over_state()], 1.0, "SnapshotError", r"states\[0\]: episodes\.over: expected an episode in progress"),
        (lambda: [other_levels_state()], 1.0, "SnapshotError", r"states\[0\]: offset 16: expected the level set of"),
        (lambda: STATES, 1.1, "ConfigError", r"share: expected probabilities from 0 to 1, got 1\.1"),
        (lambda: STATES, float("nan"), "ConfigError", r"share: expected probabilities from 0 to 1, got nan"),
        (lambda: STATES, [0.5], "ConfigError", r"share: expected one number, or one for each of the 5 start states"),
        (lambda: STATES, "all", "ConfigError", r"share: expected one number, or one for each of the 5 start states"),
        (
            lambda: STATES,
            [[0.1], [0.2, 0.3]],
            "ConfigError",
            r"share: expected one number, or one for each of the 5 start states, got \[\[0\.1\], \[0\.2, 0\.3\]\]$",
        ),
        (
            lambda: STATES,
            [0.5, 0.4, 0.2, 0, 0],
            "ConfigError",
            r"expected at most 1 for the states of a level toge.* 3",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(states, share, error, message):
    envs = make(8)
    envs.assign_levels([MOVING] * 8)
    envs.set_starts(STATES, [0, 1, 0, 0, 0])
    with pytest.raises(getattr(errors, error), match=message):
        envs.set_starts(states(), share)
    assert set(envs.reset(seed=0)[1]["start"].tolist()) == {1}


def test_a_state_without_frames_left_is_refused():
    late = snapshots(WALKING, 12)[-1]
    make(max_frames=120).set_starts([late])
    with pytest.raises(
        errors.SnapshotError, match=r"states\[0\]: ninjas\.frame: expected less than max_frames, 40, got"
    ):
        make(max_frames=40).set_starts([late])


def test_a_closed_environment_takes_no_start_states():
    envs = make()
    envs.close()
    with pytest.raises(errors.ClosedError):
        envs.set_starts(STATES)
    with pytest.raises(errors.ClosedError):
        envs.set_start_shares(0.5)
