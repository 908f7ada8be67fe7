"""A damaged or forged input loads or is refused with a short message that names it; what loads can be played."""

import mmap
import re

import pytest

from nclone_env.errors import shortened

from . import series, trial
from .calls import SingleCalls, VectorCalls, run_calls
from .series import run, run_apart
from .target import Target
from .targets import TARGETS
from .trial import attempt

SLOW = {"environment": 100, "command": 50, "single-calls": 8, "vector-calls": 4}
"""Inputs in the slow tests."""
QUICK = {name: 20 for name in TARGETS if name not in SLOW}
"""Inputs in the quick ones; ``make fuzz`` tries more."""
SERIES = [
    pytest.param(TARGETS[name], tries, id=f"{name}-{tries}", marks=marks)
    for some, marks in ((QUICK, []), (dict.fromkeys(QUICK, 100) | SLOW, pytest.mark.slow))
    for name, tries in some.items()
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(series, "FINDINGS", tmp_path)
    monkeypatch.setattr(trial, "LIMIT", 600.0)  # kernels may have to be compiled, and LLVM must not be interrupted
    return tmp_path


@pytest.mark.parametrize(("target", "tries"), SERIES)
def test_some_inputs(target, tries, folder):
    done = run(target, 20240229, 300, most=tries)
    findings = [path.read_text() for path in sorted(folder.glob("*.txt"))]
    assert not findings
    assert done.tried == tries
    assert done.loaded + done.refused == done.tried
    assert done.loaded or target.name == "submission", "of those nearly all are forged"
    assert done.refused or not target.errors


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_inputs_are_functions_of_seed_and_number(target):
    def shown(seed):
        return [re.sub("0x[0-9a-f]+", "", shortened(target.input(seed, number), 10**7)) for number in range(3)]

    assert shown(3) == shown(3)
    assert shown(3) != shown(4)


# The fuzzer finds what it looks for


@pytest.mark.parametrize("kind", [SingleCalls, VectorCalls])
def test_a_wrong_model_of_the_life_cycle_is_found(kind):
    class Forgetful(kind):
        def expected(self, needs_reset=True):
            return super().expected(needs_reset=False)

    with pytest.raises(AssertionError, match="got ResetNeededError"):
        [run_calls(number, Forgetful) for number in range(5)]


def reading(read) -> Target:
    return Target("bad", list, lambda rng: rng.randbytes(4), read, (ValueError,))


def refuse(message):
    def read(data):
        raise ValueError(message)

    return read


def spend(seconds):
    def read(data):
        end = trial.time.process_time() + seconds
        while trial.time.process_time() < end:
            pass

    return read


def allocate(size):
    def read(data):
        with mmap.mmap(-1, size) as pages:  # not from memory that the process has kept
            pages.write(b"x" * 4096)
            for place in range(0, size, 4096):
                pages[place] = 1

    return read


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        (lambda data: None, ""),
        (refuse("mutant: expected a file, got none"), ""),
        (refuse("no name"), "ValueError with a message without 'mutant'"),
        (refuse("mutant" * 200), "ValueError with a message of more than 1000 characters"),
        (lambda data: {}["x"], "KeyError at test_fuzz.py"),
        (lambda data: exec("raise SystemExit"), "SystemExit at"),
        (spend(0.25), "more than 2 s"),
        (spend(9.0), "interrupted after 0.5 s"),
        (allocate(150_000_000), "more than 100 MB"),
        (allocate(1_000_000), ""),
    ],
)
def test_faults_are_found(monkeypatch, read, fault):
    if fault.endswith(" s"):  # a busy machine takes long for pages, too
        monkeypatch.setattr(trial, "SECONDS", 0.2)
        monkeypatch.setattr(trial, "LIMIT", 0.5)
    done = attempt(reading(read), b"")
    assert done.fault.startswith(fault)
    assert bool(done.fault) == bool(fault)


def test_findings_are_written_once_for_each_fault(folder):
    target = reading(lambda data: 1 // (data[0] % 2))
    done = run(target, 5, 10, most=40)
    assert done.repeated > 5
    (number,) = done.findings.values()
    name = f"bad-5-{number}"
    assert {path.name for path in folder.iterdir()} == {name, f"{name}.txt"}
    assert (folder / name).read_bytes() == target.input(5, number)
    text = (folder / f"{name}.txt").read_text()
    assert text.startswith(f"python -m tests.fuzz --target bad --seed 5 --number {number}\nZeroDivisionError")


def test_crashes_are_findings_and_the_series_goes_on(folder):
    target = reading(lambda data: trial.signal.raise_signal(trial.signal.SIGKILL) if data[0] < 16 else None)
    done = run_apart(target, 1, 60, most=60)
    assert done.findings.keys() == {"the process ended, exit code -9"}
    assert done.tried == 60
    assert done.repeated + done.loaded == 60
    assert done.repeated > 1
