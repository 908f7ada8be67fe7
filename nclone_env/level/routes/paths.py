"""Path lengths of all levels of a set, as the shaping reward and ``game_state`` follow them, for kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.memory_tree import MemoryNode, array_group

NO_LANDMARKS = np.zeros(1, np.int16)
NO_LANDMARKS.flags.writeable = False


class Paths(NamedTuple):
    """Path lengths of L levels, read-only.

    A level either has landmarks, which are visited in order, with a field for each; or it has none, and its fields are
    those of ``level.routes.distance``: by a switch to its exit, then to each exit.

    Attributes:
        header: (L,) ``LEVEL_HEADER``; ``start_distance``, ``first_field``, ``first_landmark`` and ``landmark_count`` of
            these paths.
        fields: (F, 51, 89) float32; path length from each node of the lattice, pixels, infinite without a path.
        landmarks: int16; entities of the levels, those of a level in order, the exit last.
    """

    header: np.ndarray
    fields: np.ndarray
    landmarks: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays that levels themselves do not have; none without landmarks."""
        own = self._asdict() if self.header["landmark_count"].any() else {}
        return array_group("paths", own, shared=True)
