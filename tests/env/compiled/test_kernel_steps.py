"""Steps that another kernel makes: the same as those from Python, in all modes, and refused where they would not be."""

import numpy as np
import pytest

from nclone_env import NPlusPlusVectorEnv, errors
from nclone_env.env import step_all
from nclone_env.env.arrays.buffers import make_buffers
from nclone_env.jit import kernel

from ...shared import each_value

COUNT, STEPS = 5, 60


@kernel
def play(steps, rows, actions, results, first):
    """Play steps from one on, each into rows of ``out`` from its own on.

    Return the first that was not played: the worlds need larger arrays, or an argument does not fit.
    """
    for step in range(first, actions.shape[0]):
        for index in range(actions.shape[1]):
            steps.arrays.actions[index] = actions[step, index]
        if not step_all(steps, rows[step]):
            return step
        for index in range(actions.shape[1]):
            results[step, index] = steps.arrays.results[index]
    return actions.shape[0]


def make(mode="SameStep", observations=("game_state",), **options):
    envs = NPlusPlusVectorEnv(
        levels=("first-steps", "hazards"), num_envs=COUNT, observations=observations, max_frames=80,
        autoreset_mode=mode, **options,
    )  # fmt: skip
    envs.reset(seed=4)
    return envs


def actions(seed):
    return np.random.default_rng(seed).integers(0, 6, (STEPS, COUNT))


def by_kernel(mode, observations, seed):
    """Return the bytes of results and observations of all steps, and the last ones of the last step by name."""
    envs = make(mode, observations)
    specs = envs._batch.specs
    out, final = make_buffers(specs, (STEPS + 1) * COUNT), make_buffers(specs, COUNT)
    results = np.zeros((STEPS, COUNT), envs._batch.results.dtype)
    step = 0
    while step < STEPS:
        step = play(envs.kernel_steps(out, final), COUNT * np.arange(1, STEPS + 1), actions(seed), results, step)
    rows = [
        {name: array[step * COUNT : (step + 1) * COUNT] for name, array in out.items()} for step in range(1, STEPS + 1)
    ]
    return results, rows, final, envs.get_state(2)


def by_python(mode, observations, seed):
    envs, results, rows, final = make(mode, observations), [], [], {}
    for chosen in actions(seed):
        observation, *_, info = envs.step(chosen)
        rows.append({name: array.copy() for name, array in observation.items()})
        results.append(envs._batch.results.copy())
        final = {name: array.copy() for name, array in info.get("final_obs", {}).items()}
    return np.stack(results), rows, final, envs.get_state(2)


@pytest.mark.parametrize(
    ("mode", "observations"),
    each_value(["SameStep", "NextStep", "Disabled"], [("game_state",), ("locals", "entity_states", "player_frame")]),
)
def test_equal_to_steps_from_python(mode, observations):
    results, rows, final, state = by_kernel(mode, observations, 0)
    expected = by_python(mode, observations, 0)
    for name in results.dtype.names:
        assert (results[name] == expected[0][name]).all(), name
    for mine, theirs in zip(rows, expected[1], strict=True):
        assert mine.keys() == theirs.keys()
        assert all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)
    assert (mode == "SameStep") == bool(expected[2])
    for name, array in expected[2].items():
        assert final[name][: len(array)].tobytes() == array.tobytes()
    assert state == expected[3]
    assert state != by_kernel(mode, observations, 1)[3], "other actions do change it"


@pytest.mark.parametrize(
    "options",
    [
        {"observations": ("game_state", "action_mask")},
        {"observations": ("action_outcomes",)},
        {"observations": ("reachability",)},
        {"observation": {"frame_stack": 2}},
        {"reward_function": lambda event: 1.0 * event["gold"]},
    ],
)
def test_none_where_a_step_needs_more(options):
    envs = make(**options)
    specs = envs._batch.specs
    assert envs.kernel_steps(make_buffers(specs, COUNT), make_buffers(specs, COUNT)) is None


def test_none_where_many_entries_are_renumbered(monkeypatch):
    monkeypatch.setattr("nclone_env.env.batch.MOST_ENTRIES", 0)
    envs = make()
    specs = envs._batch.specs
    assert envs.kernel_steps(make_buffers(specs, COUNT), make_buffers(specs, COUNT)) is None


def test_exchanged_levels_may_need_more(monkeypatch):
    envs = make()
    specs = envs._batch.specs
    out, final = make_buffers(specs, COUNT), make_buffers(specs, COUNT)
    assert envs.kernel_steps(out, final) is not None
    monkeypatch.setattr("nclone_env.env.batch.MOST_ENTRIES", 79 * envs.level_set.max_movers)
    envs.exchange_levels("hazards")
    assert envs.kernel_steps(out, final) is None


ROWS, SHORT, MANY = (np.zeros((count, 30), np.float32) for count in (COUNT, COUNT - 1, 20))


@pytest.mark.parametrize(
    ("out", "final", "message"),
    [
        ({"game_state": ROWS.astype(np.float64)}, ROWS, r"out\['game_state'\]: expected float32 .*, got float64"),
        ({"game_state": ROWS}, SHORT, r"final\['game_state'\]: expected float32 \(5, 30\), got float32 \(4, 30\)"),
        ({"game_state": ROWS}, ROWS, "final: expected arrays apart from each other, but 'game_state' and "),
        ({"game_state": MANY[:-3]}, MANY[3:8], "final: expected arrays apart from each other, but 'game_state' and "),
    ],
)
def test_arrays_that_do_not_fit_are_refused(out, final, message):
    with pytest.raises(errors.BufferError, match=message):
        make().kernel_steps(out, {"game_state": final})


def step_at(steps, row, action):
    """Make a step with one action for all, at a row; return whether it was made."""
    return play(
        steps, np.array([row]), np.full((1, COUNT), action), np.zeros((1, COUNT), steps.arrays.results.dtype), 0
    )


@pytest.mark.parametrize(("row", "action"), [(16, 0), (-1, 0), (2**62, 0), (0, 6), (0, -1), (0, 2**40)])
def test_rows_and_actions_that_do_not_fit_are_refused(row, action):
    """Before anything is written; the last row that fits is written, and no further."""
    envs, out = make(), np.zeros((20, 30), np.float32)
    given = {"game_state": out}, {"game_state": np.zeros((COUNT, 30), np.float32)}
    steps = envs.kernel_steps(*given)
    before = envs.get_state(0)
    assert not step_at(steps, row, action)
    with pytest.raises(errors.ActionError, match="step_all: expected actions from 0 to 5, and num_envs rows of out"):
        envs.kernel_steps(*given)
    steps = envs.kernel_steps(*given)
    assert not out.any()
    assert envs.get_state(0) == before
    assert step_at(steps, 15, 2)
    assert out[15:].any(axis=1).all()
    assert not out[:15].any()
    assert envs.get_state(0) != before


def test_a_reset_is_needed_first():
    envs = NPlusPlusVectorEnv(levels="first-steps", num_envs=COUNT, observations="game_state")
    with pytest.raises(errors.ResetNeededError, match=r"kernel_steps\(\) was called before the first reset"):
        envs.kernel_steps({"game_state": ROWS}, {"game_state": ROWS})
