"""What tests read of environments beyond their public names."""

import numpy as np

from nclone_env.env.arrays.buffers import Buffers
from nclone_env.env.base import BaseEnvironment
from nclone_env.env.compiled.records import EPISODE, RESULT
from nclone_env.env.compiled.step_arrays import StepArrays
from nclone_env.obs.fields import Reachability
from nclone_env.sim.state import MOVER, NINJA_RECORD


def step_arrays(env: BaseEnvironment) -> StepArrays:
    """Return what a step reads and writes: episodes, results, paths, pictures, start states."""
    return env._batch._arrays


def observe(env: BaseEnvironment, index: int, out: Buffers) -> None:
    """Write the observations of one environment, as it is now, into the first row of ``out``."""
    env._batch.observe(index, out)


def parts_of(env: BaseEnvironment, state: bytes) -> dict[str, np.ndarray]:
    """Return the parts of the contents of a snapshot, as copies by name."""
    header = env.level_set.arrays.header[np.frombuffer(state, NINJA_RECORD, 1, 48)["level"][0]]
    counts = {"ninjas": 1, "entity_states": int(header["entity_count"]), "movers": int(header["mover_count"])}
    dtypes = {"ninjas": NINJA_RECORD, "entity_states": np.dtype("u1"), "movers": MOVER, "trail": np.dtype("f8")}
    known = sum(count * dtypes[name].itemsize for name, count in counts.items()) + EPISODE.itemsize + RESULT.itemsize
    counts |= {"trail": (len(state) - 48 - 4 - known) // 8, "episodes": 1, "results": 1}
    dtypes |= {"episodes": EPISODE, "results": RESULT}
    parts, place = {}, 48
    for name, count in counts.items():
        parts[name] = np.frombuffer(state, dtypes[name], count, place).copy()
        place += parts[name].nbytes
    return parts


def digest(env: BaseEnvironment) -> bytes:
    """Return the digest of the level set in a snapshot."""
    return env._batch._digest


def reachability(env: BaseEnvironment) -> Reachability:
    """Return the pass that answers the queries of ``reachability``."""
    reach = env._batch._reach
    assert reach is not None
    return reach
