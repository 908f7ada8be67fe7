"""Prints the traced bytes, the objects of Python and NumPy, of a further single environment that has been played."""

import gc
import sys
import tracemalloc

from nclone_env import EnvironmentConfig, NPlusPlusEnv, create_environment


def single() -> NPlusPlusEnv:
    """Return a new environment."""
    return create_environment(EnvironmentConfig.for_parallel_training())


def played(seed: int | None = None) -> NPlusPlusEnv:
    """Return an environment after some steps."""
    env = single()
    env.reset(seed=seed)
    for step in range(10):
        *_, terminated, truncated, _ = env.step(step % 6)
        if terminated or truncated:
            env.reset()
    return env


def main() -> None:
    """Measure fifty after a hundred others, when tables of the interpreter have grown."""
    kept = [played() for _ in range(100)]
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept += [played() for _ in range(50)]
    gc.collect()
    sys.stdout.write(str((tracemalloc.get_traced_memory()[0] - before) / 50))
    assert len({id(env.config) for env in kept}) == 1


if __name__ == "__main__":
    main()
