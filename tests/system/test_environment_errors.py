"""Every wrong call is refused by an error of ours that says what to do."""

import threading

import pytest

from nclone_env import EnvironmentConfig, NcloneError, NPlusPlusEnv, NPlusPlusVectorEnv, RenderConfig, errors
from nclone_env.game import GOLD, MINE

from ..env.bases import QUICK_WIN, RIGHT, corridor

NO_EXIT = corridor((GOLD, 60), (MINE, 80), title="closed in")


def make(**fields) -> NPlusPlusEnv:
    return NPlusPlusEnv(observations="game_state", **fields)


def make_vector(num_envs=2, **options) -> NPlusPlusVectorEnv:
    return NPlusPlusVectorEnv(None, num_envs, observations="game_state", **options)


def test_a_level_without_an_exit():
    with pytest.raises(errors.UnsupportedLevelError, match="has no exit, so no episode could succeed; simulate"):
        make(levels=NO_EXIT)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"frameskip": 4},
            "environment: unknown field 'frameskip'; did you mean 'frame_skip'. valid fields: levels, mirrored",
        ),
        ({"levels": ()}, "levels: expected at least one level, got none; name a set, a level or a file"),
        ({"render_mode": "ansi"}, "render_mode: expected one of None, 'rgb_array', 'human', got 'ansi'"),
        ({"frame_skip": 0}, "frame_skip: expected a whole number from 1 to 60, got 0"),
        ({"max_frames": "many"}, "max_frames: expected a whole number from 1 to 1000000, got 'many'"),
        ({"reward": {"gamma": 2}}, "gamma: expected a number from 0 to 1, got 2"),
        (
            {"render": {"size": 1}},
            "render: unknown field 'size'; valid fields: player_frame_size, player_frame_scale, global_view_size",
        ),
        ({"render": {"player_frame_size": 8}}, "player_frame_size: expected a whole number from 16 to 512, got 8"),
        ({"render": {"player_frame_scale": 0.5}}, "player_frame_scale: expected a number from 1 to 16, got 0.5"),
        (
            {"render": {"player_frame_size": 512, "player_frame_scale": 5}},
            r"player_frame_scale: expected at most 4\.125 for a player_frame_size of 512, got 5\.0, which shows 2560",
        ),
        ({"render": {"global_view_size": 128}}, r"global_view_size: expected height and width, for example .*got 128"),
        ({"render": {"global_view_size": (8, 64)}}, r"global_view_size\[0\], the height: expected .* 16 to 600, got 8"),
        ({"render": {"global_view_size": (64, 2000)}}, r"global_view_size\[1\], the width: .* 16 to 1056, got 2000"),
        ({"render": {"global_view_size": (256, 128)}}, r"global_view_size: .* no higher than wide.*pass \(128, 256\)"),
        ({"render": RenderConfig}, "render: expected RenderConfig or a mapping, got <class"),
        ({"observation": "game_state"}, "observation: expected ObservationConfig or a mapping, got 'game_state'"),
    ],
)
def test_wrong_fields(fields, message):
    for call in (
        lambda: make(**fields),
        lambda: make_vector(**fields),
        lambda: EnvironmentConfig(observations="game_state").replace(**fields),
    ):
        with pytest.raises(errors.ConfigError, match=message):
            call()


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        ("pixels", "observations: expected one of 'game_state', 'player_frame', .*'action_mask', got 'pixels'"),
        ((), r"expected one or more different names out of game_state, player_frame, .*action_mask, got \(\)"),
        (("game_state", "game_state"), "expected one or more different names"),
    ],
)
def test_wrong_observations(observations, message):
    with pytest.raises(errors.ConfigError, match=message):
        NPlusPlusEnv(observations=observations)


@pytest.mark.parametrize("config", [{"levels": "jumps"}, "jumps", 3])
def test_a_configuration_that_is_none(config):
    for kind in (NPlusPlusEnv, NPlusPlusVectorEnv):
        with pytest.raises(errors.ConfigError, match=r"got .*; pass keyword arguments \((num_env|level)s="):
            kind(config)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, "num_envs: expected a whole number from 1 to 16777216, got 0"),
        ({"num_threads": 0}, "num_threads: expected a whole number from 1 to 1024, got 0"),
        ({"autoreset_mode": "next"}, "an AutoresetMode or one of 'NextStep', 'SameStep', 'Disabled', got 'next'"),
        ({"autoreset_mode": None}, "autoreset_mode: expected an AutoresetMode or one of .* got None"),
    ],
)
def test_wrong_options_of_a_vector_environment(options, message):
    with pytest.raises(errors.ConfigError, match=message):
        make_vector(**options)


@pytest.mark.parametrize("call", ["step", "render"])
def test_nothing_goes_before_reset(call):
    arguments = {"step": [0]}.get(call, [])
    message = rf"{call}\(\) was called before the first reset; call reset\(\) to begin"
    with pytest.raises(errors.ResetNeededError, match=message):
        getattr(make(render_mode="rgb_array"), call)(*arguments)
    with pytest.raises(errors.ResetNeededError, match=message):
        getattr(make_vector(render_mode="rgb_array"), call)(*[[0, 0]] * len(arguments))


@pytest.mark.parametrize("fields", [{"levels": QUICK_WIN}, {"max_frames": 40}])
def test_a_single_environment_does_not_step_beyond_the_end(fields):
    env = make(**fields)
    env.reset()
    while not any(env.step(RIGHT)[2:4]):
        pass
    with pytest.raises(errors.ResetNeededError, match=r"after the end of the episode; call reset\(\) to begin"):
        env.step(0)
    env.reset()
    env.step(0)


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("kind", [make, make_vector])
def test_nothing_goes_after_close_but_close(kind, begun):
    env = kind(render_mode="rgb_array")
    if begun:
        env.reset()
        env.render()
    env.close()
    env.close()
    for call in (lambda: env.step(0), env.reset, env.render):
        with pytest.raises(errors.ClosedError, match=r"\w+\(\) was called after close\(\); make a new environment"):
            call()


def test_closing_ends_the_threads():
    envs = make_vector(8, num_threads=3)
    envs.reset()
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("nclone-env")]
    assert len(threads) >= 2
    envs.close()
    for thread in threads:
        thread.join(timeout=600)
    assert not any(thread.is_alive() for thread in threads)


def test_every_error_is_of_the_family():
    with pytest.raises(NcloneError):
        make(levels="nowhere")
    with pytest.raises(ValueError, match="num_envs"):
        make_vector(0)
    with pytest.raises(KeyError):
        make().reset(options={"level": "x"})
    with pytest.raises(RuntimeError):
        make().step(0)
