"""Environments with pictures of other sizes than the default."""

import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from nclone_env import EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv, RenderConfig, errors
from nclone_env.level.level_set import pack
from nclone_env.obs.spec import observation_specs
from nclone_env.render.observed import picture_arrays
from profiling.measure import basic_sets

from ..env.bases import WALK, choices

BUILT_IN = tuple(basic_sets())
SIZES = [RenderConfig(84), RenderConfig(64), RenderConfig(16, 16.0, (16, 16)), RenderConfig(300, 7, (300, 528))]
PICTURES = ("player_frame", "global_view")


def test_every_size_shows_the_same_part_of_the_world():
    sizes = {side: RenderConfig(side) for side in (128, 84, 64)}
    assert [each.pixel_side for each in sizes.values()] == [1.0, 128 / 84, 2.0]
    assert [each.view_shape for each in sizes.values()] == [(128, 256), (84, 168), (64, 128)]
    assert (RenderConfig(200).pixel_side, RenderConfig(200).view_shape) == (1.0, (200, 400))
    given = RenderConfig(64, 3.0, [32, 48])
    assert (given.pixel_side, given.view_shape) == (3.0, (32, 48))


def test_a_list_is_a_size_and_a_configuration_stays_hashable():
    config = EnvironmentConfig(render={"global_view_size": [84, 84]})
    assert config.render.global_view_size == (84, 84)
    assert hash(config.render) == hash(RenderConfig(global_view_size=(84, 84)))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_built_in_level_in_every_size(sizes):
    env = NPlusPlusEnv(levels=BUILT_IN, observations=PICTURES, render=sizes)
    side, (height, width) = sizes.player_frame_size, sizes.view_shape
    assert env.observation_space == gymnasium.spaces.Dict(
        player_frame=gymnasium.spaces.Box(0, 255, (side, side, 1), np.uint8),
        global_view=gymnasium.spaces.Box(0, 255, (height, width, 1), np.uint8),
    )
    views = set()
    for level in range(len(env.level_set.levels)):
        observation, _ = env.reset(seed=0, options={"level": level})
        assert observation in env.observation_space
        views.add(observation["global_view"].tobytes())
        for action in (2, 5, 2, 4):
            observation = env.step(action)[0]
            assert observation in env.observation_space
        middle = observation["player_frame"][side // 2 - 1 : side // 2 + 1, side // 2 - 1 : side // 2 + 1]
        assert middle.min() < observation["player_frame"].max()
    assert len(views) == len(env.level_set.levels)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_out_takes_the_configured_shapes_and_threads_change_nothing(sizes):
    ours, theirs = (
        NPlusPlusVectorEnv(None, 5, levels=BUILT_IN, observations=PICTURES, render=sizes, num_threads=threads)
        for threads in (1, 2)
    )
    out = {name: np.zeros((5, *space.shape), np.uint8) for name, space in ours.single_observation_space.items()}
    assert ours.reset(seed=4, out=out)[0]["player_frame"] is out["player_frame"]
    expected = theirs.reset(seed=4)[0]
    for actions in choices(20, 5):
        for name in PICTURES:
            np.testing.assert_array_equal(out[name], expected[name])
        ours.step(actions, out=out)
        expected = theirs.step(actions)[0]
    out["player_frame"] = np.zeros((5, 128, 128, 1), np.uint8)
    with pytest.raises(errors.BufferError, match=r"out\['player_frame'\]: expected uint8 \(5, "):
        ours.step([0] * 5, out=out)


def test_what_a_size_takes_is_reported_and_does_not_grow_with_environments():
    def bytes_of(sizes: RenderConfig, num_envs: int) -> dict[str, int]:
        env = NPlusPlusVectorEnv(None, num_envs, levels=(WALK, WALK), observations=PICTURES, render=sizes)
        pictures = next(node for _, node in env.memory().walk() if node.name == "pictures")
        return {f"{group.name}/{leaf.name}": leaf.total_bytes for group in pictures.children for leaf in group.children}

    small = bytes_of(SIZES[1], 1)
    assert small == bytes_of(SIZES[1], 7)
    assert small["player_frame/static layers"] == 2 * 300 * 528
    assert small["global_view/static layers"] == 2 * 64 * 128
    default = bytes_of(RenderConfig(), 1)
    assert "player_frame/static layers" not in default
    assert default["global_view/static layers"] == 2 * 128 * 256


def test_the_page_has_the_bytes_of_the_presets():
    text = (Path(__file__).parents[2] / "docs" / "environments" / "observations.md").read_text()
    for side in (128, 84, 64):
        config = EnvironmentConfig(levels=WALK, observations=PICTURES, render=RenderConfig(side))
        sizes = [f"{s.shape[0]} x {s.shape[1]}, {np.prod(s.shape):,}" for s in observation_specs(config)]
        pictures = picture_arrays(config, pack([WALK]).arrays).memory()
        layers = sum(node.total_bytes for _, node in pictures.walk() if node.name == "static layers")
        kilobytes = f"{(pictures.total_bytes - layers) / 1000:,.0f} KB, {layers / 1000:.0f} KB"
        assert re.search(rf"RenderConfig\({side}\)`.* \| {sizes[0]} \| {sizes[1]} \| {kilobytes} \|", text)
