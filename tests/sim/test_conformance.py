"""Bit-exact equality with the recorded traces of levels that hold nothing but tiles and static entities."""

import contextlib

import numpy as np
import pytest

from nclone_env.constants import MINE
from nclone_env.errors import InertEntityWarning
from nclone_env.level.compile import Level
from nclone_env.level.load import load_level
from nclone_env.sim.simulate import simulate

from ..shared import COMPARISONS, SHARED, Comparison, needs_shared
from .recorder import Session

pytestmark = needs_shared

STATIC_TYPES = {1, 2, 3, 4}
FULL_SET, FULL_SET_STATIC, FULL_SET_FRAMES = 1085, 259, 146_222
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
    """All traces without moving or acting entities, by name."""
    found = {}
    for path in sorted((SHARED / "traces").glob("*.npz")):
        with np.load(path) as file:
            if set(file["ent_type"].tolist()) <= STATIC_TYPES:
                found[path.stem] = dict(file)
    return found


@pytest.fixture
def comparison(request) -> Comparison:
    """A running total that the summary of the run shows."""
    return request.config.stash[COMPARISONS].setdefault(request.node.name, Comparison())


def compiled(trace: dict[str, np.ndarray]) -> Level:
    """Return the level of a trace; only entities that the recorder does not model either may be left out."""
    unmodelled = bool(len(trace["unmodelled_types"]))
    with pytest.warns(InertEntityWarning, match="laser") if unmodelled else contextlib.nullcontext():
        return load_level(trace["map_data"].tobytes())


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


def test_the_whole_set_is_compared(traces):
    assert len(traces) >= 1
    if len(list((SHARED / "traces").glob("*.npz"))) == FULL_SET:
        assert len(traces) == FULL_SET_STATIC
        assert sum(len(trace["inputs"]) for trace in traces.values()) == FULL_SET_FRAMES


def test_trajectories(traces, comparison):
    faults = {}
    for name, trace in traces.items():
        run = simulate(compiled(trace), trace["inputs"], entities=True)
        frames = len(trace["inputs"])
        wanted = {column: trace[column] for column in NINJA_COLUMNS}
        wanted |= {"entity_type": trace["ent_type"], "entity_active": trace["ent_active"]}
        for column, recorded in (("entity_x", trace["ent_x0"]), ("entity_y", trace["ent_y0"])):
            wanted[column] = np.broadcast_to(recorded, (frames, len(recorded)))
        assert len(trace["ent_moving"]) == 0
        comparison.traces += 1
        comparison.frames += frames
        differing = count(comparison, wanted, vars(run))
        if differing:
            faults[name] = differing
    assert not faults
    assert comparison.differing == 0


def test_what_the_ninja_remembers(traces, comparison):
    faults = {}
    for name, trace in traces.items():
        session = Session(compiled(trace))
        heads, states = session.play(trace["inputs"])
        wanted = {column: trace[column] for column in REMEMBERED}
        got = {column: heads[field] for column, field in REMEMBERED.items()}
        mines = np.flatnonzero(trace["ent_type"] == MINE)
        wanted["mine state"], got["mine state"] = trace["ent_state"][:, mines], states[:, mines]
        comparison.traces += 1
        comparison.frames += len(heads)
        differing = count(comparison, wanted, got)
        if differing:
            faults[name] = differing
    assert not faults


def test_the_comparison_notices_one_bit(traces):
    name, trace = next(iter(traces.items()))
    run = simulate(trace["map_data"].tobytes(), trace["inputs"])
    spoiled = run.x.copy()
    spoiled[-1] = np.nextafter(spoiled[-1], np.inf)
    total = Comparison()
    assert count(total, {"x": trace["x"]}, {"x": spoiled}) == [f"x from row {len(spoiled) - 1}"], name
    assert total.differing == 1
