"""Trap doors that must stay open."""

import numpy as np
import pytest

from nclone_env.level.build import build_level, hall_tiles
from nclone_env.level.level_set import pack
from nclone_env.level.routes.guide import make_guide
from nclone_env.level.routes.traps import is_trapped
from nclone_env.sim.session import Session

CORRIDOR = hall_tiles((2, 40), (14, 15))  # y from 336 to 384
TRAP = ("trap_door 100 60 0", "trap_door_switch 60 58")


def trapped(level, x, closed):
    session, guide = Session(level), make_guide(pack([level]), careful=True)
    ninja = session.worlds.ninjas[0]
    ninja["x"], ninja["y"] = x, 370.0
    session[0].entity_states[2:] = closed
    return bool(is_trapped(guide.traps, session.worlds, 0, 0))


def test_a_closed_door_in_the_way_traps_the_ninja_before_it():
    level = build_level("exit 130 62", "exit_switch 120 62", *TRAP, tiles=CORRIDOR, spawn=(40, 62))
    assert trapped(level, 300.0, True)
    assert not trapped(level, 300.0, False)
    assert not trapped(level, 660.0, True)  # behind it


def test_a_door_behind_the_switch_traps_it_too():
    """Where the exit is before the door and the switch behind it, a ninja that is past it has no way back."""
    level = build_level("exit 30 62", "exit_switch 120 62", *TRAP, tiles=CORRIDOR, spawn=(40, 62))
    assert trapped(level, 660.0, True)
    assert not trapped(level, 660.0, False)


@pytest.mark.parametrize("switches", [1, 3])
def test_a_door_with_another_way_around_it_is_not_needed(switches):
    ends = ("exit 130 62", "exit_switch 120 62")
    levels = [
        build_level(*ends, *TRAP * switches, tiles=tiles, spawn=(40, 62))
        for tiles in (hall_tiles((2, 40), (12, 15)), CORRIDOR)
    ]
    assert [len(make_guide(pack([level]), careful=True).traps.slots) for level in levels] == [0, switches]


def test_a_plain_guide_knows_no_trap_doors():
    level = build_level("exit 130 62", "exit_switch 120 62", *TRAP, tiles=CORRIDOR, spawn=(40, 62))
    assert not len(make_guide(pack([level])).traps.slots)
    assert not np.any(make_guide(pack([level])).traps.needed)
