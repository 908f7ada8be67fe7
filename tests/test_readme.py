"""The README is one screen; tables of the documentation match the code."""

import re
from pathlib import Path

from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig
from nclone_env.obs.spec import ACTION_OUTCOME, ENTITY_STATE, FREE_MOTION, GAME_STATE, REACHABILITY, observation_specs

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_readme_is_one_screen():
    prose = re.sub(r"\]\([^)]*\)", "]", re.sub(r"```.*?```", "", README, flags=re.DOTALL))
    assert len(README.splitlines()) <= 120
    assert len(re.findall(r"\w[^\s|]*", prose)) <= 750
    assert len(re.findall(r"^```python$", README, flags=re.MULTILINE)) == 1
    assert {"make train", "make test"} <= set(re.findall(r"^make \w+", README, flags=re.MULTILINE))


def test_table_of_observations_is_the_codes():
    rows = [
        f"| {index} | `{feature.name}` | {feature.low:g} | {feature.high:g} | {feature.meaning} |"
        for features in (GAME_STATE, ENTITY_STATE, REACHABILITY, FREE_MOTION, ACTION_OUTCOME)
        for index, feature in enumerate(features)
    ]
    text = (ROOT / "docs" / "environments" / "observations.md").read_text()
    assert re.findall(r"^\| \d+ \|.*$", text, flags=re.MULTILINE) == rows
    config = EnvironmentConfig(observations=OBSERVATION_NAMES)
    for name in OBSERVATION_NAMES:
        for spec in observation_specs(config.replace(observations=name)):
            shape = "(K,)" if spec.name == "graph_entities" else spec.shape  # by the levels
            assert f"| `{spec.name}` | {shape} | {spec.dtype} | " in text, spec
