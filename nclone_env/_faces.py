"""Faces of rooms: the names that others import from a package, each loaded from its module on first use."""

import dis
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any


def face(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, which calls this below its imports.

    The names are those that its ``__init__`` imports under ``TYPE_CHECKING``, where type checkers and the reference
    find them too. They are read from its bytecode, as programs can come without sources. The first such block holds the
    public names; a second one names that only other rooms of the package use. No module in the package may have one of
    these names: importing it would hide the name.

    ``__all__`` is made when it is asked for, and leaves out public names whose optional dependency is missing: so
    ``from package import *`` imports the others, and the name itself still says what to install.
    """
    blocks: list[dict[str, str]] = []
    home = ""
    for step in dis.get_instructions(sys._getframe(1).f_code):
        if step.opname == "LOAD_NAME" and step.argval == "TYPE_CHECKING":
            blocks.append({})
        elif step.opname == "IMPORT_NAME":
            home = step.argval
        elif step.opname == "IMPORT_FROM" and blocks:
            blocks[-1][step.argval] = home
    homes = {name: home for block in blocks for name, home in block.items()}
    names = sorted(blocks[0])

    def load(name: str) -> Any:
        if name == "__all__":
            return [public for public in names if _is_there(partial(load, public), package)]
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        inside = homes[name] == package  # a package of it
        return import_module(f"{package}.{name}") if inside else getattr(import_module(homes[name]), name)

    return load, lambda: list(names)


def _is_there(load: Callable[[], Any], package: str) -> bool:
    """Return whether a name can be imported, as far as other distributions are concerned."""
    try:
        load()
    except ImportError as error:
        if str(error.name).partition(".")[0] == package.partition(".")[0]:
            raise
        return False
    return True
