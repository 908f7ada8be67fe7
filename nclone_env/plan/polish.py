"""Local search around a solution, frame by frame: edits of its inputs that make it shorter.

A trial edits the inputs near a random frame: frames are removed, an input is held longer, or replaced for some frames.
It is played from the last kept world before that frame, and ends when it falls behind the solution, or when it comes to
a state of the solution after its last edit: what follows is known then. What wins earlier or as early by other inputs
becomes the solution, and what wins a few frames later than the best one if the search is allowed to: so it drifts.
"""

from typing import NamedTuple

import numpy as np

from nclone_env.jit import kernel
from nclone_env.level import LevelSet
from nclone_env.plan.archive import gold_price
from nclone_env.plan.kernels import INPUTS, has_won, is_over, path_remaining
from nclone_env.sim import WorldArrays, copy_world, draw, hash_future, make_worlds, tick

_SPACING = 8
"""Frames from one kept world to the next."""
_MOST_EDITS = 3
_SPREAD = 40
"""Frames within which the edits of a trial lie."""
_REMOVED, _LONGER, _HELD = 4, 4, 12
"""Most frames that an edit removes, adds to an input, or holds an input."""
_SLACK = 90.0
"""Pixels by which the remaining path may exceed that of the solution at the same frame."""
_CHECKED = 8
"""Frames from one comparison with the solution to the next."""
_REMOVE, _LENGTHEN, _REPLACE, _KINDS = 0, 1, 2, 4  # 3: the input before goes on

POLISH = np.dtype(
    [("random", "i8"), ("frames", "i8"), ("seed", "u8"), ("cost", "i8"), ("price", "i8"), ("least", "i8")]
    + [(name, "i4") for name in ("length", "best_length", "worse", "hold", "edited", "gain")],
    align=True,
)
"""State of a search: random numbers drawn, frames simulated, seed, what the solution costs, frames that a piece of
gold left behind costs, what the best solution costs; frames of the solution and of the best one; how much more than the
best one the solution may cost; inputs change only in frames that are multiples of ``hold``; frames of a trial after
which its inputs are those of the solution, and frames by which they come earlier."""


class Polisher(NamedTuple):
    """The memory of a local search around a solution of at most T frames.

    Attributes:
        worlds: ``WorldArrays``; the worlds of the solution every ``_SPACING`` frames, beginning with the one in which
            it begins; the last one is played.
        inputs: (T,) uint8; the solution.
        best: (T,) uint8; the solution of least cost.
        edited: uint8, longer than the solution; the inputs of a trial.
        ways: (T + 1,) float32; length of the remaining path after each frame of the solution, pixels.
        search: (1,) ``POLISH``.
    """

    worlds: WorldArrays
    inputs: np.ndarray
    best: np.ndarray
    edited: np.ndarray
    ways: np.ndarray
    search: np.ndarray


