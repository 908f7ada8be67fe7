"""The registered ids: their spaces, their vector environments, and observations that are one array."""

import hashlib
import json
import re
import warnings
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers import FrameStackObservation, NormalizeObservation
from gymnasium.wrappers.vector import NormalizeObservation as NormalizeVectorObservation

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv, errors
from nclone_env.config import ObservationConfig
from nclone_env.env.ids import REGISTERED
from nclone_env.level.catalog import level_sets

from .bases import ENVIRONMENT_ID, QUICK_DEATH, QUICK_WIN, assert_same, choices

STATE, PIXELS = "nclone/NPlusPlus-State-v0", "nclone/NPlusPlus-Pixels-v0"
BOXES = [name for name in REGISTERED if name != ENVIRONMENT_ID]
LIVELY = {"levels": (QUICK_WIN, QUICK_DEATH, "hazards"), "max_frames": 100}
DIGESTS = {
    "nclone/NPlusPlus-v0": "e9b2dd3dba956206",
    "nclone/NPlusPlus-State-v0": "c8f74c0eccf32eb8",
    "nclone/NPlusPlus-Pixels-v0": "cb462a5e273dc49c",
    "nclone/NPlusPlus-FirstSteps-v0": "4dea370408665dd9",
    "nclone/NPlusPlus-Jumps-v0": "5937c7963b17001e",
    "nclone/NPlusPlus-Hazards-v0": "7d3d3b7e64119f72",
    "nclone/NPlusPlus-Motifs1-v0": "0eeebf57fa371c44",
    "nclone/NPlusPlus-Motifs2-v0": "9bc829c57056493d",
    "nclone/NPlusPlus-Motifs3-v0": "9dea4b5dfd61c820",
    "nclone/NPlusPlus-Motifs4-v0": "ee13771ea33128a8",
    "nclone/NPlusPlus-Motifs5-v0": "1e88cccbf002193c",
    "nclone/NPlusPlus-Motifs6-v0": "5d8ded6a313a1aad",
    "nclone/NPlusPlus-Motifs7-v0": "6d93e50141e326a8",
    "nclone/NPlusPlus-Motifs8-v0": "ed8b5054c078a09a",
    "nclone/NPlusPlus-Motifs9-v0": "d966f647e2f7aeb3",
    "nclone/NPlusPlus-Motifs10-v0": "11fd36dafe088e57",
}
"""Digests of play by id: one may change only together with the version of its id (docs/environments/versions.md)."""
SHAPES = {STATE: (30,), PIXELS: (4, 84, 84)}


def native(name, num_envs, **options) -> NPlusPlusVectorEnv:
    return gymnasium.make_vec(name, num_envs, vectorization_mode="vector_entry_point", **options).unwrapped


@pytest.mark.parametrize("name", BOXES)
def test_the_space_is_a_box_that_contains_what_comes(name):
    env, envs = gymnasium.make(name), native(name, 3)
    space = env.observation_space
    assert type(space) is gymnasium.spaces.Box
    assert space.shape == SHAPES.get(name, (30,))
    assert space.dtype == (np.uint8 if name == PIXELS else np.float32)
    assert envs.single_observation_space == space
    assert envs.observation_space == batch_space(space, 3)
    assert env.reset(seed=1)[0] in space
    assert envs.reset(seed=1)[0] in envs.observation_space
    for _ in range(20):
        assert env.step(2)[0] in space
        assert envs.step(np.full(3, 2))[0] in envs.observation_space


def test_every_built_in_set_has_an_id():
    names = {name: "".join(part.capitalize() for part in name.split("-")) for name in level_sets()}
    for levels, title in names.items():
        config = gymnasium.make(f"nclone/NPlusPlus-{title}-v0").unwrapped.config
        frames = 3600 if levels == "motifs-10" else 2400 if levels.startswith("motifs") else 1200
        assert config == EnvironmentConfig.for_parallel_training(
            levels=levels, max_frames=frames, dict_observations=False
        )


