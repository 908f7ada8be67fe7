"""The values of a frame that a page draws are those of the simulator, to the stated precision."""

import numpy as np
import pytest

from nclone_env.gallery.tables import STEPS
from nclone_env.game import KINDS, LASER_TURRET, NINJA, ROCKET_TURRET
from nclone_env.level import build_room, everything, pack
from nclone_env.render.looks import appearance
from nclone_env.render.raster import all_glyphs, numbered
from nclone_env.sim import Session, simulate, worlds_of
from profiling.checks.web_rows import OF_RUN, PER_SHOOTER, PER_SPRITE, write_rows

LEVEL = everything()
LEVELS = pack([LEVEL])
INPUTS = np.repeat(np.random.default_rng(3).integers(0, 6, 60), 5).astype(np.uint8)
HALF_STEP = 0.5 / STEPS


class Shown:
    """The rows of a run, one after each frame: the worlds of its frames, in which time stands still."""

    def __init__(self, levels, inputs):
        header, kinds = levels.arrays.header[0], levels.entities_of(0)["type"]
        self.sprites = int(header["door_count"] + len(kinds) + np.count_nonzero(kinds == ROCKET_TURRET) + 1)
        self.shooters = int(np.isin(kinds, [kind.number for kind in KINDS if kind.shoots]).sum())
        frames = Session(levels, max_frames=len(inputs)).record(inputs)
        self.rows = np.zeros((len(inputs), PER_SPRITE * self.sprites + PER_SHOOTER * self.shooters + OF_RUN), np.int32)
        worlds = worlds_of(*frames, np.zeros((len(inputs), 0, 2)))
        write_rows(levels.arrays, worlds, all_glyphs(), np.zeros((self.sprites, PER_SPRITE)), self.rows)

    def column(self, value):
        return self.rows[:, value]


@pytest.fixture(scope="module")
def shown() -> Shown:
    return Shown(LEVELS, INPUTS)


def columns_of_entities():
    """Return the first value of the sprite of each entity, after the doors; rocket turrets have two."""
    kinds = LEVELS.entities_of(0)["type"]
    numbers = np.arange(len(kinds)) + np.cumsum(kinds == ROCKET_TURRET) + LEVELS.arrays.header[0]["door_count"]
    return kinds, 3 * numbers


def test_positions_are_those_of_the_simulator(shown):
    run = simulate(LEVEL, INPUTS, entities=True)
    _, columns = columns_of_entities()
    ninja = 3 * (shown.sprites - 1)
    pairs = [(ninja, run.x, run.y), *zip(columns, run.entity_x.T, run.entity_y.T)]
    differences = [
        np.abs(shown.column(column + 1 + axis) / STEPS - given)
        for column, *both in pairs
        for axis, given in enumerate(both)
    ]
    assert 0 < np.max(differences) <= HALF_STEP
    assert np.ptp(run.entity_x, axis=0).astype(bool).sum() > 5, "too few entities move"


def test_another_run_has_other_positions(shown):
    other = INPUTS.copy()
    other[4] = 2 - other[4] % 2 * 2
    moved = Shown(LEVELS, other).column(3 * (shown.sprites - 1) + 1) - shown.column(3 * (shown.sprites - 1) + 1)
    assert not moved[:4].any()
    assert np.abs(moved[4:]).max() > 1


def test_state_facing_and_gold(shown):
    ninjas = Session(LEVELS, max_frames=len(INPUTS)).record(INPUTS).ninjas
    first = 3 * shown.sprites + 5 * shown.shooters
    for column, name in enumerate(("state", "facing", "gold"), start=first):
        assert shown.column(column).tolist() == ninjas[name].tolist()
    assert len(set(ninjas["state"].tolist())) > 3


def test_sprites_are_the_appearances_of_the_states(shown):
    frames = Session(LEVELS, max_frames=len(INPUTS)).record(INPUTS)
    kinds, columns = columns_of_entities()
    entities, seen, changed = LEVELS.entities_of(0), numbered()[0], 0
    for slot, (kind, column) in enumerate(zip(kinds.tolist(), columns.tolist())):
        if kind in (LASER_TURRET, *range(5, 9)):  # a laser points along its beam, and of a door this is the switch
            continue
        sprites = shown.column(column)
        states = frames.entity_states[:, slot].tolist()
        orientation = int(entities[slot]["orientation"])
        given = [seen[number] if number >= 0 else None for number in sprites.tolist()]
        assert given == [appearance(kind, orientation, state) for state in states]
        changed += len(set(given)) > 1
    assert changed > 5
    postures = [seen[number] for number in shown.column(3 * (shown.sprites - 1)).tolist()]
    facing = [0 if facing >= 0 else 4 for facing in frames.ninjas["facing"].tolist()]
    assert postures == [appearance(NINJA, *pair) for pair in zip(facing, frames.ninjas["state"].tolist())]


def test_doors_open_when_their_switch_is_touched():
    level = build_room("locked_door 70 58 0", "locked_door_switch 46 58", "gold 54 58")
    shown = Shown(pack([level]), np.full(60, 2, np.uint8))
    door = numbered()[0][shown.column(0)[0]], numbered()[0][shown.column(0)[-1]]
    assert [each.variant for each in door] == [0, 1]
    opened = int(np.flatnonzero(np.diff(shown.column(0)))[0]) + 1
    active = simulate(level, bytes([2] * 60), entities=True).entity_active[:, -1]
    assert opened == int(np.flatnonzero(~active)[0])


def test_a_laser_shines_from_its_turret_in_every_frame(shown):
    kinds, columns = columns_of_entities()
    shooters = [slot for slot, kind in enumerate(kinds) if kind in (12, 13, 18, 19, LASER_TURRET)]
    assert len(shooters) == shown.shooters
    for slot in np.flatnonzero(kinds == LASER_TURRET):
        beam = 3 * shown.sprites + 5 * shooters.index(slot)
        assert not shown.column(beam).any()
        for axis in (1, 2):
            assert (shown.column(beam + axis) == shown.column(columns[slot] + axis)).all()
        lengths = np.hypot(*(shown.column(beam + 2 + axis) - shown.column(beam + axis) for axis in (1, 2))) / STEPS
        assert (lengths > 0).all()
        assert np.median(lengths) > 50
