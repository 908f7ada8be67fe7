"""Faces of rooms: the names that others import from a package, each loaded from its module on first use."""

import ast
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def face(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    The names are those that its ``__init__`` imports under ``TYPE_CHECKING``, where type checkers and the reference
    find them too. The first such block holds the public names, ``__all__``; a second one names that only other rooms of
    the package use. No module in the package may have one of these names: importing it would hide the name.
    """
    blocks = [node for node in ast.parse(inspect.getsource(sys.modules[package])).body if isinstance(node, ast.If)]
    public, *others = ([node for node in block.body if isinstance(node, ast.ImportFrom)] for block in blocks)
    homes = {name.name: str(node.module) for node in sum(others, public) for name in node.names}
    names = sorted(name.name for node in public for name in node.names)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        inside = homes[name] == package  # a package of it
        return import_module(f"{package}.{name}") if inside else getattr(import_module(homes[name]), name)

    return names, load, lambda: list(names)
