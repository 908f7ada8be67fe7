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


def repeats(envs, steps=STEPS):
    """Return whether the actions of each step were repeated, (steps, n)."""
    given = np.random.default_rng(7).integers(3, size=(steps, 1)).repeat(envs.num_envs, axis=1)
    return [(envs.step(actions), envs.taken_actions == actions)[1].tolist() for actions in given]


def test_copies_foresee_repeats_unless_they_are_seeded_again():
    with closing(NPlusPlusVectorEnv(None, 3, **FIELDS, action_repeat_probability=0.5)) as envs:
        envs.reset(seed=1)
        envs.step([2, 2, 2])
        state = envs.get_state(0)

        def from_copies(seed):
            for index in range(3):
                envs.set_state(index, state)
            if seed is not None:
                envs.reseed(seed)
            return np.array(repeats(envs)).T.tolist()

        source, *copies = from_copies(None)
        assert copies == [source, source]
        assert source not in from_copies(5)
        assert from_copies(5) == from_copies([5, 6, 7]) != from_copies(6)
        kept, *others = from_copies([None, 5, 5])
        assert kept == source
        assert others[0] == others[1] != source
        for seed in (None, -1, [1, 2], 1.5, "a"):
            with pytest.raises((ConfigError, TypeError), match="seed"):
                envs.reseed(seed)


def test_levels_are_drawn_from_the_seed_that_was_given_last():
    with closing(NPlusPlusVectorEnv(None, 8, levels="jumps", observations="game_state")) as envs:

        def drawn(seed, again=None):
            envs.reset(seed=seed)
            if again is not None:
                envs.reseed(again)
            return [envs.reset()[1]["level"].tolist() for _ in range(5)]

        assert drawn(1, 2) == drawn(3, 2) != drawn(1)
        assert drawn(1, 2)[1:] == drawn(2)[:-1]


@pytest.mark.parametrize("chance", [-0.1, 1.5, float("nan"), "often"])
def test_a_probability_is_checked(chance):
    with pytest.raises(ConfigError, match="action_repeat_probability: expected"):
        NPlusPlusEnv(**FIELDS, action_repeat_probability=chance)
