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


MEANS = {"success_rate": 0.5, "min_success_rate": 0.0, "mean_return": math.inf, "mean_frames": 9.0}
ROWS = [
    {"timesteps": 10, **MEANS, "policy_loss": 0.5},
    {"timesteps": 20, **MEANS, "policy_loss": math.inf, "held_out_success": 0.25},
    {"timesteps": 30, **MEANS, "policy_loss": -1.0},
]


def test_rows_are_returned_as_they_were_given():
    made = filled(ROWS)
    assert made[:] == list(made) == ROWS
    assert made[-1] == ROWS[-1]
    assert isinstance(made[0]["timesteps"], int)
    assert len(made) == 3
    assert made.columns() == ["timesteps", *MEANS, "policy_loss", "held_out_success"]
    with pytest.raises(IndexError):
        made[3]


def test_nan_is_a_value_of_means_and_not_a_missing_one():
    (row,) = filled([{"timesteps": 5, "success_rate": math.nan, "held_out_success": math.nan}])
    assert list(row) == ["timesteps", *MEANS]
    assert math.isnan(row["success_rate"])


@pytest.mark.parametrize("expected", [1, 8])
def test_rows_are_restored(expected):
    made = Rows.of(filled(ROWS).state(), expected)
    assert made[:] == Rows.of(filled(ROWS).state())[:] == ROWS
    assert made.columns() == ["timesteps", *MEANS, "policy_loss", "held_out_success"]
    made.append({"timesteps": 40, **MEANS, "entropy": 2.5})
    assert made[2:] == [ROWS[2], {"timesteps": 40, **MEANS, "entropy": 2.5}]
    empty = Rows.of(Rows(1).state())
    assert empty[:] == []
    empty.append(ROWS[0])
    assert empty[:] == ROWS[:1]


def test_damaged_rows_are_refused():
    state = filled(ROWS).state()
    columns, values = state.values()
    forged = values.clone()
    forged[1, 0] = math.nan
    for damage in (
        {"values": values[:, 1:]},
        {"values": values.float()},
        {"values": forged},
        {"values": -values},
        {"columns": ["timesteps"]},
        {"columns": ["step", *columns[1:]]},
    ):
        with pytest.raises(ValueError, match="curve: expected"):
            Rows.of(state | damage)
    Rows.of(state)


def test_curves_of_earlier_versions_are_read():
    values, given = torch.tensor([[10.0, 0.0, 3.0], [20.0, 0.25, 3.0]]).double(), torch.tensor([[1, 0, 1], [1, 1, 1]])
    columns = {"timesteps": True, "held_out_success": False, "wait_seconds": False}
    rows = Rows.of({"columns": columns, "values": values, "given": given.bool()})
    assert [row.get("held_out_success") for row in rows] == [None, 0.25]


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
        made.append({"timesteps": number, "learn_seconds": number / 2})
    assert made.last("learn_seconds", 3).tolist() == [1.0, 1.5, 2.0]
    assert made.last("learn_seconds", 9).tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
