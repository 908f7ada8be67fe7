"""The writer of ``action_outcomes``: what happens if each action is held, simulated on copies of the world.

``obs.spec.ACTION_OUTCOME`` defines the elements. The world of the environment is read and not changed.
"""

from __future__ import annotations

from nclone_env.actions import INPUT_OF_ACTION, NUM_DIRECTIONS
from nclone_env.constants import CELEBRATING, DEAD, JUMPING, MAX_HORIZONTAL_SPEED
from nclone_env.jit import called_kernel, kernel, local_f64
from nclone_env.level.routes import distance_at
from nclone_env.obs.game_state import clip
from nclone_env.obs.half import write_vector
from nclone_env.obs.objective import objective
from nclone_env.obs.spec import ACTION_OUTCOME
from nclone_env.sim.copy import copy_world, equal_worlds
from nclone_env.sim.tick import tick

SCRATCH_WORLDS = 2
"""Worlds that :func:`write_outcomes` overwrites."""
_SIZE = len(ACTION_OUTCOME)
_DEATH, _COMPLETION, _EARLY, _LATE = 0, 1, 2, 5  # first elements
_NO_PATH = 10_000.0  # pixels; where no path leads to the objective
_PRESS_ENDS = 8  # frames after which a press of jump is no longer remembered (physics 01, section 11.1)


@kernel
def write_outcomes(levels, paths, worlds, index, frames, scratch, place, out):
    """Write the outcomes of one world.

    Args:
        levels: ``LevelArrays``.
        paths: ``Paths``.
        worlds: ``WorldArrays``.
        index: world.
        frames: frames for which each action is held.
        scratch: ``WorldArrays``, two of which are overwritten.
        place: the first of them.
        out: (6, 8) float32, or the words of float32 or float16 (``obs.half``); in the order of ``Action`` and of
            ``ACTION_OUTCOME``.
    """
    length = path_length(levels, paths, worlds, index)
    for direction in range(NUM_DIRECTIONS):
        simulated = hold(levels, paths, worlds, index, length, direction, frames, False, scratch, place, out)
        can_repeat, jump = simulated > _PRESS_ENDS, NUM_DIRECTIONS + direction
        hold(levels, paths, worlds, index, length, jump, frames, can_repeat, scratch, place, out)


@called_kernel
def hold(levels, paths, worlds, index, length, action, frames, can_repeat, scratch, place, out):
    """Write the outcome of one action; return the frames simulated.

    Without jump, the world at the time when a press of jump is forgotten is kept. With jump, if the world at that time
    is the same, so is everything that follows, and the outcome is copied: the action without jump comes first.

    Args as in :func:`write_outcomes`, and:
        length: path length before the first frame, pixels.
        action: the action.
        can_repeat: whether a world of the action without jump was kept.
    """
    ninja, values = scratch.ninjas[place], local_f64(_SIZE)
    copy_world(worlds, index, scratch, place)
    early = (frames + 2) // 3
    for frame in range(1, frames + 1):
        tick(levels, scratch, place, INPUT_OF_ACTION[action])
        ended = ninja["state"] == DEAD or ninja["state"] == CELEBRATING
        if ended:
            values[_DEATH if ninja["state"] == DEAD else _COMPLETION] = (frames + 1 - frame) / frames
        if frame == early or (ended and frame < early):
            write_place(levels, paths, worlds, index, length, early, scratch, place, _EARLY, values)
        if frame == frames or ended:
            write_place(levels, paths, worlds, index, length, frames, scratch, place, _LATE, values)
            write_vector(values, out[action])
            return frame
        if frame == _PRESS_ENDS:
            if action < NUM_DIRECTIONS:
                copy_world(scratch, place, scratch, place + 1)
            elif can_repeat and jump_had_no_effect(scratch, place):
                for element in range(out.shape[1]):
                    out[action, element] = out[action - NUM_DIRECTIONS, element]
                return frame
    return frames


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
def write_place(levels, paths, worlds, index, length, frames, scratch, place, first, values):
    """Write where the ninja has got to: its displacement, and how much shorter the path is."""
    before, after, scale = worlds.ninjas[index], scratch.ninjas[place], MAX_HORIZONTAL_SPEED * frames
    values[first] = clip((after["x"] - before["x"]) / scale)
    values[first + 1] = clip((after["y"] - before["y"]) / scale)
    values[first + 2] = clip((length - path_length(levels, paths, scratch, place)) / scale)


@kernel
def path_length(levels, paths, worlds, index):
    """Return the remaining path length in pixels."""
    field, _ = objective(levels, paths, worlds, index)
    ninja = worlds.ninjas[index]
    length = distance_at(paths.fields, field, ninja["x"], ninja["y"])
    return length if length < _NO_PATH else _NO_PATH
