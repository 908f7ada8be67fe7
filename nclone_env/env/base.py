"""The common base of the single and the vector environment: a batch, the levels, ``render()``, and a life cycle.

The life cycle says which calls are allowed before the first reset, after an end, after ``close``.
"""

from __future__ import annotations

import threading
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.batch import Batch
from nclone_env.errors import ClosedError, ResetNeededError, StepOrderError
from nclone_env.level import Graphs, Level, LevelSet, levels_as_text
from nclone_env.options import plain
from nclone_env.sim import WorldArrays

if TYPE_CHECKING:  # drawing libraries are imported on first use
    from nclone_env.render import Area, Window


class Phase(Enum):
    """Phases of an environment.

    A vector environment is ``RUNNING`` from its first reset on; its episodes end one by one. ``BROKEN`` is what a call
    leaves that did not come to its end: some environments may have been stepped, others not.
    """

    NEW = auto()
    RUNNING = auto()
    OVER = auto()
    BROKEN = auto()
    CLOSED = auto()


NOT_CLOSED = (Phase.NEW, Phase.RUNNING, Phase.OVER, Phase.BROKEN)
AFTER_RESET = (Phase.RUNNING, Phase.OVER)
IN_EPISODE = (Phase.RUNNING,)

# In every step: attributes of enumerations take a while.
RUNNING, OVER, BROKEN = Phase.RUNNING, Phase.OVER, Phase.BROKEN

_REASONS = {
    Phase.NEW: "before the first reset",
    Phase.OVER: "after the end of the episode",
    Phase.BROKEN: "after a call that an error or Ctrl-C ended before it was done",
}


class Lifecycle:
    """The phase of an environment, and the check that a call is allowed in it.

    Calls that change the environment are made inside of ``with lifecycle``: it is ``RUNNING`` afterwards, ``BROKEN`` if
    the call raised, and calls of other threads are rejected meanwhile: ``changing`` is locked.
    """

    __slots__ = ("changing", "phase")

    def __init__(self) -> None:
        self.phase = Phase.NEW
        self.changing = threading.Lock()

    def check(self, call: str, allowed: tuple[Phase, ...]) -> None:
        """Reject a call in other phases than the allowed ones, or while another thread is inside of one."""
        if self.changing.locked():
            raise StepOrderError(
                f"{call}() was called while another thread is inside of a call of this environment, or was when this "
                f"process was forked; use one environment in each thread and process"
            )
        if self.phase in allowed:
            return
        if self.phase is Phase.CLOSED:
            raise ClosedError(f"{call}() was called after close(); make a new environment")
        raise ResetNeededError(f"{call}() was called {_REASONS[self.phase]}; call reset() to begin an episode")

    def __enter__(self) -> None:
        if not self.changing.acquire(False):
            raise StepOrderError("two threads call this environment at the same time; use one environment in each")
        self.phase = BROKEN

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self.phase = RUNNING
        self.changing.release()


class BaseEnvironment:
    """Attributes and level-related properties shared by all environments."""

    config: EnvironmentConfig
    _batch: Batch
    _lifecycle: Lifecycle
    _generator: np.random.Generator | None = None
    _np_random_seed: Any = None
    _spec: Any = None
    _window: Window | None = None
    _area: tuple[LevelSet, Area] | None = None  # that pictures of these levels show

    @property
    def spec(self) -> Any:
        """Gymnasium's specification, None without ``make``.

        Options in it are plain values of Python, and levels text, so that it can become JSON.
        """
        return self._spec

    @spec.setter
    def spec(self, spec: Any) -> None:
        if spec is not None:
            spec.kwargs = {name: self._plain(name, value) for name, value in spec.kwargs.items()}
        self._spec = spec

    def _plain(self, name: str, value: Any) -> Any:
        """Return an option of ``make`` for the specification."""
        if name == "levels":
            return levels_as_text(self.config.levels)  # an iterator has nothing left
        if name == "config":
            return value
        return plain(self.config.observations if name == "observations" else value)

    @property
    def _np_random(self) -> np.random.Generator | None:
        """Gymnasium's generator, made from the seed on first use: the choice of levels does not need it."""
        seed = self._np_random_seed
        if self._generator is None and seed is not None:
            self._generator = np.random.default_rng([each or 0 for each in seed] if isinstance(seed, tuple) else seed)
        return self._generator

    @_np_random.setter
    def _np_random(self, generator: np.random.Generator | None) -> None:
        self._generator = generator

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels that episodes play."""
        return self._batch.level_set.names

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels, in the order of ``level_names``."""
        return self._batch.level_set.levels

    @property
    def level_set(self) -> LevelSet:
        """The packed levels; kernels of your own take its ``arrays``, read-only (docs/environments/snapshots.md)."""
        return self._batch.level_set

    @property
    def worlds(self) -> WorldArrays:
        """The worlds, one row for each environment, for kernels of your own to read or copy between two steps.

        Ask for them again after ``gather``, which exchanges the arrays.
        """
        return self._batch.worlds

    @property
    def taken_actions(self) -> Any:
        """Numbers, 0..5, of the actions that the last step took, (n,) int64, with n = 1 for a single environment.

        With ``action_repeat_probability`` these are not always the actions that the step was given: inputs to be
        replayed follow from these. Undefined before the first step, and where the episode was over.
        """
        return self._batch.taken_actions

    @property
    def graphs(self) -> Graphs:
        """The graphs of the levels, in the same order; made on first use and shared by all environments."""
        return self._batch.graphs

    def _picture(self, index: int = 0) -> np.ndarray:
        """Return the picture of a world, (height, width, 3) uint8; both are even, as the usual video formats need."""
        from nclone_env.render import WORLD, union, used_area_of, world_picture

        options, levels = self.config.render, self._batch.level_set
        if self._area is None or self._area[0] is not levels:
            self._area = levels, union(used_area_of(level.raw) for level in levels.levels) if options.crop else WORLD
        scale, area = options.picture_scale, self._area[1]
        picture = world_picture(levels.arrays, self._batch.worlds, index, scale, area, theme=options.theme)
        return np.ascontiguousarray(picture[: picture.shape[0] // 2 * 2, : picture.shape[1] // 2 * 2])

    def _show_first(self) -> None:
        picture = self._picture()
        if self._window is None:
            from nclone_env.render import Window

            size = (picture.shape[1], picture.shape[0])
            rate = self.config.frames_per_second  # as Gymnasium's environments it draws without a screen, too
            self._window = Window(size, frames_per_second=rate, must_be_seen=False)
        self._window.show(picture)

    def _close_window(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None
