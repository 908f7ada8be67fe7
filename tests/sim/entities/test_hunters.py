"""Death balls on segments (physics 02, section 6.20, step C), and evil ninjas (physics 03, section 12)."""

import numpy as np
import pytest

from nclone_env.game import CELEBRATING, DEAD
from nclone_env.level.build import build_level, build_room
from nclone_env.level.level_set import pack
from nclone_env.sim.entities.hunters import ACTIVE, CHARGING, STUCK, TOUCHED, VELOCITY_X, WAITING
from nclone_env.sim.session import Session
from nclone_env.sim.state import make_worlds, world_at
from nclone_env.sim.trajectory import simulate

from ..bases import LEFT, RIGHT
from ..shooting import ShootingRange

BLOCK = {(21, 11): 1}  # spans 504 to 528 and 264 to 288
NINJA = (300.0, 276.0)

HOME = (66, 58)  # a runner from x = 240 touches it between x = 376 and x = 380
AWAY = (150, 10)


def ball(x, y, *entities) -> ShootingRange:
    return ShootingRange(build_level(*entities, f"death_ball {x // 6} {y // 6}", tiles=BLOCK))


@pytest.mark.parametrize("place", [(504, 276), (516, 264), (504, 264), (528, 288)])
def test_a_ball_on_a_wall_is_stuck_for_good(place):
    known, fresh = ball(*place), ball(*place)
    for frame in range(60):
        known.frame(NINJA)
        fresh.mover[STUCK] = 0  # it must find out again
        fresh.frame(NINJA)
        assert known.mover == fresh.mover, frame
    assert (known.mover["x"], known.mover["y"]) == place
    assert known.mover[STUCK] == 1
    assert known.mover[VELOCITY_X] < -0.8


def test_beside_a_wall_it_is_not():
    beside = ball(498, 276)
    beside.until(60, NINJA)
    assert beside.mover[STUCK] == 0
    assert beside.mover["x"] < 480.0


def test_near_a_door_it_might_come_free():
    """The segment of the door, 24 pixels around (516, 264), lies on the face of the block."""
    near = ball(516, 264, "locked_door 86 44 2", "locked_door_switch 20 20")
    near.until(3, NINJA)
    mover = world_at(near.session.worlds, 0).movers[0]
    assert (mover["x"], mover["y"]) == (516.0, 264.0)
    assert mover[STUCK] == 0


def test_a_door_holds_it_until_it_opens():
    """Whatever is remembered: the door, always segment 0, or another segment in each frame."""
    held = [ball(600, 276, "locked_door 100 46 0", "locked_door_switch 20 20") for _ in range(3)]
    for frame in range(30):
        for one, hint in zip(held[1:], (0, frame), strict=True):
            one.session.worlds.hints[:] = hint
        for one in held:
            if frame == 20:
                one.session.worlds.entity_states[one.session.levels.doors[0]["owner"]] = 1
            one.frame(NINJA)
        assert len({one.session.hash() for one in held}) == 1, frame
        assert ((held[0].mover["x"], held[0].mover["y"]) == (600.0, 276.0)) == (frame < 20)
        assert held[0].mover[STUCK] == 0
    assert held[0].session.worlds.hints[0] != 0


def evil_ninja(place):
    return "evil_ninja {} {}".format(*place)


