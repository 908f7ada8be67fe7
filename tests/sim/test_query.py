"""Cells and their entities."""

import numpy as np
import pytest

from nclone_env.game import COLUMNS, ROWS
from nclone_env.sim.query import cell_of, is_within


@pytest.mark.parametrize("nudge", [-1, 0, 1])
def test_a_position_is_within_its_cell_and_no_other(nudge):
    """At the borders, one float to each side."""
    for column in range(COLUMNS):
        for row in range(ROWS):
            x, y = (float(np.nextafter(24.0 * k, np.inf * nudge)) if nudge else 24.0 * k for k in (column, row))
            expected = min(max(int(x // 24.0), 0), COLUMNS - 1) * ROWS + min(max(int(y // 24.0), 0), ROWS - 1)
            near = {cell for step in (-ROWS, -1, 0, 1, ROWS) if 0 <= (cell := expected + step) < COLUMNS * ROWS}
            assert {cell for cell in near if is_within(cell, x, y)} == {expected}


def test_outside_the_world_what_counts_is_the_cell_that_it_is_clamped_to():
    for x, y in [(-30.0, 50.0), (50.0, -30.0), (1100.0, 50.0), (50.0, 700.0), (24.0 * 3, 24.0 * 26), (-0.5, -0.5)]:
        cells = [cell for cell in range(COLUMNS * ROWS) if is_within(cell, x, y)]
        assert cells in ([], [cell_of(x, y)])
