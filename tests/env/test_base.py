"""Public access to the levels and worlds of running environments, and their pictures and windows."""

import numpy as np
import pytest

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv, errors
from nclone_env.env.base import AFTER_RESET, IN_EPISODE, NOT_CLOSED, Lifecycle, Phase
from nclone_env.errors import ClosedError, ResetNeededError, StepOrderError
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.sim.session import Session
from nclone_env.sim.state import gather_worlds, world_at

from .bases import RIGHT, WALK

ACTIONS = np.array([2, 5, 1, 0])

ALLOWED = {
    Phase.NEW: [NOT_CLOSED],
    Phase.RUNNING: [NOT_CLOSED, AFTER_RESET, IN_EPISODE],
    Phase.OVER: [NOT_CLOSED, AFTER_RESET],
    Phase.BROKEN: [NOT_CLOSED],
    Phase.CLOSED: [],
}
MESSAGES = {
    Phase.NEW: (ResetNeededError, r"^go\(\) was called before the first reset; call reset\(\) to begin an episode$"),
    Phase.OVER: (ResetNeededError, r"^go\(\) was called after the end of the episode; call reset\(\) to begin"),
    Phase.BROKEN: (
        ResetNeededError,
        r"^go\(\) was called after a call that an error or Ctrl-C ended before it was done; ",
    ),
    Phase.CLOSED: (ClosedError, r"^go\(\) was called after close\(\); make a new environment$"),
}


def ahead(envs):
    """Return the worlds after the next step, simulated in copies."""
    session = Session(envs.level_set, envs.num_envs, envs.config.max_frames)
    gather_worlds(envs.worlds, np.arange(envs.num_envs), session.worlds)
    session.play(np.repeat(np.array(INPUT_OF_ACTION, np.uint8)[ACTIONS][None], envs.config.frame_skip, axis=0))
    return [session[index].tobytes() for index in range(len(session))]


def test_copies_of_the_worlds_foretell_the_next_step():
    envs = NPlusPlusVectorEnv(levels=(WALK, "jumps"), num_envs=4, observations="game_state")
    envs.reset(seed=1)
    for _ in range(10):
        envs.step(ACTIONS)
    expected = ahead(envs)
    envs.step(ACTIONS)
    assert expected == [world_at(envs.worlds, index).tobytes() for index in range(4)]
    envs.step(ACTIONS)
    assert expected != [world_at(envs.worlds, index).tobytes() for index in range(4)], "negative control"


def test_levels_are_read_only_and_in_the_order_of_the_names():
    envs = NPlusPlusVectorEnv(levels="jumps", num_envs=2, observations="game_state")
    assert envs.level_set.names == envs.level_names
    with pytest.raises(ValueError, match="read-only"):
        envs.level_set.arrays.tiles[:] = 0


def test_a_picture_is_fresh_and_follows_the_ninja():
    env = NPlusPlusEnv(levels=WALK, observations="game_state", render_mode="rgb_array")
    env.reset()
    first = env.render()
    assert (first.shape, first.dtype) == ((600, 1056, 3), np.uint8)
    np.testing.assert_array_equal(first, env.render())
    kept = first.copy()
    for _ in range(10):
        env.step(RIGHT)
    second = env.render()
    np.testing.assert_array_equal(first, kept)
    rows, columns, _ = np.nonzero(first != second)
    assert 280 < rows.min() <= rows.max() < 320
    assert 230 < columns.min() <= columns.max() < 330


def test_a_picture_does_not_change_the_play():
    plain, drawn = (NPlusPlusEnv(levels=WALK, render_mode=mode) for mode in (None, "rgb_array"))
    plain.reset()
    drawn.reset()
    for _ in range(5):
        drawn.render()
        assert plain.step(RIGHT)[1] == drawn.step(RIGHT)[1]


def test_without_a_mode_there_is_a_warning_and_no_picture():
    env = NPlusPlusEnv(observations="game_state")
    env.reset()
    with pytest.warns(UserWarning, match="make the environment with one"):
        assert env.render() is None


def make_human(**fields) -> NPlusPlusEnv:
    return NPlusPlusEnv(levels=WALK, observations="game_state", render_mode="human", frame_skip=1, **fields)


def test_human_mode_shows_every_step_in_a_window(pygame):
    env = make_human(render={"picture_scale": 0.5})
    env.reset()
    surface = pygame.display.get_surface()
    assert surface.get_size() == (528, 300)
    before = pygame.surfarray.array3d(surface)
    for _ in range(10):
        env.step(RIGHT)
    assert env.render() is None
    assert (pygame.surfarray.array3d(pygame.display.get_surface()) != before).any()
    env.close()
    assert not pygame.display.get_init()


def test_who_closes_the_window_is_told_at_the_next_step(pygame):
    env = make_human()
    env.reset()
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    env.step(0)
    with pytest.raises(errors.ClosedError, match="window: it was closed; make a new Window, or a new environment"):
        env.step(0)
    env.close()


def test_the_pictures_of_some_environments():
    envs = NPlusPlusVectorEnv(None, 4, levels="hazards", render={"picture_scale": 0.25})
    with pytest.raises(errors.ResetNeededError):
        envs.pictures([0])
    envs.reset(seed=0)
    assert envs.render() is None, "it has no render mode"
    every = envs.pictures(range(4))
    some = envs.pictures([3, 1, 3])
    for picture, index in zip(some, (3, 1, 3), strict=True):
        np.testing.assert_array_equal(picture, every[index])
    assert any((picture != every[0]).any() for picture in every[1:]), "they differ"
    assert envs.pictures([]) == ()
    with pytest.raises(errors.ConfigError, match="indices: expected a whole number from 0 to 3, got -1"):
        envs.pictures([0, -1])


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("allowed", [NOT_CLOSED, AFTER_RESET, IN_EPISODE])
def test_a_call_is_allowed_in_its_phases_alone(phase, allowed):
    lifecycle = Lifecycle()
    assert lifecycle.phase is Phase.NEW
    lifecycle.phase = phase
    if allowed in ALLOWED[phase]:
        lifecycle.check("go", allowed)
    else:
        error, message = MESSAGES[phase]
        with pytest.raises(error, match=message):
            lifecycle.check("go", allowed)


def test_a_change_that_raises_breaks_the_environment_until_the_next_one():
    lifecycle = Lifecycle()
    with pytest.raises(ArithmeticError), lifecycle:
        raise ArithmeticError
    assert lifecycle.phase is Phase.BROKEN
    with lifecycle:
        pass
    assert lifecycle.phase is Phase.RUNNING


def test_calls_during_a_change_are_rejected():
    lifecycle = Lifecycle()
    with lifecycle:
        with pytest.raises(StepOrderError, match=r"^go\(\) was called while another thread is inside of a call"):
            lifecycle.check("go", NOT_CLOSED)
        with pytest.raises(StepOrderError, match="two threads"):
            lifecycle.__enter__()
    lifecycle.check("go", NOT_CLOSED)
