"""Record the episodes of an environment."""

from __future__ import annotations

from typing import Any

import numpy as np

from nclone_env.actions import INPUT_OF_ACTION
from nclone_env.env.actions import check_actions
from nclone_env.env.single import NPlusPlusEnv
from nclone_env.errors import RecordingError
from nclone_env.replay.recording import Recording

CONFIGURED = ("frame_skip", "max_frames", "action_space")
"""Fields of the configuration that go into a recording."""


class EpisodeRecorder:
    """Plays an environment and keeps the inputs of the episode under way.

    Use its ``reset`` and ``step`` in place of the environment's; ``recording()`` can be called at any time.

    Args:
        env: a single environment, also one that ``gymnasium.make`` has wrapped.

    Raises:
        RecordingError: if two of its levels have the same name, so that a recording could be of either.
    """

    def __init__(self, env: Any):
        self.env = env
        self._own: NPlusPlusEnv = env.unwrapped
        self._levels = {level.name: level.raw for level in self._own.levels}
        if len(self._levels) < len(self._own.levels):
            names = ", ".join(level.name for level in self._own.levels)
            raise RecordingError("environment", "levels", "levels with different names", names)
        self._inputs = bytearray()
        self._level = ""
        self._seed: int | None = None
        self._episode = -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode and its recording; as ``NPlusPlusEnv.reset``.

        Raises:
            RecordingError: if the options ask for a start that is not the level's.
        """
        if options and set(options) - {"level"}:
            raise RecordingError("environment", "options", "an episode from the start of a level", repr(options))
        observation, info = self.env.reset(seed=seed, options=options)
        self._inputs.clear()
        self._level = info["level"]
        self._seed, self._episode = (self._seed, self._episode + 1) if seed is None else (int(seed), 0)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step and record its frames; as ``NPlusPlusEnv.step``."""
        result = self.env.step(action)
        number = np.zeros((), np.int64)
        check_actions(action, self._own.config.action_space, number)
        self._inputs += bytes([INPUT_OF_ACTION[int(number)]]) * result[4]["frames"]
        return result

    def recording(self) -> Recording:
        """Return the recording of the episode so far.

        Its settings are the level's name, the number of the episode since the seed was given, and ``CONFIGURED``.

        Raises:
            RecordingError: before the first reset.
        """
        if not self._level:
            raise RecordingError("environment", "episode", "an episode under way", "none; call reset()")
        settings = {name: getattr(self._own.config, name) for name in CONFIGURED}
        settings |= {"level": self._level, "episode": self._episode}
        return Recording.of(self._levels[self._level], bytes(self._inputs), settings, self._seed)
