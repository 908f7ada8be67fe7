"""A reset that is refused changes nothing: later episodes are those that would have begun without it."""

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.errors import NcloneError, ResetNeededError

COUNT = 4
FIELDS = {"levels": ("first-steps", "jumps"), "observations": "game_state"}
LATER = [{}, {}, {}, {"seed": 11}, {}]
SEED = "seed: expected whole numbers of at least 0 or None, got"
LEVEL = "expected a name or an index below 11, got"
MASK = r"options\['reset_mask'\]: expected a bool array of shape \(4,\), got"
WRONG_BOTH = [
    *(({"seed": seed, "options": {"level": 3}}, SEED) for seed in (-1, 1.5, "x", True)),
    *(({"seed": 77, "options": {"level": level}}, f"{LEVEL} {level}") for level in (11, -1, True)),
    ({"seed": 77, "options": {"level": "jumps/x"}}, rf"options\['level'\]: {LEVEL} 'jumps/x'; levels of this"),
    ({"seed": 77, "options": {"state": b"x"}}, "state: offset 0: expected a snapshot"),
    ({"seed": 77, "options": {"levels": 1}}, "options: unknown key 'levels'; valid keys: level, state"),
    ({"seed": 77, "options": ["level"]}, r"options: expected a dict with some of the keys .*, got \['level'\]"),
]
WRONG_SINGLE = [
    *WRONG_BOTH,
    ({"seed": 77, "options": {"level": None}}, f"{LEVEL} None"),
    ({"seed": 77, "options": {"reset_mask": np.ones(1, np.bool_)}}, "key 'reset_mask'; valid keys: level, state$"),
]
WRONG = [
    *WRONG_BOTH,
    ({"seed": [1, 2], "options": {"level": 3}}, "seed: expected one seed or a list of 4, got 2"),
    ({"seed": [1, 2, 3, "x"], "options": {"level": [0, None, 2, 3]}}, SEED),
    ({"seed": 77, "options": {"level": [0, 1, 2, 99]}}, f"{LEVEL} 99"),
    *(
        ({"seed": 77, "options": {"level": 3, "reset_mask": mask}}, MASK)
        for mask in (
            True,
            [True, False],
            np.ones(4),
            np.ones(3, np.bool_),
            np.ones((4, 1), np.bool_),
            np.ones(4, np.uint8),
        )
    ),
    ({"seed": 77, "options": {"level": 3}, "out": {}}, "out: expected a mapping with the keys"),
    ({"seed": 77, "out": {"game_state": np.zeros((COUNT, 3), np.float32)}}, r"out\['game_state'\]: expected float32"),
]


def make_vector(begun):
    envs = NPlusPlusVectorEnv(None, COUNT, **FIELDS)
    if begun:
        envs.reset(seed=5)
        envs.step(np.full(COUNT, 2))
    return envs


def make_single():
    env = NPlusPlusEnv(**FIELDS)
    env.reset(seed=5)
    env.np_random.random(3)
    return env


def levels(env, later):
    return [np.asarray(env.reset(**arguments)[1]["level"]).tolist() for arguments in later]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=str)
def test_of_a_vector_environment(wrong, message):
    envs, untouched = make_vector(True), make_vector(True)
    with pytest.raises(NcloneError, match=message):
        envs.reset(**wrong)
    assert [envs.get_state(index) for index in range(COUNT)] == [untouched.get_state(index) for index in range(COUNT)]
    assert levels(envs, LATER) == levels(untouched, LATER)


@pytest.mark.parametrize("wrong", [one for one, _ in WRONG if "reset_mask" not in one.get("options", ())], ids=str)
def test_before_the_first_reset_of_a_vector_environment(wrong):
    envs, untouched = make_vector(False), make_vector(False)
    with pytest.raises(NcloneError):
        envs.reset(**wrong)
    later = [{"seed": [3, None, None, None]}, {}, {}]
    first, others = (np.array(levels(one, later)) for one in (envs, untouched))
    assert first[:, 0].tolist() == others[:, 0].tolist()
    assert (first[:, 1:] != first[:, :1]).any()  # those without a seed have one of their own
    with pytest.raises(NcloneError, match="before the first reset"):
        make_vector(False).get_state(0)


@pytest.mark.parametrize(("wrong", "message"), WRONG_SINGLE, ids=str)
def test_of_a_single_environment(wrong, message):
    env, untouched, new = make_single(), make_single(), NPlusPlusEnv(**FIELDS)
    for each in (env, new):
        with pytest.raises(NcloneError, match=message):
            each.reset(**wrong)
    with pytest.raises(ResetNeededError):
        new.step(0)
    assert env.get_state() == untouched.get_state()
    assert env.np_random_seed == untouched.np_random_seed == 5
    assert env.np_random.random(3).tolist() == untouched.np_random.random(3).tolist()
    env.step(2)  # the episode goes on
    assert levels(env, LATER) == levels(untouched, LATER)


@pytest.mark.parametrize("make", [make_single, lambda: make_vector(True)])
def test_the_same_resets_without_the_fault_change_later_episodes(make):
    """Without them, the tests above could not fail."""
    env, untouched = make(), make()
    env.reset(seed=77, options={"level": 3})
    assert levels(env, LATER[:3]) != levels(untouched, LATER[:3])


def test_a_level_asked_for_is_played_once_and_where_it_is_asked_for():
    envs = make_vector(True)
    before = envs.worlds.ninjas["level"].copy()
    mask = np.array([True, False, True, False])
    info = envs.reset(options={"level": 7, "reset_mask": mask})[1]
    assert info["level"].tolist() == [7, before[1], 7, before[3]]
    assert levels(envs, [{}] * 8) != [[7] * COUNT] * 8
