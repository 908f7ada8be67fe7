"""Free motion against the simulator, where nothing is met, and its ends against the simulator's within a look."""

import itertools

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.game import CELEBRATING, DEAD, FALLING, JUMP_GRAVITY, JUMPING, MAX_HORIZONTAL_SPEED
from nclone_env.level.build import build_level, build_room, everything, hall_tiles
from nclone_env.level.level import Level
from nclone_env.obs.free_motion import list_movers
from nclone_env.obs.spec import ACTION_OUTCOME, FREE_MOTION

from ..env.bases import QUICK_DEATH, QUICK_WIN, WALK
from .levels import BUILT_IN, run

NAME, SIMULATED = "free_motion", "action_outcomes"
AT = {feature.name: place for place, feature in enumerate(FREE_MOTION)}
SIMULATED_AT = {feature.name: place for place, feature in enumerate(ACTION_OUTCOME)}
MOVES = [name for name in AT if name[:5] in ("early", "late_")]
HALL = build_level("exit 20 96", "exit_switch 150 96", tiles=hall_tiles((1, 42), (1, 23)), spawn=(84, 50), title="hall")
RIGHT, JUMP_RIGHT = 2, 5


def motions(level: Level, frames: int = 60, **ninja: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the free motion (6, 10) and the outcomes (6, 8) of a ninja that has landed, with some fields changed."""
    fields = {"observation": {"outcome_frames": frames}, "frame_skip": 1}
    env = NPlusPlusEnv(levels=level, observations=(NAME, SIMULATED), **fields)
    env.reset()
    for _ in range(20):
        env.step(0)
    for name, value in ninja.items():
        env.worlds.ninjas[name][0] = value
    observation = env.set_state(env.get_state())[0]
    return observation[NAME], observation[SIMULATED]


def assert_equal_moves(free: np.ndarray, simulated: np.ndarray) -> None:
    """Check that displacements and progress are the simulator's, bit by bit."""
    for name in MOVES:
        np.testing.assert_array_equal(free[:, AT[name]], simulated[:, SIMULATED_AT[name]], err_msg=name)


@pytest.mark.parametrize("seed", range(8))
def test_a_ninja_that_meets_nothing_moves_as_in_the_simulator(seed):
    draw = np.random.default_rng(seed)
    flight = {"x": draw.uniform(300, 750), "y": draw.uniform(150, 350), "vx": draw.uniform(-3, 3)}
    rising = seed % 2 == 1
    if rising:
        flight |= {"state": JUMPING, "gravity": JUMP_GRAVITY, "jump_duration": 3, "jump_held": 1, "vy": -2.0}
    else:
        flight |= {"state": FALLING, "vy": draw.uniform(-1, 2)}
    free, simulated = motions(HALL, 24, airborne=1, **flight)
    assert not free[:, : AT["early_x"]].any()
    assert_equal_moves(free, simulated)
    if rising:
        assert (free[3:] != free[:3]).any(), "a held jump rises longer"


def test_a_ninja_on_a_level_floor_runs_as_in_the_simulator_and_jumps_nearly_so():
    free, simulated = motions(build_room("exit 160 57", "exit_switch 150 57", spawn=(40, 58)), 12, vx=1.5)
    assert not free[:, : AT["early_x"]].any()
    np.testing.assert_allclose(free[:3, AT["early_x"] :], simulated[:3, 2:], atol=1e-6)
    np.testing.assert_allclose(free[:, AT["early_x"] :], simulated[:, 2:], atol=0.01)
    assert free[JUMP_RIGHT, AT["late_y"]] < 0 == free[RIGHT, AT["late_y"]]


def test_a_ninja_runs_off_an_edge():
    cells = {(column, 15): 0 for column in range(20, 43)}
    free, simulated = motions(build_room("exit 20 57", "exit_switch 30 57", cells=cells, spawn=(72, 58)), vx=3.0)
    assert free[RIGHT, AT["late_y"]] > 0.2
    np.testing.assert_allclose(free[RIGHT, AT["early_x"] :], simulated[RIGHT, 2:], atol=0.06)


@pytest.mark.parametrize("hill", [{(15, 14): 8, (16, 14): 1, (17, 14): 9}, {(15, 14): 20, (16, 14): 21}])
def test_a_ninja_runs_over_a_hill(hill):
    level = build_room("exit 160 57", "exit_switch 150 57", cells=hill, spawn=(40, 58))
    fields = {"observation": {"outcome_frames": 30}, "frame_skip": 1}
    env = NPlusPlusEnv(levels=level, observations=(NAME, SIMULATED), **fields)
    env.reset()
    free, simulated = [], []
    while env.worlds.ninjas["x"][0] < 500:
        observation = env.step(RIGHT)[0]
        if env.worlds.ninjas["airborne"][0] == 0:
            free.append(observation[NAME][RIGHT])
            simulated.append(observation[SIMULATED][RIGHT])
    away = np.abs(np.array(free)[:, 7:9] - np.array(simulated)[:, 5:7])
    assert not np.array(free)[:, [AT["contact"], AT["death"]]].any()
    assert np.array(simulated)[:, 6].min() < -0.05, "the hill was climbed"
    assert away.mean() < 0.03


@pytest.mark.parametrize(("level", "element"), [(QUICK_DEATH, "death"), (QUICK_WIN, "arrival")])
def test_ends_are_the_simulators_within_a_look(level, element):
    env = NPlusPlusEnv(levels=level, observations=(NAME, SIMULATED), frame_skip=1)
    env.reset()
    for _ in range(10):  # until it has landed
        observation = env.step(0)[0]
    over, compared = False, 0
    while not over:
        free, simulated = observation[NAME][RIGHT], observation[SIMULATED][RIGHT]
        if element == "death":
            assert free[AT["death"]] == pytest.approx(simulated[SIMULATED_AT["death"]], abs=3.1 / 60)
            compared += 1
        elif free[AT["arrival"]] > 0:
            assert not free[[AT["death"], AT["contact"]]].any()
            compared += 1
        observation, _, over, _, _ = env.step(RIGHT)
    assert compared > 5
    assert (observation[NAME][:, AT[element]] == 1).all(), "after the end nothing moves"
    assert (observation[NAME].sum(axis=1) == 1).all()


def test_a_fall_that_kills_is_a_death_and_a_short_one_a_landing():
    high, _ = motions(HALL, 120, airborne=1, state=FALLING, y=60.0, vy=3.0)
    low, _ = motions(HALL, 120, airborne=1, state=FALLING, y=480.0, vy=1.0)
    assert (high[:, AT["death"]] > 0).all()
    assert not high[:, AT["landing"]].any()
    assert not low[:, AT["death"]].any()
    assert (low[:, AT["landing"]] == 1).all()


def test_a_wall_is_a_contact_and_no_landing():
    free, _ = motions(build_room("exit 160 57", "exit_switch 150 57", cells={(12, 14): 1}, spawn=(40, 58)), vx=3.0)
    assert free[RIGHT, AT["contact"]] > 0.5
    assert free[RIGHT, AT["landing"]] == 0
    assert free[RIGHT, AT["death"]] == 0


def test_a_ninja_that_lands_runs_on_and_one_at_a_wall_slides_down():
    """In the simulator it loses a little more or less speed when it lands, and slides down more slowly."""
    level = build_room("exit 160 57", "exit_switch 150 57", cells={(12, row): 1 for row in range(8, 15)})
    landing, simulated = motions(level, airborne=1, state=FALLING, x=100.0, y=300.0, vx=1.0)
    for name in MOVES:
        at = landing[:3, AT[name]], simulated[:3, SIMULATED_AT[name]]
        np.testing.assert_allclose(*at, atol=0.05, err_msg=name)
    assert (landing[:3, AT["landing"]] == 1).all()
    assert abs(landing[RIGHT, AT["late_x"]]) > 0.1
    sliding, simulated = motions(level, 30, airborne=1, state=FALLING, x=270.0, y=260.0, vx=2.0)
    assert sliding[RIGHT, AT["contact"]] > 0.8
    assert sliding[RIGHT, AT["landing"]] == 0
    assert sliding[RIGHT, AT["late_x"]] == pytest.approx(simulated[RIGHT, SIMULATED_AT["late_x"]], abs=0.02)
    assert 0.1 < simulated[RIGHT, SIMULATED_AT["late_y"]] <= sliding[RIGHT, AT["late_y"]] + 0.05


@pytest.mark.parametrize(
    ("entity", "ninja"),
    [
        ("one_way 50 57 6", {"x": 300.0, "y": 300.0, "vy": 1.0}),
        ("one_way 52 50 4", {"x": 290.0, "y": 296.0, "vx": 2.0}),
        ("launch_pad 50 58 6", {"x": 300.0, "y": 320.0, "vy": 1.0}),
        ("launch_pad 52 52 4", {"x": 290.0, "y": 306.0, "vx": 2.0}),
        ("boost_pad 52 51", {"x": 290.0, "y": 306.0, "vx": 1.0}),
        ("thwump 50 55 2", {"x": 300.0, "y": 290.0, "vy": 1.0}),
        ("shove_thwump 50 55", {"x": 300.0, "y": 290.0, "vy": 1.0}),
    ],
)
def test_what_stands_still_acts_on_a_ninja_nearly_as_in_the_simulator(entity, ninja):
    """Displacements differ by less than half of what the entity changes."""
    fall = {"airborne": 1, "state": FALLING, "vx": 0.0, "vy": 0.0} | ninja
    rooms = build_room("exit 160 57", "exit_switch 150 57", entity), build_room("exit 160 57", "exit_switch 150 57")
    (free, simulated), (_, without) = (motions(room, 30, **fall) for room in rooms)
    names = [name for name in MOVES if "progress" not in name]
    places, simulated_places = [AT[name] for name in names], [SIMULATED_AT[name] for name in names]
    change = abs(simulated[:3, simulated_places] - without[:3, simulated_places]).max()
    assert change > 0.1
    assert abs(simulated[:3, simulated_places] - free[:3, places]).max() < 0.5 * change


def test_the_face_of_a_thwump_kills_and_its_back_carries():
    face, back = (build_room("exit 160 57", "exit_switch 150 57", f"thwump 50 58 {facing}") for facing in (6, 2))
    fall = {"airborne": 1, "state": FALLING, "x": 300.0, "y": 320.0}
    deaths = [motions(room, 30, **fall)[0][0, AT["death"]] for room in (face, back)]
    assert deaths[0] > 0.3
    assert deaths[1] == 0


def test_mines_beside_the_way_do_not_matter_and_the_world_stays_as_it_is():
    """A mine counts where the ninja passes; a world that is observed is not changed."""
    levels = [build_room("exit 160 57", "exit_switch 150 57", f"mine 50 {y}") for y in (45, 58)]
    beside, within, plain = (
        NPlusPlusEnv(levels=level, observations=names, frame_skip=1)
        for level, names in ((levels[0], NAME), (levels[1], NAME), (levels[1], "game_state"))
    )
    for env in (beside, within, plain):
        env.reset()
    for _ in range(10):
        deaths = [env.step(0)[0][NAME][RIGHT, AT["death"]] for env in (beside, within)]
        plain.step(0)
    assert deaths[0] == 0 < deaths[1]
    assert within.worlds.ninjas.tobytes() == plain.worlds.ninjas.tobytes()


def passage(*entities: str, wall: int | None = None) -> Level:
    """Return a passage one cell high, with a wall in a column of cells or without any."""
    tiles = hall_tiles((2, 30), (5, 5))
    if wall is not None:
        tiles[4, wall - 1] = 1
    return build_level("exit 100 22", "exit_switch 90 22", *entities, tiles=tiles, spawn=(20, 22))


@pytest.mark.parametrize("enemy", ["zap_drone", "mini_drone"])
def test_drones_patrol_as_in_the_simulator(enemy):
    """One flies at the ninja, one away, one away until a wall turns it, one is behind a wall."""
    drone, turning = f"{enemy} 50 22 4", passage(f"{enemy} 30 22 0", wall=9)
    levels = passage(drone), passage(f"{enemy} 50 22 0"), turning, passage(drone, wall=10)
    deaths = []
    for level in levels:
        free, simulated = motions(level, 180)
        deaths.append(free[0, AT["death"]])
        assert deaths[-1] == pytest.approx(simulated[0, SIMULATED_AT["death"]], abs=3.1 / 180)
    at, away, turned, behind = deaths
    assert 0 < at < 0.9
    assert 0 < turned < 0.9
    assert away == behind == 0


@pytest.mark.parametrize("kind", ["zap_drone", "mini_drone", "chaser_drone"])
def test_legs_lead_where_drones_patrol_in_the_simulator(kind):
    """In a hall with scattered walls, of which one hides the ninja, within 170 frames."""
    draw, frames = np.random.default_rng(0), 170
    tiles = hall_tiles((1, 42), (1, 23))
    tiles[2:20, 1:41] = draw.random((18, 40)) < 0.2
    tiles[20] = 1
    rows, columns = np.nonzero(tiles[2:20, 1:41] == 0)
    places = draw.permutation(len(rows))[:40]
    ends, modes = ("exit 8 94", "exit_switch 16 94"), itertools.cycle(range(4))
    drones = [f"{kind} {4 * columns[i] + 10} {4 * rows[i] + 14} {2 * draw.integers(4)} {next(modes)}" for i in places]
    env = NPlusPlusEnv(levels=build_level(*ends, *drones, tiles=tiles, spawn=(84, 94)), frame_skip=1)
    env.reset()
    levels, worlds, legs = env.level_set.arrays, env.worlds, np.zeros(4096)
    legs = legs[: list_movers(levels, worlds, 0, frames, legs, np.zeros(0))[0]].reshape(-1, 7)
    for frame in range(1, frames + 1):
        env.step(0)
        x, y, vx, vy, begin, _, _ = legs[(legs[:, 4] < frame) & (frame <= legs[:, 5])].T
        there = x + (frame - begin) * vx + 1j * (y + (frame - begin) * vy)
        movers = worlds.movers[worlds.movers["y"] < 500.0]
        reached = abs(movers["x"] - worlds.ninjas["x"]) < frame * MAX_HORIZONTAL_SPEED
        errors = abs(there[:, None] - (movers["x"] + 1j * movers["y"]))
        assert errors.min(1).max() < 1e-9, "all legs are of drones"
        assert errors[:, reached].min(0).max(initial=0) < 1e-9, "all drones that the ninja can reach are there"
    assert len(legs) > 2 * len(drones), "they turn"


def test_a_ninja_runs_through_a_low_passage():
    free, simulated = motions(passage(), 30, vx=1.5)
    assert not free[:3, : AT["early_x"]].any()
    np.testing.assert_allclose(free[:3, AT["early_x"] :], simulated[:3, 2:], atol=1e-6)


def test_random_play_stays_within_bounds():
    levels = (*BUILT_IN, everything(), QUICK_WIN, QUICK_DEATH, WALK)
    envs = NPlusPlusVectorEnv(None, 7, observations=NAME, levels=levels, max_frames=90)
    low = np.array([feature.low for feature in FREE_MOTION])
    rows = np.concatenate([observations[NAME].copy() for observations in run(envs, 360)])
    assert np.isfinite(rows).all()
    assert (rows >= low).all()
    assert (rows <= 1).all()
    assert (np.ptp(rows, axis=(0, 1)) > 0).all(), "every element varies"


@pytest.mark.parametrize("frames", [3, 25])
def test_frames_that_are_no_multiple_of_a_look(frames):
    free, _ = motions(WALK, frames)
    assert (np.abs(free[:, AT["late_x"]]) <= 1).all()
    assert free[RIGHT, AT["late_x"]] > 0


def test_states_of_the_end():
    for state, element in ((DEAD, "death"), (CELEBRATING, "arrival")):
        free, _ = motions(WALK, state=state)
        np.testing.assert_array_equal(free, np.eye(len(FREE_MOTION))[[AT[element]] * 6])
