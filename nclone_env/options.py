"""Options: fields of frozen dataclasses that check themselves, and their names in one flat list.

A class of options states the type and the bounds of each field in its annotation, and calls :func:`check` when it is
made. Its fields may be groups: classes of options themselves. The command line and checkpoints name every option in
such a tree by one word; :func:`flat` and :func:`from_flat` convert between the two.
"""

import dataclasses
import io
import math
import os
from collections import UserString
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import cache, wraps
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from nclone_env._files import expanded
from nclone_env._origin import renamed
from nclone_env.errors import ConfigError, check_value, did_you_mean, scalar, shortened, whole

Options = TypeVar("Options")
_classes: list[type] = []
_SCALES = {"k": 10**3, "m": 10**6}
_SINGLE = (str, UserString, bytes, bytearray, memoryview, Mapping, os.PathLike, io.IOBase)
"""Iterables that are one item of an option."""


class Option(NamedTuple):
    """A field in a tree of options."""

    key: str
    """Its name in messages, on the command line and in checkpoints."""
    path: tuple[str, ...]
    """Names of the groups that lead to it, then its own."""
    hint: Any
    """Its annotation."""
    field: dataclasses.Field[Any]

    @property
    def fixed(self) -> str:
        """Whether a checkpoint fixes it: for its ``policy``, for its ``run``, or not at all (empty)."""
        return str(self.field.metadata.get("fixed", ""))

    def value(self, options: Any) -> Any:
        """Return its value in a tree."""
        for name in self.path:
            options = getattr(options, name)
        return options


def option(
    default: Any, *, key: str | None = None, alias: str | None = None, fixed: str = "", on_command_line: bool = True
) -> Any:
    """Return a field of a class of options; ``alias`` is another name that the command line and checkpoints accept.

    ``key`` and ``fixed`` are as of :class:`Option`; without a key the name of the field is it.
    """
    metadata = {"key": key, "alias": alias, "fixed": fixed, "on_command_line": on_command_line}
    return dataclasses.field(default=default, metadata=metadata)


def group(make: Callable[[], Any], *, named: bool = False) -> Any:
    """Return a field that holds a group of options; if ``named``, its name is before theirs, as in ``reward.death``."""
    return dataclasses.field(default_factory=make, metadata={"named": named})


def rejects_unknown(kind: type[Options]) -> type[Options]:
    """Let a dataclass of options answer an unknown field as :func:`build` does."""
    init = kind.__init__
    _classes.append(kind)

    @wraps(init)
    def check_names(self: Options, *values: Any, **fields: Any) -> None:
        _check_names(fields, _names(kind), kind.__name__, kind)
        init(self, *values, **fields)

    kind.__init__ = check_names  # type: ignore[method-assign, assignment]
    return kind


class Suggesting(type):
    """The type of a class that answers an unknown attribute with the most similar one."""

    if not TYPE_CHECKING:  # type checkers then know the attributes that there are

        def __getattr__(cls, name: str) -> Any:
            if name[0] == "_":  # libraries look whether there is one
                raise AttributeError(name)
            hint = renamed(name) or did_you_mean(name, [known for known in dir(cls) if known[0] != "_"])
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}{hint}")


def check(options: Any) -> None:
    """Normalise the fields of a class of options to their types, and check them.

    A value may be any that ``scalar`` converts, a whole number a float, 6e6, a tuple any iterable or a single item, a
    path text with ``~``, a group a mapping of the fields that differ from its default. Fields are values of Python
    afterwards, as JSON and checkpoints hold them.
    """
    for field, hint in _fields(type(options)):
        value = _normalised(field, hint, getattr(options, field.name))
        object.__setattr__(options, field.name, value)


def build(kind: type[Options], fields: Mapping[str, Any], argument: str = "configuration") -> Options:
    """Return ``kind(**fields)`` for a class of options, rejecting unknown names."""
    _check_names(fields, _names(kind), argument, kind)
    return kind(**fields)


