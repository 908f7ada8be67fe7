"""Steps that repeat the action before them, as sticky actions do."""

from contextlib import closing

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.errors import ConfigError

STEPS = 40
FIELDS = {"levels": "jumps/01-stairs", "observations": "game_state"}


def played(chance: float, seed: int, num_envs: int = 3) -> list[list[bytes]]:
    """Return observations and rewards of each environment, played with equal random actions in all."""
    actions = np.random.default_rng(7).integers(6, size=(STEPS, num_envs))
    actions[:] = actions[:, :1]
    with closing(NPlusPlusVectorEnv(None, num_envs, **FIELDS, action_repeat_probability=chance)) as envs:
        observed = [envs.reset(seed=seed)[0]["game_state"].copy()]
        for step in actions:
            observation, reward, *_ = envs.step(step)
            observed.append(np.concatenate([observation["game_state"], reward[:, np.newaxis]], axis=1))
    return [[row[index].tobytes() for row in observed] for index in range(num_envs)]


def test_a_seed_draws_the_steps_that_repeat():
    plain, sticky = played(0.0, seed=1), played(0.25, seed=1)
    assert sticky == played(0.25, seed=1)
    assert sticky != played(0.25, seed=2)
    assert plain == played(0.0, seed=2)  # nothing is drawn without the option
    assert len({tuple(map(bytes, rows)) for rows in plain}) == 1
    assert len({tuple(map(bytes, rows)) for rows in sticky}) == 3  # each environment draws its own


def test_a_step_that_always_repeats_plays_the_first_action():
    with (
        closing(NPlusPlusEnv(**FIELDS, action_repeat_probability=1.0)) as env,
        closing(NPlusPlusEnv(**FIELDS)) as control,
    ):
        for each in (env, control):
            each.reset(seed=0)
        for action in (2, 1, 0, 5, 3):
            assert env.step(action)[0]["game_state"].tobytes() == control.step(2)[0]["game_state"].tobytes()
        env.reset(seed=0)
        control.reset(seed=0)
        assert env.step(1)[0]["game_state"].tobytes() == control.step(1)[0]["game_state"].tobytes()  # a first one


def test_a_snapshot_remembers_the_action_before():
    with closing(NPlusPlusEnv(**FIELDS, action_repeat_probability=1.0)) as env:
        env.reset(seed=0)
        env.step(2)
        state = env.get_state()
        expected = env.step(1)[0]["game_state"].tobytes()
        env.reset(seed=5)
        env.step(1)
        env.set_state(state)
        assert env.step(0)[0]["game_state"].tobytes() == expected


@pytest.mark.parametrize("mode", ["SameStep", "NextStep", "Disabled"])
@pytest.mark.parametrize("chance", [0.0, 0.5])
def test_the_taken_actions_alone_lead_to_the_same_states(mode, chance):
    given = np.random.default_rng(7).integers(6, size=(STEPS, 3))
    with (
        closing(NPlusPlusVectorEnv(None, 3, **FIELDS, action_repeat_probability=chance, autoreset_mode=mode)) as envs,
        closing(NPlusPlusVectorEnv(None, 3, **FIELDS, autoreset_mode=mode)) as control,
    ):
        for each in (envs, control):
            each.reset(seed=1)
        taken = []
        for actions in given:
            seen = envs.step(actions)[0]["game_state"].tobytes()
            taken.append(envs.taken_actions)
            assert control.step(taken[-1])[0]["game_state"].tobytes() == seen
    assert np.array_equal(taken, given) == (chance == 0)


@pytest.mark.parametrize("chance", [-0.1, 1.5, float("nan"), "often"])
def test_a_probability_is_checked(chance):
    with pytest.raises(ConfigError, match="action_repeat_probability: expected"):
        NPlusPlusEnv(**FIELDS, action_repeat_probability=chance)
