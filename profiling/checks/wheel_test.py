"""Install the wheel for every Python that is found, each in an empty environment, and run the first examples.

Prints the table of docs/installation.md. Nothing of the repository is on the path of these interpreters, their caches
begin empty, and the versions are those that pip chooses, not the tested ones of constraints.txt.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro
from tyro.conf import Positional

ROOT = Path(__file__).parents[2]
NAMES = ("python3.11", "python3.12", "python3.13", "python3.14")
LISTED = ("numpy", "numba", "gymnasium", "opencv-python-headless", "tyro")
VERSIONS = f"""
import platform
from importlib.metadata import version
print(platform.python_version(), *map(version, {LISTED}))
"""


def run(*command: str, **options: object) -> tuple[str, float]:
    """Run a command; return its output and its seconds.

    Raises:
        RuntimeError: if it fails; the message is what it printed.
    """
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, time.monotonic() - began


def build_wheel(folder: Path) -> Path:
    """Build the wheel into a folder and return its path."""
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def examples() -> list[str]:
    """Return the Python blocks of the README and of the page of features."""
    text = "".join((ROOT / page).read_text() for page in ("README.md", "docs/features.md"))
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def check_interpreter(interpreter: str, wheel: Path, folder: Path) -> str:
    """Install the wheel for one interpreter, run the examples, and return the row of the table."""
    run(interpreter, "-m", "venv", str(folder / "venv"))
    python = str(folder / "venv" / "bin" / "python")
    _, install = run(python, "-m", "pip", "install", "--quiet", str(wheel))
    told, _ = run(python, "-c", VERSIONS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NCLONE"))}
    environment = {**kept, "NCLONE_ENV_CACHE_DIR": str(folder / "cache")}
    (folder / "work").mkdir()
    seconds = []
    for number, block in enumerate(examples()):
        script = folder / "work" / f"example_{number}.py"
        script.write_text(block)
        seconds.append(run(python, str(script), cwd=script.parent, env=environment)[1])
    _, again = run(python, str(folder / "work" / "example_0.py"), cwd=folder / "work", env=environment)
    cells = (
        *told.split(),
        f"{len(seconds)} of {len(seconds)}",
        f"{install:.0f}",
        f"{sum(seconds):.0f}",
        f"{again:.1f}",
    )
    return f"| {' | '.join(cells)} |"


def main(interpreters: Positional[tuple[str, ...]] = ()) -> int:
    """Print the table; the exit status is 1 if an interpreter failed.

    Args:
        interpreters: names or paths of interpreters; by default python3.11 to python3.14, as far as they are found.
    """
    chosen: Sequence[str] = interpreters or [name for name in NAMES if shutil.which(name)]
    print(
        f"| Python | {' | '.join(LISTED)} | examples | install, s | examples with compilation, s | first one again, s |"
    )
    print("|---|" + "---|" * len(LISTED) + "---|---:|---:|---:|", flush=True)
    failed = 0
    with TemporaryDirectory() as name:
        wheel = build_wheel(Path(name))
        for number, interpreter in enumerate(chosen):
            folder = Path(name) / str(number)
            folder.mkdir()
            try:
                print(check_interpreter(interpreter, wheel, folder), flush=True)
            except RuntimeError as error:
                failed += 1
                print(f"{interpreter} failed\n{error}", file=sys.stderr, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
