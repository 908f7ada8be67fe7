"""Fixtures of the tests in Node."""

import pytest

from ...shared import COMPARISONS, Comparison


@pytest.fixture
def comparison(request) -> Comparison:
    """A running total that the summary of the run shows."""
    return request.config.stash[COMPARISONS].setdefault(request.node.name, Comparison())
