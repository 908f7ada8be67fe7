"""The public function: what it takes, what it returns, what it refuses."""

import numpy as np
import pytest

from nclone_env.errors import InputsError, LevelFormatError, NcloneError, UnknownLevelError
from nclone_env.level import level_set
from nclone_env.level.build import build_room
from nclone_env.level.compile import compile_level
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.load import load_level
from nclone_env.sim.trajectory import Trajectory, simulate

from .bases import FLOOR_Y, JUMP, LEFT, RIGHT

LEVEL = build_room("gold 60 58", "exit 90 58", "exit_switch 50 58", "mine 100 20")
INPUTS = bytes([RIGHT] * 30 + [RIGHT | JUMP] * 20 + [LEFT] * 10)
COLUMNS = ("x", "y", "xspeed", "yspeed", "state", "airborne", "walled", "gold")
ENTITY_COLUMNS = ("entity_type", "entity_x", "entity_y", "entity_active")


def same(left: Trajectory, right: Trajectory) -> bool:
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in COLUMNS)


@pytest.mark.parametrize(
    "inputs",
    [
        list(INPUTS),
        tuple(INPUTS),
        bytearray(INPUTS),
        np.frombuffer(INPUTS, np.uint8),
        np.array(list(INPUTS), np.int64),
        np.repeat(np.array(list(INPUTS), np.int16), 2)[::2],
    ],
    ids=["list", "tuple", "bytearray", "uint8", "int64", "strided"],
)
def test_inputs_of_any_kind(inputs):
    assert same(simulate(LEVEL, inputs), simulate(LEVEL, INPUTS))


def test_levels_of_any_kind(tmp_path):
    path = tmp_path / "level"
    path.write_bytes(write_map(LEVEL.raw))
    expected = simulate(LEVEL, INPUTS)
    for level in (path, str(path), write_map(LEVEL.raw), LEVEL.raw, load_level(LEVEL.raw)):
        assert same(simulate(level, INPUTS), expected)


def test_a_level_object_is_compiled_once_for_all_its_runs(monkeypatch):
    level, other = load_level(LEVEL.raw), load_level(LEVEL.raw)
    compiled = []

    def counting(level):
        compiled.append(level)
        return compile_level(level)

    monkeypatch.setattr(level_set, "compile_level", counting)
    for one in (level, level, other, level):
        assert same(simulate(one, INPUTS), simulate(LEVEL, INPUTS))
    assert [one for one in compiled if one is not LEVEL] == [level, other]


def test_dtypes_and_shapes():
    run = simulate(LEVEL, INPUTS, entities=True)
    frames = len(INPUTS)
    assert len(run) == frames
    dtypes = {name: getattr(run, name).dtype for name in COLUMNS + ENTITY_COLUMNS}
    assert dtypes == {
        **dict.fromkeys(("x", "y", "xspeed", "yspeed", "entity_x", "entity_y"), np.dtype(np.float64)),
        **dict.fromkeys(("airborne", "walled", "entity_active"), np.dtype(bool)),
        **dict.fromkeys(("gold", "entity_type"), np.dtype(np.int16)),
        "state": np.dtype(np.int8),
    }
    assert {getattr(run, name).shape for name in COLUMNS} == {(frames,)}
    assert run.entity_type.tolist() == [1, 2, 3, 4]
    assert {getattr(run, name).shape for name in ENTITY_COLUMNS[1:]} == {(frames, 4)}
    assert run.entity_x[7].tolist() == [600.0, 360.0, 540.0, 300.0]
    assert run.entity_y[-1].tolist() == [120.0, 348.0, 348.0, 348.0]


def test_without_entities_there_are_none():
    run = simulate(LEVEL, INPUTS)
    assert [getattr(run, name) for name in ENTITY_COLUMNS] == [None] * 4


def test_a_level_without_entities():
    run = simulate(build_room(), bytes(3), entities=True)
    assert run.entity_type.shape == (0,)
    assert run.entity_x.shape == run.entity_active.shape == (3, 0)


def test_no_inputs_no_rows():
    for inputs in (b"", [], np.zeros(0, np.uint8)):
        run = simulate(LEVEL, inputs, entities=True)
        assert len(run) == 0
        assert run.entity_x.shape == (0, 4)


def test_all_sixteen_bytes_are_inputs():
    assert len(simulate(build_room(), bytes(range(16)))) == 16


@pytest.mark.parametrize(
    ("code", "direction"), [(0, 0), (RIGHT, 1), (LEFT, -1), (LEFT | RIGHT, -1)], ids=["none", "right", "left", "both"]
)
def test_left_wins_over_right(code, direction):
    run = simulate(build_room(spawn=(80, 58)), bytes([code]) * 20)
    assert np.sign(run.x[-1] - 480.0) == direction


def test_a_ninja_comes_to_rest_on_the_floor_and_jumps_off_it():
    run = simulate(build_room(spawn=(40, 57)), bytes(60) + bytes([JUMP]) * 10)
    assert run.y[59] == pytest.approx(FLOOR_Y, abs=1e-6)
    assert run.state[59] == 0
    assert not run.airborne[59]
    assert run.state[60] == 3
    assert run.yspeed[60] == -2.0
    assert run.airborne[61]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([0, 3, 16], "got 16 at frame 2"),
        (bytes([0, 255]), "got 255 at frame 1"),
        ([-1], "got -1 at frame 0"),
        (np.array([300]), "got 300 at frame 0"),
        ([0.0, 1.0], "float64"),
        ([True, False], "bool"),
        (["1", "2"], "shape"),
        ([[1, 2], [3, 4]], r"shape \(2, 2\)"),
        (5, r"shape \(\)"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_wrong_inputs(inputs, message):
    with pytest.raises(InputsError, match=message) as caught:
        simulate(LEVEL, inputs)
    assert str(caught.value).startswith("inputs: expected")
    assert isinstance(caught.value, NcloneError)
    assert isinstance(caught.value, ValueError)


def test_wrong_levels(tmp_path):
    with pytest.raises(LevelFormatError):
        simulate(b"too short", INPUTS)
    with pytest.raises(UnknownLevelError, match="missing"):
        simulate(tmp_path / "missing", INPUTS)
