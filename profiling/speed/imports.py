"""How long do imports and the program take to start? Medians of the wall time of fresh processes.

The commands take turns; the last column is the median of their ratio to the first one, turn by turn.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial

import numpy as np
import tyro

from profiling.measure import describe, ratios, turns

COMMANDS = {
    "import gymnasium": ("-c", "import gymnasium"),
    "import nclone_env": ("-c", "import nclone_env"),
    "from nclone_env.memory import profile": ("-c", "from nclone_env.memory import profile"),
    "from nclone_env import NPlusPlusEnv": ("-c", "from nclone_env import NPlusPlusEnv"),
    "nclone-env --version": ("-m", "nclone_env", "--version"),
    "nclone-env --help": ("-m", "nclone_env", "--help"),
    "nclone-env levels --help": ("-m", "nclone_env", "levels", "--help"),
}


def seconds(arguments: tuple[str, ...]) -> float:
    """Return the time in which a process of this interpreter begins and ends."""
    started = time.perf_counter()
    subprocess.run((sys.executable, *arguments), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main(runs: int = 15) -> None:
    """Print a row for each command.

    Args:
        runs: number of processes for each.
    """
    print(describe())
    table = turns(runs, [partial(seconds, arguments) for arguments in COMMANDS.values()])
    for name, median, ratio in zip(COMMANDS, np.median(table, axis=0), ratios(table)):
        print(f"{name:38} {median:6.3f} s {ratio:6.2f}")


if __name__ == "__main__":
    tyro.cli(main)
