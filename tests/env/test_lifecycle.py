"""The calls that each phase of an environment allows."""

from __future__ import annotations

import pytest

from nclone_env.env.lifecycle import AFTER_RESET, IN_EPISODE, NOT_CLOSED, Lifecycle, Phase
from nclone_env.errors import ClosedError, ResetNeededError, StepOrderError

ALLOWED = {
    Phase.NEW: [NOT_CLOSED],
    Phase.RUNNING: [NOT_CLOSED, AFTER_RESET, IN_EPISODE],
    Phase.OVER: [NOT_CLOSED, AFTER_RESET],
    Phase.BROKEN: [NOT_CLOSED],
    Phase.CLOSED: [],
}
MESSAGES = {
    Phase.NEW: (ResetNeededError, r"^go\(\) was called before the first reset; call reset\(\) to begin an episode$"),
    Phase.OVER: (ResetNeededError, r"^go\(\) was called after the end of the episode; call reset\(\) to begin"),
    Phase.BROKEN: (
        ResetNeededError,
        r"^go\(\) was called after a call that an error or Ctrl-C ended before it was done; ",
    ),
    Phase.CLOSED: (ClosedError, r"^go\(\) was called after close\(\); make a new environment$"),
}


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("allowed", [NOT_CLOSED, AFTER_RESET, IN_EPISODE])
def test_a_call_is_allowed_in_its_phases_alone(phase, allowed):
    lifecycle = Lifecycle()
    assert lifecycle.phase is Phase.NEW
    lifecycle.phase = phase
    if allowed in ALLOWED[phase]:
        lifecycle.check("go", allowed)
    else:
        error, message = MESSAGES[phase]
        with pytest.raises(error, match=message):
            lifecycle.check("go", allowed)


def test_a_change_that_raises_breaks_the_environment_until_the_next_one():
    lifecycle = Lifecycle()
    with pytest.raises(ArithmeticError), lifecycle:
        raise ArithmeticError
    assert lifecycle.phase is Phase.BROKEN
    with lifecycle:
        pass
    assert lifecycle.phase is Phase.RUNNING


def test_calls_during_a_change_are_rejected():
    lifecycle = Lifecycle()
    with lifecycle:
        with pytest.raises(StepOrderError, match=r"^go\(\) was called while another thread is inside of a call"):
            lifecycle.check("go", NOT_CLOSED)
        with pytest.raises(StepOrderError, match="two threads"):
            lifecycle.__enter__()
    lifecycle.check("go", NOT_CLOSED)
