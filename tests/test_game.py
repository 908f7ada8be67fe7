"""The table of kinds: its derived facts against the code, the documents and the simulation."""

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from nclone_env.game import DOOR_SWITCHES, KINDS, MOVER, STATE, SWITCH_OF, UNKNOWN_27, initial_state, kind_name
from nclone_env.level.build import build_level, hall_tiles
from nclone_env.level.compile import compile_level
from nclone_env.render.looks import LOOKS
from nclone_env.sim import dispatch, entities
from nclone_env.sim.session import Session
from nclone_env.sim.state import MOVER as MOVER_RECORD

PACKAGE = Path(__file__).parents[1] / "nclone_env"
SOURCES = sorted(PACKAGE.rglob("*.py"))
CREATING = [kind for kind in KINDS if kind.has_entity and kind.number not in SWITCH_OF.values()]
HALL = hall_tiles((2, 40), (5, 16))  # floor at y = 408 pixels


def names(kinds):
    return [kind.name for kind in kinds]


def test_rows_are_in_the_order_of_their_numbers_and_names_are_unique():
    assert [kind.number for kind in KINDS] == list(range(len(KINDS)))
    assert len(set(names(KINDS))) == len(KINDS)
    module = importlib.import_module("nclone_env.game")
    assert all(getattr(module, kind.name.upper()) == kind.number for kind in KINDS)
    assert (kind_name(6), kind_name(len(KINDS)), kind_name(255)) == ("locked_door", f"type_{len(KINDS)}", "type_255")


def test_every_kind_has_a_look():
    assert [kind.number for kind in KINDS if kind.number not in LOOKS] == [UNKNOWN_27]


def test_every_file_under_entities_is_dispatched_to():
    files = {path.stem for path in Path(entities.__path__[0]).iterdir() if not path.stem.startswith("_")}
    modules = [value.__name__ for value in vars(dispatch).values() if isinstance(value, ModuleType)]
    prefix = f"{entities.__name__}."
    assert files == {name.removeprefix(prefix).split(".")[0] for name in modules if name.startswith(prefix)}


def test_a_mover_has_the_size_that_the_readme_states():
    assert MOVER_RECORD.itemsize == 40


def test_switches_belong_to_exits_and_doors():
    assert {KINDS[kind].name: KINDS[switch].name for kind, switch in SWITCH_OF.items()} == {
        "exit": "exit_switch",
        "locked_door": "locked_door_switch",
        "trap_door": "trap_door_switch",
    }
    assert set(DOOR_SWITCHES) == set(SWITCH_OF) & {kind.number for kind in KINDS if kind.is_door}
    for kind in KINDS:
        assert ("XY" in (kind.pack or "")) == (kind.switch is not None)
    assert all(KINDS[switch].pack is None for switch in SWITCH_OF.values())


def lines_of(kind, orientation=0, mode=0, x=100, y=52):
    """Return the entity lines of one entity, its switch included."""
    lines = [f"{kind.name} {x} {y} {orientation} {mode}"]
    return lines + ([f"{KINDS[kind.switch].name} {x + 8} 66"] if kind.switch is not None else [])


def alone(kind, orientation=0, mode=0):
    """Return a hall with one entity in the middle and the ninja in a closed cell far away."""
    tiles = HALL.copy()
    tiles[20:23, 0:3] = 0
    return build_level(*lines_of(kind, orientation, mode), tiles=tiles, spawn=(6, 90))


@pytest.mark.parametrize("kind", CREATING, ids=names(CREATING))
def test_the_entity_table_follows_the_row(kind):
    entity = compile_level(alone(kind)).entities[0]
    assert entity["type"] == kind.number
    assert (entity["mover"] >= 0) == kind.has_mover
    session = Session(alone(kind, orientation=2))
    assert session[0].entity_states[0] == initial_state(kind.number, 2)
    assert kind.has_heading == (initial_state(kind.number, 2) != initial_state(kind.number, 0))
    if kind.has_mover:
        assert (session[0].movers[0]["cell"] >= 0) == kind.starts_in_cell


def parts(kind, level, inputs):
    """Return (T, 1) states and (T, 1) movers of the first entity, the start included."""
    session = Session(level, max_frames=len(inputs) + 1)
    frames = session.record(bytes(inputs))
    first = Session(level, max_frames=len(inputs) + 1)[0]
    states = np.concatenate([first.entity_states[:1], frames.entity_states[:, 0]])
    movers = np.concatenate([first.movers[:1], frames.movers[:, 0]]) if kind.has_mover else np.zeros(len(states))
    return {STATE: states, MOVER: movers}


def changed(kind, level, inputs):
    return {name for name, values in parts(kind, level, inputs).items() if (values != values[0]).any()}


INDIFFERENT = [kind for kind in CREATING if kind.name != "death_ball"]  # that one flies to the ninja from anywhere