@pytest.mark.parametrize("name", REGISTERED)
def test_a_spec_survives_json(name):
    env = gymnasium.make(name, frame_skip=2)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.config == env.unwrapped.config
    assert again.unwrapped.config.frame_skip == 2
    again.close()


@pytest.mark.parametrize("make", [gymnasium.make, partial(gymnasium.make_vec, num_envs=2)], ids=["single", "vector"])
def test_a_spec_with_values_of_numpy_and_iterators_is_json(make):
    fields = {
        "levels": iter(["jumps/01-stairs", "hazards"]),
        "observations": iter(["game_state"]),
        "frame_skip": np.int64(2),
        "mirrored": np.bool_(True),
        "action_space": np.str_("discrete"),
        "reward": {"death": np.float32(-2)},
        "render": {"global_view_size": np.array([64, 128]), "theme": np.str_("dark")},
        "observation": ObservationConfig(locals_size=np.int8(3)),
    }
    env = make(STATE, **fields)
    kwargs = json.loads(env.spec.to_json())["kwargs"]
    known = {name: kwargs[name] for name in fields}
    assert EnvironmentConfig(**known, dict_observations=False) == env.unwrapped.config
    assert env.unwrapped.config.levels == ("jumps/01-stairs", "hazards")
    assert known["reward"] == {"death": -2.0}
    env.close()


@pytest.mark.parametrize("name", [STATE, PIXELS])
@pytest.mark.parametrize("screen", [True, False])
def test_the_checker_of_gymnasium_has_nothing_to_say(name, screen, monkeypatch):
    for variable in () if screen else ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    if screen:
        monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make(name, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize("name", [STATE, PIXELS])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_gymnasiums_vector_environment_agrees_with_ours(name, mode):
    theirs = gymnasium.make_vec(
        name,
        3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode(mode)},
        **LIVELY,
    )
    ours = native(name, 3, autoreset_mode=mode, **LIVELY)
    assert theirs.observation_space == ours.observation_space
    np.testing.assert_array_equal(theirs.reset(seed=9)[0], ours.reset(seed=9)[0])
    ends = 0
    for actions in choices(80, 3):
        left, right = theirs.step(actions), ours.step(actions)
        for theirs_part, ours_part in zip(left[:4], right[:4], strict=True):
            assert theirs_part.dtype == ours_part.dtype
            np.testing.assert_array_equal(theirs_part, ours_part)
        ends += int((right[2] | right[3]).sum())
    assert ends > 3


@pytest.mark.parametrize("name", [STATE, PIXELS])
def test_the_array_is_that_of_the_dict(name):
    ours = native(name, 4, autoreset_mode="SameStep", **LIVELY)
    dicts = NPlusPlusVectorEnv(ours.config.replace(dict_observations=True), 4, autoreset_mode="SameStep")
    key = ours.config.only_observation
    np.testing.assert_array_equal(
        ours.reset(seed=3)[0], dicts.reset(seed=3)[0][key].reshape(ours.observation_space.shape)
    )
    ends = 0
    for actions in choices(100, 4):
        (observations, *results, info), (expected, *others, plain) = ours.step(actions), dicts.step(actions)
        np.testing.assert_array_equal(observations, expected[key].reshape(observations.shape))
        for left, right in zip(results, others, strict=True):
            np.testing.assert_array_equal(left, right)
        assert ("final_obs" in info) == ("final_obs" in plain)
        if "final_obs" in info:
            ends += len(info["final_obs"])
            last = plain["final_obs"][key]
            assert info["final_obs"].tobytes() == last.tobytes()
            assert info["final_obs"].shape == (len(last), *observations.shape[1:])
    assert ends > 3
    state = ours.get_state(2)
    assert ours.set_state(1, state)[0].shape == observations.shape[1:]
    assert ours.gather(np.zeros(4, np.int64))[0].shape == observations.shape


