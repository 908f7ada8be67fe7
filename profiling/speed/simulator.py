"""Frames/s of the simulator alone, on one core, and the share of each phase of a frame.

Random inputs (seeded, uniform over the actions) are held for four frames; a world restarts at death or victory. Frames
in which the ninja is dead or has won are not counted. Compilation is reported apart.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.game import CELEBRATING, DEAD, INPUT_OF_ACTION, NUM_ACTIONS
from nclone_env.jit import kernel, local_f64
from nclone_env.level import LevelSet, load_level, pack
from nclone_env.sim.frame import act_entities, start, tick
from nclone_env.sim.ninja import CONTACT_SLOTS, think, turn
from nclone_env.sim.ninja_move import NEAR_SLOTS, clear_near, collide, integrate, settle, visit
from nclone_env.sim.state import copy_world, make_worlds
from profiling.measure import basic_sets, describe, timed

FRAMES = 1_000_000
RUNS = 5
SAMPLES = 4096  # states in which the phases of a frame are timed

HOLD = 4


@kernel
def next_random(state):
    """Return the next state of a 32-bit linear congruential generator (physics 01, section 15.5)."""
    return (1664525 * state + 1013904223) & 0xFFFFFFFF


@kernel
def run(levels, worlds, frames, seed):
    """Play ``frames`` frames of world 0; return (frames counted, frames in the air)."""
    start(levels, worlds, 0, 0)
    counted, airborne, random, inputs = 0, 0, seed, 0
    for frame in range(frames):
        if frame % HOLD == 0:
            random = next_random(random)
            inputs = INPUT_OF_ACTION[(random >> 16) % NUM_ACTIONS]
        tick(levels, worlds, 0, inputs)
        state = worlds.ninjas[0]["state"]
        if state == DEAD or state == CELEBRATING:
            start(levels, worlds, 0, 0)
        else:
            counted += 1
            airborne += worlds.ninjas[0]["airborne"]
    return counted, airborne


@kernel
def sample(levels, worlds, seed):
    """Put each world into a state of one random run, 37 frames apart."""
    last = worlds.ninjas.shape[0] - 1
    start(levels, worlds, last, 0)
    random, inputs = seed, 0
    for index in range(last):
        for frame in range(37):
            if frame % HOLD == 0:
                random = next_random(random)
                inputs = INPUT_OF_ACTION[(random >> 16) % NUM_ACTIONS]
            tick(levels, worlds, last, inputs)
            state = worlds.ninjas[last]["state"]
            if state == DEAD or state == CELEBRATING:
                start(levels, worlds, last, 0)
        copy_world(worlds, last, worlds, index)


@kernel
def phase_actors(levels, worlds):
    """Let the entities move and think, once in every world."""
    for index in range(worlds.ninjas.shape[0]):
        act_entities(levels, worlds, index)


@kernel
def phase_collide(levels, worlds):
    """Integrate and collide with entities and tiles, once in every world."""
    for index in range(worlds.ninjas.shape[0]):
        contacts, near = local_f64(CONTACT_SLOTS), local_f64(NEAR_SLOTS, 0)
        clear_near(near)
        x, y = worlds.ninjas[index]["x"], worlds.ninjas[index]["y"]
        integrate(worlds.ninjas[index])
        collide(levels, worlds, index, near, contacts, x, y)


@kernel
def phase_touch(levels, worlds):
    """Touch the entities, once in every world."""
    for index in range(worlds.ninjas.shape[0]):
        contacts, near = local_f64(CONTACT_SLOTS), local_f64(NEAR_SLOTS, 0)
        clear_near(near)
        visit(levels, worlds, index, near, contacts, 0.0, 0.0, False)


@kernel
def phase_settle(levels, worlds):
    """Detect walls and settle the contacts, once in every world."""
    for index in range(worlds.ninjas.shape[0]):
        settle(levels, worlds, index, local_f64(CONTACT_SLOTS), 0.0, 0.0)


@kernel
def phase_think(levels, worlds):
    """Think and turn, once in every world."""
    for index in range(worlds.ninjas.shape[0]):
        think(worlds.ninjas[index], 1, 0)
        turn(worlds.ninjas[index], 1)


PHASES = {
    "actors": phase_actors,
    "collide": phase_collide,
    "touch": phase_touch,
    "settle": phase_settle,
    "think": phase_think,
}


def frame_speed(levels: LevelSet) -> tuple[list[float], float]:
    """Return the frames/s of each run and the share of airborne frames."""
    worlds = make_worlds(1, levels)
    run(levels.arrays, worlds, 100, 0)
    speeds = []
    counted = airborne = 0
    for seed in range(RUNS):
        (counted, airborne), seconds = timed(partial(run, levels.arrays, worlds, FRAMES, seed))
        speeds.append(counted / seconds)
    return speeds, airborne / counted


def phase_nanoseconds(levels: LevelSet) -> dict[str, float]:
    """Return the nanoseconds of each phase of a frame, best of several runs over the same sampled states."""
    template, worlds = make_worlds(SAMPLES, levels), make_worlds(SAMPLES, levels)
    sample(levels.arrays, template, 1)
    best = dict.fromkeys(PHASES, float("inf"))
    for _ in range(8 * RUNS):
        for name, phase in PHASES.items():
            for source, target in zip(template, worlds, strict=True):
                np.copyto(target, source)
            _, seconds = timed(partial(phase, levels.arrays, worlds))
            best[name] = min(best[name], seconds / SAMPLES * 1e9)
    return best


def main(levels: Positional[tuple[str, ...]] = ()) -> None:
    """Print a row for each level.

    Args:
        levels: level names or files; those of the basic sets by default.
    """
    print(describe())
    sources = levels or [path for paths in basic_sets().values() for path in paths]
    first = pack([load_level(sources[0])])
    _, seconds = timed(lambda: run(first.arrays, make_worlds(1, first), 1, 0))
    print(f"loading or compiling kernels: {seconds:.1f} s (not counted below)")
    print(f"{'level':<28}{'M frames/s':>11}{'best':>7}{'air':>6}   ns a frame: {'  '.join(PHASES)}")
    medians = []
    for source in sources:
        level = load_level(source)
        level_set = pack([level])
        speeds, air = frame_speed(level_set)
        phases = phase_nanoseconds(level_set)
        medians.append(float(np.median(speeds)))
        row = "  ".join(f"{value:{len(name)}.0f}" for name, value in phases.items())
        print(f"{level.name:<28}{medians[-1] / 1e6:11.2f}{max(speeds) / 1e6:7.2f}{air:6.0%}   {row}")
    print(f"median {np.median(medians) / 1e6:.2f}, worst {min(medians) / 1e6:.2f} million frames/s")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
