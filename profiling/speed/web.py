"""Frames/s of the simulator in pages, in Node, next to the processor's own, in processor time on each level.

Random inputs, held for four frames, from the start of a level again and again; best of five runs each, in Node after
a hundred that let it compile the code a second time.
"""

from __future__ import annotations

import base64
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.gallery.web import programs
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.level import Level
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_levels
from nclone_env.sim.session import Session
from profiling.checks.retarget import random_inputs
from profiling.measure import describe

FRAMES, RUNS, WARM = 20_000, 5, 100
_WEB = Path(programs.__file__).parent
_SCRIPT = """
const Simulator = require(process.argv[1]), given = JSON.parse(require("fs").readFileSync(0));
Simulator.load(given.module).then((simulator) => {
  const run = simulator.level(given.map).run(Buffer.from(given.inputs, "base64")), found = [];
  for (let count = 0; count < given.warm; count++) run.at(0).at(given.frames);
  for (let count = 0; count < given.runs; count++) {
    run.at(0);
    const before = process.cpuUsage();
    run.at(given.frames);
    const { user, system } = process.cpuUsage(before);
    found.push(given.frames / (user + system));
  }
  console.log(Math.max(...found));
});
"""


def in_node(level: Level, inputs: bytes) -> float:
    """Return million frames/s in Node."""
    given = {"module": (_WEB / "play.wasm").read_bytes(), "map": write_map(level.raw), "inputs": inputs}
    texts = {name: base64.b64encode(data).decode() for name, data in given.items()}
    command = [str(shutil.which("node")), "-e", _SCRIPT, str(_WEB / "simulator.js")]
    request = json.dumps({**texts, "frames": len(inputs), "runs": RUNS, "warm": WARM})
    return float(subprocess.run(command, input=request, capture_output=True, text=True, check=True).stdout)


def here(level: Level, inputs: bytes) -> float:
    """Return million frames/s of the processor's own code."""
    session, codes, found = Session(pack([level])), np.frombuffer(inputs, np.uint8), []
    for _ in range(RUNS + 1):
        session.start()
        began = time.process_time()
        session.play(codes)
        found.append(len(inputs) / (time.process_time() - began) / 1e6)
    return max(found)


def main(levels: Positional[tuple[str, ...]] = ("first-steps", "jumps", "hazards")) -> int:
    """Print a line for each level, and medians.

    Args:
        levels: levels to play, also files and folders.

    Returns:
        The exit code.
    """
    if shutil.which("node") is None:
        sys.exit("web: expected Node, got none: install it")
    print(f"{describe()}; million frames/s: Node, native, ratio")
    rows = []
    for seed, level in enumerate(load_levels(list(levels))):
        inputs = random_inputs(FRAMES, seed)
        node, own = in_node(level, inputs), here(level, inputs)
        rows.append((node, own, node / own))
        print(f"{level.name:40} {node:6.2f} {own:6.2f} {node / own:5.2f}", flush=True)
    print("median", *(f"{statistics.median(column):.2f}" for column in zip(*rows)))
    return 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
