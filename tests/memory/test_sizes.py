from __future__ import annotations

import pytest

from nclone_env.memory.measurements import ProfileSettings
from nclone_env.memory.sizes import measure_sizes
from nclone_env.memory.stats import per_environment

from .stub import StubTarget


def test_fresh_processes_measure_what_an_environment_takes():
    target = StubTarget()
    sizes = measure_sizes(target, ProfileSettings(16, steps=5), 24_000)
    assert [point.num_envs for point in sizes] == [500, 1000, 2000, 500, 2000]
    found = per_environment(sizes)
    assert found is not None
    assert found.reported == 24_000
    assert found.committed == pytest.approx(24_000, rel=0.01)
    assert found.measured == pytest.approx(24_000, rel=0.05)
    assert found.python == pytest.approx(0, abs=200)
