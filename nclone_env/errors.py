"""Every error and warning the package raises on bad input.

Each message names the argument, what was expected, what came, and what to do about it.
All classes derive from :class:`NcloneError`, so one ``except`` catches them all.
"""

from __future__ import annotations


class NcloneError(Exception):
    """Base class of all errors of this package."""


class NcloneWarning(UserWarning):
    """Base class of all warnings of this package."""


class FormatError(NcloneError, ValueError):
    """Data are malformed.

    Args:
        source: file name, or ``<bytes>`` for data without a name.
        where: ``offset 1230``, ``line 12`` or another place inside the source.
        expected: what the format asks for there.
        got: what was found.
    """

    def __init__(self, source: str, where: str, expected: str, got: str):
        super().__init__(f"{source}: {where}: expected {expected}, got {got}")
        self.source, self.where, self.expected, self.got = source, where, expected, got

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        """Pickle by the four parts, so that the error survives a process boundary."""
        return type(self), (self.source, self.where, self.expected, self.got)


class LevelFormatError(FormatError):
    """A level, map or attract file is malformed."""


class RecordingError(FormatError):
    """A recording is malformed, or cannot be made."""


class SnapshotError(FormatError):
    """A snapshot is malformed, damaged, of other levels or another version, or has no place where it is to go."""


class UnknownLevelError(NcloneError, KeyError):
    """A level name is neither a built-in level or set nor a file."""

    def __str__(self) -> str:
        """Show the message as it is (KeyError would quote it)."""
        return str(self.args[0])


class UnsupportedLevelError(NcloneError, ValueError):
    """A level is well-formed but cannot be played as an environment (it has no exit, say)."""


class InputsError(NcloneError, ValueError):
    """Simulator inputs are not bytes 0..15, or not as many as needed."""


class WorldIndexError(NcloneError, IndexError):
    """A session has no world of this index."""


class LevelIndexError(NcloneError, IndexError):
    """A level set has no level of this index."""


class ConfigError(NcloneError, ValueError):
    """A configuration field is unknown or its value is out of range."""


class ActionError(NcloneError, ValueError):
    """An action has the wrong dtype, shape or range."""


class BufferError(NcloneError, ValueError):  # noqa: A001 - the field's word for it, always used qualified
    """An output buffer has the wrong dtype, shape, layout, or is read-only."""


class ResetNeededError(NcloneError, RuntimeError):
    """``step`` or ``render`` was called before ``reset``, or after the episode ended."""


class StepOrderError(NcloneError, RuntimeError):
    """``recv`` without ``send``, or another call for environments whose step has been sent and not received."""


class ClosedError(NcloneError, RuntimeError):
    """The environment was used after ``close``."""


class MissingExtraError(NcloneError, ImportError):
    """An optional dependency is needed; the message names the extra that brings it."""


class CheckpointError(NcloneError, ValueError):
    """A checkpoint cannot be read or does not fit the configuration."""
