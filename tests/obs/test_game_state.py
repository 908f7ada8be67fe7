"""The meaning of the features, by hand in a corridor from x = 216 to 840 and y = 240 to 312 pixels."""

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv
from nclone_env.game import EXIT, EXIT_SWITCH, JUMPING, MINE, WALL_SLIDING
from nclone_env.obs.spec import GAME_STATE
from tests.env.bases import JUMP, JUMP_RIGHT, LEFT, NOTHING, RIGHT, WALK, corridor

PLACES = {feature.name: place for place, feature in enumerate(GAME_STATE)}


class Player:
    """Plays a level frame by frame and gives features by name."""

    def __init__(self, level=WALK, **fields):
        self.env = NPlusPlusEnv(levels=level, frame_skip=1, observations="game_state", **fields)
        self.state = self.env.reset()[0]["game_state"]
        self.ninja = self.env.worlds.ninjas[0]

    def __call__(self, *actions):
        for action in actions:
            self.state = self.env.step(action)[0]["game_state"]
        return self

    def __getitem__(self, name):
        return float(self.state[PLACES[name]])

    def until(self, action, condition, limit=600):
        for _ in range(limit):
            if condition(self(action)):
                return self
        raise AssertionError("it never happened")


def test_the_start():
    start = Player()
    zero = ("vx", "vy", "airborne", "wall_normal", "jumping", "wall_sliding", "jump_duration", "jump_held")
    zero += ("floor_jump_buffer", "wall_jump_buffer", "exit_open", "mine_x", "mine_y", "mine_proximity")
    assert [start[name] for name in zero] == [0] * len(zero)
    assert (start["floor_normal_x"], start["floor_normal_y"]) == (0, -1)
    assert start["time_remaining"] == 1
    assert start["path_remaining"] == 1


def test_position_and_speed():
    player = Player()(*[RIGHT] * 40)
    ninja = player.ninja
    assert 0 < ninja["vx"] < 4
    expected = [ninja["x"] / 528 - 1, ninja["y"] / 300 - 1, ninja["vx"] / 8, ninja["vy"] / 8]
    assert [player[name] for name in ("x", "y", "vx", "vy")] == pytest.approx(expected, abs=1e-6)


def test_the_objective_is_the_switch_and_then_the_exit():
    player = Player()
    assert player["objective_x"] == pytest.approx((86 - 42) * 6 / 528)
    assert player["objective_y"] == 0
    player.until(RIGHT, lambda p: p["exit_open"] == 1)
    assert player["objective_x"] == pytest.approx((126 * 6 - player.ninja["x"]) / 528, abs=1e-6)
    assert abs(86 * 6 - player.ninja["x"]) < 16


def test_of_several_switches_the_nearest_and_of_several_exits_the_open_one():
    level = corridor((EXIT, 60), (EXIT, 126), (EXIT_SWITCH, 100), (EXIT_SWITCH, 44))
    player = Player(level)
    assert player["objective_x"] == pytest.approx(2 * 6 / 528)
    player(RIGHT)
    assert player["exit_open"] == 1
    assert player["objective_x"] == pytest.approx((126 * 6 - player.ninja["x"]) / 528, abs=1e-6)


def test_the_path_points_along_the_corridor_and_gets_shorter():
    player = Player()
    assert (player["path_direction_x"], player["path_direction_y"]) == (1, 0)
    assert (player["lookahead_x"], player["lookahead_y"]) == (1, 0)
    player(*[RIGHT] * 60)
    left = (126 * 6 - player.ninja["x"]) / (126 * 6 - 42 * 6)
    assert player["path_remaining"] == pytest.approx(left, abs=0.01)
    back = corridor((EXIT, 42), (EXIT_SWITCH, 60), ninja=120)
    assert Player(back)["path_direction_x"] == -1


def test_the_clearance_around():
    """Lattice nodes 9.5 pixels off every wall are free: x from 228, y from 252 to 300; a step is 12 of 96 pixels."""
    start = Player()
    assert start["clearance_left"] == 2 / 8
    assert start["clearance_right"] == 1
    assert start["clearance_up"] == 4 / 8
    assert start["clearance_down"] == 0


