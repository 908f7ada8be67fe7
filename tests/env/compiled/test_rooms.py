"""The worlds of environments move and get larger arrays between steps; what they do stays the same."""

import numpy as np
import pytest

from nclone_env import NPlusPlusVectorEnv
from nclone_env.env import batch
from nclone_env.env.arrays.buffers import make_buffers
from nclone_env.env.compiled import rooms
from nclone_env.level.build import build_room, everything, moving
from nclone_env.sim import state
from nclone_env.sim.store import with_space

from ...shared import each_value
from .test_kernel_steps import play

EXIT = ("exit 160 57", "exit_switch 150 57")
CROWD = build_room(*EXIT, *("zap_drone 60 50",) * 40, *("gold 40 40",) * 30, "mine 44 58")
EVIL = build_room(*EXIT, *("evil_ninja 60 58",) * 4)
LEVELS = (build_room(*EXIT, "mine 46 58"), CROWD, EVIL, moving(), everything())
NUM_ENVS, STEPS = 12, 160


@pytest.fixture
def growths(monkeypatch):
    """Let arrays begin without any space; list the lengths of those of the trail and of movers as they grow."""
    found = []

    def noted(worlds):
        larger = with_space(worlds)
        if larger is not worlds:
            found.append((len(larger.trail), len(larger.movers)))
        return larger

    monkeypatch.setattr(state, "_likely_size", lambda *_: 0)
    monkeypatch.setattr(rooms, "with_space", noted)
    monkeypatch.setattr(batch, "with_space", noted)
    return found


def make(mode="SameStep", **fields) -> NPlusPlusVectorEnv:
    fields = {"observations": "game_state", "max_frames": 400} | fields
    envs = NPlusPlusVectorEnv(levels=LEVELS, num_envs=NUM_ENVS, autoreset_mode=mode, **fields)
    envs.reset(seed=3)
    return envs


def actions(seed=0):
    return np.repeat(np.random.default_rng(seed).integers(0, 6, (STEPS // 8, NUM_ENVS)), 8, axis=0)


def told(envs: NPlusPlusVectorEnv, chosen: np.ndarray) -> list[bytes]:
    """Return what steps say, and all states at the end."""
    said = []
    for row in chosen:
        observations, rewards, terminated, truncated, _ = envs.step(row)
        parts = observations.values() if isinstance(observations, dict) else [observations]
        said += [array.tobytes() for array in (*parts, rewards, terminated, truncated)]
    return said + [envs.get_state(index) for index in range(NUM_ENVS)]


@pytest.mark.parametrize(
    ("mode", "observations"),
    each_value(["SameStep", "NextStep", "Disabled"], [("game_state", "action_mask", "action_outcomes"), "game_state"]),
)
def test_arrays_that_grow_in_the_middle_of_episodes(mode, observations, request):
    expected = told(make(mode, observations=observations), actions())
    growths = request.getfixturevalue("growths")
    envs = make(mode, observations=observations)
    begun = len(growths)
    assert told(envs, actions()) == expected
    assert len(growths) > begun, "they grew after the reset"
    assert len(set(growths)) > 2
    assert told(make(mode, observations=observations), actions(1)) != expected, "negative control"


def test_arrays_that_grow_in_an_exchange_and_when_states_are_set(request):
    def run() -> list[bytes]:
        envs = make()
        said = told(envs, actions()[:60])
        states = [envs.get_state(index) for index in range(NUM_ENVS)]
        envs.gather(np.random.default_rng(1).integers(0, NUM_ENVS, NUM_ENVS))
        said += told(envs, actions(1)[:40])
        for index, taken in enumerate(states[::-1]):
            envs.set_state(index, taken)
        envs.set_starts(states, 0.1)
        said += told(envs, actions(2)[:40])
        envs.exchange_levels((*LEVELS[2:], build_room(*EXIT, *("thwump 60 40 0",) * 50)))
        envs.copy_world(3, 4)
        envs.set_level_weights([1, 2, 1, 9])
        said += told(envs, actions(3)[:60])
        envs.assign_levels([3] * NUM_ENVS)
        return said + told(envs, actions(4)[:60])

    expected = run()
    growths = request.getfixturevalue("growths")
    assert run() == expected
    assert len(set(growths)) > 3


def test_arrays_that_grow_between_the_steps_of_a_kernel(request):
    def run(seed=0) -> tuple[bytes, int]:
        envs = make()
        out, final = (make_buffers(envs._batch.specs, NUM_ENVS) for _ in range(2))
        results, step, calls = np.zeros((STEPS, NUM_ENVS), envs._batch.results.dtype), 0, 0
        rows = np.zeros(STEPS, np.int64)
        while step < STEPS:
            step, calls = play(envs.kernel_steps(out, final), rows, actions(seed), results, step), calls + 1
        return results.tobytes() + b"".join(envs.get_state(index) for index in range(NUM_ENVS)), calls

    expected, _ = run()
    request.getfixturevalue("growths")
    found, calls = run()
    assert found == expected
    assert calls > 1, "the kernel stopped for arrays"
    assert run(1)[0] != expected, "negative control"


def test_worlds_take_what_their_levels_need():
    """Only one of many environments plays the crowd."""
    small, mixed = make(), make()
    for envs, levels in ((small, [0] * NUM_ENVS), (mixed, [1] + [0] * (NUM_ENVS - 1))):
        envs.assign_levels(levels)
        envs.reset()
        envs.step([0] * NUM_ENVS)
    held = [int(envs.worlds.rooms["movers"]["size"][-1]) for envs in (small, mixed)]
    few, many = small.level_set.arrays.header["mover_count"][:2].tolist()
    assert held == [NUM_ENVS * few, (NUM_ENVS - 1) * few + many]
    mixed.assign_levels([0] * NUM_ENVS)
    mixed.reset()
    mixed.step([0] * NUM_ENVS)
    assert int(mixed.worlds.rooms["movers"]["size"][-1]) == held[0], "what an episode needed is given back"


def test_a_trail_takes_room_once_an_evil_ninja_is_touched():
    envs = make(max_frames=1000)
    envs.assign_levels([2] * NUM_ENVS)
    envs.reset()
    untouched = envs.worlds.rooms["trail"]["size"][:-1].copy()
    for _ in range(60):
        envs.step([2, *[0] * (NUM_ENVS - 1)])  # the first runs to the right, through the evil ninjas
    sizes = envs.worlds.rooms["trail"]["size"][:-1]
    assert sizes[0] > 100
    assert (sizes[1:] == untouched[1:]).all()
    assert untouched.max() <= envs.config.frame_skip
