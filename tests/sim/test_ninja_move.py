"""Thresholds of the collision that random play hardly ever meets (physics 01, sections 8.2 and 9).

Mines, gold, switches and exits (physics 02, sections 5.6 and 6.1 to 6.4), in small rooms.
"""

import numpy as np
import pytest

from nclone_env.game import (
    CELEBRATING,
    DEAD,
    DYING,
    EXIT,
    EXIT_SWITCH,
    FALL_GRAVITY,
    JUMP_GRAVITY,
    JUMPING,
    SLIDING,
    ZAP_DRONE,
)
from nclone_env.jit import kernel, local_f64
from nclone_env.level.build import build_room
from nclone_env.level.level_set import pack
from nclone_env.sim.ninja import CEILINGS, CONTACT_SLOTS, FLOORS, add_contact, kill, slide
from nclone_env.sim.ninja_move import (
    NEAR_FIRST,
    NEAR_SLOTS,
    clear_near,
    entity_key,
    hit,
    list_movers,
    mend_corner,
    number_of,
)
from nclone_env.sim.session import Session
from nclone_env.sim.state import NINJA_RECORD, make_worlds
from nclone_env.sim.trajectory import simulate

from .bases import RIGHT, SUICIDE

NUDGE = 2.0**-47
RUN = bytes([RIGHT]) * 120


@pytest.fixture
def ninja() -> np.record:
    return np.zeros(1, NINJA_RECORD)[0]


@pytest.mark.parametrize(
    ("dy", "kind"),
    [(-1.0, FLOORS), (-0.00011, FLOORS), (-0.0001, CEILINGS), (-1e-9, CEILINGS), (0.0, CEILINGS), (1.0, CEILINGS)],
)
def test_vertical_walls_count_as_ceilings(dy, kind):
    contacts = np.zeros(CONTACT_SLOTS)
    add_contact(contacts, 0.6, 0.8, dy)
    add_contact(contacts, 0.1, 0.2, dy)
    assert contacts[kind : kind + 3].tolist() == [2.0, 0.6 + 0.1, 0.8 + 0.2]
    assert np.count_nonzero(contacts) == 3


@pytest.mark.parametrize(
    ("x", "dx", "mended"),
    [
        (100.0, 0.00000010001, 0.00000010001),
        (100.0, 0.0000001, 0.0),
        (100.0, -0.0000001, 0.0),
        (100.0, -3.0, -3.0),
        (float.fromhex("0x1.941886676016dp+5"), 0.0, -NUDGE),
        (float.fromhex("0x1.89dbcb3e2387dp+5"), 1e-8, -NUDGE),
        (float.fromhex("0x1.893a7123a903bp+5"), -1e-8, NUDGE),
        (float.fromhex("0x1.893a7123a903bp+5"), 2e-7, 2e-7),
        (float.fromhex("0x1.893a7123a903cp+5"), 0.0, 0.0),
    ],
)
def test_tiny_offsets_vanish_except_at_three_places(x, dx, mended):
    assert mend_corner(x, dx) == mended


@pytest.mark.parametrize(
    ("normal", "speed", "dies"),
    [
        ((0.0, -1.0), (0.0, 6.0 - 4.0 / 3.0), False),
        ((0.0, -1.0), (0.0, np.nextafter(6.0 - 4.0 / 3.0, 9.0)), True),
        ((1.0, 0.0), (-6.0, 0.0), False),
        ((1.0, 0.0), (np.nextafter(-6.0, -9.0), 0.0), True),
        ((1.0, 0.0), (9.0, 0.0), False),
        ((0.0, 1.0), (0.0, -4.7), True),
    ],
)
def test_the_deadly_impact(ninja, normal, speed, dies):
    hit(ninja, *normal, *speed)
    assert (ninja["state"] == DYING) == dies
    assert (ninja["vx"], ninja["vy"]) == (speed if dies else (0.0, 0.0))


def test_a_celebrating_ninja_survives_any_impact(ninja):
    ninja["state"] = CELEBRATING
    hit(ninja, 0.0, -1.0, 0.0, 99.0)
    assert (ninja["state"], ninja["vy"]) == (CELEBRATING, 0.0)


def test_the_impact_speed_comes_back_even_if_the_ninja_is_dying(ninja):
    ninja["state"] = DYING
    hit(ninja, 0.0, -1.0, 1.0, 9.0)
    assert (ninja["state"], ninja["vx"], ninja["vy"]) == (DYING, 1.0, 9.0)


