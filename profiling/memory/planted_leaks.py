"""Planted leaks under ``profile script`` and ``memory.profile``: found, with the user's line, with the keeper?

The programs are those of ``tests/memory/planted.py``, each with a leak and without, and those of
``tests/memory/harmless.py``, which look as if they leaked. Each run is a process of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from typing import Literal, NamedTuple

import tyro

from profiling.measure import describe
from tests.memory.harmless import HARMLESS
from tests.memory.planted import LISTED, leaking_line

Form = Literal["script", "steps"]


class Answer(NamedTuple):
    """What a report says about a program."""

    text: str
    verdict: str
    named: bool
    keeper: str
    floor: str


_NO_LEAK = Answer("", "-", named=True, keeper="-", floor="-")


def main(
    programs: tuple[str, ...] = (),
    forms: tuple[Form, ...] = ("script", "steps"),
    seconds: tuple[float, ...] = (5.0, 10.0, 20.0),
) -> int:
    """Print a row per program, form and length, and the reports that are wrong; the exit status is 1 if there is one.

    Args:
        programs: names of programs; by default the first twelve that leak, and all that only seem to.
        forms: under ``profile script``, and as a loop under ``memory.profile``.
        seconds: lengths of the runs.
    """
    print(describe())
    print(f"{'program':<24} {'form':<7} {'s':>3}  {'leak':<10} {'line':<5} {'keeper':<34} {'clean':<10} floor")
    missed = wrong = 0
    for name in programs or [*(program.__name__ for program in LISTED), *HARMLESS]:
        for form in forms:
            for length in seconds:
                clean = answer(name, form, length, "clean")
                leak = _NO_LEAK if name in HARMLESS else answer(name, form, length)
                unseen = leak is not _NO_LEAK and not (leak.verdict == "GROWING" and leak.named)
                false = clean.verdict == "GROWING"
                missed, wrong = missed + unseen, wrong + false
                line = "-" if leak is _NO_LEAK else "yes" if leak.named else "no"
                print(
                    f"{name:<24} {form:<7} {length:>3g}  {leak.verdict:<10} {line:<5} {leak.keeper[:34]:<34} "
                    f"{clean.verdict:<10} {clean.floor}",
                    flush=True,
                )
                print(leak.text * unseen + clean.text * false, end="", flush=True)
    print(f"missed, or without the line: {missed}; clean programs that grow: {wrong}")
    return int(missed + wrong > 0)


def answer(name: str, form: Form, seconds: float, *words: str) -> Answer:
    """Run a program and read its report."""
    own = ["tests.memory.planted", name, f"{seconds:g}", *words]
    with tempfile.TemporaryDirectory() as folder:
        script = ["nclone_env", "profile", "script", "--output", folder, own[0], "--", *own[1:]]
        command = [sys.executable, "-m", *(script if form == "script" else [*own, "steps"])]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return read(text, leaking_line(name))


def read(text: str, line: int) -> Answer:
    """Return the answer in a report, given the line that leaks."""
    verdict = re.search(r"GROWING|FLAT|UNDECIDED", text)
    keeper = re.search(rf"planted\.py:{line} \+.*\n +kept by (.+)", text)
    floor = re.search(r"more than (.+) would have shown", text)
    return Answer(
        text,
        verdict[0] if verdict else "none",
        f"planted.py:{line} +" in text,
        keeper[1] if keeper else "-",
        floor[1] if floor else "-",
    )


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
