"""Digests that name compiled code: of the functions and values that a kernel reaches by calls.

Numba's own cache checks only the file and the bytecode of the function itself: after a change in a callee or a constant
of another file it would keep stale machine code.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import EnumType
from functools import cache, lru_cache
from inspect import getsource
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba import config

_PACKAGE = Path(__file__).parents[1]
_HAS_SOURCES = Path(__file__).suffix == ".py" and Path(__file__).is_file()
"""Frozen applications, for example, have none."""
_DIGESTED = ("numba", "numpy", *([f"{_PACKAGE.name}.jit"] if _HAS_SOURCES else []))
"""Packages that are in every digest as a whole, by their version or sources."""
_WITHOUT_CODE = {f"{_PACKAGE.name}.jit.{name}" for name in ("cache", "folder", "notice", "parts", "sources")}
"""Modules of this package that keep compiled code and do not contribute to it; ``_FORMAT`` stands for them."""
_FOR_OTHERS = {f"{_PACKAGE.name}.jit.retarget"}
"""Modules that compile for other machines than this one."""
_FORMAT = 3
"""Increased with each change in the files of compiled code."""
_IMPORT = re.compile(rf"from {_PACKAGE.name}(?:\.| import )(\w+)")
"""An import from this package, with the room that it is of: a folder, or a module directly in the package."""
_OTHER_IMPORTS = (
    re.compile(
        rf"from(?! {_PACKAGE.name}(?:\.\w| import \w++(?: as \w++)?+(?! *[,\\])))"
        rf"[\s\\]*+(?:\.[\w.\s\\]*\bimport|{_PACKAGE.name}\b)"
    ),
    re.compile(rf"import (?:[^\n;\\]|\\\n)*\b{_PACKAGE.name}\b"),
)
"""An import from this package in another spelling: relative, of several names, of a module by ``import``."""
_ADDRESS = " at 0x"
"""In the text of an object that has no other."""
_COMMENT = re.compile(r"(?<=\n)[ \t]*(?:#.*)?\n")
_DEFINITION = re.compile(r"\n[ \t]*(?:async )?(?:def|class) ")
_SETTINGS = (
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "DEBUG_JIT",
    "EXTEND_VARIABLE_LIFETIMES",
    "JIT_COVERAGE",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "OPT",
    "SLP_VECTORIZE",
)
"""Settings of Numba with which it compiles the same sources to other code, named as variables ``NUMBA_...``."""


@lru_cache(maxsize=1)
def compiler_digest() -> str:
    """Return 16 hex digits that change with the versions that compiled code depends on, and the settings of Numba.

    Numba ignores its settings where code is cached. Its version counts as a whole. That of NumPy counts by its first
    number, with which the layout of arrays changes: kernels call no function of NumPy, and what Numba makes of their
    arithmetic and of items of arrays is the same for NumPy 2.2 and 2.5, to the byte.
    """
    settings = [f"{name}={_setting(name)}" for name in _SETTINGS]
    return short_digest(" ".join([str(_FORMAT), numba.__version__, np.__version__.partition(".")[0], *settings]))


def _setting(name: str) -> Any:
    """Return a setting of Numba, None where it has no such; the level of optimisation ``max`` is a number as well."""
    value = getattr(config, name, None)
    return "max" if getattr(value, "is_opt_max", False) else value


def short_digest(text: str) -> str:
    """Return 16 hex digits for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def module_digest(name: str) -> str:
    """Return hex digits that change with the sources of the room of a module, and of all rooms that it can reach.

    A room reaches those that any of its modules imports from; where the spelling of an import does not tell which, it
    reaches all. Comments and docstrings do not count. Of a module outside the package nothing is known but the
    ``compiler_digest``.
    """
    first, *rooms = name.split(".")[:2]
    texts: dict[str, str] = {}
    reached: set[str] = set()
    while rooms and first == _PACKAGE.name:
        room = rooms.pop()
        if room not in reached:
            reached.add(room)
            names = {f"{first}.{room}", *_modules_in(f"{first}.{room}")} - _WITHOUT_CODE
            found = {name: _source(name) for name in names}
            texts |= found
            rooms += [other for text in found.values() for other in _rooms_in(text)]
    return short_digest(repr((compiler_digest(), sorted(texts.items()))))