@pytest.mark.parametrize("state", range(10))
def test_who_can_be_killed(ninja, state):
    ninja["state"], ninja["gravity"] = state, JUMP_GRAVITY
    kill(ninja)
    assert ninja["state"] == (DYING if state < DEAD else state)
    assert ninja["gravity"] == (FALL_GRAVITY if state == JUMPING else JUMP_GRAVITY)


@pytest.mark.parametrize(
    ("vx", "vy", "moves"),
    [(1e-163, -1e-163, False), (0.0, -5e-324, False), (1e-161, -1e-161, True), (0.5, -0.25, True)],
)
def test_uphill_a_speed_whose_square_vanishes_stays(ninja, vx, vy, moves):
    ninja["state"], ninja["floor_x"], ninja["floor_y"] = SLIDING, -0.6, -0.8
    ninja["vx"], ninja["vy"] = vx, vy
    slide(ninja, abs(vy * -0.6 - vx * -0.8), False)
    assert np.isfinite([ninja["vx"], ninja["vy"]]).all()
    assert ((ninja["vx"], ninja["vy"]) != (vx, vy)) is moves


def walk(*entities, inputs=RUN):
    return simulate(build_room(*entities), inputs, entities=True)


def test_gold_is_counted_once():
    run = walk("gold 50 58", "gold 60 58", "gold 60 20")
    assert run.gold[-1] == 2
    assert np.count_nonzero(np.diff(run.gold)) == 2
    taken = ~run.entity_active
    assert np.array_equal(taken.sum(axis=1), run.gold)
    assert not taken[:, 2].any()


@pytest.mark.parametrize("down", [-8.0, 0.0, 8.0])
@pytest.mark.parametrize("right", [-8.0, 0.0, 8.0])
@pytest.mark.parametrize("unit", [20, 23])
def test_the_cells_all_around_are_looked_at(unit, right, down):
    """Gold at the first and at the last units of a cell, the ninja on any side of it."""
    session = Session(build_room(f"gold {unit} {unit}", f"gold {unit + 8} {unit}"))
    session.ninja["x"], session.ninja["y"] = 6 * unit + right, 6 * unit + down
    ninjas, states, _ = session.record(bytes(1))
    assert ninjas["gold"][0] == 1
    assert states[0, :2].tolist() == [1, 0]


def test_a_mine_kills_and_stays():
    run = walk("mine 60 58")
    dead = np.flatnonzero(run.state == DEAD)
    assert len(dead)
    assert DYING not in run.state  # touched and dead in the same frame
    assert run.entity_active.all()
    assert np.hypot(run.x[dead[0]] - 360, run.y[dead[0]] - 348) < 14.0 <= 360 - run.x[dead[0] - 1] + 4
    assert (run.x[dead[0] :] == run.x[dead[0]]).all()
    assert len(run) == len(RUN)


def test_the_exit_opens_with_its_switch_and_wins():
    closed = walk("exit 60 58", "exit_switch 60 20")
    assert CELEBRATING not in closed.state
    run = walk("exit 60 58", "exit_switch 50 58")
    taken = np.flatnonzero(~run.entity_active[:, 1])[0]
    won = np.flatnonzero(run.state == CELEBRATING)[0]
    assert run.entity_type.tolist() == [EXIT, EXIT_SWITCH]
    assert taken < won
    assert run.entity_active[:, 0].all()
    assert (run.state[won:] == CELEBRATING).all()


def test_an_exit_cannot_be_entered_in_the_frame_of_its_switch():
    run = walk("exit 40 58", "exit_switch 40 58", inputs=bytes(3))
    assert not run.entity_active[0, 1]
    assert run.state[0] != CELEBRATING
    assert run.state[1] == CELEBRATING


def test_only_the_exit_of_the_taken_switch_opens():
    run = walk("exit 60 58", "exit 70 58", "exit_switch 90 20", "exit_switch 50 58", inputs=RUN + RUN)
    won = np.flatnonzero(run.state == CELEBRATING)[0]
    assert 420 - 22 <= run.x[won] <= 420


