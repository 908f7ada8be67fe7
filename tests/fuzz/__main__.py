"""Fuzz every reader of the package; print a table. The exit status is 1 with findings.

python -m tests.fuzz [--seconds 60] [--seed 0] [--tries N] [--target NAME ...] [--number N]
"""

import argparse
import sys
from collections.abc import Sequence

from .series import FINDINGS, HEADER, repetition, run_apart
from .target import Target
from .targets import TARGETS
from .trial import attempt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    chosen = [TARGETS[name] for name in options.target or TARGETS]
    if options.number is not None:
        return max(_again(target, options.seed, options.number) for target in chosen)
    _print(HEADER)
    findings = []
    for target in chosen:
        series = run_apart(target, options.seed, options.seconds / len(chosen), most=options.tries)
        _print(series)
        findings += [(target.name, number, fault) for fault, number in series.findings.items()]
    for name, number, fault in findings:
        _print(f"\n{name}: {fault}\n  {repetition(name, options.seed, number)}")
    if findings:
        _print(f"\ninputs and tracebacks are in {FINDINGS}")
    return int(bool(findings))


def _again(target: Target, seed: int, number: int) -> int:
    """Try one input in this process and print what becomes of it."""
    for example in target.examples():
        target.read(example)
    trial = attempt(target, target.input(seed, number))
    outcome = trial.fault or ("loaded" if trial.loaded else "refused")
    _print(f"{target.name}: {outcome}, {trial.seconds:.3f} s, {trial.growth / 1e6:.1f} MB\n{trial.detail}")
    return int(bool(trial.fault))


def _print(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz every reader of the package.")
    parser.add_argument("--seconds", type=float, default=60.0, help="duration, divided among the targets")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs")
    parser.add_argument("--tries", type=int, help="number of inputs for each target, at most")
    parser.add_argument("--target", action="append", choices=[*TARGETS], help="only this target; may be repeated")
    parser.add_argument("--number", type=int, help="only this input")
    return parser


if __name__ == "__main__":
    sys.exit(main())
