"""Are our own memory profiles within their budgets? Exits with status 1 if one is not.

The budgets are in ``profiling/memory/budgets.toml``. ``nclone-env profile`` makes each profile in its own process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tyro

from nclone_env._table import format_bytes, table
from nclone_env.memory.show import JSON_REPORT, load_profile
from profiling.measure import describe

BUDGETS = Path(__file__).with_name("budgets.toml")


class Entry(NamedTuple):
    """A quantity of a profile and its budget, in bytes."""

    name: str
    found: float
    budget: float

    @property
    def exceeded(self) -> bool:
        """Whether the profile is larger than its budget."""
        return self.found > self.budget


def entries(profile: Mapping[str, Any], budget: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield what a budget limits, and the growth, whose budget is the margin of the verdict."""
    yield Entry("each environment", profile["per_environment"]["measured"], budget["each"])
    yield Entry("shared", profile["owners"][0]["shared_bytes"], budget["shared"])
    yield Entry("in a step", profile["step_peak"]["largest"], budget["step"])
    for growth in profile["growths"]:
        yield Entry(f"growth, {growth['quantity']}", growth["slope"], growth["error"] + growth["floor"])


def profiled(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the profile that a command line makes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "nclone_env", "profile", *arguments, "--output-dir", folder, "--json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return load_profile(Path(folder) / JSON_REPORT)


def main(budgets: Path = BUDGETS, only: str = "") -> int:
    """Print a table for each budget; return the exit status.

    Args:
        budgets: file of the budgets.
        only: only those whose name contains this text.
    """
    print(describe())
    exceeded = 0
    for name, budget in tomllib.loads(budgets.read_text()).items():
        if only not in name:
            continue
        found = list(entries(profiled(budget["profile"]), budget))
        rows = [
            (entry.name, format_bytes(entry.found), format_bytes(entry.budget), "EXCEEDED" if entry.exceeded else "")
            for entry in found
        ]
        print(name)
        print("\n".join(table(("", "found", "budget", ""), rows)), flush=True)
        exceeded += sum(entry.exceeded for entry in found)
    print(f"{exceeded} budgets exceeded")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
