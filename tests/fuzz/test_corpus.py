"""Inputs that once failed load, or are refused as their reader documents."""

import pytest

from . import corpus, trial
from .targets import TARGETS

INPUTS = corpus.inputs()


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_that_once_failed(name, monkeypatch):
    monkeypatch.setattr(trial, "LIMIT", 600.0)  # kernels may have to be compiled, and LLVM must not be interrupted
    done = trial.attempt(corpus.target_of(name, TARGETS), INPUTS[name]())
    assert not done.fault, done.detail


def test_every_name_is_that_of_an_input():
    assert set(TARGETS) >= {corpus.target_of(name, TARGETS).name for name in INPUTS}