def test_a_step_copies_nothing():
    envs = native(STATE, 4, **LIVELY)
    out = np.zeros((4, 30), np.float32)
    assert envs.reset(seed=1, out={"game_state": out})[0] is out
    assert envs.step(np.full(4, 2), out={"game_state": out})[0] is out


def test_pixels_are_the_last_four_frames_oldest_first():
    env = gymnasium.make(PIXELS, levels="hazards")
    one = FrameStackObservation(gymnasium.make(PIXELS, levels="hazards", observation={"frame_stack": 1}), 4)
    assert one.observation_space.shape == (4, 84, 84, 1)
    left, right = env.reset(seed=5)[0], one.reset(seed=5)[0]
    np.testing.assert_array_equal(left, right[..., 0])
    for _ in range(8):
        left, right = env.step(5)[0], one.step(5)[0]
        np.testing.assert_array_equal(left, right[..., 0])
    assert (left[0] != left[3]).any()


def test_wrappers_that_need_a_box():
    single = NormalizeObservation(gymnasium.make(STATE))
    several = NormalizeVectorObservation(native(STATE, 3))
    assert single.reset(seed=1)[0].shape == (30,)
    assert several.reset(seed=1)[0].shape == (3, 30)
    with pytest.raises((AssertionError, TypeError, ValueError)):
        NormalizeObservation(gymnasium.make(ENVIRONMENT_ID)).reset(seed=1)


@pytest.mark.parametrize(
    "names", [("game_state", "locals"), ("entity_states",), ("graph",), ("game_state", "player_frame", "global_view")]
)
def test_several_arrays_cannot_be_one(names):
    with pytest.raises(errors.ConfigError, match=r"expected one name of a single array .* or set dict_obs"):
        EnvironmentConfig(observations=names, dict_observations=False)
    EnvironmentConfig(observations=names, dict_observations=True)


def played(name, seed) -> str:
    """Return the digest of 200 steps of four environments."""
    envs, digest = native(name, 4), hashlib.sha256()
    parts = [envs.reset(seed=seed)[0]]
    for actions in choices(200, 4):
        parts += envs.step(actions)[:4]
    for part in parts:
        for array in part.values() if isinstance(part, dict) else [part]:
            digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("name", REGISTERED)
def test_a_version_plays_as_it_always_did(name):
    assert played(name, 0) == DIGESTS[name]
    assert played(name, 1) != DIGESTS[name]


LINK = r"^\| \[`(nclone/[^`]+)`\]\(ids/[\w-]+\.md\) \|"


def test_the_page_lists_the_ids_with_their_fields():
    text = (Path(__file__).parents[2] / "docs" / "environments" / "versions.md").read_text()
    rows = dict(re.findall(rf"{LINK} `?([^|]*?)`? \|", text, flags=re.MULTILINE))
    assert rows.keys() == REGISTERED.keys()
    for name, shown in rows.items():
        assert shown == _shown(gymnasium.make(name).observation_space), name
    levels = dict(re.findall(rf"{LINK}[^|]*\| `([^`]+)`", text, flags=re.MULTILINE))
    for name, shown in levels.items():
        assert (shown,) == gymnasium.make(name).unwrapped.config.levels
    assert rows.keys() == levels.keys()


def _shown(space) -> str:
    if isinstance(space, gymnasium.spaces.Box):
        return f"Box({', '.join(map(str, space.shape))}) {space.dtype}".replace("Box(30)", "Box(30,)")
    return f"Dict of {len(space)}"


def test_a_clone_and_a_restored_state_have_the_form_of_their_source():
    env = gymnasium.make(PIXELS).unwrapped
    env.reset(seed=1)
    env.step(2)
    other = env.clone()
    assert_same({"": env.step(2)[0]}, {"": other.step(2)[0]})
    assert other.set_state(env.get_state())[0].shape == (4, 84, 84)
