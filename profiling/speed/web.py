"""Frames/s of the simulator in pages, in Node, next to the processor's own, in processor time on each level.

Random inputs, held for four frames, from the start of a level again and again; best of five runs each, in Node after
a hundred that let it compile the code a second time. Below that, on the first level: the way back by a frame from frame
36,000, and a decision of each bundled policy, with its observation, in the mean of a hundred steps.
"""

from __future__ import annotations

import base64
import json
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.gallery.policies import page_policies
from nclone_env.level import Level, load_levels, pack, write_map
from nclone_env.sim.session import Session
from profiling.checks.retarget import random_inputs
from profiling.checks.web import MODULE
from profiling.measure import describe

FRAMES, RUNS, WARM = 20_000, 5, 100
_WEB = MODULE.parent
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

_STEPS = """
const [Simulator, Policies] = process.argv.slice(1).map(require), given = JSON.parse(require("fs").readFileSync(0));
Simulator.load(given.module).then((simulator) => {
  const run = simulator.level(given.map).run(Buffer.from(given.inputs, "base64")), found = {};
  const milliseconds = (action) => {
    const before = process.cpuUsage();
    action();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  run.at(given.frames);
  found["back by a frame"] = milliseconds(() => run.at(given.frames - 1));
  for (const data of given.policies) {
    const policy = Policies.load(data);
    const decide = () => { for (let step = 0; step < 100; step++) policy.act(run.at(step)); };
    decide();
    found[data.name] = milliseconds(decide) / 100;
  }
  console.log(JSON.stringify(found));
});
"""


def answered(script: str, level: Level, inputs: bytes, **given: Any) -> Any:
    """Return what a script prints in Node."""
    parts = {"module": (_WEB / "play.wasm").read_bytes(), "map": write_map(level.raw), "inputs": inputs}
    command = [str(shutil.which("node")), "-e", script, str(_WEB / "simulator.js"), str(_WEB / "policies.js")]
    request = json.dumps({**{name: _text(data) for name, data in parts.items()}, "frames": len(inputs), **given})
    return json.loads(subprocess.run(command, input=request, capture_output=True, text=True, check=True).stdout)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def in_node(level: Level, inputs: bytes) -> float:
    """Return million frames/s in Node."""
    return float(answered(_SCRIPT, level, inputs, runs=RUNS, warm=WARM))


def steps_in_node(level: Level) -> dict[str, float]:
    """Return milliseconds of the way back by a frame from frame 36,000, and of a decision of each policy."""
    policies = [{**policy._asdict(), "weights": _text(policy.weights)} for policy in page_policies()]
    return answered(_STEPS, level, random_inputs(36_000, 0), policies=policies)


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
    for name, milliseconds in steps_in_node(load_levels(list(levels))[0]).items():
        print(f"{name:40} {milliseconds:6.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
