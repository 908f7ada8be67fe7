"""Public names of a package that are imported from their modules on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def face(package: str, names: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    For type checkers and the reference, the package also lists the names in ``__all__`` and imports them under
    ``TYPE_CHECKING``. No module in the package may have one of these names: importing it would hide the name.

    Args:
        package: its ``__name__``.
        names: the public names in each module.
    """
    homes = {name: module for module, of_module in names.items() for name in of_module}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *homes})
