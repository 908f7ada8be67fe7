"""The solution that a tube lies along: all of it, or a window, and how it changes.

A window is a part of a long solution. Where the solution is short, the window is all of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.jit import kernel
from nclone_env.plan.archive import Archive
from nclone_env.plan.table import EMPTY
from nclone_env.sim.random_numbers import draw

BIN = 4.0
"""Pixels of the remaining path that are not told apart."""
_SHORTEST = 100
"""Frames of the shortest window that is left of one when the solution becomes shorter."""
PATIENCE = 50_000
"""Frames without a better solution after which another window is chosen."""
NO_FRAME, ALONE = -1, -1
FOREVER = 1 << 62

TUBE = np.dtype(
    [("ends", "i8")]
    + [(name, "i4") for name in ("length", "window", "first", "last", "known", "laid", "lag")]
    + [(name, "i4") for name in ("running", "frame", "node", "used", "ahead", "code", "left", "steps")],
    align=True,
)
"""State of a tube: frames simulated at which another window is chosen; frames of the solution, of a window, of the
solution before the window and up to its end; frame from which the marks of the solution are known; whether the tube is
laid along it; frames that a state may be behind it. Of the run that is played: whether it goes on, its frame and node,
the nodes up to the last state that was kept, the frames that it is ahead of the solution whose inputs it plays, or
``ALONE``, the input that is held, how often it is held still, and the held inputs until its end."""


class Tube(NamedTuple):
    """The memory of a search around a solution of at most T frames.

    Attributes:
        archive: ``Archive``; ``way`` of a cell is the number of frames that it is behind the solution, ``step`` the
            first frame in which the solution is in it, -1 if it is not.
        due: (B,) int32; for each length of the remaining path the last frame of the solution in which it is as long.
        inputs: (T,) uint8; the solution.
        places: (T + 1,) float64; x after each frame of the solution.
        ways: (T + 1,) float32; the remaining path after each frame, pixels.
        hashes: (T + 1,) uint64; ``hash_future`` after each frame.
        state: (1,) ``TUBE``.
    """

    archive: Archive
    due: np.ndarray
    inputs: np.ndarray
    places: np.ndarray
    ways: np.ndarray
    hashes: np.ndarray
    state: np.ndarray


def make_tube(archive: Archive, longest: int, way: float, lag: int, window: int) -> Tube:
    """Return a tube in an archive that has begun.

    Args:
        archive: its memory.
        longest: frames of the longest solution.
        way: longest remaining path, pixels.
        lag: frames that a state may be behind the solution.
        window: frames of a window; of solutions up to half as long again it is all.
    """
    state = np.zeros(1, TUBE)
    state["lag"], state["window"] = lag, window
    return Tube(
        archive,
        np.zeros(int(way / BIN) + 2, np.int32),
        np.zeros(longest, np.uint8),
        np.zeros(longest + 1),
        np.zeros(longest + 1, np.float32),
        np.zeros(longest + 1, np.uint64),
        state,
    )


@kernel
def take(tube, inputs, cost):
    """Take a solution, (T,) uint8; the window stays if the solution is the same before it."""
    state, search, length = tube.state[0], tube.archive.search[0], inputs.shape[0]
    same = True
    for frame in range(length):
        same = same and (frame >= state["first"] or tube.inputs[frame] == inputs[frame])
        tube.inputs[frame] = inputs[frame]
    state["last"] = min(max(state["last"] + length - state["length"], 0), length)
    if not same or state["last"] < state["first"] + _SHORTEST:
        state["ends"] = 0
    state["length"] = state["known"] = length
    search["limit"] = cost
    lift(tube)


@kernel
def lift(tube):
    """Prepare a tube for being laid along its solution, which has changed."""
    tube.due[:] = tube.state[0]["first"]
    for number in range(tube.archive.search[0]["cells"]):
        tube.archive.cells[number]["step"] = NO_FRAME
    tube.archive.cells[0]["way"] = 0.0  # where the window begins
    tube.state[0]["laid"] = 0


@kernel
def choose_window(tube):
    """Choose a window, and drop all cells but the first, which will be the state in which the window begins."""
    archive, search, state = tube.archive, tube.archive.search[0], tube.state[0]
    length, window = int(state["length"]), int(state["window"])
    state["first"], state["last"], state["known"], state["ends"] = 0, length, length, FOREVER
    if length > window + window // 2:
        drawn = max(draw(search, length - window // 2) - window // 2, 0)
        state["first"] = drawn // search["hold"] * search["hold"]
        state["last"], state["ends"] = min(state["first"] + window, length), search["frames"] + PATIENCE
    archive.table.numbers[:] = EMPTY
    search["cells"], search["nodes"] = 0, 1
    lift(tube)


@kernel
def take_run(tube):
    """Make the run that has won the solution of the tube; return True."""
    state, hold = tube.state[0], tube.archive.search[0]["hold"]
    frame = state["frame"]
    last = (frame - 1) // hold * hold  # frames of its nodes
    for place in range(last, frame):
        tube.inputs[place] = state["code"]
    write_way(tube, last)
    state["last"] = min(max(state["last"] + frame - state["length"], state["first"] + 1), frame)
    state["length"] = state["known"] = frame
    lift(tube)
    return True


@kernel
def take_joined(tube):
    """Make the run that is on the solution, some frames earlier, the solution of the tube; return True."""
    state = tube.state[0]
    frame, gain, length = state["frame"], state["ahead"], state["length"]
    for place in range(frame, length - gain):
        tube.inputs[place], tube.places[place] = tube.inputs[place + gain], tube.places[place + gain]
        tube.ways[place], tube.hashes[place] = tube.ways[place + gain], tube.hashes[place + gain]
    write_way(tube, frame)
    tube.archive.search[0]["limit"] -= gain
    state["length"], state["known"] = length - gain, frame
    state["last"] = max(state["last"] - gain, state["first"] + 1)
    lift(tube)
    return True


@kernel
def write_way(tube, frame):
    """Write the inputs of the nodes of the run from the beginning of the window to a frame."""
    node, hold = tube.state[0]["node"], tube.archive.search[0]["hold"]
    while frame > tube.state[0]["first"]:
        frame -= hold
        for place in range(frame, frame + hold):
            tube.inputs[place] = tube.archive.nodes[node]["input"]
        node = tube.archive.nodes[node]["parent"]
