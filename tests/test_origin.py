"""Names of the original documents: each is answered with its name here, in the reference and in the guide."""

from pathlib import Path

import pytest

import nclone_env
from nclone_env import EnvironmentConfig, RenderConfig, create_environment
from nclone_env._origin import RENAMED
from nclone_env.errors import ConfigError

DOCS = Path(__file__).parents[1] / "docs"
PAGES = DOCS / "reference" / "README.md", DOCS / "operation" / "memory-guide.md"


def test_the_preset_of_the_memory_guide():
    config = EnvironmentConfig.for_parallel_training()
    assert (config.observations, config.max_frames) == (("game_state",), 1200)
    env = create_environment(config)
    assert list(env.reset(seed=0)[0]) == ["game_state"]
    env.close()
    assert EnvironmentConfig.for_parallel_training(max_frames=600).max_frames == 600


@pytest.mark.parametrize("name", RENAMED)
def test_every_name_is_answered_with_the_new_one(name):
    with pytest.raises(ImportError, match="; here: ") as caught:
        exec(f"from nclone_env import {name}")
    assert RENAMED[name] in str(caught.value)
    with pytest.raises(ConfigError, match=f"unknown field '{name}'; here: "):
        RenderConfig(**{name: 1})
    assert all(name in page.read_text() for page in PAGES)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: EnvironmentConfig.for_parallel, AttributeError, "no attribute 'for_parallel'; did you mean 'for_para"),
        (lambda: EnvironmentConfig(frame_stack=4), ConfigError, r"did you mean observation=\{'frame_stack': \.\.\."),
        (lambda: create_environment(gold=1), ConfigError, r"did you mean reward=\{'gold': \.\.\.\}\?"),
        (lambda: RenderConfig(render_mode="human"), ConfigError, "'render_mode'; it is a field of EnvironmentConfig;"),
        (lambda: nclone_env.create_enviroment, AttributeError, "did you mean 'create_environment'"),
        (lambda: nclone_env._nothing, AttributeError, "has no attribute '_nothing'$"),
    ],
)
def test_mistakes_are_answered_with_what_was_meant(call, error, message):
    with pytest.raises(error, match=message):
        call()