def make_polisher(levels: LevelSet, max_frames: int, origin: WorldArrays, hold: int = 1, worse: int = 0) -> Polisher:
    """Return the memory for solutions of at most so many frames from the only world of ``origin``.

    Inputs change only in frames that are multiples of ``hold``; the solution may cost ``worse`` frames more than the
    best.
    """
    worlds = make_worlds(max_frames // _SPACING + 2, levels)
    copy_world(origin, 0, worlds, 0)
    search = np.zeros(1, POLISH)
    search["hold"], search["worse"] = hold, worse
    inputs, best = np.zeros((2, max_frames), np.uint8)
    edited = np.zeros(max_frames + _MOST_EDITS * (_LONGER + hold), np.uint8)
    return Polisher(worlds, inputs, best, edited, np.zeros(max_frames + 1, np.float32), search)


@kernel
def take(levels, polisher, guide, inputs):
    """Take a solution, (T,) uint8, that wins in its last frame; seed and counters of the search stay."""
    for frame in range(inputs.shape[0]):
        polisher.inputs[frame] = inputs[frame]
    search, played = polisher.search[0], polisher.worlds.ninjas.shape[0] - 1
    search["length"] = inputs.shape[0]
    copy_world(polisher.worlds, 0, polisher.worlds, played)
    retrace(levels, polisher, guide, 0, search["length"])
    search["cost"] = search["length"] + gold_price(levels, polisher.worlds, played, search["price"])
    keep_best(polisher)


@kernel
def keep_best(polisher):
    """Make the solution the best one."""
    search = polisher.search[0]
    search["least"], search["best_length"] = search["cost"], search["length"]
    for frame in range(search["length"]):
        polisher.best[frame] = polisher.inputs[frame]


@kernel
def retrace(levels, polisher, guide, first, last):
    """Play frames ``first`` to ``last - 1`` of the solution from the last world, and keep its worlds and ways."""
    worlds, played, length = polisher.worlds, polisher.worlds.ninjas.shape[0] - 1, polisher.search[0]["length"]
    for frame in range(first, last):
        if frame % _SPACING == 0:
            copy_world(worlds, played, worlds, frame // _SPACING)
        polisher.ways[frame] = path_remaining(guide, worlds, played)
        tick(levels, worlds, played, polisher.inputs[frame])
    polisher.ways[length] = polisher.ways[length - 1]
    polisher.search[0]["frames"] += last - first


@kernel
def polish(levels, polisher, guide, until):
    """Search until so many frames are simulated for all solutions taken, or a better one is found; return whether."""
    search = polisher.search[0]
    while search["frames"] < until:
        first, size = edit(polisher)
        length, cost, last = play_trial(levels, polisher, guide, first, size)
        if length > 0 and cost <= search["least"] + search["worse"]:
            search["cost"] = cost
            accept(levels, polisher, guide, first, length, last)
            if cost < search["least"]:
                keep_best(polisher)
                return True
    return False


@kernel
def edit(polisher):
    """Write the inputs of a trial; return the first frame that differs and their number."""
    search, edited = polisher.search[0], polisher.edited
    size, unit = int(search["length"]), int(search["hold"])
    for frame in range(size):
        edited[frame] = polisher.inputs[frame]
    centre, earliest, latest = draw(search, size), size, 0
    for _ in range(1 + draw(search, _MOST_EDITS)):
        place = min(centre + draw(search, _SPREAD), size - 1) // unit * unit
        earliest = min(earliest, place)
        kind = draw(search, _KINDS)
        if kind == _REMOVE:
            size = remove(edited, place, min(rounded_up(1 + draw(search, _REMOVED), unit), size - max(place, 1)), size)
            latest = max(latest, place)
        elif kind == _LENGTHEN:
            count = rounded_up(1 + draw(search, _LONGER), unit)
            size = lengthen(edited, place, count, size)
            latest = max(latest, place + 1) + count
        else:
            code = INPUTS[draw(search, len(INPUTS))] if kind == _REPLACE else edited[max(place - 1, 0)]
            count = min(rounded_up(1 + draw(search, _HELD), unit), size - place)
            hold(edited, place, count, code)
            latest = max(latest, place + count)
    search["edited"], search["gain"] = latest, search["length"] - size
    longest = polisher.inputs.shape[0]
    if search["price"] == 0:
        longest = min(longest, search["least"] + search["worse"])
    return earliest, min(size, longest)


@kernel
def rounded_up(count, unit):
    """Return the least multiple of a unit that is at least a number."""
    return -(-count // unit) * unit


@kernel
def remove(inputs, place, count, size):
    """Remove frames; return the number of those that are left."""
    for frame in range(place, size - count):
        inputs[frame] = inputs[frame + count]
    return size - count


@kernel
def lengthen(inputs, place, count, size):
    """Repeat the input of a frame; return the number of frames."""
    for frame in range(size - 1, place, -1):
        inputs[frame + count] = inputs[frame]
    hold(inputs, place + 1, count, inputs[place])
    return size + count


@kernel
def hold(inputs, place, count, code):
    """Hold an input for some frames."""
    for frame in range(place, place + count):
        inputs[frame] = code


@kernel
def play_trial(levels, polisher, guide, first, size):
    """Play a trial; return the frame after which it wins, 0 if it does not in time, and its cost.

    Also return the frames after which it is the solution, if it is as long.
    """
    worlds, played, search = polisher.worlds, polisher.worlds.ninjas.shape[0] - 1, polisher.search[0]
    begin = first // _SPACING * _SPACING
    copy_world(worlds, first // _SPACING, worlds, played)
    for frame in range(begin, size):
        tick(levels, worlds, played, polisher.edited[frame])
        expected = polisher.ways[min(frame + 1, search["length"])]
        lost = frame % _CHECKED == 0 and path_remaining(guide, worlds, played) > expected + _SLACK
        joined = not is_over(worlds, played) and has_joined(levels, polisher, frame + 1)
        if is_over(worlds, played) or lost or joined:
            search["frames"] += frame + 1 - begin
            gain = search["gain"]
            if joined:
                length = search["length"] - gain
                known = frame + 1 if gain == 0 else length
                return length if length <= polisher.inputs.shape[0] else 0, search["cost"] - gain, known
            cost = frame + 1 + gold_price(levels, worlds, played, search["price"])
            return frame + 1 if has_won(worlds, played) else 0, cost, frame + 1
    search["frames"] += max(size - begin, 0)
    return 0, search["cost"], 0


@kernel
def has_joined(levels, polisher, frame):
    """Return whether the trial is in a state of the solution after so many frames, and goes on with its inputs."""
    worlds, played, search = polisher.worlds, polisher.worlds.ninjas.shape[0] - 1, polisher.search[0]
    there = frame + search["gain"]
    if frame < search["edited"] or there % _SPACING != 0 or there >= search["length"]:
        return False
    one, other = worlds.ninjas[played], worlds.ninjas[there // _SPACING]
    if one["x"] != other["x"] or one["y"] != other["y"] or one["vx"] != other["vx"] or one["gold"] != other["gold"]:
        return False  # nearly all that differ
    return hash_future(levels, worlds, played) == hash_future(levels, worlds, there // _SPACING)


@kernel
def accept(levels, polisher, guide, first, length, last):
    """Make the trial the solution, which from frame ``last`` on is as before."""
    search, played = polisher.search[0], polisher.worlds.ninjas.shape[0] - 1
    begin = first // _SPACING * _SPACING
    for frame in range(begin, length):
        polisher.inputs[frame] = polisher.edited[frame]
    search["length"] = length
    copy_world(polisher.worlds, first // _SPACING, polisher.worlds, played)
    retrace(levels, polisher, guide, begin, last)
