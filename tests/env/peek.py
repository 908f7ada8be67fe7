"""What tests read of environments beyond their public names."""

from __future__ import annotations

from nclone_env.env.arrays.buffers import Buffers
from nclone_env.env.base import BaseEnvironment
from nclone_env.env.compiled.step_arrays import StepArrays
from nclone_env.env.snapshot import Rows
from nclone_env.obs.fields import Reachability


def step_arrays(env: BaseEnvironment) -> StepArrays:
    """Return what a step reads and writes: episodes, results, paths, pictures, start states."""
    return env._batch._arrays


def observe(env: BaseEnvironment, index: int, out: Buffers) -> None:
    """Write the observations of one environment, as it is now, into the first row of ``out``."""
    env._batch.observe(index, out)


def rows(env: BaseEnvironment) -> Rows:
    """Return the arrays whose rows are in a snapshot."""
    return env._batch._rows()


def digest(env: BaseEnvironment) -> bytes:
    """Return the digest of the level set in a snapshot."""
    return env._batch._digest


def reachability(env: BaseEnvironment) -> Reachability:
    """Return the pass that answers the queries of ``reachability``."""
    reach = env._batch._reach
    assert reach is not None
    return reach
