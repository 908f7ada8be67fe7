"""Series of inputs, each target in a process of its own: what they found, and the table of them."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from nclone_env.errors import shortened

from .target import Target
from .trial import Trial, attempt, memory

FINDINGS = Path("runs/fuzz")
_ADDRESS_SPACE = 8_000_000_000  # bytes beyond those at the start; more is a MemoryError
_SHOWN = 100_000  # characters of an input that is no bytes
_STUCK = 120.0  # seconds without a new input after which a process is ended
_COMPILING = 1800.0  # seconds before the first input: kernels may have to be compiled, on a busy machine

HEADER = "target            tried   loaded  refused findings   slowest    growth   per s"


@dataclass
class Series:
    """What a series of inputs came to.

    Attributes:
        findings: number of an input by what is wrong with it; the first one of each kind.
        repeated: inputs with a fault, all of them.
        slowest: longest process time of an input, seconds.
        growth: largest growth of memory during an input, bytes.
        seconds: duration.
    """

    target: str
    tried: int = 0
    loaded: int = 0
    refused: int = 0
    repeated: int = 0
    slowest: float = 0.0
    growth: int = 0
    seconds: float = 0.0
    findings: dict[str, int] = field(default_factory=dict)

    def add(self, number: int, trial: Trial) -> bool:
        """Count an input; return whether it is the first one with its fault."""
        self.tried += 1
        self.loaded += trial.loaded and not trial.fault
        self.refused += not trial.loaded and not trial.fault
        self.repeated += bool(trial.fault)
        self.slowest, self.growth = max(self.slowest, trial.seconds), max(self.growth, trial.growth)
        is_new = bool(trial.fault) and trial.fault not in self.findings
        if is_new:
            self.findings[trial.fault] = number
        return is_new

    def join(self, other: Series) -> None:
        """Count the inputs of another series."""
        for name in ("tried", "loaded", "refused", "repeated", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.slowest, self.growth = max(self.slowest, other.slowest), max(self.growth, other.growth)
        self.findings = other.findings | self.findings

    def __str__(self) -> str:
        """Return the row of the table."""
        rate = self.tried / self.seconds if self.seconds else 0.0
        return (
            f"{self.target:<14} {self.tried:>8,} {self.loaded:>8,} {self.refused:>8,} {self.repeated:>8,} "
            f"{1000 * self.slowest:>6,.0f} ms {self.growth / 1e6:>6,.1f} MB {rate:>7,.0f}"
        )


def run(target: Target, seed: int, seconds: float, first: int = 0, most: int | None = None) -> Series:
    """Try inputs in this process until time or their number is over; write the findings to files.

    Args:
        target: the target.
        seed: seed of the inputs.
        seconds: duration, without the time that compilation takes.
        first: number of the first input.
        most: number of the last input, exclusive.
    """
    series = Series(target.name)
    for _ in _run(series, target, seed, seconds, first, most):
        pass
    return series


def run_apart(target: Target, seed: int, seconds: float, first: int = 0, most: int | None = None) -> Series:
    """Do the same in a process of its own, and in a new one after each crash, which is a finding."""
    whole = Series(target.name)
    while True:
        part, number, end = _run_process(target, seed, seconds - whole.seconds, first, most)
        whole.join(part)
        if number is None:
            return whole
        if not part.tried and number == first and end.startswith("the process ended, exit code 1"):
            raise RuntimeError(f"{target.name}: an undamaged input was not read")
        if whole.add(number, Trial(False, end)):
            write_finding(target, seed, number, end)
        first = number + 1


def _run_process(target: Target, *arguments: Any) -> tuple[Series, int | None, str]:
    """Run a series in a process of its own; return it, the number of the input that ended the process, and how."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, target, *arguments), daemon=True)
    process.start()
    sender.close()
    part: Series = Series(target.name)
    number: int | None = arguments[2]
    limit = _COMPILING
    try:
        while receiver.poll(limit):
            (part, number), limit = receiver.recv(), _STUCK
        process.kill()
        end = f"no end within {limit:g} s"
    except EOFError:
        end = "the process ended"
    process.join()
    return part, number, f"{end}, exit code {process.exitcode}"


def _child(sender: Connection, target: Target, *arguments: Any) -> None:
    """Run a series; send what it came to before each input, with its number, and at the end, with None."""
    used = memory("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (used + _ADDRESS_SPACE, used + _ADDRESS_SPACE))
    series = Series(target.name)
    for number in _run(series, target, *arguments):
        sender.send((series, number))
    sender.send((series, None))


def _run(series: Series, target: Target, seed: int, seconds: float, first: int, most: int | None) -> Iterator[int]:
    """Yield the number of each input before it is tried."""
    for example in target.examples():  # compiles what is to be compiled, and shows that undamaged inputs load
        target.read(example)
    began, number = time.monotonic(), first
    while series.seconds < seconds and (most is None or number < most):
        yield number
        data = target.input(seed, number)
        trial = attempt(target, data)
        if series.add(number, trial):
            write_finding(target, seed, number, f"{trial.fault}\n\n{trial.detail}", data)
        number += 1
        series.seconds = time.monotonic() - began


def write_finding(target: Target, seed: int, number: int, text: str, data: Any = None) -> None:
    """Write an input with a fault, and what is wrong with it."""
    data = target.input(seed, number) if data is None else data
    FINDINGS.mkdir(parents=True, exist_ok=True)
    path = FINDINGS / f"{target.name}-{seed}-{number}"
    path.write_bytes(data if isinstance(data, bytes) else shortened(data, _SHOWN).encode())
    path.with_name(f"{path.name}.txt").write_text(f"{repetition(target.name, seed, number)}\n{text}\n")


def repetition(name: str, seed: int, number: int) -> str:
    """Return the command that tries one input again."""
    return f"python -m tests.fuzz --target {name} --seed {seed} --number {number}"