def replace(options: Options, fields: Mapping[str, Any], argument: str = "configuration") -> Options:
    """Return a copy of options with other values in some fields, as :func:`build` checks them."""
    current = {field.name: getattr(options, field.name) for field, _ in _fields(type(options))}
    return build(type(options), {**current, **fields}, argument)


def leaves(kind: type) -> tuple[Option, ...]:
    """Return the options in a tree in the order of the command line; named groups count as one."""
    return tuple(_leaves(kind, ()))


def flat(options: Any) -> dict[str, Any]:
    """Return the options of a tree as plain values by key: lists for tuples, text for paths, dicts for named groups."""
    return {each.key: plain(each.value(options)) for each in leaves(type(options))}


def from_flat(default: Options, values: Mapping[str, Any], argument: str = "options") -> Options:
    """Return a tree of options with the values of :func:`flat` in place of those of a default."""
    known = leaves(type(default))
    aliases = {each.field.metadata.get("alias"): each.key for each in known}
    values = {aliases.get(key, key): value for key, value in values.items()}
    _check_names(values, [each.key for each in known], argument)
    return _replaced(default, {each.path: values[each.key] for each in known if each.key in values})


def several(value: Any) -> tuple[Any, ...]:
    """Return the items of an iterable, those of a set in their order as text; anything else is the only item.

    Text, bytes, mappings, paths and open files are single items.
    """
    if not is_several(value):
        return (scalar(value),)
    items = map(scalar, value)
    return tuple(sorted(items, key=str) if isinstance(value, (set, frozenset)) else items)


def is_several(value: Any) -> bool:
    """Return whether a value is several items for :func:`several`."""
    value = scalar(value)
    return isinstance(value, Iterable) and not isinstance(value, _SINGLE) and getattr(value, "shape", None) != ()


def mapping(value: Any) -> Any:
    """Return what has items by keys, as rows of tables have, as a dict; anything else as it is."""
    has_keys = hasattr(type(value), "keys") and hasattr(type(value), "__getitem__")
    return {key: value[key] for key in value.keys()} if has_keys else value  # noqa: SIM118 - iteration may give items


def number_in(text: str) -> int | float | None:
    """Return the number that a text stands for, as people write them: 5_000_000, 5e6, 5M, 500k; None if it is none."""
    with suppress(ValueError):
        return int(text)
    scale = _SCALES.get(text[-1:].lower(), 1)
    with suppress(ArithmeticError):  # of text that is no number, and of numbers too large
        number = whole(float(Decimal(text if scale == 1 else text[:-1]) * scale))
        return number if math.isfinite(number) else None
    return None


def _at_home(value: Any) -> Any:
    """Return a path, or a text that begins like one, with the home folder in place of ``~``; others as they are."""
    if isinstance(value, os.PathLike):
        return expanded(value)
    return os.path.expanduser(str.__str__(value)) if isinstance(value, str) else value


def as_text(value: Any) -> Any:
    """Return a path as text that is no name of something built in, ``./jumps``; others as they are."""
    if not isinstance(value, os.PathLike):
        return value
    text = os.fspath(value)
    return text if os.path.dirname(text) else os.path.join(os.curdir, text)


def plain(value: Any) -> Any:
    """Convert iterables to lists, paths to text, options to dicts, scalars of NumPy to those of Python, recursively."""
    value = scalar(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field, _ in _fields(type(value))}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if is_several(value):
        return [plain(item) for item in several(value)]
    return str(value) if isinstance(value, os.PathLike) else value


def key_of(field: dataclasses.Field[Any]) -> str:
    """Return the name of a field in messages, on the command line and in checkpoints."""
    return str(field.metadata.get("key") or field.name)


def is_group(hint: Any) -> bool:
    """Return whether a field with this annotation holds a group of options."""
    return dataclasses.is_dataclass(hint)


