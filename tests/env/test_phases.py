"""Phases are timed on the way of an ordinary run: what is timed alone is undone."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from nclone_env.config import EnvironmentConfig
from nclone_env.env.batch import Batch
from nclone_env.env.compiled.records import DISABLED, NEXT_STEP, SAME_STEP
from nclone_env.env.phases import REST, WHOLE, PhaseTimer, measure_phases
from nclone_env.sim.state import world_at

N, STEPS = 6, 80
NAMES = ("game_state", "entity_states", "reachability", "action_mask")
CONFIG = EnvironmentConfig(levels=("first-steps",), observations=NAMES, max_frames=60)


def timed(autoreset, seed=0):
    batch = Batch(CONFIG, N, autoreset, num_threads=1)
    timer = PhaseTimer(batch, seed)
    phases = [timer.step() for _ in range(STEPS)]
    return batch, phases


def played(autoreset, seed=0):
    """Return a batch after the same steps without any timing."""
    batch, random = Batch(CONFIG, N, autoreset, num_threads=1), np.random.default_rng(seed)
    other = PhaseTimer(batch, seed)  # seeds and resets it
    random.integers(2**63, size=N, dtype=np.uint64)
    for _ in range(STEPS):
        batch.actions[:] = random.integers(6, size=N)
        other._run(other._step_call(other._out))
        other._begin_episodes()
    return batch


def state(batch):
    worlds = [world_at(batch.worlds, index).tobytes() for index in range(N)]
    return [*worlds, batch.episodes.tobytes(), batch.results.tobytes()]


@pytest.mark.parametrize("autoreset", [NEXT_STEP, SAME_STEP, DISABLED])
def test_a_timed_run_is_an_ordinary_run(autoreset):
    batch, _ = timed(autoreset)
    assert batch.episodes["number"].min() > 1, "episodes ended"
    assert state(batch) == state(played(autoreset))


def test_another_seed_gives_another_run():
    assert state(timed(NEXT_STEP)[0]) != state(timed(NEXT_STEP, seed=1)[0])


def test_every_observation_is_a_phase_and_arrays_of_one_kernel_are_one():
    phases = timed(NEXT_STEP)[1][0]
    assert list(phases) == [
        WHOLE,
        "simulation",
        "reward",
        "reset",
        "game_state",
        "entity_states",
        "action_mask",
        "reachability",
    ]
    assert min(phases[name] for name in (WHOLE, "simulation", *NAMES)) > 0


def test_parts_add_up_to_the_whole():
    phases = measure_phases(CONFIG.replace(observation={"frame_stack": 4}), N, AutoresetMode.NEXT_STEP, steps=20)
    assert phases.pop(WHOLE) == pytest.approx(sum(phases.values()), rel=1e-9)
    assert REST in phases
