"""Errors of the package.

Each message names the argument, the expected and the actual value, and how to fix it. All errors derive from
:class:`NcloneError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def shortened(value: object, length: int = 60) -> str:
    """Return the ``repr`` of a value for a message, cut if it is longer than ``length`` characters."""
    try:
        shown = repr(value)
    except ValueError:  # Python refuses to print numbers of more than 4300 digits
        return f"{type(value).__name__} too long to print"
    return shown if len(shown) <= length else f"{shown[: length - 3]}..."


def plain(text: object) -> str:
    """Return a text, such as the name of a file, with escapes for what a terminal must not or cannot be given.

    These are control characters, invisible and unassigned ones, and the bytes of file names that are not UTF-8.
    """
    return "".join(character if _is_plain(character) else _escape(character) for character in str(text))


def _is_plain(character: str) -> bool:
    return character.isprintable() or 160 <= ord(character) < 256


def _escape(character: str) -> str:
    """Return the escape of a character; Python decodes byte b of a name that is not UTF-8 to ``U+DC00 + b``."""
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else character.encode("unicode_escape").decode()


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the end of a message that names the most similar of some known names, empty if none is similar."""
    close = difflib.get_close_matches(str(name)[:100], list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


class NcloneError(Exception):
    """Base class of all errors of this package."""


class FormatError(NcloneError, ValueError):
    """Malformed data.

    Args:
        source: file name, or ``<bytes>`` for data in memory.
        where: location inside the source, such as ``offset 1230`` or ``line 12``.
    """

    def __init__(self, source: str, where: str, expected: str, got: str):
        super().__init__(f"{source}: {where}: expected {expected}, got {got}")
        self.source, self.where, self.expected, self.got = source, where, expected, got

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        """Pickle the four parts, so that the error can cross process boundaries."""
        return type(self), (self.source, self.where, self.expected, self.got)


class LevelFormatError(FormatError):
    """A level, map or attract file is malformed."""


class RecordingError(FormatError):
    """A recording is malformed or cannot be created."""


class SnapshotError(FormatError):
    """A snapshot is malformed, damaged, incompatible with the environment, or of another version."""


class UnknownLevelError(NcloneError, KeyError):
    """A level name is neither a built-in level or set nor a file."""

    def __str__(self) -> str:
        """Return the message unquoted (``KeyError`` would quote it)."""
        return str(self.args[0])


class UnsupportedLevelError(NcloneError, ValueError):
    """A level is well-formed but unsuitable for an environment, for example without an exit."""


class InputsError(NcloneError, ValueError):
    """Simulator inputs are not bytes 0..15, or not as many as needed."""


class WorldIndexError(NcloneError, IndexError):
    """A session has no world of this index."""


class LevelIndexError(NcloneError, IndexError):
    """A level set has no level of this index."""


class ConfigError(NcloneError, ValueError):
    """A configuration field is unknown or its value is invalid."""


class MemoryLimitError(ConfigError):
    """A configuration needs more memory than is available."""


class ActionError(NcloneError, ValueError):
    """An action has the wrong dtype, shape or range."""


class BufferError(NcloneError, ValueError):  # noqa: A001 - shadows the builtin only where imported by name
    """An output buffer has the wrong dtype, shape, layout, or is read-only."""


class ResetNeededError(NcloneError, RuntimeError):
    """``step`` or ``render`` was called before ``reset``, or after the episode ended."""


class StepOrderError(NcloneError, RuntimeError):
    """``recv`` was called without ``send``, or another method between ``send`` and ``recv``."""


class ClosedError(NcloneError, RuntimeError):
    """The environment was used after ``close``."""


class MissingExtraError(NcloneError, ImportError):
    """An optional dependency is missing; the message names the extra to install."""


class DisplayError(NcloneError, RuntimeError):
    """There is no screen to open a window on."""


class CheckpointError(NcloneError, ValueError):
    """A checkpoint cannot be read or does not match the configuration."""


class TrajectoryError(NcloneError, ValueError):
    """An array of a trajectory has the wrong name, shape, dtype or range."""


class RunFolderError(NcloneError, FileExistsError):
    """The folder of a training run holds another run, or another process is training in it."""


class NonFiniteError(NcloneError, FloatingPointError):
    """Training met a nan or an infinity; the message names the tensor, the update and, where known, the levels."""


class StoppedError(NcloneError):
    """A training run was stopped before it had anything to save."""
