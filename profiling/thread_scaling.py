"""Two threads against one, by the size of the batch.

    python -m profiling.thread_scaling

Environment steps/s with ``out=``, as in ``profiling.environment_speed``: median and best of the turns, and median of
the ratios to one thread within a turn. What decides is how long one call takes beside handing work to a thread.
"""

from __future__ import annotations

from nclone_env import EnvironmentConfig
from nclone_env.config import DEFAULT_OBSERVATIONS
from profiling.contracts import LEVELS, STATE
from profiling.environment_speed import our_case, print_table
from profiling.machine import describe

SIZES = ((STATE, (256, 1024, 4096)), (DEFAULT_OBSERVATIONS, (256, 1024)))
SECONDS = 1.0


def main() -> None:
    """Print a table for each size of the batch."""
    print(describe())
    for observations, sizes in SIZES:
        config = EnvironmentConfig(levels=LEVELS, observations=observations)
        for num_envs in sizes:
            print(f"{' + '.join(observations)}, {num_envs} environments")
            cases = [our_case(f"{threads} thread(s)", "out=", config, num_envs, threads) for threads in (1, 2)]
            print_table(cases, SECONDS)


if __name__ == "__main__":
    main()