@pytest.mark.parametrize("kind", INDIFFERENT, ids=names(INDIFFERENT))
def test_clocks_are_all_that_changes_without_the_ninja(kind):
    seen = set()
    for orientation in range(0, 8, 2):
        for mode in range(4):
            seen |= changed(kind, alone(kind, orientation, mode), [0] * 400)
    if kind.name == "laser_turret":  # a surface laser also turns back in a corner
        tiles = HALL.copy()
        tiles[20:23, 0:3] = 0
        tiles[12:16, 16] = 1
        seen |= changed(kind, build_level("laser_turret 84 67 6 1", tiles=tiles, spawn=(6, 90)), [0] * 400)
    assert seen == set(kind.clock)


def busy_inputs(seed, frames=900):
    """Return inputs of a ninja that runs to and fro and jumps."""
    rng = np.random.default_rng(seed)
    return np.repeat(rng.integers(0, 6, frames // 15), 15).astype(np.uint8).tolist()


@pytest.mark.parametrize("kind", CREATING, ids=names(CREATING))
def test_the_ninja_changes_what_the_row_says(kind):
    trajectories = []
    for seed in range(4):
        for x, y in ((60, 66), (64, 67), (60, 58)):
            level = build_level(*lines_of(kind, x=x, y=y), tiles=HALL, spawn=(52, 66))
            trajectories.append(((x, y), parts(kind, level, busy_inputs(seed))))
    for name in (STATE, MOVER):
        runs = {}
        for place, values in trajectories:
            runs.setdefault(place, set()).add(values[name].tobytes())
        depends = any(len(different) > 1 for different in runs.values())
        assert depends == (name in kind.ninja_changes), name


NUMBERED = re.compile(r"^(kind|entity_type|kinds)$")
STATEFUL = re.compile(r"^(states?|entity_states|phase)$")


def subject(node):
    """Return the name a value goes by: of ``entity["type"]`` type, of ``states[index, slot] & 3`` states."""
    if isinstance(node, ast.Subscript):
        index = node.slice
        if isinstance(index, ast.Constant) and index.value == "type":
            return "kind"
        if isinstance(index, ast.Constant):
            return str(index.value)
        return subject(node.value)
    if isinstance(node, ast.BinOp):
        return subject(node.left)
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def whole_numbers(node):
    """Return the integers that a side of a comparison consists of; those in arithmetic do not count."""
    literals = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return [item.value for item in literals if isinstance(item, ast.Constant) and type(item.value) is int]


def bare_numbers(source):
    """Return the lines that compare a kind with a number, or a state with a number other than 0."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            called = {subject(side) for side in sides}
            values = [value for side in sides for value in whole_numbers(side)]
            kinds, states = (any(pattern.match(name) for name in called) for pattern in (NUMBERED, STATEFUL))
            if (kinds and values) or (states and any(values)):
                lines.append(node.lineno)
    return lines


def test_kinds_and_states_have_names():
    assert {path: lines for path in SOURCES if (lines := bare_numbers(path.read_text()))} == {}


@pytest.mark.parametrize(
    "source",
    ["entity['type'] == 5", "kind in (6, 8)", "states[index, slot] == 1", "state & 3 >= 2", "ninja['state'] != 6"],
)
def test_bare_numbers_are_found(source):
    assert bare_numbers(source) == [1]
    assert (
        bare_numbers(
            "kind == DOOR or state + 1 < WARNING + PAUSE or state == IDLE or states[i, j] == 0 or entities[kind] == 3"
        )
        == []
    )


def field_names():
    """Return the names that the files of kinds give to the fields of their movers."""
    found = {"a", "b", "timer"}
    for path in (PACKAGE / "sim" / "entities").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple | ast.Name):
                targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else [node.targets[0]]
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                pairs = zip(targets, values) if len(targets) == len(values) else ()
                found |= {
                    name.id for name, value in pairs if isinstance(value, ast.Constant) and type(value.value) is str
                }
    return found


def test_only_the_file_of_a_kind_reads_the_fields_of_its_mover():
    fields = field_names()
    assert {"AIM_X", "NODE_Y", "BEAM_ANGLE", "TOUCH_FRAME"} <= fields
    owners = {PACKAGE / "sim" / "frame.py", *(PACKAGE / "sim" / "entities").rglob("*.py")}
    strangers = []
    subscript = re.compile(rf"\[['\"]?({'|'.join(fields)})['\"]?\]")
    texts = {path: path.read_text() for path in set(SOURCES) - owners}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if subscript.search(text) else ():
            if isinstance(node, ast.Subscript):
                index = node.slice
                name = index.value if isinstance(index, ast.Constant) else getattr(index, "id", None)
                if isinstance(name, str) and name in fields:
                    strangers.append(f"{path.name}:{node.lineno} {name}")
    assert strangers == []
