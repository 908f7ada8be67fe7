"""The local window against points of the tiles, doors, and the edge of the world."""

import math

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.errors import ConfigError
from nclone_env.game import LOCKED_DOOR, TRAP_DOOR
from nclone_env.level.build import build_level, build_room, everything
from nclone_env.level.routes.fields import distance_at
from nclone_env.obs.locals import QUARTER_SHARES
from nclone_env.sim.state import world_at

from ..env import peek
from ..golden.tiles import SOLID
from ..level.routes.decoded import lengths_of
from .levels import BUILT_IN, compiled, run

EXIT = "exit 150 80\nexit_switch 150 60"


def make(num_envs, levels, size=21, **fields):
    sizes = {"locals_size": size}
    return NPlusPlusVectorEnv(None, num_envs, levels=levels, observations="locals", observation=sizes, **fields)


def window(level, worlds, index, size) -> np.ndarray:
    """Return the window square by square; doors along the two squares in their cell."""
    squares = np.full((50, 88), 255)
    for v in range(50):
        for u in range(88):
            squares[v, u] = QUARTER_SHARES[4 * compiled(level).tiles[0, v // 2, u // 2] + 2 * (v % 2) + u % 2]
    for door in compiled(level).doors:
        closed = (world_at(worlds, index).entity_states[door["owner"]] == 0) != (door["type"] == 8)
        if closed and door["vertical"]:
            squares[door["y"] // 12 - 1 : door["y"] // 12 + 1, min(door["x"] // 12, 2 * door["column"] + 1)] = 255
        elif closed:
            squares[min(door["y"] // 12, 2 * door["row"] + 1), door["x"] // 12 - 1 : door["x"] // 12 + 1] = 255
    padded = np.pad(squares, 1200, constant_values=255)
    ninja = worlds.ninjas[index]
    row, column = 1200 + int(ninja["y"] // 12) - size // 2, 1200 + int(ninja["x"] // 12) - size // 2
    return padded[row : row + size, column : column + size]


def test_shares_of_the_quarters_are_those_of_points():
    points = (np.arange(64) + 0.5) * 24 / 64
    v, u = np.meshgrid(points, points, indexing="ij")
    for tile in range(38):
        solid = np.asarray(SOLID.get(tile, SOLID[0])(u, v))
        shares = solid.reshape(2, 32, 2, 32).mean(axis=(1, 3)).ravel() * 255
        # 36 points a quarter, up to six of them on the border itself
        assert np.abs(np.array(QUARTER_SHARES[4 * tile : 4 * tile + 4]) - shares).max() <= 255 / 12, tile
    assert QUARTER_SHARES[:8] == (0,) * 4 + (255,) * 4


@pytest.mark.parametrize("size", [1, 9, 21, 99])
def test_windows_of_built_in_levels(size):
    envs = make(4, (*BUILT_IN, everything()), size, max_frames=90)
    for step, observations in enumerate(run(envs, 60)):
        if step % 6 == 0:
            for i in range(4):
                level = envs.levels[envs.worlds.ninjas[i]["level"]]
                np.testing.assert_array_equal(observations["locals"][i], window(level, envs.worlds, i, size))


@pytest.mark.parametrize(("x", "y"), [(2, 2), (176, 98), (0, 50), (90, 250)])
def test_outside_of_the_world_is_solid(x, y):
    envs = make(1, build_level(EXIT, spawn=(x, y)))
    observation = envs.reset()[0]["locals"][0]
    np.testing.assert_array_equal(observation, window(envs.levels[0], envs.worlds, 0, 21))
    assert (observation == 255).any()


def test_a_closed_door_is_solid_and_an_open_one_is_not():
    envs = make(1, everything(spawn=(110, 67)), 41)
    first = envs.reset()[0]["locals"][0].copy()
    level = envs.levels[0]
    for kind in (LOCKED_DOOR, TRAP_DOOR):
        world_at(envs.worlds, 0).entity_states[np.flatnonzero(compiled(level).entities["type"] == kind)[0]] = 1
    second = {"locals": np.zeros((1, 41, 41), np.uint8)}
    peek.observe(envs, 0, second)
    np.testing.assert_array_equal(second["locals"][0], window(level, envs.worlds, 0, 41))
    differing = first != second["locals"][0]
    assert differing.sum() == 4
    assert sorted(first[differing].tolist()) == [0, 0, 255, 255]


@pytest.mark.parametrize(("size", "message"), [(20, "an odd number, got 20"), (0, "from 1 to 99, got 0")])
def test_sizes_are_checked(size, message):
    with pytest.raises(ConfigError, match=f"locals_size: expected .*{message}"):
        make(1, BUILT_IN, size)


def plane_of(number, level, x, y, state=None, **config):
    """Return a plane of ``locals`` with the ninja at a place, pixels, and the environment."""
    env = NPlusPlusEnv(levels=level, observations="locals", observation={"locals_planes": 3}, **config)
    env.reset()
    worlds = env.worlds
    worlds.ninjas[0]["x"], worlds.ninjas[0]["y"] = x, y
    if state is not None:
        world_at(worlds, 0).entity_states[2] = state
    seen = {"locals": np.zeros((1, 3, 21, 21), np.uint8)}
    peek.observe(env, 0, seen)
    return seen["locals"][0, number], env


def hazards(level, x, y, state=None):
    return plane_of(1, level, x, y, state)[0]


def test_hazards_are_where_the_centre_of_the_ninja_would_touch_them():
    """A mine has a radius of 4 pixels, the ninja one of 10; squares are 12 pixels wide."""
    level = build_room("exit 90 58", "exit_switch 80 58", "mine 60 50")  # at (360, 300)
    plane = hazards(level, 330.0, 310.0)  # in the square with the upper left corner (324, 300)
    top, left = 300 - 120, 324 - 120
    for row in range(21):
        for column in range(21):
            distance = math.hypot(left + 12 * column + 6 - 360, top + 12 * row + 6 - 300)
            assert plane[row, column] == int(255 * min(max((14 + 6 - distance) / 12, 0), 1)), (row, column)
    assert np.count_nonzero(plane) == 12


def test_what_is_not_deadly_now_is_not_shown():
    level = build_room("exit 90 58", "exit_switch 80 58", "toggle_mine 60 50")
    assert not hazards(level, 330.0, 310.0, state=1).any()
    assert hazards(level, 330.0, 310.0, state=0).any()


def test_hazards_beyond_the_window_are_cut_off():
    level = build_room("exit 90 58", "exit_switch 80 58", "mine 60 50")
    assert hazards(level, 360.0 - 125.0, 310.0)[:, -1].any()
    assert not hazards(level, 360.0 - 160.0, 310.0).any()


def test_the_first_plane_is_that_without_others():
    planes, plain = (
        NPlusPlusEnv(levels="hazards/02-minefield", observations="locals", observation={"locals_planes": count})
        for count in (3, 1)
    )
    for env in (planes, plain):
        env.reset(seed=0)
    for _ in range(8):
        both, one = (env.step(2)[0]["locals"] for env in (planes, plain))
        assert np.array_equal(both[0], one)


@pytest.mark.parametrize("paths", ["tiles", "doors"])
def test_progress_is_the_difference_of_path_lengths(paths):
    x, y = 330.0, 310.0
    level = build_room("exit 90 58", "exit_switch 80 58")
    plane, env = plane_of(2, level, x, y, paths=paths)
    followed = peek.step_arrays(env).paths
    number = int(followed.header["first_field"][0])
    field, own = lengths_of(followed, number), distance_at(followed, number, x, y)
    top, left = 300 // 12 - 10, 324 // 12 - 10
    for row in range(21):
        for column in range(21):
            corners = field[top + row : top + row + 2, left + column : left + column + 2].ravel()
            corners = corners[np.isfinite(corners)]
            expected = 0
            if len(corners):
                length = float(np.sum(corners, dtype=np.float64)) / len(corners)
                expected = int(min(max(128 + (own - length) / 2, 1), 255))
            assert plane[row, column] == expected, (row, column)
    assert plane[10, 20] > 170 > 128 > plane[10, 0]  # the switch is to the right
    assert not plane[16:].any()  # below the floor


def test_progress_beyond_the_world_and_without_a_path_is_zero():
    level = build_room("exit 90 58", "exit_switch 80 58")
    plane, _ = plane_of(2, level, 30.0, 350.0)
    assert not plane[:, :8].any()
    walled = build_room("exit 160 20", "exit_switch 80 58", cells={(39, 4): 1, (39, 5): 1, (39, 3): 1, (40, 3): 1,
        (41, 3): 1, (40, 6): 1, (39, 6): 1, (41, 6): 1, (41, 4): 1, (41, 5): 1})  # fmt: skip
    assert not plane_of(2, walled, 330.0, 310.0)[0].any()
