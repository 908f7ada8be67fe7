"""The recipes of CONTRIBUTING.md, followed by the letter in a copy of the package: what they add works, packs stay."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..level.level_bases import make_level, make_pack

ROOT = Path(__file__).parents[2]
OBSERVATION = '''"""The place of the ninja, and the quarter of the world that it is in."""

import numpy as np

from nclone_env.jit import kernel, local_f64
from nclone_env.obs.half import write_vector


@kernel
def write_whereabouts(worlds, index, out):
    """Write x and y as shares of the world, and the downward speed."""
    ninja, values = worlds.ninjas[index], local_f64(3)
    values[0], values[1], values[2] = ninja["x"] / 1056.0, ninja["y"] / 600.0, ninja["vy"] / 8.0
    write_vector(values, out)


@kernel
def write_quarter(worlds, index, out):
    """Write 255 into the quarter of the ninja, 0 into the others."""
    ninja = worlds.ninjas[index]
    for row in range(2):
        for column in range(2):
            out[row, column] = 0
    out[int(ninja["y"] >= 300.0), int(ninja["x"] >= 528.0)] = 255
'''
KIND = '''"""A draught that lifts the ninja."""

from nclone_env.jit import kernel
from nclone_env.sim.ninja import touches


@kernel
def touch_updraft(ninja, entity):
    """Push the ninja up."""
    if touches(ninja, entity["x"], entity["y"], 12.0):
        ninja["vy"] -= 0.2
'''
EDITS = {
    # An observation.
    "config.py": [('    "action_mask",\n]', '    "action_mask",\n    "whereabouts",\n    "quarter",\n]')],
    "obs/spec.py": [
        (
            '        spec("action_mask",',
            '        spec("whereabouts", (3,), vector, -1, 1, "place and speed"),\n'
            '        spec("quarter", (2, 2), uint8, 0, 255, "quarter of the world"),\n'
            '        spec("action_mask",',
        )
    ],
    "obs/rows.py": [
        (
            "    if extras.queries.shape[0] > 0:",
            "    if extras.whereabouts.shape[0] > 0:\n"
            "        write_whereabouts(worlds, index, extras.whereabouts[row])\n"
            "    if extras.quarter.shape[0] > 0:\n"
            "        write_quarter(worlds, index, extras.quarter[row])\n"
            "    if extras.queries.shape[0] > 0:",
        ),
        (
            "from nclone_env.obs.spec import",
            "from nclone_env.obs.whereabouts import write_quarter, write_whereabouts\nfrom nclone_env.obs.spec import",
        ),
    ],
    # An entity kind.
    "game.py": [
        ("    SHOVE_THWUMP,\n) = range(29)", "    SHOVE_THWUMP, UPDRAFT,\n) = range(30)"),
        (
            ')\n# fmt: on\n"""The kinds by number',
            '    Kind(UPDRAFT, "updraft", radii=(12.0,)),\n)\n# fmt: on\n"""The kinds by number',
        ),
    ],
    "sim/dispatch.py": [
        (
            "    elif kind == game.ONE_WAY:\n        wall =",
            "    elif kind == game.UPDRAFT:\n        updraft.touch_updraft(ninja, entity)\n"
            "    elif kind == game.ONE_WAY:\n        wall =",
        ),
        ("import blocks, drone, fixed, hunters, turrets", "import blocks, drone, fixed, hunters, turrets, updraft"),
    ],
    "render/looks.py": [
        ("    game.SHOVE_THWUMP: Look(", "    game.UPDRAFT: Look(_BOOST_PAD),\n    game.SHOVE_THWUMP: Look(")
    ],
}
"""What the recipes change in files that exist, each a text and its replacement."""
PROGRAM = """
import sys
import numpy as np
from nclone_env import NPlusPlusEnv, load_level
from nclone_env.level import level_sets, load_levels
from nclone_env.sim import Session

assert level_sets()["contributed"] == ("contributed/lift",)
flown = []
for dtype in ("float32", "float16"):
    names = ("whereabouts", "quarter", "game_state")
    options = {"levels": "contributed", "observations": names, "frame_skip": 1, "observation": {"dtype": dtype}}
    with NPlusPlusEnv(**options) as env:
        session = Session(load_level("contributed/lift"))
        seen, _ = env.reset(seed=0)
        for step in range(60):
            ninja = session.ninja
            place = np.array([ninja["x"] / 1056, ninja["y"] / 600, ninja["vy"] / 8]).astype(np.float32).astype(dtype)
            quarter = np.zeros((2, 2), np.uint8)
            quarter[int(ninja["y"] >= 300), int(ninja["x"] >= 528)] = 255
            assert seen["whereabouts"].dtype == place.dtype
            assert (seen["whereabouts"] == place).all(), (step, seen, place)
            assert (seen["quarter"] == quarter).all()
            assert env.observation_space.contains(seen)
            flown.append(float(ninja["vy"]))
            seen, *_ = env.step(0)
            session.tick(0)
assert min(flown) < -1.0, "the draught lifts"
for pack in sys.argv[1:]:
    print(len(load_levels(pack)))
"""


@pytest.mark.slow
def test_what_the_recipes_add_works_and_packs_stay_readable(tmp_path):
    package = tmp_path / "nclone_env"
    shutil.copytree(ROOT / "nclone_env", package, ignore=shutil.ignore_patterns("_code", "__pycache__"))
    shutil.copytree(ROOT / "levels", tmp_path / "levels")
    (package / "obs" / "whereabouts.py").write_text(OBSERVATION)
    (package / "sim" / "entities" / "updraft.py").write_text(KIND)
    for name, edits in EDITS.items():
        source = (package / name).read_text()
        for old, new in edits:
            assert source.count(old) == 1, f"{name}: {old}"
            source = source.replace(old, new)
        (package / name).write_text(source)
    level = (ROOT / "levels" / "jumps" / "01-stairs.toml").read_text()
    (tmp_path / "levels" / "contributed").mkdir()
    lifted = level.replace("ninja 30 66", "ninja 30 66\nupdraft 30 66")
    assert lifted != level
    (tmp_path / "levels" / "contributed" / "lift.toml").write_text(lifted)
    pack = tmp_path / "pack.txt"
    mines = [[(0, 6, 82, 0, 0), (1, 10 + spot, 82, 0, 0)] for spot in range(3)]
    pack.write_bytes(make_pack(*(make_level(records, title=f"level {len(records)}") for records in mines)))
    environment = os.environ | {"PYTHONPATH": os.fspath(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, os.fspath(pack)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3"]


@pytest.mark.parametrize("name", EDITS)
def test_the_places_that_the_recipes_name_are_there(name):
    """Every edit of the slow test applies; CONTRIBUTING.md names the file."""
    source = (ROOT / "nclone_env" / name).read_text()
    assert all(source.count(old) == 1 for old, _ in EDITS[name])
    assert name in (ROOT / "CONTRIBUTING.md").read_text()