def wander(frames, seed=5):
    """Return inputs that run right for two seconds, then back and forth."""
    draw = np.random.default_rng(seed)
    turns = np.repeat(draw.choice([LEFT, RIGHT, LEFT + 1, RIGHT + 1], frames // 10 + 1), 10)
    return bytes([RIGHT]) * 120 + turns.astype(np.uint8).tobytes()[:frames]


def play(places, inputs, unharmed=True):
    """Return (T,) ninjas, (T, E) phases and (T, E) x and y; an unharmed ninja is lifted out of reach of death."""
    session = Session(build_room(*(evil_ninja(place) for place in places)))
    count = len(places)
    ninjas, phases, spots = [], [], []
    for code in inputs:
        if unharmed and session.ninja["state"] >= DEAD:
            break
        session.tick(code)
        ninjas.append(session.ninja.copy())
        phases.append(session.entity_states().tolist())
        spots.append([(m["x"], m["y"]) for m in session[0].movers[:count]])
    return np.array(ninjas), np.array(phases), np.array(spots)


def test_delays_and_way():
    """Frame j is row j - 1. The first follows from 120 frames after the touch, the second 120 frames later."""
    ninjas, phases, spots = play([HOME, HOME, AWAY], wander(360))
    path = np.stack([ninjas["x"], ninjas["y"]], axis=1)
    touched = int(np.flatnonzero(phases[:, 0] != WAITING)[0]) + 1
    assert phases[touched - 1].tolist() == [TOUCHED, TOUCHED, WAITING]
    assert len(ninjas) > touched + 260
    for number, slot in ((1, 0), (2, 1)):
        begin = touched + 120 * number
        assert phases[begin - 2, slot] == CHARGING
        assert (phases[begin - 1 :, slot] == ACTIVE).all()
        for frame in range(begin, len(ninjas) + 1):
            assert spots[frame - 1, slot].tolist() == path[frame - 120 * number].tolist(), (number, frame)
    assert (phases[:, 2] == WAITING).all()


def test_check_values():
    """Touched in frame 100: active in 220 at P[101], then P[102]; the second in frame 340 at P[101]."""
    level = build_room("evil_ninja 100 20", "evil_ninja 100 20")
    session = Session(level)
    path = {}
    for frame in range(1, 342):
        session.tick(0)
        if frame == 99:  # to be dropped on them in the next frame, then carried along a line of its own
            session.ninja["x"], session.ninja["y"], session.ninja["vx"], session.ninja["vy"] = 600.0, 115.0, 0.0, 0.0
        elif frame > 99:
            session.ninja["x"], session.ninja["y"] = 600.0 + 1.25 * (frame - 100), 150.0
        path[frame] = (float(session.ninja["x"]), float(session.ninja["y"]))
        phases = session.entity_states().tolist()
        spots = [(float(m["x"]), float(m["y"])) for m in session[0].movers]
        if frame == 99:
            assert phases == [WAITING, WAITING]
        elif frame == 100:
            assert phases == [TOUCHED, TOUCHED]
        elif frame == 219:
            assert phases == [CHARGING, CHARGING]
        elif frame == 220:
            assert phases == [ACTIVE, CHARGING]
            assert spots == [path[101], (600.0, 120.0)]
        elif frame == 221:
            assert spots[0] == path[102]
        elif frame == 340:
            assert phases == [ACTIVE, ACTIVE]
            assert spots == [path[221], path[101]]


def test_it_comes_from_its_home_in_the_last_two_seconds():
    ninjas, _, spots = play([HOME, HOME], wander(200))
    touched = int(np.flatnonzero((spots[:, 0] != spots[0, 0]).any(axis=1))[0]) - 1  # moves from the frame after next
    home, goal = np.array([396.0, 348.0]), np.array([ninjas["x"][touched], ninjas["y"][touched]])
    for step in (2, 60, 119):
        assert spots[touched + step - 1, 0] == pytest.approx(home + step / 120 * (goal - home), abs=1e-12)
    assert (spots[: touched + 119, 1] == home).all()


def test_charging_is_harmless_and_following_kills():
    """The ninja begins where one waits and stays there: touched in frame 1, killed in frame 121."""
    run = simulate(build_room("evil_ninja 41 58"), bytes(130), entities=True)
    gap = np.hypot(run.entity_x[:, 0] - run.x, run.entity_y[:, 0] - run.y)
    assert (gap < 16.0).all()
    assert np.flatnonzero(run.state == DEAD)[0] == 120


def test_it_follows_the_dead_and_spares_the_winner():
    session = Session(build_room("evil_ninja 40 58"))
    session.tick(0)
    session.ninja["state"] = CELEBRATING
    ninjas, states, _ = session.record(bytes(300))
    assert states[-1, 0] == ACTIVE
    assert (ninjas["state"] == CELEBRATING).all()


def test_the_trail_belongs_to_the_world():
    """A snapshot that is taken half-way leads to the same future; a start clears the trail."""
    inputs = wander(300)
    session = Session(build_room(evil_ninja(HOME)), 2)
    session.record(inputs[:200])
    session.restore(session.snapshot(0), 1)
    first, second = session.record(inputs[200:], 0), session.record(inputs[200:], 1)
    assert first.ninjas.tobytes() == second.ninjas.tobytes()
    assert session.snapshot(0) == session.snapshot(1)
    assert session[0].trail.any()
    session.start()
    assert not len(session[0].trail)


@pytest.mark.parametrize(("count", "limit", "rows"), [(0, None, 0), (1, None, 119), (10, None, 1199), (10, 600, 600)])
def test_the_trail_is_no_longer_than_needed(count, limit, rows):
    levels = pack([build_room(*["evil_ninja 50 50"] * count)])
    worlds = make_worlds(3, levels, limit)
    assert worlds.trail.shape == (max(3 * rows, 1), 2)
    assert worlds.rooms["trail"]["size"][:-1].tolist() == [rows] * 3


def test_a_limited_trail_is_as_good():
    """``simulate`` bounds the trail by the number of inputs; a session does not."""
    inputs = wander(250)
    level = build_room(*[evil_ninja(HOME)] * 4)
    run = simulate(level, inputs, entities=True)
    session = Session(level)
    ninjas = session.record(inputs).ninjas
    assert len(session.worlds.trail) == 479 > len(inputs)
    assert ninjas["x"].tolist() == run.x.tolist()
    assert [m["x"] for m in session[0].movers] == run.entity_x[-1].tolist()


def test_the_trail_is_reported():
    levels = pack([build_room(*["evil_ninja 50 50"] * 2)])
    worlds = make_worlds(4, levels)
    sizes = {node.name: node.total_bytes for node in worlds.memory().children}
    assert sizes["trail"] == 4 * 239 * 16


def test_copies_follow_too():
    session = Session(build_room(evil_ninja(HOME)), 2)
    session.record(wander(200))
    session.copy(0, 1)
    assert session.snapshot(0) == session.snapshot(1)
    assert session.hash(0) == session.hash(1)
    session.worlds.trail[session.worlds.rooms[1]["trail"]["first"] + 7, 0] += 1e-9
    assert session.hash(0) != session.hash(1)
