"""The naive ninja on whole synthetic levels: text, simulator and golden values agree."""

import pytest

from nclone_env.sim.session import Session

from ..golden.synthetic import synthetic_map
from .geometry import TileWorld
from .ninja import NaiveNinja


@pytest.mark.parametrize(("density", "seed"), [(40, 7), (40, 16), (8, 2), (15, 4)])
def test_a_synthetic_map(density, seed):
    raw, inputs = synthetic_map(density, seed)
    ninjas = Session(raw).record(inputs[:300]).ninjas
    naive = NaiveNinja(TileWorld(raw.tiles), 516.0, 288.0)
    for frame, code in enumerate(inputs[:300]):
        naive.frame(code)
        expected = naive.everything()
        assert {name: ninjas[frame][name] for name in expected} == expected, frame
