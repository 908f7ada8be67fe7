"""The values of a run that a player shows are those of the simulator, to the stated precision."""

import base64

import numpy as np
import pytest

from nclone_env.gallery import tracks as module
from nclone_env.gallery.tracks import MOST_FRAMES, MOST_PLACES, STEPS, Tracks, shown_frames
from nclone_env.game import LASER_TURRET, NINJA, ROCKET_TURRET
from nclone_env.level.build import build_room, everything
from nclone_env.level.level_set import pack
from nclone_env.render.looks import appearance
from nclone_env.render.raster import numbered
from nclone_env.sim.session import Session
from nclone_env.sim.trajectory import simulate

LEVEL = everything()
LEVELS = pack([LEVEL])
INPUTS = np.repeat(np.random.default_rng(3).integers(0, 6, 60), 5).astype(np.uint8)
HALF_STEP = 0.5 / STEPS


@pytest.fixture(scope="module")
def shown() -> Tracks:
    return Tracks(LEVELS, INPUTS)


def decoded(text: str, start: int, frames: int) -> list[int]:
    """Return the values of a track by the description in the docstring of the module, one number after another."""
    values, number, shift = [start], 0, 0
    for byte in base64.b64decode(text):
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            if number & 1:
                values += [values[-1]] * ((number >> 1) + 1)
            else:
                zigzag = number >> 1
                values.append(values[-1] + (zigzag >> 1 if zigzag % 2 == 0 else -(zigzag + 1) >> 1))
            number, shift = 0, 0
    return values + [values[-1]] * (frames + 1 - len(values))


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
        np.abs(shown.column(column + 1 + axis)[1:] / STEPS - given)
        for column, *both in pairs
        for axis, given in enumerate(both)
    ]
    assert 0 < np.max(differences) <= HALF_STEP
    assert np.ptp(run.entity_x, axis=0).astype(bool).sum() > 5, "too few entities move"


def test_another_run_has_other_positions(shown):
    other = INPUTS.copy()
    other[4] = 2 - other[4] % 2 * 2
    moved = Tracks(LEVELS, other).column(3 * (shown.sprites - 1) + 1) - shown.column(3 * (shown.sprites - 1) + 1)
    assert not moved[:5].any()
    assert np.abs(moved[5:]).max() > 1


def test_state_facing_gold_and_inputs(shown):
    ninjas = Session(LEVELS, max_frames=len(INPUTS)).record(INPUTS).ninjas
    first = 3 * shown.sprites + 5 * shown.shooters
    for column, name in enumerate(("state", "facing", "gold"), start=first):
        assert shown.column(column)[1:].tolist() == ninjas[name].tolist()
    assert shown.column(first + 3)[1:].tolist() == INPUTS.tolist()
    assert len(set(ninjas["state"].tolist())) > 3


def test_sprites_are_the_appearances_of_the_states(shown):
    frames = Session(LEVELS, max_frames=len(INPUTS)).record(INPUTS)
    kinds, columns = columns_of_entities()
    entities, seen, changed = LEVELS.entities_of(0), numbered()[0], 0
    for slot, (kind, column) in enumerate(zip(kinds.tolist(), columns.tolist())):
        if kind in (LASER_TURRET, *range(5, 9)):  # a laser points along its beam, and of a door this is the switch
            continue
        sprites = shown.column(column)[1:]
        states = frames.entity_states[:, slot].tolist()
        orientation = int(entities[slot]["orientation"])
        given = [seen[number] if number >= 0 else None for number in sprites.tolist()]
        assert given == [appearance(kind, orientation, state) for state in states]
        changed += len(set(given)) > 1
    assert changed > 5
    postures = [seen[number] for number in shown.column(3 * (shown.sprites - 1))[1:].tolist()]
    facing = [0 if facing >= 0 else 4 for facing in frames.ninjas["facing"].tolist()]
    assert postures == [appearance(NINJA, *pair) for pair in zip(facing, frames.ninjas["state"].tolist())]


def test_doors_open_when_their_switch_is_touched():
    level = build_room("locked_door 70 58 0", "locked_door_switch 46 58", "gold 54 58")
    shown = Tracks(pack([level]), np.full(60, 2, np.uint8))
    door = numbered()[0][shown.column(0)[0]], numbered()[0][shown.column(0)[-1]]
    assert [each.variant for each in door] == [0, 1]
    opened = int(np.flatnonzero(np.diff(shown.column(0)))[0]) + 1
    active = simulate(level, bytes([2] * 60), entities=True).entity_active[:, -1]
    assert opened == int(np.flatnonzero(~active)[0]) + 1


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


def test_a_track_says_the_same_as_text(shown):
    texts = shown.texts()
    assert set(texts) == set(shown.changes)
    for value, text in texts.items():
        assert decoded(text, int(shown.start[value]), shown.frames) == shown.column(value).tolist()


@pytest.mark.parametrize("values", [[0], [0, 1], [5, 5, 5, 5], [0, -1, -1, 2**21, -(2**21), 0, 0], [1, 1, 0] * 200])
def test_texts_hold_any_values(values):
    steps = np.diff(values)
    when = np.flatnonzero(steps)
    text = module._text(when + 1, steps[when].astype(np.int32))
    assert decoded(text, values[0], len(values) - 1) == values


def test_a_run_is_the_same_in_pieces(shown, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 7 * len(shown.start))
    assert Tracks(LEVELS, INPUTS).texts().keys() >= shown.texts().keys()
    assert all(
        (Tracks(LEVELS, INPUTS).column(value) == shown.column(value)).all() for value in range(3 * shown.sprites)
    )


def test_a_run_without_frames():
    shown = Tracks(LEVELS, np.zeros(0, np.uint8))
    assert (shown.frames, shown.texts()) == (0, {})
    assert shown.column(1).tolist() == [shown.start[1]]


def test_how_long_a_run_may_be():
    movers = int(LEVELS.arrays.header[0]["mover_count"])
    assert shown_frames(LEVELS, 100) == 100
    assert shown_frames(LEVELS, 10**6) == min(MOST_FRAMES, MOST_PLACES // (movers + 1)) == MOST_FRAMES
    many = pack([build_room(*["bounce_block 50 50"] * 200)])
    assert shown_frames(many, 10**6) == MOST_PLACES // 201 < MOST_FRAMES