def source_digest(*modules: str) -> str:
    """Return hex digits that change with the sources of some modules of the package."""
    return short_digest("".join(map(_source, modules)))


def kernels_digest(kernels: Iterable[Any]) -> str:
    """Return hex digits that change with the sources of kernels for other machines, and with all that they consist of.

    That is all that they call, the values that they read, and the modules that compile them. Unlike those of
    :func:`identity` they are the same on every Python.
    """
    found = _reached(filter(None, map(_function_in, kernels)), _described)
    texts = [f"{_without_comments(getsource(function))} {values}" for function, values in found]
    return short_digest("".join([_compiler_code(), source_digest(*sorted(_FOR_OTHERS)), *sorted(texts)]))


def _rooms_in(text: str) -> list[str]:
    """Return the rooms that a module without comments imports from, some of them repeatedly."""
    if any(pattern.search(text) for pattern in _OTHER_IMPORTS):
        return [path.stem for path in _PACKAGE.iterdir()]
    return _IMPORT.findall(text)


def _modules_in(package: str) -> Iterator[str]:
    """Yield the names of the modules below a folder of the package."""
    folder = _PACKAGE.joinpath(*package.split(".")[1:])
    for path in folder.rglob("*.py"):
        yield ".".join([package, *path.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__")


@cache
def _source(module: str) -> str:
    """Return the source of a module without comments and docstrings; empty if there is none."""
    path = _PACKAGE.joinpath(*module.split(".")[1:])
    files = (path / "__init__.py", path.with_suffix(".py"))
    return next((_without_comments(file.read_text(encoding="utf-8")) for file in files if file.is_file()), "")


def _without_comments(source: str) -> str:
    """Return a source without docstrings, and without comment lines and empty lines outside other long strings."""
    if "'''" in source:
        return source
    outside_and_inside = f"\n{source}".split('"""')
    for place, text in enumerate(outside_and_inside[:-1:2]):
        if _ends_with_a_header(text) or (place == 0 and not text.strip()):
            outside_and_inside[2 * place + 1] = ""
    outside_and_inside[::2] = [_COMMENT.sub("", text) for text in outside_and_inside[::2]]
    return '"""'.join(outside_and_inside)


def _ends_with_a_header(text: str) -> bool:
    """Return whether a source ends where the docstring of a function or class begins."""
    _, *headers = _DEFINITION.split(text)
    return (
        bool(headers) and headers[-1].rstrip(" \t").endswith(":\n") and headers[-1].count("(") == headers[-1].count(")")
    )


def code_digest(function: Callable[..., Any]) -> str | None:
    """Return hex digits that change with the code of a kernel, of its callees, and with the globals they read.

    They cover the code and constants of the function, the values of its globals and closure, and likewise every kernel
    and function among them, in any file; so they are computed from the functions in memory, as Numba compiles those,
    whatever was edited since. They are None if the code cannot be identified across processes: the function comes from
    no file (an interactive session, ``exec``), it refers to an object whose text contains an address, or its closure
    contains a kernel, which Numba numbers differently in every process.
    """
    is_own = function.__module__.startswith(f"{_PACKAGE.name}.")
    is_known = Path(function.__code__.co_filename).is_file()
    if not (is_own or (is_known and not any(map(_function_in, _closure(function))))):
        return None
    text = _code_text(function, _described)
    return None if text is None else short_digest("\n".join([compiler_digest(), _compiler_code(), text]))


def current_digest(function: Callable[..., Any], *constants: Any) -> str | None:
    """Return hex digits that change with what Numba would compile of a function now, with constants as arguments.

    A global that was set or an array that was written since the last call changes them. They are of use within this
    process, also for functions of no file; None if something can only be told by its address.
    """
    texts = [_code_text(function, _described.__wrapped__), *map(_value_text, constants)]
    return None if any(text is None or _ADDRESS in text for text in texts) else short_digest(repr(texts))


def _code_text(function: Callable[..., Any], described: Callable[..., Any]) -> str | None:
    """Return a text of the code and values of a function and all that it calls; None if it contains an address."""
    reached = _reached([function], described)
    parts = [f"{_code_of(each)} {_value_text(each.__defaults__)}{values}" for each, values in reached]
    return None if any(_ADDRESS in part for part in parts) else "\n".join(parts)


@lru_cache(maxsize=1)
def _compiler_code() -> str:
    """Return a digest of the modules that compile: of their sources, or of their bytecode in a package without."""
    if _HAS_SOURCES:
        names = {f"{__package__}.{path.stem}" for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__"}
        return source_digest(*sorted(names - _WITHOUT_CODE - _FOR_OTHERS))
    names = {name for name in sys.modules if name.startswith(f"{__package__}.")}
    loaders = [(name, sys.modules[name].__spec__.loader) for name in sorted(names)]  # type: ignore[union-attr]
    return short_digest(repr([_code_parts(loader.get_code(name)) for name, loader in loaders]))  # type: ignore


def identity(function: Callable[..., Any]) -> str | None:
    """Return a text that names a kernel and changes with its code; None if it cannot be identified across processes.

    It contains neither line numbers, which change with every comment above it, nor a docstring.
    """
    code = code_digest(function)
    return code and f"{code} {function.__module__}.{function.__qualname__}"


def fields_of(kinds: Iterable[Any]) -> list[str]:
    """Return the names of fields in types of arguments: the text of a type names only those of records."""
    fields: list[str] = []
    for kind in kinds:
        if isinstance(kind, numba.types.BaseTuple):
            fields += [*getattr(getattr(kind, "instance_class", None), "_fields", ()), *fields_of(kind)]
    return fields


def _reached(
    functions: Iterable[Callable[..., Any]], described: Callable[..., Any]
) -> Iterator[tuple[Callable[..., Any], str]]:
    """Yield functions and all that they call, each with a text of the other values that it refers to."""
    reached = dict.fromkeys(functions)  # in the order in which they are found
    pending = list(reached)
    while pending:
        function = pending.pop()
        values, callees = described(function)
        yield function, values
        pending += [callee for callee in callees if callee not in reached]
        reached.update(dict.fromkeys(callees))


@cache
def _described(function: Callable[..., Any]) -> tuple[str, tuple[Callable[..., Any], ...]]:
    """Return a text of the values that a function refers to, a line for each, and the functions among them."""
    text = ""
    callees: list[Callable[..., Any]] = []
    for name, value in _references(function):
        callee = _function_in(value)
        if callee is None:
            text += f"\n{name} = {_value_text(value)}"
        elif not _is_digested(callee):
            callees.append(callee)
            text += f"\n{name}: {sorted(getattr(value, 'targetoptions', {}).items())}"
    return text, tuple(callees)


def _code_of(function: Callable[..., Any]) -> str:
    """Return the bytecode of a function with its constants, except for its docstring."""
    parts = _code_parts(function.__code__)
    return repr([None if function.__doc__ and part is function.__doc__ else part for part in parts])


def _references(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield the globals and the closure of a function by name, and of modules the attributes that it names."""
    names = sorted(set(names_in(function.__code__)))
    pending = [*zip(function.__code__.co_freevars, _closure(function))]
    pending += [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    seen: set[ModuleType] = set()  # they may import each other
    for name, value in pending:  # which grows
        if not isinstance(value, ModuleType):
            yield name, value
        elif value not in seen and not _is_digested(value):
            seen.add(value)
            pending += [(f"{name}.{other}", getattr(value, other)) for other in names if hasattr(value, other)]


def _closure(function: Callable[..., Any]) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or ()]


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that code uses, functions in it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def _code_parts(code: CodeType) -> tuple[Any, ...]:
    constants = map(_constant, code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, *constants


def _constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return _code_parts(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value  # whose order differs between processes


def _function_in(value: Any) -> Callable[..., Any] | None:
    """Return the Python function of a kernel, an intrinsic or a plain function."""
    function = getattr(value, "py_func", None) or getattr(value, "__wrapped__", value)
    return function if isinstance(function, FunctionType) else None


def _value_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):  # whose text leaves out most of a long array in it
        return repr(value) + "".join(map(_value_text, _arrays_in(value)))
    if isinstance(value, type) and hasattr(value, "_fields"):
        return f"{value!r} {value._fields}"
    return repr(list(value) if isinstance(value, EnumType) else value)


def _arrays_in(values: tuple[Any, ...]) -> Iterator[np.ndarray]:
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            yield from _arrays_in(value)


def _is_digested(value: Any) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return any(f"{name}.".startswith(f"{known}.") for known in _DIGESTED)
