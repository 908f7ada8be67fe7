"""Defaults in the reference: those of options, without how they are declared."""

from __future__ import annotations

from typing import Any

import griffe


class Defaults(griffe.Extension):
    """Shows ``option(64, fixed="run")`` as ``64`` and ``group(PPOConfig)`` as ``PPOConfig()``."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Replace the value of a field."""
        value = attr.value
        if not isinstance(value, griffe.ExprCall):
            return
        name = str(value.function)
        if name == "option":
            attr.value = value.arguments[0]
        elif name == "group":
            attr.value = griffe.ExprCall(value.arguments[0], [])
