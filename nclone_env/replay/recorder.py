"""Record the episodes of an environment."""

from typing import Any

from nclone_env.env import NPlusPlusEnv
from nclone_env.errors import RecordingError, shortened
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.replay.recording import Recording

CONFIGURED = ("frame_skip", "max_frames", "action_space")
"""Configuration fields stored in a recording."""


class EpisodeRecorder:
    """Records the inputs of the current episode of an environment.

    Use its ``reset`` and ``step`` instead of the environment's; ``recording()`` can be called at any time.

    Args:
        env: a single environment, possibly wrapped by ``gymnasium.make``.

    Raises:
        RecordingError: if it is another environment, or two levels have the same name, which makes recordings
            ambiguous.
    """

    def __init__(self, env: Any):
        self.env = env
        own = getattr(env, "unwrapped", env)
        if not isinstance(own, NPlusPlusEnv):
            raise RecordingError("environment", "kind", "a single NPlusPlusEnv, possibly wrapped", shortened(env))
        self._own = own
        self._levels = {level.name: level.raw for level in self._own.levels}
        self._inputs = bytearray()
        self._level = ""
        self._seed: int | None = None
        self._episode = -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and start a recording; see ``NPlusPlusEnv.reset``.

        Raises:
            RecordingError: if the options start the episode elsewhere than at the start of a level.
        """
        if options and set(options) - {"level"}:
            raise RecordingError("environment", "options", "an episode from the start of a level", repr(options))
        observation, info = self.env.reset(seed=seed, options=options)
        self._inputs.clear()
        self._level = info["level"]
        self._seed, self._episode = (self._seed, self._episode + 1) if seed is None else (int(seed), 0)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment and record its frames; see ``NPlusPlusEnv.step``."""
        result = self.env.step(action)
        self._inputs += bytes([INPUT_OF_ACTION[self._own.taken_actions[0]]]) * result[4]["frames"]
        return result

    def recording(self) -> Recording:
        """Return the recording of the episode so far.

        Its settings are the level name, the number of the episode since the last seeded reset, and the fields
        ``CONFIGURED``.

        Raises:
            RecordingError: before the first reset.
        """
        if not self._level:
            raise RecordingError("environment", "episode", "a started episode", "none; call reset()")
        settings = {name: getattr(self._own.config, name) for name in CONFIGURED}
        settings |= {"level": self._level, "episode": self._episode}
        return Recording.of(self._levels[self._level], bytes(self._inputs), settings, self._seed)
