"""Public names of a package that are imported from their modules on first use."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def face(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    Its public names are those that its ``__init__`` imports under ``TYPE_CHECKING``, where type checkers and the
    reference find them too. No module in the package may have one of these names: importing it would hide the name.
    """
    blocks = [node for node in ast.parse(inspect.getsource(sys.modules[package])).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    homes = {name.name: str(node.module) for node in imports for name in node.names}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        inside = homes[name] == package  # a package of it
        value = import_module(f"{package}.{name}") if inside else getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(homes), load, lambda: sorted(homes)