def test_the_finish_fraction_is_the_part_of_the_frame_before_the_touch():
    session = Session(build_room("exit 60 58", "exit_switch 41 58"))
    ninjas = session.record(RUN).ninjas
    won = np.flatnonzero(ninjas["state"] == CELEBRATING)[0]
    before, after = ninjas[won - 1], ninjas[won]
    at = before["x"] + after["finish_fraction"] * (after["x"] - before["x"])
    assert 0.0 < after["finish_fraction"] <= 1.0
    assert np.hypot(at - 360.0, before["y"] - 348.0) == pytest.approx(22.0, abs=0.05)


def test_a_dying_ninja_still_collects_but_does_not_win():
    run = walk("exit 46 58", "exit_switch 40 58", "gold 40 58", inputs=bytes([SUICIDE]) + bytes(3))
    assert run.state.tolist() == [DYING, DEAD, DEAD, DEAD]
    session = Session(build_room("gold 40 58"))
    session.ninja["state"] = DYING
    ninjas, states, _ = session.record(bytes(1))
    assert (ninjas["gold"][0], states[0, 0]) == (1, 1)


@pytest.mark.parametrize("name", ["mine", "gold"])
def test_a_celebrating_ninja_neither_collects_nor_sets_off_mines(name):
    session = Session(build_room(f"{name} 40 58"))
    session.ninja["state"] = CELEBRATING
    ninjas, states, _ = session.record(RUN)
    assert (ninjas["state"] == CELEBRATING).all()
    assert (ninjas["gold"] == 0).all()
    assert (states[:, 0] == 0).all()


def test_a_mine_that_kills_becomes_safe():
    session = Session(build_room("mine 40 58", "mine 41 58", "mine 60 58"))
    ninjas, states, _ = session.record(bytes(5))
    assert ninjas["state"].tolist() == [DEAD] * 5
    assert states[-1, :3].tolist() == [1, 1, 0]


@kernel
def listed(levels, worlds, centre, pushing, found):
    """Write the movers that a visit meets, as it lists them; return how many, and how many lists it took."""
    near, count, lists, last = local_f64(NEAR_SLOTS), 0, 0, -1.0
    clear_near(near)
    while True:
        total = list_movers(levels, worlds, 0, near, centre, worlds.ninjas[0]["next_order"], pushing, last)
        held = min(total, NEAR_SLOTS - NEAR_FIRST)
        for k in range(NEAR_FIRST, NEAR_FIRST + held):
            found[count] = number_of(near[k])
            count += 1
        lists += 1
        if held == total:
            return count, lists
        last = near[NEAR_SLOTS - 1]


@pytest.mark.parametrize("pushing", [False, True])
@pytest.mark.parametrize("crowd", [3, 60, 400])
def test_movers_are_met_by_cell_then_by_order_however_many_there_are(crowd, pushing):
    random = np.random.default_rng(crowd)
    kinds = [("bounce_block", "thwump", "zap_drone")[k] for k in random.integers(0, 3, crowd)]
    levels = pack([build_room(*(f"{kind} 50 50" for kind in kinds))])
    worlds, found = make_worlds(1, levels), np.zeros(crowd, np.int64)
    movers, count = worlds.movers, levels.max_movers
    centre, worlds.ninjas["next_order"] = 10 * 25 + 12, 3 * crowd
    movers["cell"][:count] = random.choice(
        [-1, *(centre + 25 * c + r for c in (-2, -1, 0, 1) for r in (-1, 0, 1, 2))], count
    )
    movers["order"][:count] = random.permutation(4 * crowd)[:count]
    around = [centre + 25 * c + r for c in (-1, 0, 1) for r in (-1, 0, 1)]
    types = levels.arrays.entities["type"][levels.arrays.mover_slots]
    expected = [
        number
        for number in np.lexsort((movers["order"], movers["cell"]))
        if movers["cell"][number] in around
        and movers["order"][number] < 3 * crowd
        and not (pushing and types[number] == ZAP_DRONE)
    ]
    total, lists = listed(levels.arrays, worlds, centre, pushing, found)
    assert found[:total].tolist() == expected
    assert (lists > 1) == (len(expected) > NEAR_SLOTS - NEAR_FIRST)


def test_an_entity_comes_before_a_mover_that_entered_later():
    entity = pack([build_room("gold 42 50", "gold 43 50")]).arrays.entities
    keys = [float(entity_key(entity[number], 10 * 25 + 12)) for number in range(2)]
    assert keys[0] < keys[1] < keys[0] + (1 << 16)
