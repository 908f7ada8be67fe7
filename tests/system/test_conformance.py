"""Bit-exact equality with all recorded traces, per frame, of the ninja and of every entity."""

import numpy as np
import pytest

from nclone_env.game import (
    BOOST_PAD,
    FLOOR_GUARD,
    LOCKED_DOOR,
    MINE,
    MINI_DRONE,
    REGULAR_DOOR,
    SHOVE_THWUMP,
    THWUMP,
    TOGGLE_MINE,
    TRAP_DOOR,
    ZAP_DRONE,
)
from nclone_env.sim.session import Session
from nclone_env.sim.trajectory import simulate

from ..shared import COMPARISONS, SHARED, Comparison, needs_shared

pytestmark = needs_shared

FULL_SET, FULL_SET_FRAMES = 1085, 497_783
LASER_KILLS = {"attract_019__human": 709}  # frames before something acts that the recorder does not know
NINJA_COLUMNS = ("x", "y", "xspeed", "yspeed", "state", "airborne", "walled", "gold")
REMEMBERED = {
    "floor_normalized_x": "floor_x",
    "floor_normalized_y": "floor_y",
    "jump_duration": "jump_duration",
    "jump_buffer": "jump_buffer",
    "floor_buffer": "floor_buffer",
    "wall_buffer": "wall_buffer",
    "launch_pad_buffer": "pad_buffer",
}


@pytest.fixture(scope="module")
def traces() -> dict[str, dict[str, np.ndarray]]:
    """All traces by name."""
    found = {}
    for path in sorted((SHARED / "traces").glob("*.npz")):
        with np.load(path) as file:
            found[path.stem] = dict(file)
    return found


@pytest.fixture
def comparison(request) -> Comparison:
    """A running total that the summary of the run shows."""
    return request.config.stash[COMPARISONS].setdefault(request.node.name, Comparison())


def recorded(trace: dict[str, np.ndarray], types: np.ndarray) -> np.ndarray:
    """Return (E,) bool: which of our entities are in the trace; the recorder leaves out those it does not know."""
    return ~np.isin(types, trace["unmodelled_types"])


def positions(trace: dict[str, np.ndarray], axis: str) -> np.ndarray:
    """Return (T, N): where every entity is after each frame."""
    places = np.tile(trace[f"ent_{axis}0"], (len(trace["inputs"]), 1))
    places[:, trace["ent_moving"]] = trace[f"ent_{axis}"]
    return places


def entity_codes(types: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return (T, N) int8: our state bytes (T, >= N) in the words of the traces; -1 where they say nothing."""
    codes = np.full((len(states), len(types)), -1, np.int8)
    for slot, kind in enumerate(types.tolist()):
        if kind in (MINE, TOGGLE_MINE, FLOOR_GUARD, THWUMP, ZAP_DRONE, MINI_DRONE, BOOST_PAD):
            codes[:, slot] = states[:, slot]
        elif kind == SHOVE_THWUMP:
            codes[:, slot] = states[:, slot] & 3
        elif kind in (REGULAR_DOOR, LOCKED_DOOR):
            codes[:, slot] = states[:, slot] == 0
        elif kind == TRAP_DOOR:
            codes[:, slot] = states[:, slot] != 0
    return codes


def count(comparison: Comparison, wanted: dict[str, np.ndarray], got: dict[str, np.ndarray]) -> list[str]:
    """Add one trace to the total; return the names of columns that differ, with the first frame."""
    faults = []
    for name, expected in wanted.items():
        actual = np.asarray(got[name])
        assert actual.shape == expected.shape, name
        differing = np.argwhere(actual != expected)
        comparison.values += expected.size
        comparison.differing += len(differing)
        if len(differing):
            faults.append(f"{name} from row {differing[0][0]}")
    return faults


def compare_all(traces, comparison, columns) -> None:
    """Compare ``columns(trace)``, a dict of pairs (wanted, got), of every trace; no value may differ."""
    faults = {}
    for name, trace in traces.items():
        frames = LASER_KILLS.get(name, len(trace["inputs"]))
        pairs = columns(trace)
        wanted = {column: pair[0][:frames] for column, pair in pairs.items()}
        got = {column: pair[1][:frames] for column, pair in pairs.items()}
        comparison.traces += 1
        comparison.frames += frames
        differing = count(comparison, wanted, got)
        if differing:
            faults[name] = differing
    assert not faults
    assert comparison.differing == 0


def test_the_whole_set_is_compared(traces):
    assert len(traces) >= 1
    if len(traces) == FULL_SET:
        assert sum(len(trace["inputs"]) for trace in traces.values()) == FULL_SET_FRAMES


def test_trajectories(traces, comparison):
    def columns(trace):
        run = simulate(trace["map_data"].tobytes(), trace["inputs"], entities=True)
        known = recorded(trace, run.entity_type)
        assert run.entity_type[known].tolist() == trace["ent_type"].tolist()
        pairs = {column: (trace[column], getattr(run, column)) for column in NINJA_COLUMNS}
        pairs["entity_active"] = (trace["ent_active"], run.entity_active[:, known])
        pairs["entity_x"] = (positions(trace, "x"), run.entity_x[:, known])
        pairs["entity_y"] = (positions(trace, "y"), run.entity_y[:, known])
        return pairs

    compare_all(traces, comparison, columns)


def test_what_is_remembered(traces, comparison):
    def columns(trace):
        session = Session(trace["map_data"].tobytes())
        rows = session.record(trace["inputs"])
        known = np.flatnonzero(recorded(trace, session.entities()["type"]))
        pairs = {column: (trace[column], rows.ninjas[field]) for column, field in REMEMBERED.items()}
        pairs["ent_state"] = (trace["ent_state"], entity_codes(trace["ent_type"], rows.entity_states[:, known]))
        return pairs

    compare_all(traces, comparison, columns)


def test_the_comparison_notices_one_bit(traces):
    name, trace = next(iter(traces.items()))
    run = simulate(trace["map_data"].tobytes(), trace["inputs"])
    spoiled = run.x.copy()
    spoiled[-1] = np.nextafter(spoiled[-1], np.inf)
    total = Comparison()
    assert count(total, {"x": trace["x"]}, {"x": spoiled}) == [f"x from row {len(spoiled) - 1}"], name
    assert total.differing == 1
