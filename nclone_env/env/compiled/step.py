"""The compiled step: action, frames, reward, autoreset and observation of a range of environments in one call.

``arrays`` is the ``StepArrays`` of the environments everywhere, ``index`` the environment.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from nclone_env.env.compiled.records import DIED, DISABLED, NEXT_STEP, PLAYING, SAME_STEP, TIMED_OUT, WON
from nclone_env.env.compiled.rooms import make_room
from nclone_env.env.compiled.starts import next_start, place_start
from nclone_env.env.compiled.step_arrays import FinalArrays, StepArrays
from nclone_env.game import CELEBRATING, DEAD, INPUT_OF_ACTION, NUM_ACTIONS
from nclone_env.jit import call_at, called_kernel, kernel, next_number
from nclone_env.obs import ObservationArrays, observe, open_exit_count, path_remaining
from nclone_env.sim import RANDOM_BITS, copy_world, random_bits, start, tick, unsettle

_REPEATS = np.uint64(0xBB67AE8584CAA73B)  # any constant: independent of the draws of levels and start states
_STEP_BITS = np.uint64(32)
_LONGEST_PATH = 3.0  # in initial path lengths; also used where no path exists, as for ninjas below the world


@kernel
def step_range(arrays, out, final, row, worker, first, last):
    """Step environments ``first`` to ``last - 1`` with ``arrays.actions``.

    Args:
        arrays: ``StepArrays``; worlds, episodes, results and events are updated in place.
        out: ``ObservationArrays``, written: the observations to act on next.
        final: ``FinalArrays``; in same-step mode each episode that ends claims a row for its last observation.
        row: row of environment 0 in ``out``.
    """
    autoreset = arrays.settings[0]["autoreset"]
    episodes = arrays.episodes
    for index in range(first, last):
        if episodes[index]["over"] != 0 and autoreset != SAME_STEP:
            wait(arrays, index)
        else:
            play_step(arrays, index)
            if episodes[index]["over"] != 0 and autoreset == SAME_STEP:
                place = next_number(final.used)
                final.places[index] = place
                observe(arrays, index, place, worker, final.observations)
                if final.worlds.ninjas.shape[0] > 0:
                    copy_world(arrays.worlds, index, final.worlds, index)
                begin(arrays, index)
        observe(arrays, index, row + index, worker, out)


REFUSED = -1
"""In ``used`` of the last observations: the step had an action or a row that does not fit."""


class KernelSteps(NamedTuple):
    """What a kernel needs to step n environments by :func:`step_all`."""

    address: Any
    """Address of :func:`step_range`, compiled for arrays of these types."""
    arrays: StepArrays
    out: ObservationArrays
    final: FinalArrays
    rows: int
    """Of each array of ``out``."""


@kernel
def step_all(steps: KernelSteps, row):
    """Step all environments of a batch from another kernel.

    The actions are in ``steps.arrays.actions``. The results are written to ``steps.arrays.results``, the observations
    to the rows of ``steps.out`` from ``row`` on. In same-step mode the last observations of the episodes that end are
    written to the first rows of ``steps.final``, in the order of the environments.

    Returns:
        Whether the step was made. If not, the worlds need larger arrays: ask the environments for ``kernel_steps``
        again, and repeat it. Neither is a step made with an action that is not 0..5, or rows that ``out`` lacks: then
        ``kernel_steps`` raises ``ActionError``.
    """
    count = len(steps.arrays.actions)
    if row < 0 or row + count > steps.rows:
        steps.final.used[0] = REFUSED
        return False
    for index in range(count):
        if steps.arrays.actions[index] < 0 or steps.arrays.actions[index] >= NUM_ACTIONS:
            steps.final.used[0] = REFUSED
            return False
    if not make_room(steps.arrays):
        return False
    steps.final.used[0] = 0
    call_at(steps.address, (steps.arrays, steps.out, steps.final, row, 0, 0, count))
    return True


@kernel
def reset_range(arrays, mask, out, base, worker, first, last):
    """Begin a new episode where ``mask``, (n,) bool, is set; observe all.

    ``base`` is the environment of row 0 in ``out``.
    """
    for index in range(first, last):
        if mask[index]:
            begin(arrays, index)
            clear_result(arrays, index)
        observe(arrays, index, index - base, worker, out)


@kernel
def wait(arrays, index):
    """Handle a step of an environment whose episode is over: begin the next one, or wait for its reset."""
    autoreset = arrays.settings[0]["autoreset"]
    if autoreset == NEXT_STEP:
        begin(arrays, index)
        clear_result(arrays, index)
    elif autoreset == DISABLED:
        arrays.results[index]["reward"] = 0.0
        arrays.results[index]["frames"] = 0


@kernel
def play_step(arrays, index):
    """Simulate up to ``frame_skip`` frames with one action; update episode, result and event."""
    levels, paths, worlds, rules = arrays.levels, arrays.paths, arrays.worlds, arrays.settings[0]
    ninja, episode, result = worlds.ninjas[index], arrays.episodes[index], arrays.results[index]
    gold_before, first_frame = ninja["gold"], ninja["frame"]
    exits_before = open_exit_count(levels, worlds, index)
    x_before, y_before = ninja["x"], ninja["y"]
    action = arrays.actions[index]
    if rules["action_repeat_probability"] > 0.0:
        action = episode["action"] = repeated(rules["action_repeat_probability"], episode, action)
    inputs = INPUT_OF_ACTION[action]
    outcome = simulate_frames(levels, worlds, index, inputs, rules["frame_skip"], rules["max_frames"])
    frames, gold = ninja["frame"] - first_frame, ninja["gold"] - gold_before
    switches = open_exit_count(levels, worlds, index) - exits_before
    terminated = outcome == WON or outcome == DIED
    after = 0.0 if terminated else potential(levels, paths, worlds, index)
    value = reward(rules, outcome, frames, gold, switches, episode["potential"], after)
    if arrays.events.shape[0] > 0:
        event = arrays.events[index]
        record_event(ninja, episode, event, x_before, y_before, after, frames, gold, switches, outcome)
    episode["potential"] = after
    episode["episode_return"] += value
    episode["steps"] += 1
    episode["over"] = 0 if outcome == PLAYING else 1
    clear_result(arrays, index)
    result["reward"], result["frames"], result["outcome"] = value, frames, outcome
    result["terminated"], result["truncated"] = terminated, outcome == TIMED_OUT


@kernel
def repeated(probability, episode, action):
    """Return the action that a step takes: at random that of the step before."""
    number = np.uint64(episode["number"]) << _STEP_BITS | np.uint64(episode["steps"])
    is_repeated = random_bits(np.uint64(episode["seed"]) ^ _REPEATS, number) < np.uint64(probability * 2.0**RANDOM_BITS)
    return np.int64(episode["action"]) if is_repeated and episode["steps"] > 0 else action


@kernel
def simulate_frames(levels, worlds, index, inputs, frame_skip, max_frames):
    """Simulate frames until one ends the episode; return the outcome code.

    Victory or death on the last allowed frame counts as such, not as a time-out.
    """
    ninja = worlds.ninjas[index]
    for _ in range(frame_skip):
        tick(levels, worlds, index, inputs)
        if ninja["state"] == CELEBRATING:
            return WON
        if ninja["state"] == DEAD:
            return DIED
        if ninja["frame"] >= max_frames:
            return TIMED_OUT
    return PLAYING


@kernel
def record_event(ninja, episode, event, x_before, y_before, potential_after, frames, gold, switches, outcome):
    """Write the ``EVENT`` of a step, before the totals in ``episode`` are updated."""
    event["x_before"], event["y_before"], event["x"], event["y"] = x_before, y_before, ninja["x"], ninja["y"]
    event["vx"], event["vy"] = ninja["vx"], ninja["vy"]
    event["potential_before"], event["potential"] = episode["potential"], potential_after
    event["return_before"] = episode["episode_return"]
    event["frames"], event["gold"], event["switches"], event["outcome"] = frames, gold, switches, outcome


@called_kernel
def begin(arrays, index):
    """Begin the next episode of an environment, which has room for it."""
    episode = arrays.episodes[index]
    level, place = next_start(arrays, index)
    episode["next_level"] = -1
    episode["number"] += 1
    episode["steps"] = 0
    episode["episode_return"] = 0.0
    episode["over"] = 0
    episode["start"] = -1
    start(arrays.levels, arrays.worlds, index, level)
    if place >= 0:
        episode["start"] = arrays.starts.starts[place]["number"]
        place_start(arrays.starts, place, arrays.worlds, index)
    episode["potential"] = potential(arrays.levels, arrays.paths, arrays.worlds, index)
    unsettle(arrays.worlds, index)


@kernel
def clear_result(arrays, index):
    """Write the result of a step without frames: no reward, the episode as it is."""
    ninja, episode, result = arrays.worlds.ninjas[index], arrays.episodes[index], arrays.results[index]
    result["reward"], result["frames"], result["outcome"] = 0.0, 0, PLAYING
    result["terminated"], result["truncated"] = False, False
    result["level"], result["gold"], result["start"] = ninja["level"], ninja["gold"], episode["start"]
    result["episode_frames"], result["episode_steps"] = ninja["frame"], episode["steps"]
    result["episode_return"] = episode["episode_return"]


@kernel
def potential(levels, paths, worlds, index):
    """Return the negative remaining path length in multiples of the initial one; 0 if the level has no path at all."""
    initial = paths.header[worlds.ninjas[index]["level"]]["start_distance"]
    if initial == math.inf or initial == 0.0:
        return 0.0
    remaining = path_remaining(levels, paths, worlds, index)
    return -remaining if remaining < _LONGEST_PATH else -_LONGEST_PATH


@kernel
def reward(rules, outcome, frames, gold, switches, potential_before, potential_after):
    """Return the reward of a step; ``potential_after`` is 0 if the episode has terminated."""
    total = rules["time"] * frames + rules["gold"] * gold + rules["switch"] * switches
    if outcome == WON:
        total += rules["completion"]
    elif outcome == DIED:
        total += rules["death"]
    return total + rules["shaping"] * (rules["gamma"] * potential_after - potential_before)
