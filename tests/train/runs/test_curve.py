from __future__ import annotations

import math
import tracemalloc

import pytest
import torch

from nclone_env.train.runs import curve
from nclone_env.train.runs.curve import Rows


def filled(rows, expected=4):
    made = Rows(expected)
    for row in rows:
        made.append(row)
    return made


ROWS = [
    {"timesteps": 10, "loss": 0.5},
    {"timesteps": 20, "loss": math.inf, "held_out": 0.25},
    {"timesteps": 30, "loss": -1.0},
]


def test_rows_are_returned_as_they_were_given():
    made = filled(ROWS)
    assert made[:] == list(made) == ROWS
    assert made[-1] == ROWS[-1]
    assert isinstance(made[0]["timesteps"], int)
    assert len(made) == 3
    assert made.columns() == ["timesteps", "loss", "held_out"]
    with pytest.raises(IndexError):
        made[3]


def test_nan_is_a_value_and_not_a_missing_one():
    assert math.isnan(filled([{"a": math.nan}])[0]["a"])


def test_more_rows_than_announced_are_kept():
    made = filled(ROWS * 5, expected=1)
    assert made[:] == ROWS * 5


@pytest.mark.parametrize("expected", [1, 8])
def test_rows_are_restored(expected):
    made = Rows.of(filled(ROWS).state(), expected)
    assert made[:] == Rows.of(filled(ROWS).state())[:] == ROWS
    assert made.columns() == ["timesteps", "loss", "held_out"]
    made.append({"timesteps": 40, "other": 2.5})
    assert made[2:] == [ROWS[2], {"timesteps": 40, "other": 2.5}]
    empty = Rows.of(Rows(1).state())
    assert empty[:] == empty.columns() == []
    empty.append(ROWS[0])
    assert empty[:] == ROWS[:1]


def test_damaged_rows_are_refused():
    state = filled(ROWS).state()
    columns, values, given = state.values()
    forged = values.clone()
    forged[1, 0] = math.nan
    for damage in (
        {"values": values[:2]},
        {"values": values.float()},
        {"values": forged},
        {"given": torch.zeros_like(given)},
        {"columns": {"timesteps": True}},
        {"columns": dict(zip(("step", "loss", "held_out"), columns.values(), strict=True))},
    ):
        with pytest.raises(ValueError, match="curve: expected"):
            Rows.of(state | damage)
    Rows.of(state)


def held_by_rows():
    only = tracemalloc.Filter(True, curve.__file__)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([only]).traces)


@pytest.mark.parametrize(("expected", "grows"), [(1000, False), (4, True)])
def test_announced_rows_allocate_nothing(expected, grows):
    made = filled(ROWS, expected)
    row = dict(ROWS[0])
    tracemalloc.start()
    for _ in range(901):
        made.append(row)
    assert (held_by_rows() > 200) == grows
    tracemalloc.stop()
    assert (made.memory().total_bytes > Rows(expected).memory().total_bytes) == grows


def test_the_last_numbers_of_a_column():
    made = Rows(2)
    assert made.last("timesteps", 5).shape == (0,)
    for number in range(5):
        made.append({"timesteps": number, "seconds": number / 2})
    assert made.last("seconds", 3).tolist() == [1.0, 1.5, 2.0]
    assert made.last("seconds", 9).tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
