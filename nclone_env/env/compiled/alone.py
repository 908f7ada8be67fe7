"""The compiled calls for one environment alone, for devices that run a thread for each: the programs of ``env.cuda``.

They consist of the kernels that the ranges of ``step``, ``masks`` and ``obs.action_outcomes`` consist of. ``arrays`` is
the ``StepArrays`` of the environments everywhere, ``index`` the environment; worlds have room for all levels.
"""

from nclone_env.env.compiled.masks import mask_range
from nclone_env.env.compiled.records import SAME_STEP
from nclone_env.env.compiled.step import begin, clear_result, play_step, wait
from nclone_env.game import NUM_ACTIONS
from nclone_env.jit import kernel
from nclone_env.obs import ENVIRONMENT, observe, outcome_range
from nclone_env.sim import copy_world

_ALL_FRAMES = 1 << 60


@kernel
def step_alone(arrays, out, final, refused, index):
    """Step an environment as ``step.step_range`` does; its last observation goes to its own row of ``final``.

    An environment whose action is not 0..5 is not stepped, and ``refused``, (1,) int64, becomes 1.
    """
    action, autoreset = arrays.actions[index], arrays.settings[0]["autoreset"]
    if action < 0 or action >= NUM_ACTIONS:
        refused[0] = 1
        return
    if arrays.episodes[index]["over"] != 0 and autoreset != SAME_STEP:
        wait(arrays, index)
    else:
        play_step(arrays, index)
        if arrays.episodes[index]["over"] != 0 and autoreset == SAME_STEP:
            observe(arrays, index, index, 0, final.observations)
            if final.worlds.ninjas.shape[0] > 0:
                copy_world(arrays.worlds, index, final.worlds, index)
            begin(arrays, index)
    observe(arrays, index, index, 0, out)


@kernel
def reset_alone(arrays, mask, out, index):
    """Begin a new episode where ``mask``, (n,) bool, is set; observe the environment."""
    if mask[index]:
        begin(arrays, index)
        clear_result(arrays, index)
    observe(arrays, index, index, 0, out)


@kernel
def mask_alone(levels, worlds, settings, episodes, scratch, out, index):
    """Write the action mask of an environment; ``scratch`` has six worlds for each."""
    mask_range(levels, worlds, settings, episodes, scratch, out, 0, index, index, index + 1)


@kernel
def outcomes_alone(levels, paths, worlds, tried, settings, progress, values, out, places, results, index):
    """Write the action outcomes of an environment, as ``outcome_range`` does; ``tried`` has two worlds for each."""
    for column in range(progress.shape[1]):
        progress[index, column] = 0
    progress[index, ENVIRONMENT] = index
    frames = settings[0]["outcome_frames"]
    outcome_range(
        levels, paths, worlds, tried, frames, progress, values, _ALL_FRAMES, out, places, results, 0, index, index + 1
    )
