"""Paths by the switches of locked doors, mirrored levels, and hidden positions."""

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.game import EXIT, EXIT_SWITCH, LOCKED_DOOR
from nclone_env.level.build import build_level, hall_tiles
from nclone_env.obs.spec import GAME_STATE
from tests.env.bases import LEFT, NOTHING, PLAIN_REWARD, RIGHT, WALK, corridor

from ..env import peek

PLACES = {feature.name: place for place, feature in enumerate(GAME_STATE)}
DOOR_X, SWITCH_X, EXIT_X = 600, 120, 720
LOCKED = build_level(
    "exit 120 62",
    "exit_switch 110 62",
    f"locked_door {DOOR_X // 6} 60 0",
    f"locked_door_switch {SWITCH_X // 6} 62",
    tiles=hall_tiles((2, 40), (14, 15)),
    spawn=(40, 62),
    title="locked",
)
"""The exit is on the right behind a door, the switch of the door on the left."""


def game_states(level, actions, **fields):
    """Return the features up to the end by name, (T + 1,) arrays, and the rewards, (T,)."""
    env = NPlusPlusEnv(levels=level, frame_skip=1, observations="game_state", **fields)
    states, rewards = [env.reset(seed=0)[0]["game_state"].copy()], []
    for action in actions:
        observation, reward, terminated, *_ = env.step(action)
        states.append(observation["game_state"].copy())
        rewards.append(reward)
        if terminated:
            break
    return {name: np.array(states)[:, place] for name, place in PLACES.items()}, np.array(rewards)


def test_the_switch_of_the_door_comes_first():
    ways = {paths: game_states(LOCKED, [LEFT] * 60, paths=paths)[0] for paths in ("tiles", "doors")}
    for name in ("objective_x", "path_direction_x", "lookahead_x"):
        assert ways["tiles"][name][0] > 0 > ways["doors"][name][0], name
    assert ways["doors"]["objective_x"][0] == pytest.approx((SWITCH_X - 240) / 528)


def test_then_the_exit_switch_and_the_exit():
    actions = [LEFT] * 70 + [RIGHT] * 350
    state, _ = game_states(LOCKED, actions, paths="doors")
    x = 528 * (state["x"] + 1)
    targets = np.round(528 * state["objective_x"] + x)[state["objective_x"] < 1].tolist()  # 1: clipped
    assert list(dict.fromkeys(targets)) == [SWITCH_X, 660, EXIT_X]


def test_shaping_rewards_the_way_to_the_door_switch():
    """Negative control: paths between tiles reward the way to the closed door."""
    only_shaping = {**PLAIN_REWARD, "shaping": 1.0, "gamma": 1.0}
    sums = {
        (paths, action): game_states(LOCKED, [action] * 40, paths=paths, reward=only_shaping)[1].sum()
        for paths in ("tiles", "doors")
        for action in (LEFT, RIGHT)
    }
    assert sums["doors", LEFT] > 0.05 > -0.05 > sums["doors", RIGHT]
    assert sums["tiles", RIGHT] > 0.05 > -0.05 > sums["tiles", LEFT]


def test_a_level_without_doors_has_the_same_objectives():
    actions = [RIGHT] * 200
    tiles, doors = (game_states(WALK, actions, paths=paths)[0] for paths in ("tiles", "doors"))
    assert np.array_equal(tiles["objective_x"], doors["objective_x"])
    assert tiles["path_remaining"] == pytest.approx(doors["path_remaining"], abs=0.05)


def test_landmarks_of_several_levels():
    env = NPlusPlusVectorEnv(None, 3, levels=(WALK, LOCKED, corridor((EXIT, 60), (EXIT_SWITCH, 50))), paths="doors")
    paths, levels = peek.step_arrays(env).paths, env.level_set
    kinds = [levels.entities_of(level)["type"] for level in range(3)]
    found = [
        kinds[level][paths.landmarks[row["first_landmark"] :][: row["landmark_count"]]].tolist()
        for level, row in enumerate(paths.header)
    ]
    assert found == [[EXIT_SWITCH, EXIT], [LOCKED_DOOR, EXIT_SWITCH, EXIT], [EXIT_SWITCH, EXIT]]
    assert (np.isfinite(paths.header["start_distance"])).all()
    assert not any(array.flags.writeable for array in paths)


def test_memory_counts_the_fields():
    sizes = {
        paths: NPlusPlusVectorEnv(None, 2, levels=LOCKED, observations="game_state", paths=paths).memory().total_bytes
        for paths in ("tiles", "doors")
    }
    paths = [
        peek.step_arrays(NPlusPlusEnv(levels=LOCKED, observations="game_state", paths=kind)).paths for kind in sizes
    ]
    assert sizes["doors"] - sizes["tiles"] == sum(array.nbytes for array in paths[1])
    assert paths[1].codes.nbytes > 2 * 3 * 100


def test_mirrored_levels_follow_the_others():
    env = NPlusPlusVectorEnv(None, 2, levels=(LOCKED, WALK), mirrored=True, observations="game_state")
    assert env.level_names == ("locked", "corridor", "locked mirrored", "corridor mirrored")
    x = [env.reset(options={"level": name})[0]["game_state"][0, 0] for name in ("locked", "locked mirrored")]
    assert x[0] == pytest.approx(-x[1])


def test_local_positions_are_those_in_the_tile_and_the_rest_is_equal():
    world, local = (
        game_states(LOCKED, [RIGHT] * 30 + [NOTHING], observation={"local_position": choice})[0]
        for choice in (False, True)
    )
    changed = {"x", "y", "objective_x", "objective_y", "path_remaining", "time_remaining"}
    for name in PLACES.keys() - changed:
        assert np.array_equal(world[name], local[name]), name
    assert not local["time_remaining"].any()
    for name, half in (("objective_x", 528), ("objective_y", 300)):
        assert local[name] == pytest.approx(np.clip(world[name].astype(float) * half / 126, -1, 1), abs=1e-5)
    ratio = local["path_remaining"] / world["path_remaining"]
    within = local["path_remaining"] < 1
    assert within.any()
    assert np.ptp(ratio[within]) < 1e-5
    for name, half in (("x", 528), ("y", 300)):
        pixels = half * (world[name].astype(float) + 1)
        difference = local[name] + 1 - pixels / 12  # a multiple of 2
        assert 2 * np.round(difference / 2) == pytest.approx(difference, abs=1e-4)
    assert np.ptp(local["x"]) > 1.5
