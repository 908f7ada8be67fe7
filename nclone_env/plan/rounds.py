"""Rounds of searches: each plays its share of frames, then all learn of the best solution.

Between two exchanges the searches know nothing of each other, so that threads can run them side by side, and the result
does not depend on their number. A round that was stopped goes on later and ends as if it never had been.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from nclone_env.plan.searches import Search

_FIRST_TURN, _LONGEST_TURN = 5_000, 40_000
"""Frames of a search with weight 1 in the first round and in later ones; short rounds find easy solutions soon."""
_GROWING = 3
"""Rounds in which they double."""


class Rounds:
    """Searches that advance side by side.

    Args:
        searches: the searches, at least one.
        threads: most threads that run them.
        alone: rounds in which only the first search plays.

    Attributes:
        number: rounds that are complete.
    """

    def __init__(self, searches: Sequence[Search], threads: int, alone: int = 0):
        self.searches = tuple(searches)
        self.number = 0
        self._alone = alone
        self._pool = ThreadPoolExecutor(min(threads, len(searches))) if threads > 1 else None

    @property
    def simulated(self) -> int:
        """Frames simulated by all searches."""
        return sum(search.simulated for search in self.searches)

    @property
    def before(self) -> int:
        """Frames that belong to the complete rounds, apart from the end of the last trial of each search."""
        return sum(self._frames_after(search, self.number) for search in self.searches)

    def play(self, budget: float, stop: Callable[[], bool]) -> bool:
        """Go on with the round; return whether it is complete.

        Args:
            budget: frames of this round to simulate at most, those before it was interrupted included; every search
                gets the same share of its own.
            stop: asked every few milliseconds whether to stop at once.
        """
        begins, targets = (
            [self._frames_after(search, number) for search in self.searches]
            for number in (self.number, self.number + 1)
        )
        share = min(budget / (sum(targets) - sum(begins)), 1.0)
        untils = [begin + math.ceil(share * (target - begin)) for begin, target in zip(begins, targets)]
        self._advance(untils, stop)
        return share == 1.0 and all(search.simulated >= target for target, search in zip(targets, self.searches))

    def _frames_after(self, search: Search, rounds: int) -> int:
        """Return the frames of a search after so many rounds, apart from the end of its last trial."""
        turns = rounds if search is self.searches[0] else max(rounds - self._alone, 0)
        growing = sum(min(_FIRST_TURN << number, _LONGEST_TURN) for number in range(min(turns, _GROWING)))
        return search.weight * (growing + max(turns - _GROWING, 0) * _LONGEST_TURN)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _advance(self, untils: Sequence[int], stop: Callable[[], bool]) -> None:
        if self._pool is None:
            for search, until in zip(self.searches, untils):
                search.advance(until, stop)
            return
        longest_first = sorted(zip(self.searches, untils), key=lambda pair: -pair[0].weight)
        futures = [self._pool.submit(search.advance, until, stop) for search, until in longest_first]
        for future in futures:
            future.result()
