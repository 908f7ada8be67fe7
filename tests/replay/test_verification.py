"""Verification of attract files, on synthetic levels and on files of the game."""

import numpy as np
import pytest

from nclone_env.errors import LevelFormatError, UnknownLevelError
from nclone_env.game import DEAD
from nclone_env.level.formats.attract import read_attract
from nclone_env.replay.verification import verify
from nclone_env.sim.trajectory import simulate

from ..shared import SHARED, needs_shared
from .bases import DEADLY, RIGHT, SUICIDE, WINNABLE, attract

DEATH = int(np.flatnonzero(simulate(DEADLY, [RIGHT] * 200).state == DEAD)[0])
"""The frame after which the ninja is dead."""
COMPLETE = ("0", "1", "3", "8", "18")
"""Files with only tiles, mines, gold, exits and switches."""
WITH_LASERS = ("15", "19")
"""In the second file a laser kills in the last frame."""


def test_dead_after_the_last_frame():
    verdict = verify(attract(DEADLY, [RIGHT] * (DEATH + 1)))
    assert verdict.agrees
    assert (verdict.frames, verdict.state, verdict.gold) == (DEATH + 1, DEAD, 1)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ([RIGHT] * DEATH, "expected death in the last frame, got "),
        ([RIGHT] * (DEATH + 4), "expected death in the last frame, got death 3 frames earlier"),
        ([0] * (DEATH + 1), "expected death in the last frame, got "),
        ([], "expected death in the last frame, got immobile"),
    ],
)
def test_no_death_in_the_last_frame(inputs, reason):
    verdict = verify(attract(DEADLY, inputs))
    assert not verdict.agrees
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize("rest", [(), (0,), (0, 0), (SUICIDE, 0, RIGHT)])
def test_given_up(rest):
    """The ninja dies one frame after the flag, even if the recording ends before."""
    verdict = verify(attract(DEADLY, [RIGHT] * 10 + [SUICIDE | RIGHT, *rest]))
    assert verdict.agrees
    assert (verdict.frames, verdict.end) == (11 + len(rest), min(11 + len(rest), 12))


def test_given_up_in_the_first_frame():
    assert verify(attract(DEADLY, [SUICIDE])).agrees


@pytest.mark.parametrize("late", [0, 1, 30])
def test_given_up_when_already_dead(late):
    verdict = verify(attract(DEADLY, [RIGHT] * (DEATH + 1 + late) + [SUICIDE, 0]))
    assert not verdict.agrees
    assert verdict.reason.startswith("expected the ninja to be alive when the player gave up")


def test_given_up_after_winning():
    """The flag has no effect in state 8, so this is not a recording of the game."""
    verdict = verify(attract(WINNABLE, [RIGHT] * 200 + [SUICIDE, 0]))
    assert not verdict.agrees
    assert verdict.reason.endswith("got won")


def test_files_of_other_kinds_are_refused(tmp_path):
    with pytest.raises(UnknownLevelError):
        verify(tmp_path / "none")
    (tmp_path / "short").write_bytes(b"\0" * 20)
    with pytest.raises(LevelFormatError, match="short: offset 0"):
        verify(str(tmp_path / "short"))


@needs_shared
@pytest.mark.parametrize("number", [*COMPLETE, *WITH_LASERS])
def test_recordings_of_the_game(number):
    verdict = verify(SHARED / "attract" / number)
    assert verdict.agrees, verdict.reason
    assert verdict.state == DEAD


@needs_shared
@pytest.mark.parametrize("number", COMPLETE)
def test_another_ending_is_detected(number):
    """One frame more or less, or the player giving up after death."""
    file = read_attract((SHARED / "attract" / number).read_bytes())
    flagged = bool((file.inputs & SUICIDE).any())
    if flagged:
        changed = [file.inputs & 7]
    else:
        changed = [file.inputs[:-1], np.append(file.inputs, 0), np.append(file.inputs, [SUICIDE, 0])]
    for inputs in changed:
        assert not verify(attract(file.level, inputs)).agrees


@needs_shared
def test_one_changed_input_is_detected():
    """Only a recording without a flag determines the frame of death."""
    file = read_attract((SHARED / "attract" / "0").read_bytes())
    inputs = file.inputs.copy()
    inputs[300] ^= 1
    assert not verify(attract(file.level, inputs)).agrees
