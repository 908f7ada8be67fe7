"""Errors of the package, and the checks of values that raise them.

Each message names the argument, the expected and the actual value, and how to fix it. All errors derive from
:class:`NcloneError`.
"""

import difflib
import importlib
import math
import os
import re
from collections import UserString
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cache, wraps
from inspect import Parameter, signature
from numbers import Integral, Number, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
PATH = "a path on this machine"
_ADDRESS = re.compile(r"[A-Za-z][\w.+-]+://")
"""A scheme has two characters at least: ``C://`` is a drive."""
_BREAK = re.compile(r"\s*\n\s*")
"""Between the rows of arrays; texts have an escape in its place."""


def shortened(value: object, length: int = 60) -> str:
    """Return the ``repr`` of a value in one line for a message, cut if it is longer than ``length`` characters."""
    try:
        shown = _BREAK.sub(" ", repr(value))
    except ValueError:  # Python refuses to print numbers of more than 4300 digits
        return f"{type(value).__name__} too long to print"
    except Exception:  # noqa: BLE001 - of an object of the caller: the message is about the value, not about this
        return f"{type(value).__name__} that cannot be printed"
    return shown if len(shown) <= length else f"{shown[: length - 3]}..."


_EXACT = 2**53  # larger floats stand for several whole numbers
_LONGEST_NAME = 300
"""Characters of a path in a message."""


def cut(path: object) -> str:
    """Return the path of a file for a message; one that is too long for the system may have any length."""
    name = str(path)
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."


def plain(text: object) -> str:
    """Return a text, such as the name of a file, with escapes for what a terminal must not or cannot be given.

    These are control characters, invisible and unassigned ones, and the bytes of file names that are not UTF-8.
    """
    return "".join(character if is_plain(character) else _escape(character) for character in str(text))


def is_plain(character: str) -> bool:
    """Return whether a terminal may show a character: no control character, and one that UTF-8 has."""
    return character.isprintable() or 160 <= ord(character) < 256


def _escape(character: str) -> str:
    """Return the escape of a character; Python decodes byte b of a name that is not UTF-8 to ``U+DC00 + b``."""
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else character.encode("unicode_escape").decode()


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the end of a message that names the most similar of some known names, empty if none is similar."""
    word = str(name)[:100] if isinstance(name, str | os.PathLike) else ""  # a number can be too long to be printed
    spelt = {each.lower(): each for each in known}  # of two names that differ by case either may be meant
    close = difflib.get_close_matches(word.lower(), list(spelt), n=1)
    return f"; did you mean {spelt[close[0]]!r}?" if close else ""


class NcloneError(Exception):
    """Base class of all errors of this package."""


class FormatError(NcloneError, ValueError):
    """Malformed data: of a file, or of ``<bytes>`` in memory, at a place such as ``offset 1230`` or ``line 12``."""

    def __init__(self, source: str, where: str, expected: str, got: str):
        super().__init__(f"{cut(source)}: {where}: expected {expected}, got {got}")
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
    """A call came while another thread was inside of one of the same environment."""


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
    """Work was stopped before it was complete; the message says where what was done is, if it is kept."""


_PACKAGES = {"pygame": "pygame-ce"}


def optional_module(name: str, extra: str) -> Any:
    """Import a module of an optional dependency."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = _PACKAGES.get(name, name.partition(".")[0].replace("_", "-"))
        said = "is not installed"
        if not isinstance(error, ModuleNotFoundError) or not f"{name}.".startswith(f"{error.name}."):
            said = f"is installed, but cannot be imported: {' '.join(str(error).split())[:200]}"
        raise MissingExtraError(f"{package} {said}; {installation(extra)}") from error


def without_opencv(error: ImportError) -> MissingExtraError:
    """Return the error of a module that draws pictures, for that of its ``import cv2``."""
    fix = "run pip install opencv-python-headless"
    return MissingExtraError(f"pictures require OpenCV, which cannot be imported ({error}); {fix}")


def installation(extra: str) -> str:
    """Return the end of a message that says how to install an extra."""
    return f'run pip install ".[{extra}]" in a copy of the repository'


class Within(NamedTuple):
    """Bounds of a number, both inclusive: ``Annotated[int, Within(1, 64)]``."""

    low: float = -math.inf
    high: float = math.inf


def as_array(value: Any, error: type[NcloneError], expected: str) -> np.ndarray:
    """Return a value of the caller as an array of NumPy.

    What NumPy cannot convert raises ``error`` with what was expected: nested lists of unequal lengths, and tensors on a
    GPU, with gradients, or of a dtype that NumPy lacks.
    """
    try:
        return np.asarray(value)
    except (RuntimeError, TypeError, ValueError) as fault:
        raise error(f"{expected}, got {shortened(value)}: {' '.join(str(fault).split())}") from fault