def test_the_remaining_time_falls_to_zero():
    player = Player(max_frames=40)
    for frame in range(1, 41):
        player(NOTHING)
        assert player["time_remaining"] == pytest.approx(1 - frame / 40, abs=1e-6)


def test_a_jump():
    player = Player()(*[NOTHING] * 20)
    assert (player["airborne"], player["floor_normal_y"]) == (0, -1)
    player(JUMP)
    assert (player["jumping"], player["jump_held"]) == (1, 1)
    assert player["vy"] < -0.1
    for _ in range(8):
        player(JUMP)
        assert player.ninja["state"] == JUMPING
        assert player["jump_duration"] == pytest.approx(player.ninja["jump_duration"] / 45)
    assert 8 / 45 <= player["jump_duration"] <= 9 / 45 + 1e-6
    assert player["airborne"] == 1
    player(NOTHING)
    assert (player["jumping"], player["jump_duration"], player["jump_held"]) == (0, 0, 0)
    assert player["airborne"] == 1


def test_walls_left_and_right():
    player = Player().until(LEFT, lambda p: p["wall_normal"] != 0)
    assert player["wall_normal"] == 1
    assert player.ninja["x"] < 216 + 10.2
    assert player["clearance_left"] <= 1 / 8
    level = corridor((EXIT, 60), (EXIT_SWITCH, 50), ninja=136)
    assert Player(level).until(RIGHT, lambda p: p["wall_normal"] != 0)["wall_normal"] == -1


def test_wall_sliding():
    player = Player().until(LEFT, lambda p: p["wall_normal"] == 1)
    player.until(JUMP + LEFT, lambda p: p["vy"] > 0 or p["wall_sliding"], limit=60)
    player.until(LEFT, lambda p: p["wall_sliding"] == 1, limit=60)
    assert player.ninja["state"] == WALL_SLIDING


def test_the_remaining_frames_for_a_late_jump():
    """The timers run on when the ground or the wall is lost; a timer of t leaves (5 - t) / 5."""
    seen = set()
    player = Player("first-steps/03-drop")
    for _ in range(300):
        player(RIGHT)
        for name, timer in (("floor_jump_buffer", "floor_buffer"), ("wall_jump_buffer", "wall_buffer")):
            count = int(player.ninja[timer])
            assert player[name] == pytest.approx((5 - count) / 5 if 0 <= count < 5 else 0, abs=1e-6)
            seen.add((name, count))
    assert {count for name, count in seen if name == "floor_jump_buffer"} == {-1, 0, 1, 2, 3, 4, 5}


def test_the_nearest_armed_mine():
    level = corridor((EXIT, 126), (EXIT_SWITCH, 86), (MINE, 37), (MINE, 50), (MINE, 57))
    start = Player(level)
    assert start["mine_x"] == pytest.approx(-30 / 96)
    assert start["mine_y"] == 0
    assert start["mine_proximity"] == pytest.approx(1 - (30 - 14) / (96 - 14))
    start(*[RIGHT] * 30)
    dx, dy = 50 * 6 - start.ninja["x"], 300 - start.ninja["y"]
    assert start["mine_x"] == pytest.approx(dx / 96, abs=1e-6)
    assert start["mine_y"] == pytest.approx(dy / 96, abs=1e-6)
    assert start["mine_proximity"] == pytest.approx(1 - (np.hypot(dx, dy) - 14) / 82, abs=1e-6)


@pytest.mark.parametrize(("x", "seen"), [(57, True), (58, False), (59, False), (27, True), (26, False)])
def test_mines_are_seen_up_to_96_pixels(x, seen):
    start = Player(corridor((EXIT, 126), (EXIT_SWITCH, 86), (MINE, x)))
    assert (start["mine_proximity"] > 0) == seen
    assert (start["mine_x"] != 0) == seen


def test_jumping_right_moves_up_and_right():
    player = Player()(*[NOTHING] * 20)
    x, y = player["x"], player["y"]
    player(*[JUMP_RIGHT] * 10)
    assert player["x"] > x
    assert player["y"] < y
