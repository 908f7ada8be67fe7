"""Shared parts of the compatibility tests."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

FIELDS = {"levels": "hazards", "observations": ("game_state",), "max_frames": 200}
"""Episodes of at most fifty steps, some of which random actions end by death."""


class Kept:
    """Keeps observations without copying them, as a library might, together with copies for comparison."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Any, np.ndarray]] = []

    def add(self, observations: Mapping[str, Any]) -> None:
        self._pairs += [(array, np.asarray(array).copy()) for array in observations.values()]

    def check(self) -> None:
        """Check that no observation has changed since, and that they differ from each other."""
        assert len(self._pairs) > 2
        for array, before in self._pairs:
            np.testing.assert_array_equal(np.asarray(array), before)
        assert any((before != self._pairs[0][1]).any() for _, before in self._pairs)


def numbers(module: Any) -> np.ndarray:
    """Return a copy of all parameters of a torch module as one vector."""
    return np.concatenate([parameter.detach().cpu().numpy().ravel() for parameter in module.parameters()])


def check_learned(before: np.ndarray, after: np.ndarray, share: float = 0.5) -> None:
    """Check that all parameters are finite and more than a share of them has changed."""
    assert before.shape == after.shape
    assert np.isfinite(after).all()
    assert (before != after).mean() > share


def run_example(library: str) -> dict[str, Any]:
    """Run the example of a library in docs/environments/compatibility.md verbatim and return its variables."""
    text = (Path(__file__).parents[2] / "docs" / "environments" / "compatibility.md").read_text()
    (section,) = (part for part in text.split("\n## ") if part.startswith(f"{library}\n"))
    (block,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    variables: dict[str, Any] = {}
    exec(compile(block, "compatibility.md", "exec"), variables)
    return variables
