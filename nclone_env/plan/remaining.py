"""Path lengths from where the ninja is, by the landmarks and the gold that are left."""

from __future__ import annotations

from nclone_env.jit import kernel
from nclone_env.level.routes import FAR, length_at


@kernel
def steps_taken(guide, worlds, index):
    """Return the number of the first landmark that is not taken."""
    step = 0
    while step < guide.landmarks.shape[0] and worlds.entity_states[index, guide.landmarks[step]] != 0:
        step += 1
    return step


@kernel
def path_to_exit(guide, worlds, index, step):
    """Return the length of the path by the landmarks from number ``step`` on to the exit, pixels."""
    length = length_at(guide.fields, step, worlds.ninjas[index]["x"], worlds.ninjas[index]["y"])
    return length if length < FAR else guide.longest[step]


@kernel
def path_remaining(guide, worlds, index):
    """Return the length of the path by what is left of gold and landmarks to the exit, pixels.

    A world with gold left always has a longer path than one without.
    """
    step = steps_taken(guide, worlds, index)
    length = path_to_exit(guide, worlds, index, step)
    if guide.gold.slots.shape[0] > 0:
        nearest, shares = gold_left(guide.gold, worlds, index, step)
        if nearest < FAR:
            length = nearest + shares + guide.longest[step]
        else:
            length += shares
    return length


@kernel
def least_path(guide, worlds, index):
    """Return an estimate of the remaining path that leaves out gold which need not be collected, pixels."""
    step = steps_taken(guide, worlds, index)
    length = path_to_exit(guide, worlds, index, step)
    if guide.gold.each[0]:
        nearest, shares = gold_left(guide.gold, worlds, index, step)
        if nearest < FAR:
            length = max(length, nearest + shares)
    return length


@kernel
def gold_left(gold, worlds, index, step):
    """Return (path to the nearest piece that is left and can be reached, the shares of all that are left), pixels.

    Args:
        gold: ``GoldGuide``.
        worlds: ``WorldArrays``.
        index: world.
        step: landmarks taken.
    """
    ninja = worlds.ninjas[index]
    nearest, shares = FAR, 0.0
    for place in range(gold.slots.shape[0]):
        if worlds.entity_states[index, gold.slots[place]] == 0:
            shares += gold.shares[place]
            dx, dy = ninja["x"] - gold.points[place, 0], ninja["y"] - gold.points[place, 1]
            straight = abs(dx) + abs(dy)
            if gold.stages[place] <= step and 0.7 * straight < nearest:  # at most the true distance
                path = length_at(gold.fields, gold.groups[place], ninja["x"], ninja["y"])
                nearest = min(nearest, max(path, 0.7 * straight) if path < FAR else 2.0 * straight + 500.0)
    return nearest, shares
