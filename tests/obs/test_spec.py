"""The table of observations is what spaces, buffers and values follow, on every level and beyond the world."""

import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env import EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.config import DEFAULT_OBSERVATIONS, OBSERVATION_NAMES
from nclone_env.game import EXIT, EXIT_SWITCH, MINE
from nclone_env.level.build import everything
from nclone_env.obs.spec import GAME_STATE, observation_specs
from nclone_env.render.compose import write_global_view, write_player_frame
from tests.env.bases import assert_same, choices, corridor

from ..env import peek
from .levels import BUILT_IN

SUBSETS = [(name,) for name in OBSERVATION_NAMES] + list(itertools.permutations(DEFAULT_OBSERVATIONS, 2))
SUBSETS += [("entity_states", "game_state"), ("action_mask", "global_view", "locals")]
LOW, HIGH = np.array([(feature.low, feature.high) for feature in GAME_STATE]).T


def check_bounds(envs: NPlusPlusVectorEnv, steps: int) -> None:
    """Play at random and check every number against the bounds of its feature."""
    low, high = np.full(len(GAME_STATE), np.inf), np.full(len(GAME_STATE), -np.inf)
    observations, _ = envs.reset(seed=1)
    for actions in choices(steps // 6, envs.num_envs).repeat(6, axis=0):
        state = observations["game_state"]
        assert np.isfinite(state).all()
        low, high = np.minimum(low, state.min(axis=0)), np.maximum(high, state.max(axis=0))
        observations, rewards, *_ = envs.step(actions)
        assert np.isfinite(rewards).all()
    for feature, least, most in zip(GAME_STATE, low, high):
        assert feature.low <= least <= most <= feature.high, feature.name


def test_the_features_have_different_names_and_bounds_within_the_space():
    assert len(GAME_STATE) == 30
    assert len({feature.name for feature in GAME_STATE}) == 30
    for feature in GAME_STATE:
        assert -1 <= feature.low < feature.high <= 1


@pytest.mark.parametrize("options", [{}, {"frame_stack": 2}, {"dtype": "float16"}], ids=str)
def test_spaces_follow_the_table(options):
    sizes = {"max_entities": 9, "locals_size": 5}
    pictures = {"player_frame_size": 64, "global_view_size": (40, 80)}
    config = EnvironmentConfig(observations=OBSERVATION_NAMES, render=pictures, observation={**sizes, **options})
    env, envs = NPlusPlusEnv(config), NPlusPlusVectorEnv(config, 3)
    specs = observation_specs(config, envs.level_set)
    assert [spec.name for spec in specs if spec.name in OBSERVATION_NAMES] == [
        name for name in OBSERVATION_NAMES if name != "graph"
    ]
    depth = (2,) if "frame_stack" in options else ()
    shapes = [(30,), (64, 64, 1), (40, 80, 1), (9, 12), (9,), (1,), (5, 5), (11,), (6, 10), (6, 8)]
    unstacked = [(1,), (1,), (envs.level_set.max_entities,), (6,)]
    assert [spec.shape for spec in specs] == [*((*depth, *shape) for shape in shapes), *unstacked]
    vector = np.dtype(options.get("dtype", "float32"))
    vectors = {"game_state", "entity_states", "reachability", "free_motion", "action_outcomes"}
    assert {spec.name for spec in specs if spec.dtype == vector} == vectors
    for spec in specs:
        expected = gymnasium.spaces.Box(spec.low, spec.high, spec.shape, spec.dtype.type)
        assert env.observation_space[spec.name] == expected
        assert envs.single_observation_space[spec.name] == expected
        assert envs.observation_space[spec.name].shape == (3, *spec.shape)
    assert env.reset()[0] in env.observation_space
    assert envs.reset()[0] in envs.observation_space


def test_every_feature_keeps_its_bounds_on_the_built_in_levels():
    check_bounds(NPlusPlusVectorEnv(None, 96, levels=BUILT_IN, observations="game_state"), 1200)


@pytest.mark.parametrize(("x", "y"), [(250, 250), (250, 10), (42, 140), (0, 0), (100, 20)])
def test_every_observation_keeps_its_bounds_outside_the_world_and_inside_solids(x, y):
    level = corridor((EXIT, 126), (EXIT_SWITCH, 86), (MINE, 50), ninja=x, height=y)
    envs = NPlusPlusVectorEnv(None, 2, levels=level, observations="game_state", frame_skip=20)
    check_bounds(envs, 240)
    env = NPlusPlusEnv(levels=level, frame_skip=60)
    observation, _ = env.reset()
    for _ in range(80):
        assert observation in env.observation_space
        observation = env.step(2)[0]


def test_a_ninja_falls_out_of_the_world():
    env = NPlusPlusEnv(levels=corridor((EXIT, 126), (EXIT_SWITCH, 86), ninja=250, height=250), frame_skip=60)
    env.reset()
    for _ in range(60):
        observation = env.step(0)[0]
    assert env.worlds.ninjas["y"][0] > 5000
    assert observation["game_state"][1] == 1
    assert observation["game_state"][17] == 1


@pytest.mark.parametrize("names", SUBSETS, ids="+".join)
def test_a_subset_equals_the_full_set(names):
    fields = {"levels": BUILT_IN, "max_frames": 120}
    part = NPlusPlusVectorEnv(None, 4, observations=names, **fields)
    full = NPlusPlusVectorEnv(None, 4, observations=OBSERVATION_NAMES, **fields)
    keys = [spec.name for spec in observation_specs(part.config)]
    left, right = part.reset(seed=3)[0], full.reset(seed=3)[0]
    for actions in choices(50, 4):
        assert list(left) == keys
        for name in keys:
            np.testing.assert_array_equal(left[name], right[name])
        (left, rewards, *_), (right, others, *_) = part.step(actions), full.step(actions)
        np.testing.assert_array_equal(rewards, others)


def test_pictures_are_those_of_the_kernels():
    envs = NPlusPlusVectorEnv(None, 4, levels=BUILT_IN, render={"player_frame_size": 96})
    envs.reset(seed=2)
    levels, worlds, pictures = envs.level_set.arrays, envs.worlds, peek.step_arrays(envs).pictures
    frame, view = np.empty((96, 96, 1), np.uint8), np.empty((96, 192, 1), np.uint8)
    for actions in choices(30, 4):
        observations = envs.step(actions)[0]
        for i in range(4):
            write_player_frame(levels, worlds, i, pictures, frame)
            write_global_view(levels, worlds, i, pictures, view)
            np.testing.assert_array_equal(observations["player_frame"][i], frame)
            np.testing.assert_array_equal(observations["global_view"][i], view)
    assert len(np.unique(frame)) > 2
    assert len(np.unique(view)) > 2


def names_of(envs) -> set[str]:
    return {node.name for _, node in envs.memory().walk() if node.total_bytes}


@pytest.mark.parametrize(
    ("names", "pictures"),
    [
        (("game_state",), set()),
        (("player_frame",), {"pictures", "glyphs"}),
        (("global_view",), {"pictures", "glyphs", "static layers"}),
        (("entity_states", "locals"), set()),
        (("reachability",), {"reachability", "fields of reachability"}),
        (("action_outcomes",), {"worlds of action_outcomes"}),
        (("graph",), {"graphs"}),
        (("action_mask",), {"worlds of action_mask"}),
    ],
)
def test_what_is_not_asked_for_takes_no_memory(names, pictures):
    envs = NPlusPlusVectorEnv(None, 4, observations=names)
    optional = {"pictures", "glyphs", "static layers", "worlds of action_mask"}
    optional |= {"reachability", "fields of reachability", "graphs", "worlds of action_outcomes"}
    assert names_of(envs) & optional == pictures
    envs.reset()
    pool = next(node for _, node in envs.memory().walk() if node.name == "recycled observations")
    specs = observation_specs(envs.config, envs.level_set)
    sizes = [int(np.prod(spec.shape)) * spec.dtype.itemsize for spec in specs]
    assert pool.total_bytes == 4 * sum(sizes)


@pytest.mark.parametrize("options", [{}, {"dtype": "float16", "frame_stack": 2}], ids=str)
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_threads_change_nothing_and_out_is_written_within_the_spaces(mode, options):
    fields = {"levels": (*BUILT_IN, everything()), "observations": OBSERVATION_NAMES, "observation": options}
    few, many = (
        NPlusPlusVectorEnv(None, 5, autoreset_mode=mode, num_threads=count, max_frames=60, **fields) for count in (1, 2)
    )
    out = {name: np.full(space.shape, 7, space.dtype) for name, space in many.observation_space.items()}
    few.reset(seed=2)
    many.reset(seed=2, out=out)
    for actions in choices(60, 5):
        expected, _, *ends, _ = few.step(actions)
        returned = many.step(actions, out=out)[0]
        assert all(returned[name] is out[name] for name in out)
        assert_same(expected, out)
        assert out in many.observation_space
        if mode is AutoresetMode.DISABLED and (over := ends[0] | ends[1]).any():
            for envs in (few, many):
                envs.reset(options={"reset_mask": over})
