"""The compiled step of a batch of environments: actions, frames, reward, autoreset, observation in one call."""

from __future__ import annotations

import numpy as np

from nclone_env.env.actions import INPUT_OF_ACTION
from nclone_env.env.compiled.frames import simulate_frames
from nclone_env.env.compiled.observe import observe
from nclone_env.env.compiled.records import DIED, DISABLED, NEXT_STEP, PLAYING, SAME_STEP, TIMED_OUT, WON
from nclone_env.env.compiled.rewards import potential, reward
from nclone_env.jit import called_kernel, kernel
from nclone_env.obs.objective import open_exit_count
from nclone_env.sim.tick import start

_GOLDEN, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S1, _S30, _S27, _S31 = np.uint64(1), np.uint64(30), np.uint64(27), np.uint64(31)


@kernel
def step_range(
    levels, fields, worlds, pictures, settings, thresholds,
    episodes, actions, results, events, out, final, base, seat, first, last,
):  # fmt: skip
    """Step environments ``first`` to ``last - 1``.

    Args:
        levels: ``LevelArrays``.
        fields: (F, 51, 89) float32 distance fields.
        worlds: (n,) worlds, changed in place.
        pictures: ``PictureArrays``.
        settings: (1,) ``SETTINGS``.
        thresholds: (L,) uint64, growing; the bounds below which a number of 63 bits draws each level.
        episodes: (n,) ``EPISODE``, changed in place.
        actions: (n,) int64, 0..5.
        results: (n,) ``RESULT``, written.
        events: (n,) ``EVENT``, written for the reward function of a user, or empty if there is none.
        out: ``ObservationArrays``, written: what the agents act on next.
        final: ``ObservationArrays``; rows of episodes that ended are written in same-step mode.
        base: environment whose row is the first of ``out`` and ``final``.
        seat: of the thread that calls.
        first: first environment.
        last: end of the environments.
    """
    rules = settings[0]
    max_frames = rules["max_frames"]
    for index in range(first, last):
        if episodes[index]["over"] != 0 and rules["autoreset"] != SAME_STEP:
            wait(levels, fields, worlds, rules, thresholds, episodes, results, index)
        else:
            play_step(levels, fields, worlds, rules, episodes, actions[index], results, events, index)
            if episodes[index]["over"] != 0 and rules["autoreset"] == SAME_STEP:
                observe(levels, fields, worlds, pictures, index, max_frames, index - base, seat, final)
                begin(levels, fields, worlds, thresholds, episodes, index)
        observe(levels, fields, worlds, pictures, index, max_frames, index - base, seat, out)


@kernel
def reset_range(
    levels, fields, worlds, pictures, settings, thresholds, episodes, mask, results, out, base, seat, first, last
):
    """Begin a new episode where ``mask``, (n,) bool, is set, and observe all; arguments as in :func:`step_range`."""
    for index in range(first, last):
        if mask[index]:
            begin(levels, fields, worlds, thresholds, episodes, index)
            clear_result(worlds, episodes, results, index)
        observe(levels, fields, worlds, pictures, index, settings[0]["max_frames"], index - base, seat, out)


@kernel
def wait(levels, fields, worlds, rules, thresholds, episodes, results, index):
    """Handle a step of an environment whose episode is over: begin the next one, or stay until it is reset."""
    if rules["autoreset"] == NEXT_STEP:
        begin(levels, fields, worlds, thresholds, episodes, index)
        clear_result(worlds, episodes, results, index)
    elif rules["autoreset"] == DISABLED:
        results[index]["reward"] = 0.0
        results[index]["frames"] = 0


@kernel
def play_step(levels, fields, worlds, rules, episodes, action, results, events, index):
    """Simulate up to ``frame_skip`` frames with one action and account for them."""
    ninja = worlds.ninjas[index]
    episode = episodes[index]
    gold, first_frame = ninja["gold"], ninja["frame"]
    exits_open = open_exit_count(levels, worlds, index)
    x0, y0 = ninja["x"], ninja["y"]
    outcome = simulate_frames(levels, worlds, index, INPUT_OF_ACTION[action], rules["frame_skip"], rules["max_frames"])
    frames = ninja["frame"] - first_frame
    switches = open_exit_count(levels, worlds, index) - exits_open
    terminated = outcome == WON or outcome == DIED
    after = 0.0 if terminated else potential(levels, fields, worlds, index)
    value = reward(rules, outcome, frames, ninja["gold"] - gold, switches, episode["potential"], after)
    if events.shape[0] > 0:
        note_event(ninja, episode, events[index], x0, y0, after, frames, ninja["gold"] - gold, switches, outcome)
    episode["potential"] = after
    episode["episode_return"] += value
    episode["steps"] += 1
    episode["over"] = 0 if outcome == PLAYING else 1
    clear_result(worlds, episodes, results, index)
    result = results[index]
    result["reward"], result["frames"], result["outcome"] = value, frames, outcome
    result["terminated"], result["truncated"] = terminated, outcome == TIMED_OUT


@kernel
def note_event(ninja, episode, event, x0, y0, potential_after, frames, gold, switches, outcome):
    """Write the ``EVENT`` of a step."""
    event["x0"], event["y0"], event["x"], event["y"] = x0, y0, ninja["x"], ninja["y"]
    event["vx"], event["vy"] = ninja["vx"], ninja["vy"]
    event["potential0"], event["potential"] = episode["potential"], potential_after
    event["earned"] = episode["episode_return"]
    event["frames"], event["gold"], event["switches"], event["outcome"] = frames, gold, switches, outcome


@called_kernel
def begin(levels, fields, worlds, thresholds, episodes, index):
    """Begin the next episode of an environment, on the level asked for, its own, or one drawn at random."""
    episode = episodes[index]
    level = np.int64(episode["next_level"])
    if level < 0:
        level = np.int64(episode["own_level"])
    if level < 0:
        level = draw(episode["seed"], episode["number"], thresholds)
    episode["next_level"] = -1
    episode["number"] += 1
    episode["steps"] = 0
    episode["episode_return"] = 0.0
    episode["over"] = 0
    start(levels, worlds, index, level)
    episode["potential"] = potential(levels, fields, worlds, index)


@kernel
def draw(seed, number, thresholds):
    """Return a level that depends on seed, episode number and weights alone.

    SplitMix64 (Steele, Lea and Flood, 2014) gives a number of 63 bits; it draws the first level whose bound is above.
    """
    z = np.uint64(seed) + _GOLDEN * (np.uint64(number) + np.uint64(1))
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    z = z ^ (z >> _S31)
    z = z >> _S1
    low, high = 0, thresholds.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if z < thresholds[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def clear_result(worlds, episodes, results, index):
    """Write the result of a step in which nothing happened."""
    ninja, episode, result = worlds.ninjas[index], episodes[index], results[index]
    result["reward"], result["frames"], result["outcome"] = 0.0, 0, PLAYING
    result["terminated"], result["truncated"] = False, False
    result["level"], result["gold"] = ninja["level"], ninja["gold"]
    result["episode_frames"], result["episode_steps"] = ninja["frame"], episode["steps"]
    result["episode_return"] = episode["episode_return"]
