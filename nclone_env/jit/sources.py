"""Digests that name compiled code: of the functions and values that a kernel reaches by calls.

Numba's own cache checks only the file and the bytecode of the function itself: after a change in a callee or a constant
of another file it would keep stale machine code.
"""

import ast
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import EnumType
from functools import cache, lru_cache
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
_IMPORT = re.compile(r"(?:^|[;:])[ \t]*((?:from\b[\w. \t]*(?:\\\n[\w. \t]*)*\b)?import\b)", re.MULTILINE)
"""Where a statement may begin that imports: in a text there may be one too many."""
_OWN = re.compile(rf"\b{_PACKAGE.name}\b|\bfrom[\s\\]*\.")
"""What an import of this package contains."""
_COMMENT = re.compile(r"(?<=\n)[ \t]*(?:#.*)?\n")
_DEFINITION = re.compile(r"\n[ \t]*(?:async )?(?:def|class) ")
_FOR_TYPE_CHECKERS = re.compile(r"^if TYPE_CHECKING:.*\n(?:(?:[ \t].*)?\n)*", re.MULTILINE)


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
    """Return hex digits that change with any source that a module of the package can reach by imports.

    These are the module, the modules that it imports, those that these import, and the packages they are in. A kernel
    refers to others by the globals of its module, so it consists of nothing else. Imports for type checkers alone do
    not count. Of a module outside the package nothing is known but the ``compiler_digest``.
    """
    return hashlib.sha256(f"{compiler_digest()}{source_digest(name)}".encode()).hexdigest()


def source_digest(*names: str) -> str:
    """Return hex digits that change with any source that ``module_digest`` of one of some modules would cover."""
    digest = hashlib.sha256()
    for module in sorted(set().union(*map(_reached, names))):
        digest.update(module.encode() + b"\0")
        digest.update(_parts_of(module)[0].encode())
    return digest.hexdigest()


def _reached(name: str) -> set[str]:
    """Return the names of the modules of the package that importing a module imports, itself included."""
    reached: set[str] = set()
    pending = [name]
    while pending:
        module = pending.pop()
        if module not in reached | _WITHOUT_CODE and _source(module) is not None:
            reached.add(module)
            pending += _imports(module)
    return reached


@cache
def _source(module: str) -> str | None:
    """Return the source of a module, None if it is none of the package."""
    file = _file(module)
    return file.read_text(encoding="utf-8") if file else None


@cache
def _file(module: str) -> Path | None:
    first, *parts = module.split(".")
    path = _PACKAGE.joinpath(*parts)
    files = (path / "__init__.py", path.with_suffix(".py")) if first == _PACKAGE.name else ()
    return next((file for file in files if file.is_file()), None)


@cache
def _parts_of(module: str) -> tuple[str, str]:
    """Return the source of a module without comments, docstrings and imports for type checkers, and these imports."""
    source = _without_comments(_source(module) or "")
    return _FOR_TYPE_CHECKERS.sub("", source), "".join(_FOR_TYPE_CHECKERS.findall(source))


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


@cache
def _imports(module: str) -> list[str]:
    """Return the package of a module, the modules that it imports from, and the names that it imports, as modules.

    A name on the face of a package (``nclone_env._faces``) is followed to its module.
    """
    found = [module.rpartition(".")[0]]
    for origin, name in _imported(module, _parts_of(module)[0]):
        names = _homes(origin) if name == "*" else [name]
        found += [origin, *(part for each in names if each for part in _way(origin, each))]
    return found


def _imported(module: str, source: str) -> Iterator[tuple[str, str]]:
    """Yield what a source of a module imports: a module and a name in it, which is empty for the module itself."""
    file = _file(module)
    package = module if file and file.stem == "__init__" else module.rpartition(".")[0]
    source += "\n"
    for start, end in _lines_of_imports(source):
        for statement in _parsed(source, start, end):
            if isinstance(statement, ast.Import):
                yield from ((item.name, "") for item in statement.names)
            elif isinstance(statement, ast.ImportFrom):
                base = package.rsplit(".", statement.level - 1)[0] if statement.level else ""
                origin = ".".join(filter(None, (base, statement.module)))
                yield from ((origin, item.name) for item in statement.names)


def _lines_of_imports(source: str) -> Iterator[tuple[int, int]]:
    """Yield where a statement may begin that imports, and where its first line ends."""
    end, place = 0, source.find("import")
    while place >= 0:
        start = source.rfind("\n", end, place) + 1
        while source[start - 2 : start] == "\\\n":
            start = source.rfind("\n", 0, start - 1) + 1
        end = source.find("\n", place)
        match = _IMPORT.search(source, start, end)
        if match:
            yield match.start(1), end
        place = source.find("import", end)


def _parsed(source: str, start: int, end: int) -> list[ast.stmt]:
    """Return the statements of a line, with the lines that it goes on in; none if it is text, or imports others."""
    while end < len(source):
        text = source[start:end]
        mark = ")" if "(" in text else "\n" if text.endswith("\\") else None
        if mark is None or ")" in text:
            if not _OWN.search(text):
                return []
            try:
                return ast.parse(text).body
            except SyntaxError:
                if mark is None:
                    return []
        last = source.find(mark, end + 1)
        end = source.find("\n", last) if last > 0 else len(source)
    return []


def _way(origin: str, name: str) -> list[str]:
    """Return the modules that a name comes through, from the one that it is imported from, and the name as a module."""
    home = _homes(origin).get(name)
    return [origin, *(_way(home, name) if home else [f"{origin}.{name}"])]


@cache
def _homes(face: str) -> dict[str, str]:
    """Return the module of each name that a face imports for type checkers."""
    homes: dict[str, str] = {}
    for home, name in _imported(face, _parts_of(face)[1]):
        homes.setdefault(name, home)
    return homes


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
    parts = [compiler_digest(), _compiler_code(), *_parts(function)]
    return None if any(" at 0x" in part for part in parts) else short_digest("\n".join(parts))


@lru_cache(maxsize=1)
def _compiler_code() -> str:
    """Return a digest of the modules that compile: of their sources, or of their bytecode in a package without."""
    if _HAS_SOURCES:
        names = {f"{__package__}.{path.stem}" for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__"}
        return short_digest("".join(_parts_of(name)[0] for name in sorted(names - _WITHOUT_CODE - _FOR_OTHERS)))
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


def _parts(function: Callable[..., Any]) -> Iterator[str]:
    """Describe a function and everything that it refers to."""
    reached = {function: None}  # in the order in which they are found
    pending = [function]
    while pending:
        text, callees = _described(pending.pop())
        yield text
        pending += [callee for callee in callees if callee not in reached]
        reached.update(dict.fromkeys(callees))


@cache
def _described(function: Callable[..., Any]) -> tuple[str, tuple[Callable[..., Any], ...]]:
    """Return a text of the code of a function and the values that it refers to, and the functions among them."""
    text, callees = [f"{_code_of(function)} {function.__defaults__}"], []
    for name, value in _references(function):
        callee = _function_in(value)
        if callee is None:
            text.append(f"{name} = {_value_text(value)}")
        elif not _is_digested(callee):
            callees.append(callee)
            text.append(f"{name}: {sorted(getattr(value, 'targetoptions', {}).items())}")
    return "\n".join(text), tuple(callees)


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
    if isinstance(value, type) and hasattr(value, "_fields"):
        return f"{value!r} {value._fields}"
    return repr(list(value) if isinstance(value, EnumType) else value)


def _is_digested(value: Any) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return any(f"{name}.".startswith(f"{known}.") for known in _DIGESTED)