def check_value(name: str, hint: Any, value: Any) -> None:
    """Check a value by an annotation: of a choice, a number within bounds, a flag, a text or a path.

    None among its alternatives accepts None; of other annotations nothing is known.
    """
    known = [text for part in (hint, *get_args(hint)) if get_origin(part) is Literal for text in get_args(part)]
    _reject(name, _expected(hint, value), value, known if isinstance(value, str) else ())


def check_choice(name: str, value: Any, known: Collection[str]) -> None:
    """Reject a value that is not one of some names."""
    if not isinstance(value, str) or value not in known:
        expected, got = f"expected one of {', '.join(known)}", f"{shortened(value)}{did_you_mean(value, known)}"
        raise ConfigError(f"{name}: {expected}, got {got}")


def scalar(value: Any) -> Any:
    """Return a number, flag or text of another type as that of Python; others as they are.

    These are scalars of NumPy and arrays of none but one, members of enumerations, exact numbers (``Decimal``,
    ``Fraction``) and ``UserString``. The item of a masked number would be 0.
    """
    value = value.value if isinstance(value, Enum) else value
    is_scalar = getattr(value, "shape", None) == () and hasattr(value, "item") and not np.ma.is_masked(value)
    value = value.item() if is_scalar else value
    if isinstance(value, Number) and not isinstance(value, int | float | complex):
        with suppress(ArithmeticError, TypeError, ValueError):  # of those too large, and of a nan that signals
            value = float(value)  # type: ignore[arg-type]
    return value.data if isinstance(value, UserString) else value


def whole(value: Any) -> Any:
    """Return a float that is a whole number, as 6e6 is, as an integer; others as they are."""
    is_whole = isinstance(value, (float, np.floating)) and value.is_integer() and abs(float(value)) <= _EXACT
    return int(value) if is_whole else value


def check_integer(name: str, value: Any, low: int, high: float = math.inf) -> int:
    """Return a whole number within bounds, which may be a float or one of NumPy, as an integer of Python."""
    number = whole(scalar(value))
    _reject(name, _expected_number(int, Within(low, high), number), value)
    return int(number)


def checked(*left: str) -> Callable[[Function], Function]:
    """Let a function check its arguments by their annotations before anything else, all but those ``left`` to it.

    These are numbers (of which nan is none), flags, texts, paths, bytes, choices, functions, mappings, iterables,
    tuples of a fixed length and objects of a class, or one of several of them. Nothing is known of other annotations,
    and of arrays, which may be anything that NumPy converts. Bounds are up to the function. It gets whole numbers as
    integers of Python: those of NumPy overflow.
    """

    def decorate(function: Function) -> Function:
        described, hints = signature(function), cache(lambda: get_type_hints(function, include_extras=True))

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = None
            with suppress(TypeError):  # of missing arguments, which the call itself tells
                given = described.bind(*args, **kwargs)
            if given is None:
                return function(*args, **kwargs)
            for name, value in given.arguments.items():
                kind = described.parameters[name].kind
                if name in left or name not in hints() or kind is Parameter.VAR_KEYWORD:
                    continue
                if kind is Parameter.VAR_POSITIONAL:
                    given.arguments[name] = tuple(check_argument(name, hints()[name], each) for each in value)
                else:
                    given.arguments[name] = check_argument(name, hints()[name], value)
            return function(*given.args, **given.kwargs)

        return cast("Function", call)

    return decorate


def check_argument(name: str, hint: Any, value: Any) -> Any:
    """Check an argument by its annotation, as :func:`checked`; return it, whole numbers as integers of Python."""
    parts, found = _alternatives(hint), _with_integers(hint, value)
    if not _fits(hint, found.item() if isinstance(found, np.ndarray) and found.shape == () else found):
        meant = _with_integers(hint, scalar(value))
        if _fits(hint, meant):
            return meant
        nouns = list(dict.fromkeys(map(_noun, parts)))
        known = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
        _reject(name, " or ".join([", ".join(nouns[:-1]), nouns[-1]] if nouns[1:] else nouns), value, known)
    return found


def _with_integers(hint: Any, value: Any) -> Any:
    """Return a value with integers of Python for whole numbers of other types, where an annotation names them."""
    kinds = [get_args(part)[0] if get_origin(part) is Annotated else part for part in _alternatives(hint)]
    if int in kinds and float not in kinds:
        return whole(scalar(value))
    items = get_args(hint) if get_origin(hint) in (tuple, Sequence) else ()
    if int not in items or not isinstance(value, list | tuple | np.ndarray) or not _is_iterable(value):
        return value
    items = items if get_origin(hint) is tuple else items * len(value)
    return tuple(map(_with_integers, items, value)) if len(items) == len(value) else value


