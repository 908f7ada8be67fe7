"""The writer of ``action_outcomes``: what happens if each action is held, simulated on copies of the world.

``obs.spec.ACTION_OUTCOME`` defines the elements. The world of the environment is read and not changed.
"""

from nclone_env.game import CELEBRATING, DEAD, INPUT_OF_ACTION, JUMPING, MAX_HORIZONTAL_SPEED, NUM_DIRECTIONS
from nclone_env.jit import called_kernel, kernel
from nclone_env.obs.game_state import clip, objective, path_length
from nclone_env.obs.half import write_vector
from nclone_env.obs.spec import ACTION_OUTCOME
from nclone_env.sim import copy_world, equal_worlds, tick

SCRATCH_WORLDS = 2
"""Worlds that :func:`write_outcomes` overwrites."""
TURN, FRAME, CAN_REPEAT, ENVIRONMENT = range(4)
PROGRESS = 4
"""Numbers that tell how far :func:`write_outcomes` has got: the action, in the order in which they are tried, frames
simulated of it, whether a world of the action without jump was kept; and the environment, for its caller."""
VALUES = len(ACTION_OUTCOME) + 1
"""Numbers of the outcome in work, and the path length before the first frame, pixels."""
_SIZE = len(ACTION_OUTCOME)
_DEATH, _COMPLETION, _EARLY, _LATE = 0, 1, 2, 5  # first elements
_PRESS_ENDS = 8  # frames after which a press of jump is no longer remembered (physics 01, section 11.1)


@kernel
def write_outcomes(levels, paths, worlds, index, frames, scratch, place, progress, values, budget, out):
    """Write the outcomes of one world, or a part of them.

    Args:
        frames: frames for which each action is held.
        scratch: ``WorldArrays``, two of which are overwritten.
        place: the first of them.
        progress: (4,) int64, 0 at first; where to go on.
        values: (9,) float64, likewise.
        budget: frames to simulate at most, above 0.
        out: (6, 8) float32, or the words of float32 or float16 (``obs.half``); in the order of ``Action`` and of
            ``ACTION_OUTCOME``.

    Returns:
        The frames that are left of the budget. All is written if action and frame of ``progress`` are 0.
    """
    if progress[TURN] == 0 and progress[FRAME] == 0:
        values[_SIZE] = path_left(levels, paths, worlds, index)
    while progress[TURN] < 2 * NUM_DIRECTIONS and budget > 0:
        action = progress[TURN] // 2 + NUM_DIRECTIONS * (progress[TURN] & 1)
        budget = hold(levels, paths, worlds, index, action, frames, scratch, place, progress, values, budget, out)
        if progress[FRAME] == 0:
            progress[TURN] += 1
    if progress[TURN] == 2 * NUM_DIRECTIONS:
        progress[TURN] = 0
    return budget


@called_kernel
def hold(levels, paths, worlds, index, action, frames, scratch, place, progress, values, budget, out):
    """Write the outcome of one action; return what is left of the budget. ``progress[FRAME]`` is 0 when it is written.

    Without jump, the world at the time when a press of jump is forgotten is kept. With jump, if the world at that time
    is the same, so is everything that follows, and the outcome is copied: the action without jump comes first.

    Args as in :func:`write_outcomes`, and:
        action: the action.
    """
    ninja = scratch.ninjas[place]
    if progress[FRAME] == 0:
        copy_world(worlds, index, scratch, place)
        for element in range(_SIZE):
            values[element] = 0.0
    early = (frames + 2) // 3
    while budget > 0:
        budget -= 1
        progress[FRAME] += 1
        frame = progress[FRAME]
        tick(levels, scratch, place, INPUT_OF_ACTION[action])
        ended = ninja["state"] == DEAD or ninja["state"] == CELEBRATING
        if ended:
            values[_DEATH if ninja["state"] == DEAD else _COMPLETION] = (frames + 1 - frame) / frames
        if frame == early or (ended and frame < early):
            write_place(levels, paths, worlds, index, early, scratch, place, _EARLY, values)
        if frame == frames or ended:
            write_place(levels, paths, worlds, index, frames, scratch, place, _LATE, values)
            write_vector(values[:_SIZE], out[action])
            progress[CAN_REPEAT] = action < NUM_DIRECTIONS and frame > _PRESS_ENDS
            progress[FRAME] = 0
            return budget
        if frame == _PRESS_ENDS:
            if action < NUM_DIRECTIONS:
                copy_world(scratch, place, scratch, place + 1)
            elif progress[CAN_REPEAT] != 0 and jump_had_no_effect(scratch, place):
                for element in range(out.shape[1]):
                    out[action, element] = out[action - NUM_DIRECTIONS, element]
                progress[FRAME] = 0
                return budget
    return budget


@kernel
def jump_had_no_effect(scratch, place):
    """Return whether a world with jump held and the next one, without, have the same future.

    They do if only what remembers the input of the last frame differs, and no jump is under way that releasing ends.
    """
    pressed, released = scratch.ninjas[place], scratch.ninjas[place + 1]
    if pressed["state"] == JUMPING:
        return False
    released["jump_held"] = pressed["jump_held"]
    return equal_worlds(scratch, place, place + 1)


@kernel
def write_place(levels, paths, worlds, index, frames, scratch, place, first, values):
    """Write where the ninja has got to: its displacement, and how much shorter the path is."""
    before, after, scale = worlds.ninjas[index], scratch.ninjas[place], MAX_HORIZONTAL_SPEED * frames
    values[first] = clip((after["x"] - before["x"]) / scale)
    values[first + 1] = clip((after["y"] - before["y"]) / scale)
    values[first + 2] = clip((values[_SIZE] - path_left(levels, paths, scratch, place)) / scale)


@kernel
def path_left(levels, paths, worlds, index):
    """Return the remaining path length of a world in pixels."""
    return path_length(paths, objective(levels, paths, worlds, index)[0], worlds.ninjas[index])
