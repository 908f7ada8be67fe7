"""Levels of the game's packs, played with given inputs: checksums of every 50 frames must be those on record."""

import base64
import json
import zlib

import numpy as np
import pytest

from nclone_env.level.level import RawLevel
from nclone_env.sim.trajectory import Trajectory, simulate

from ..level.level_bases import read_pack
from ..shared import COMPARISONS, SHARED, Comparison, needs_shared

pytestmark = needs_shared

TABS = {"SI": "official-SI.txt", "S": "official-S.txt"}
BLOCK = 50  # frames under one checksum
LEVELS, FRAMES = 370, 102_942


@pytest.fixture(scope="module")
def levels() -> dict[str, RawLevel]:
    """All levels of the two packs by tab and number."""
    packs = {tab: read_pack((SHARED / "maps" / name).read_bytes(), name) for tab, name in TABS.items()}
    return {f"{tab}:{number}": raw for tab, pack in packs.items() for number, raw in enumerate(pack)}


@pytest.fixture(scope="module")
def checks() -> dict[str, dict]:
    """What is on record, by tab and number."""
    return json.loads((SHARED / "maps" / "checks.json").read_text())


def inputs_of(check: dict) -> bytes:
    return zlib.decompress(base64.b64decode(check["inputs"]))


def observed(run: Trajectory) -> dict[str, object]:
    """Return of a run what the record holds."""
    positions, states = np.stack([run.x, run.y], axis=1), run.state.astype(np.int8)
    starts = range(0, len(run), BLOCK)
    sums = [
        zlib.crc32(states[at : at + BLOCK].tobytes(), zlib.crc32(positions[at : at + BLOCK].tobytes())) for at in starts
    ]
    final = [float(run.x[-1]).hex(), float(run.y[-1]).hex(), int(run.state[-1])]
    return {"frames": len(run), "crc32": sums, "final": final, "gold": int(run.gold[-1])}


def differences(check: dict, run: Trajectory) -> list[str]:
    """Return what differs: the first frames of wrong blocks, and the wrong facts at the end."""
    got = observed(run)
    faults = [f"from frame {BLOCK * n}" for n, (a, b) in enumerate(zip(check["crc32"], got["crc32"])) if a != b]
    faults += [
        f"{name} {got[name]}, not {check[name]}" for name in ("frames", "final", "gold") if got[name] != check[name]
    ]
    return faults


def test_the_whole_set_is_compared(checks):
    assert len(checks) == LEVELS
    assert sum(check["frames"] for check in checks.values()) == FRAMES


def test_trajectories(levels, checks, request):
    total = request.config.stash[COMPARISONS].setdefault("levels of the packs", Comparison())
    wrong = {}
    for name, check in checks.items():
        faults = differences(check, simulate(levels[name], inputs_of(check)))
        total.traces += 1
        total.frames += check["frames"]
        total.values += len(check["crc32"]) + 3
        total.differing += len(faults)
        if faults:
            wrong[name] = faults
    assert not wrong
    assert total.traces == LEVELS


def test_the_comparison_notices_one_other_input(levels, checks):
    check = checks["SI:1"]
    inputs = bytearray(inputs_of(check))
    inputs[120] ^= 6
    faults = differences(check, simulate(levels["SI:1"], bytes(inputs)))
    assert "from frame 100" in faults
    assert not any("from frame 50" in fault for fault in faults)