def _fits(hint: Any, value: Any) -> bool:
    """Return whether a value is what an annotation says, as far as :func:`checked` knows it."""
    kind, items = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(part, value) for part in _alternatives(hint))
    if kind is tuple and Ellipsis not in items:
        sides = list(value) if _is_iterable(value) else []
        return len(sides) == len(items) and all(map(_fits, items, sides))
    if kind in _SIMPLE:
        return _SIMPLE[kind].fits(value)
    if kind in (Annotated, Literal):
        return not _expected(hint, value)
    if kind in (Iterable, Sequence, tuple, list):
        is_listed = isinstance(value, list | tuple | str | np.ndarray)  # of others the items may be read only once
        return _is_iterable(value) and (not is_listed or all(_fits(items[0], each) for each in value))
    if not isinstance(kind, type) or kind in (Any, object, np.ndarray) or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(value, kind)


def _alternatives(hint: Any) -> Sequence[Any]:
    """Return what an annotation allows; text beside paths is one of them."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return [part for part in parts if part is not str or Path not in parts]


def _noun(hint: Any) -> str:
    """Return what an annotation expects, for a message."""
    kind = get_origin(hint) or hint
    if kind in _SIMPLE:
        return _SIMPLE[kind].noun
    if kind in (Annotated, Literal):
        return _expected(hint, _NOTHING)
    if kind is tuple and Ellipsis not in get_args(hint):
        return f"{len(get_args(hint))} values, {' and '.join(map(_noun, get_args(hint)))}"
    if kind in (Iterable, Sequence, tuple, list):
        return "several values"
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


class _Simple(NamedTuple):
    """A type that annotations name."""

    noun: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def _is_iterable(value: Any) -> bool:
    is_one = isinstance(value, (*_BYTES, Mapping)) or getattr(value, "shape", None) == ()
    return isinstance(value, Iterable) and not is_one


def is_path(value: Any) -> bool:
    """Return whether a value may be a path: text with something in it that is no address, as ``s3://`` is."""
    try:
        is_text = isinstance(value, str | os.PathLike) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return is_text and value != "" and not _ADDRESS.match(os.fsdecode(value))


_NOTHING = object()
_BYTES = bytes, bytearray, memoryview
_SIMPLE: Mapping[Any, _Simple] = {
    NoneType: _Simple("None", lambda value: value is None),
    bool: _Simple("True or False", lambda value: isinstance(value, bool | np.bool_)),
    int: _Simple("a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool)),
    float: _Simple("a number", _is_number),
    str: _Simple("text", lambda value: isinstance(value, str)),
    bytes: _Simple("bytes", lambda value: isinstance(value, _BYTES)),
    Path: _Simple(PATH, is_path),
    Callable: _Simple("a function", callable),
    Mapping: _Simple("a mapping", lambda value: isinstance(value, Mapping)),
}


def _reject(name: str, expected: str, value: Any, known: Iterable[str] = ()) -> None:
    """Raise a ConfigError if something is expected of a value; it names the most similar of the known values."""
    if expected:
        raise ConfigError(f"{name}: expected {expected}, got {shortened(value)}{did_you_mean(value, known)}")


def _expected(hint: Any, value: Any) -> str:
    """Return what is expected of a value, empty if it is that."""
    kinds = [kind for kind in get_args(hint) or (hint,) if not isinstance(kind, Within)]
    bounds = next((bounds for bounds in get_args(hint) if isinstance(bounds, Within)), Within())
    if get_origin(hint) is Literal:
        return _expected_choice(kinds, value)
    if get_origin(hint) is Annotated:
        return _expected_number(kinds[0], bounds, value)
    if NoneType in kinds:
        other = next(kind for kind in kinds if kind is not NoneType)
        if get_origin(other) is Literal:
            return _expected_choice([None, *get_args(other)], value)
        return "" if value is None else _expected(other, value)
    if hint in (int, float):
        return _expected_number(hint, bounds, value)
    return "" if hint not in _SIMPLE or _SIMPLE[hint].fits(value) else _SIMPLE[hint].noun


def _expected_choice(choices: list[Any], value: Any) -> str:
    known = isinstance(value, (str, Integral, NoneType)) and not isinstance(value, bool) and value in choices
    return "" if known else f"one of {', '.join(map(repr, choices))}"


def _expected_number(kind: type, bounds: Within, value: Any) -> str:
    accepted = Integral if kind is int else Real
    is_number = isinstance(value, accepted) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:  # a whole number too large for a float
        number = math.inf
    if math.isfinite(number) and bounds.low <= value <= bounds.high:  # not the float, which rounds large integers
        return ""
    noun = "a whole number" if kind is int else "a number"
    low, high = (f"{bound}" if kind is int else f"{bound:g}" for bound in bounds)
    if math.isfinite(bounds.high):
        return f"{noun} from {low} to {high}"
    return f"{noun} of at least {low}" if math.isfinite(bounds.low) else "a finite number"
