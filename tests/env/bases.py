"""Small levels, and runs of environments, that the tests of the environments share."""

import hashlib
from collections.abc import Mapping

import gymnasium
import numpy as np

from nclone_env import NPlusPlusVectorEnv
from nclone_env.game import EXIT, EXIT_SWITCH, GOLD, MINE, kind_name
from nclone_env.level.build import build_level, hall_tiles
from nclone_env.level.level import Level

ENVIRONMENT_ID = "nclone/NPlusPlus-v0"
NOTHING, LEFT, RIGHT, JUMP, JUMP_LEFT, JUMP_RIGHT = range(6)
RIGHT_INPUT = 2
FLOOR = 50  # map units (6 pixels) at which the ninja starts just above the floor of the corridor

PLAIN_REWARD = {"completion": 0, "switch": 0, "death": 0, "time": 0, "gold": 0, "shaping": 0}


def corridor(*things: tuple[int, int], ninja: int = 42, title: str = "corridor", height: int = FLOOR) -> Level:
    """Return a corridor with its floor at y = 312, from x = 216 to 816 pixels, 72 pixels high.

    Args:
        *things: (type, x in map units) just above the floor; as many exit switches as exits, in the same order.
        ninja: x of the ninja, map units.
        title: name of the level.
        height: y of the ninja, map units.
    """
    entities = [f"{kind_name(kind)} {x} {FLOOR}" for kind, x in sorted(things, key=lambda thing: thing[0])]
    return build_level(*entities, tiles=hall_tiles((9, 34), (10, 12)), spawn=(ninja, height), title=title)


WALK = corridor((EXIT, 126), (EXIT_SWITCH, 86))
"""Nothing but a way to the right."""
QUICK_WIN = corridor((EXIT, 50), (EXIT_SWITCH, 44), (GOLD, 46), (GOLD, 46), (GOLD, 47), title="quick win")
"""Holding right takes the switch in the first frame, then three pieces of gold, then the exit."""
QUICK_DEATH = corridor((EXIT, 126), (EXIT_SWITCH, 86), (MINE, 50), title="quick death")
"""Holding right ends in a mine."""


def copies(observation: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return copies of all arrays."""
    return {name: array.copy() for name, array in observation.items()}


def assert_same(left: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray]) -> None:
    """Check that two observations are equal, byte by byte."""
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype
        assert left[name].tobytes() == right[name].tobytes(), name


def choices(steps: int, num_envs: int, seed: int = 5) -> np.ndarray:
    """Return (steps, num_envs) random actions; the i-th environment's do not depend on ``num_envs``."""
    columns = [np.random.default_rng([seed, i]).integers(0, 6, steps) for i in range(num_envs)]
    return np.stack(columns, axis=1)


class Digest:
    """Collects everything one environment returns; equal digests mean equal bytes."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, observation, reward, terminated, truncated, level) -> None:
        for name in sorted(observation):
            self._hash.update(np.ascontiguousarray(observation[name]))
        self._hash.update(np.array([reward, terminated, truncated, level], np.float64))

    def __str__(self) -> str:
        return self._hash.hexdigest()


def vector_digests(seed, num_envs, *, steps=300, **options) -> list[str]:
    """Return a digest of ``steps`` random steps for each of the environments."""
    envs = NPlusPlusVectorEnv(None, num_envs, **{"levels": ("hazards", "first-steps"), "max_frames": 200} | options)
    digests = [Digest() for _ in range(num_envs)]
    observations, info = envs.reset(seed=seed)
    nothing = np.zeros(num_envs)
    _add_rows(digests, observations, nothing, nothing, nothing, info)
    for actions in choices(steps, num_envs):
        _add_rows(digests, *envs.step(actions))
    envs.close()
    return [str(digest) for digest in digests]


def _add_rows(digests, observations, rewards, terminated, truncated, info) -> None:
    for i, digest in enumerate(digests):
        row = {name: array[i] for name, array in observations.items()}
        digest.add(row, rewards[i], terminated[i], truncated[i], info["level"][i])


def single_digest(env: gymnasium.Env, seed: int, actions: np.ndarray) -> str:
    """Return the digest of the same steps in a single environment that is reset in the step after an end."""
    names = env.get_wrapper_attr("level_names")
    digest = Digest()
    observation, info = env.reset(seed=seed)
    digest.add(observation, 0, 0, 0, names.index(info["level"]))
    over = False
    for action in actions:
        if over:
            observation, info = env.reset()
            reward, terminated, truncated = 0.0, False, False
        else:
            observation, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        digest.add(observation, reward, terminated, truncated, names.index(info["level"]))
    return str(digest)


def counted(picture, drawn):
    """Return ``BaseEnvironment._picture`` that appends the index of each world that it draws to a list."""

    def draw(env, index=0):
        drawn.append(index)
        return picture(env, index)

    return draw
