"""The choice of future episodes of a vector environment: levels by weight or assignment, and start states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nclone_env.env.arguments import check_assignment, check_weights
from nclone_env.env.base import BaseEnvironment
from nclone_env.env.lifecycle import NOT_CLOSED, Phase


class EpisodeChoice(BaseEnvironment):
    """The part of the vector environment that chooses levels and start states of future episodes."""

    num_envs: int

    def _check(self, call: str, allowed: tuple[Phase, ...]) -> None:
        raise NotImplementedError

    def exchange_levels(self, levels: Any) -> None:
        """Play other levels in future episodes, without stopping those under way.

        Episodes under way end on the levels that they began on, which stay in ``level_names``, behind the others, until
        the next exchange; no further episodes begin on them. ``info["level"]`` counts in the new ``level_names``; of an
        episode that ended in the last step, on a level that has left, it tells the level of the one that has begun.
        Weights are equal again; assignments, requested levels and start states are dropped. Snapshots taken before do
        not fit any more, and ``worlds`` and ``level_set`` are others.

        Args:
            levels: as ``EnvironmentConfig.levels``: names, files, packs, map bytes or loaded levels.

        Raises:
            UnknownLevelError, LevelFormatError, UnsupportedLevelError: if a level cannot be used.
            ConfigError: if there are no levels, or ``graph`` is among the observations, as its space depends on the
                levels.
            StepOrderError: while a sent step has not been received.
            ClosedError: after ``close``.

        Nothing is changed by a call that raises an error or is interrupted.
        """
        self._check("exchange_levels", NOT_CLOSED)
        self._batch.exchange_levels(levels)
        self.config = self._batch.config

    def set_level_weights(self, weights: Any = None) -> None:
        """Draw the levels of future episodes with probabilities proportional to weights.

        Args:
            weights: one number of at least 0 for each of ``level_names``, or some by name (the others get 0); None:
                equal weights. Those of levels that ``exchange_levels`` kept for episodes under way, which come last,
                are left out or 0.

        Raises:
            UnknownLevelError: if a name is not one of these levels.
            ConfigError: if the number of weights is wrong, one is negative or not finite, or all are 0.
            StepOrderError: while a sent step has not been received.
            ClosedError: after ``close``.
        """
        self._check("set_level_weights", NOT_CLOSED)
        drawn = self._batch.drawn_names
        self._batch.set_weights(check_weights(weights, drawn, len(self.level_names) - len(drawn)))

    def assign_levels(self, levels: Any = None) -> None:
        """Assign levels to environments for all future episodes.

        Args:
            levels: n names or indices, with None where levels are drawn at random; None: drawn everywhere.

        Raises:
            UnknownLevelError: if a level is not one of ``level_names``, or kept for episodes under way.
            ConfigError: if there are not n items.
            StepOrderError: while a sent step has not been received.
            ClosedError: after ``close``.
        """
        self._check("assign_levels", NOT_CLOSED)
        names = self._batch.drawn_names
        self._batch.episodes["own_level"] = check_assignment("levels", levels, names, self.num_envs)

    def set_starts(self, states: Iterable[bytes] = (), share: Any = 1.0) -> None:
        """Begin a share of the future episodes in the worlds of snapshots instead of at the start of their level.

                An episode on a level with start states begins at one of them or at the start of the level. The draw
                depends only on the seed, the number of the episode and the shares, not on the choice of the level.
                Episodes on a level requested by ``reset`` begin at its start. Steps and return count from 0; the
        frames of the snapshot count towards the time limit. ``info["start"]`` tells which state an episode began in, by
        its number in the list that was set at the time, and -1 for any other start.

        Args:
            states: K snapshots, from ``get_state`` of environments with the same levels, taken one after another; those
                set before are dropped.
            share: probability that an episode begins in one of the K states: one number, divided evenly among the
                states of each level, or (K,) numbers.

        Raises:
            SnapshotError: if one is malformed, of other levels, over, or has no frame left; the message names the item.
            ConfigError: if the share has another shape, is no probability, or exceeds 1 for the states of a level;
                nothing is changed in either case.
            StepOrderError: while a sent step has not been received.
            ClosedError: after ``close``.
        """
        self._check("set_starts", NOT_CLOSED)
        self._batch.set_starts(states, share)

    def set_start_shares(self, share: Any) -> None:
        """Change the shares of the start states; no snapshot is read again.

        Args:
            share: as in ``set_starts``, for the states that were set last.

        Raises:
            ConfigError, StepOrderError, ClosedError: as ``set_starts``.
        """
        self._check("set_start_shares", NOT_CLOSED)
        self._batch.set_start_shares(share)
