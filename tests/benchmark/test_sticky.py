"""Actions that a track repeats at random: drawn from the seed, taken, proved, and of use."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from nclone_env.benchmark import Submission, evaluate, evaluation, load_track, recordings_of, verify
from nclone_env.benchmark.attempts import drawn_repeats
from nclone_env.benchmark.evaluation import run_of
from nclone_env.benchmark.track import track_levels
from nclone_env.game import ACTION_OF_INPUT, CELEBRATING
from nclone_env.level import known_solutions, pack
from nclone_env.sim import simulate

from .bases import STATE, RightWithJumps

TRACK, PLAIN = load_track("Builtin-sticky-v1"), load_track("Builtin-v1")


@pytest.fixture(scope="module")
def played():
    return evaluate(RightWithJumps(), TRACK, environment=STATE)


def submitted(run):
    return Submission(TRACK.name, "state", "4m", "right", (run.claiming({"steps": 1000, "seconds": 1.0}),))


def solution(level):
    """Return the actions of the known solution of a level, four frames each."""
    return np.array(ACTION_OF_INPUT, np.uint8)[np.frombuffer(known_solutions()[level.reference], np.uint8)[::4]]


class Reciting:
    """Chooses the actions of the known solutions, whatever it sees."""

    def __init__(self):
        self.rows = [solution(level) for level in TRACK.levels for _ in range(16)]

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        step, rows = state or 0, self.rows[:: 16 if len(observation["game_state"]) == 16 else 1]
        return np.array([row[min(step, len(row) - 1)] for row in rows]), step + 1


def test_the_draws_of_an_episode_never_change():
    """A change would refuse what was accepted: it is a track of another version."""
    drawn = drawn_repeats(0.25, 3, False, [0, 7], 12)
    assert ["".join(map(str, row)) for row in drawn.astype(int)] == ["010010010100", "000000111001"]
    many = drawn_repeats(0.25, 0, False, range(200), 300)
    assert 0.245 < many[:, 1:].mean() < 0.255
    assert not many[:, 0].any()
    np.testing.assert_array_equal(drawn_repeats(0.25, 3, False, [7], 5)[0], drawn[1, :5])
    for other in ((4, False, [0, 7]), (3, True, [0, 7]), (3, False, [1, 7])):
        assert (drawn_repeats(0.25, *other, 12) != drawn).any()
    assert not drawn_repeats(0.0, 3, False, [0], 300).any()
    assert drawn_repeats(1.0 - 2.0**-53, 3, False, [0], 300)[:, 1:].all()


def test_actions_are_repeated_as_drawn(played):
    drawn = drawn_repeats(0.25, 0, False, range(256), TRACK.max_steps)
    rows = played.sampled.episodes()
    same = [row[1:] == row[:-1] for row in rows]
    again = [drawn[number, 1 : len(row)] for number, row in enumerate(rows)]
    assert all(one[where].all() for one, where in zip(same, again, strict=True))
    assert 0.3 < np.concatenate([one[~where] for one, where in zip(same, again, strict=True)]).mean() < 0.6
    plain = evaluate(RightWithJumps(), PLAIN, environment=STATE)
    assert plain.sampled.actions.tobytes() != played.sampled.actions.tobytes()


def test_batches_and_threads_change_nothing(played, monkeypatch):
    whole = evaluate("builtin", TRACK, seed=3)
    monkeypatch.setattr(evaluation, "BATCH", 256)
    with ThreadPoolExecutor(2) as executor:
        together = evaluate("builtin", TRACK, seed=3, executor=executor)
    for kind in ("sampled", "probable"):
        assert getattr(together, kind).actions.tobytes() == getattr(whole, kind).actions.tobytes()
    assert whole.sampled.actions.tobytes() != evaluate("builtin", TRACK, seed=4).sampled.actions.tobytes()


def test_what_was_repeated_is_proved(played):
    found = verify(submitted(played))
    assert found.accepted
    assert found.proved[-1] == "actions: at 25% of the steps, drawn for the seed of the run, the one before"
    assert not any("drawn" in line for line in verify(replace(submitted(played), track="Builtin-v1")).proved)


def test_actions_that_were_chosen_freely_are_refused(played):
    """The simulator agrees with all of them, and so does a seed that was not that of the run."""
    free = evaluate(RightWithJumps(), PLAIN, environment=STATE)
    (fault,) = verify(submitted(free)).faults
    assert fault.startswith("run 0: sampled episode 0: expected the action of step ")
    assert fault.endswith("as drawn for seed 0, got another one")
    levels = pack(track_levels(TRACK))
    other = run_of(TRACK, levels, 1, played.sampled[:2])
    assert "as drawn for seed 1" in verify(submitted(other)).faults[0]


def test_a_list_of_inputs_no_longer_wins():
    """The reason for the track: solutions that are recited win every level of Builtin-v1."""
    plain, sticky = (evaluate(Reciting(), track, environment=STATE) for track in (PLAIN, TRACK))
    assert plain.probable.ends["won"].all()
    assert plain.sampled.ends["won"].all()
    assert 0.5 < sticky.sampled.ends["won"].mean() < 0.65


def test_recordings_hold_what_was_taken(played, tmp_path):
    submitted(played).save(tmp_path / "sticky.zip")
    shown, won = recordings_of(tmp_path / "sticky.zip"), played.sampled.ends["won"].reshape(16, 16).any(axis=1)
    for recording, level, has_won in zip(shown, track_levels(TRACK), won, strict=True):
        assert (simulate(level.raw, recording.inputs).state[-1] == CELEBRATING) == has_won
    assert 0 < won.sum() < 16
