"""How difficult a level is: what is measured, and the number that sums it up. Integers only, the same everywhere."""

import re
from dataclasses import dataclass

from nclone_env.errors import ConfigError, shortened

LEAST_DIFFICULTY, MOST_DIFFICULTY = 0, 100
EASIEST = 25
"""Difficulties below this are the easiest band, in which random play may complete a level more often."""
RANDOM_LIMIT = 5
"""Percent of random runs that complete a level, from which on one outside the easiest band is rejected."""
_EFFORT_POINTS, _LENGTH_POINTS, _RANDOM_POINTS, _CLEARANCE_POINTS = 45, 35, 10, 10
_LEAST_EFFORT, _MOST_EFFORT = 2_000, 512_000  # frames
_LEAST_LENGTH, _MOST_LENGTH = 120, 2400  # frames
_EASY_SHARE = 10  # percent
_WIDE = 240  # tenths of a pixel


@dataclass(frozen=True)
class Difficulty:
    """What makes a level difficult.

    Attributes:
        effort: frames that the planner simulated until its first solution.
        shortest: frames of the shortest solution found.
        random_wins: random runs that completed the level.
        random_runs: how many there were.
        clearance: least distance to what is deadly to touch along that solution, tenths of a pixel.
    """

    effort: int
    shortest: int
    random_wins: int
    random_runs: int
    clearance: int

    @property
    def random_is_rare(self) -> bool:
        """Whether less than 5 percent of the random runs complete the level."""
        return 100 * self.random_wins < RANDOM_LIMIT * self.random_runs

    @property
    def number(self) -> int:
        """The difficulty, 0 to 100: a sum of points.

        Up to 45 points for the effort, by its logarithm from 2,000 to 512,000 frames; up to 35 for the length, by its
        logarithm from 2 to 40 seconds; up to 10 the fewer random runs succeed, from 10 percent on; up to 10 the closer
        the solution passes deadly things, from 24 pixels on.
        """
        effort = _by_logarithm(self.effort, _LEAST_EFFORT, _MOST_EFFORT, _EFFORT_POINTS)
        length = _by_logarithm(self.shortest, _LEAST_LENGTH, _MOST_LENGTH, _LENGTH_POINTS)
        share = min(100 * self.random_wins, _EASY_SHARE * self.random_runs)
        random = _RANDOM_POINTS * 100 * (_EASY_SHARE * self.random_runs - share) // (_EASY_SHARE * self.random_runs)
        close = _CLEARANCE_POINTS * 100 * (_WIDE - min(self.clearance, _WIDE)) // _WIDE
        return (effort + length + random + close) // 100


def read_range(name: str, text: str) -> tuple[int, int]:
    """Return the least and the greatest difficulty that an option such as ``20..60`` means."""
    match = re.fullmatch(r"(\d{1,3})\.\.(\d{1,3})", text) if isinstance(text, str) else None
    if not match:
        raise ConfigError(f"{name}: expected two numbers such as 20..60, got {shortened(text)}")
    low, high = int(match[1]), int(match[2])
    check_range(name, low, high)
    return low, high


def check_range(name: str, low: int, high: int) -> None:
    """Raise a ConfigError, which names the option, if two difficulties are no range within 0..100."""
    if not LEAST_DIFFICULTY <= low <= high <= MOST_DIFFICULTY:
        expected = f"a range within {LEAST_DIFFICULTY}..{MOST_DIFFICULTY}, the smaller number first"
        raise ConfigError(f"{name}: expected {expected}, got {low}..{high}")


def _by_logarithm(value: int, least: int, most: int, points: int) -> int:
    """Return hundredths of points, 0 at ``least`` and all at ``most``, by the logarithm of a value."""
    span = _log2(most) - _log2(least)
    above = min(max(_log2(max(value, 1)) - _log2(least), 0), span)
    return 100 * points * above // span


def _log2(value: int) -> int:
    """Return 1,000 times the logarithm to base 2, linear between powers of 2."""
    whole = value.bit_length() - 1
    return 1000 * whole + (1000 * (value - (1 << whole)) >> whole)
