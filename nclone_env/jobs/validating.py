"""Checks of many levels: a table of findings."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from nclone_env._files import write_file
from nclone_env.errors import LevelFormatError
from nclone_env.jobs.job import LevelJob
from nclone_env.level import Finding, RawLevel, validate
from nclone_env.sim import slow_frames_per_second


class Checked(TypedDict):
    """The findings on a level."""

    level: str
    findings: Sequence[Finding]


class Validating(LevelJob):
    """Checks of levels, as ``nclone-env levels validate`` does them; ``output`` is a file of JSON lines."""

    result = Checked

    def task(self, number: int) -> Callable[[], dict[str, Any]]:
        """Return the check of a level."""
        ref = self.refs[number]
        try:
            return partial(_checked, ref.name, ref.load().raw)
        except LevelFormatError as error:
            return partial(_row, ref.name, [Finding("error", str(error))])

    def write(self, output: Path, results: Iterable[Mapping[str, Any]]) -> None:
        """Write a row for each level, with its findings."""
        write_file(output, "".join(f"{json.dumps(row)}\n" for row in results).encode())


def _checked(name: str, raw: RawLevel) -> dict[str, Any]:
    """Return the findings on a level; levels with many moving entities are played for a moment."""
    findings = list(validate(raw))
    speed = slow_frames_per_second(raw)
    if speed is not None:
        text = f"slow: {speed:,.0f} frames/s by random play; levels of the game reach 75,000 and more"
        findings.append(Finding("warning", text))
    return _row(name, [Finding(severity, f"{raw.source}: {text}") for severity, text in findings])


def _row(name: str, findings: Sequence[Finding]) -> dict[str, Any]:
    return {"level": name, "findings": [finding._asdict() for finding in findings]}
