"""The allocation and the passes of a batch."""

import gc
import weakref

import pytest

from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig
from nclone_env.env.batch import Batch
from nclone_env.env.compiled.records import NEXT_STEP
from nclone_env.level.build import build_room


def test_an_environment_bounds_the_trail_by_its_time_limit():
    level = build_room(*["evil_ninja 50 50"] * 9, "exit 90 58", "exit_switch 100 58")
    config = EnvironmentConfig(levels=level, observations="game_state", max_frames=200)
    batch = Batch(config, 2, NEXT_STEP, num_threads=1)
    assert batch.worlds.rooms["trail"]["used"][-1] == 200
    batch.close()


def pay(event):
    return 1.0


@pytest.mark.parametrize(
    ("observations", "reward_function", "step", "reset"),
    [
        ("game_state", None, ["StepPass"], ["ResetPass"]),
        ("game_state", pay, ["StepPass", "RewardPass"], ["ResetPass"]),
        (
            OBSERVATION_NAMES,
            pay,
            ["StepPass", "RewardPass", "ActionMasks", "ActionOutcomes", "Reachability"],
            ["ResetPass", "ActionMasks", "ActionOutcomes", "Reachability"],
        ),
    ],
    ids=["plain", "rewarded", "all"],
)
def test_the_passes_of_a_call_follow_from_the_configuration(observations, reward_function, step, reset):
    config = EnvironmentConfig(observations=observations)
    batch = Batch(config, 2, NEXT_STEP, num_threads=1, reward_function=reward_function)
    assert [type(one).__name__ for one in batch._step_passes] == step
    assert [type(one).__name__ for one in batch._reset_passes] == reset
    batch.close()


def test_a_batch_is_freed_without_the_garbage_collector():
    batch = Batch(EnvironmentConfig(observations=OBSERVATION_NAMES), 2, NEXT_STEP, reward_function=pay)
    reference = weakref.ref(batch)
    gc.disable()
    try:
        del batch
        assert reference() is None
    finally:
        gc.enable()