def _fields_of(kind: type) -> tuple[tuple[dataclasses.Field[Any], Any], ...]:
    """Return the fields of a class of options with their annotations."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple((field, hints[field.name]) for field in dataclasses.fields(kind))


_fields: Callable[[type], tuple[tuple[dataclasses.Field[Any], Any], ...]] = cache(_fields_of)


def _leaves(kind: type, path: tuple[str, ...]) -> Iterator[Option]:
    for field, hint in _fields(kind):
        if is_group(hint) and not field.metadata.get("named"):
            yield from _leaves(hint, (*path, field.name))
        else:
            yield Option(key_of(field), (*path, field.name), hint, field)


def _replaced(options: Any, values: Mapping[tuple[str, ...], Any]) -> Any:
    """Return a copy of a tree with other values at some paths."""
    fields: dict[str, Any] = {}
    for name in {path[0]: None for path in values}:
        inner = {path[1:]: value for path, value in values.items() if path[0] == name}
        fields[name] = inner[()] if () in inner else _replaced(getattr(options, name), inner)
    return dataclasses.replace(options, **fields)


def _names(kind: type) -> list[str]:
    return [field.name for field, _ in _fields(kind)]


def _check_names(given: Mapping[str, Any], valid: list[str], argument: str, kind: type | None = None) -> None:
    unknown = sorted(set(given) - set(valid))
    if unknown:
        hint = renamed(unknown[0]) or _place(unknown[0], kind) or did_you_mean(unknown[0], valid)
        raise ConfigError(
            f"{argument}: unknown field {shortened(unknown, 200)[1:-1]}{hint}{'' if hint.endswith('?') else ';'} "
            f"valid fields: {', '.join(valid)}"
        )


def _place(name: str, kind: type | None) -> str:
    """Return the end of a message that says which group of a class, or else which other class, has a field."""
    for field, hint in _fields(kind) if kind else ():
        if is_group(hint) and name in _names(hint):
            return f"; did you mean {field.name}={{{name!r}: ...}}?"
    found = [other.__name__ for other in _classes if name in _names(other)] if kind else []
    return f"; it is a field of {found[0]}" if found else ""


def _normalised(field: dataclasses.Field[Any], hint: Any, value: Any) -> Any:
    """Return the value of a field in its type."""
    if is_group(hint):
        return _group(field, hint, value)
    if get_origin(hint) is tuple:
        item_hint = get_args(hint)[0]
        items = (as_text(item) if item_hint is str else item for item in map(_at_home, several(value)))
        return tuple(_converted(key_of(field), item_hint, item) for item in items)
    return _converted(key_of(field), hint, scalar(value))


def _converted(name: str, hint: Any, value: Any) -> Any:
    """Check a value by an annotation and return it in the type that this names."""
    kind = next((part for part in get_args(hint) if part is not NoneType), hint) if NoneType in get_args(hint) else hint
    base = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    value = whole(value) if base is int else value
    try:
        check_value(name, hint, value)
    except ConfigError as fault:
        meant = number_in(value) if isinstance(value, str) and base in (int, float) else None
        raise ConfigError(f"{fault}{'' if meant is None else f'; did you mean {meant}?'}") from None
    if value is None or kind is Any:
        return value
    if get_origin(kind) is Literal:
        return next(choice for choice in get_args(kind) if choice == value)
    return _MADE_BY.get(base, lambda given: given)(value)


_MADE_BY: Mapping[Any, Callable[[Any], Any]] = {
    bool: bool,
    int: int,
    float: float,
    str: str.__str__,  # of text that is a member of an enumeration, its value
    Path: expanded,
}


def _group(field: dataclasses.Field[Any], kind: type, value: Any) -> Any:
    value = mapping(value)
    if isinstance(value, Mapping):
        make = field.default_factory
        return replace(make() if callable(make) else kind(), value, field.name)
    if not isinstance(value, kind):
        fix = "; give its fields by vars()" if hasattr(value, "__dict__") else ""
        raise ConfigError(f"{field.name}: expected {kind.__name__} or a mapping, got {shortened(value)}{fix}")
    return value
