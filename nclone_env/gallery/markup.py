"""HTML from the templates next to this file. What comes from level files is text: it is escaped and never obeyed."""

from __future__ import annotations

import html
import json
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any

ASSETS = Path(__file__).with_name("assets")


class Markup(str):
    """HTML that stays as it is; any other text is escaped."""

    __slots__ = ()


def fill(template: str, **values: object) -> Markup:
    """Return a template of the folder ``assets`` with its placeholders replaced, such as ``$title``.

    Args:
        template: name of the file, without suffix.
        **values: the text of each placeholder; other values are converted to text.
    """
    return Markup(_template(template).substitute({name: escaped(value) for name, value in values.items()}))


def joined(parts: Any) -> Markup:
    """Return fragments of HTML in one."""
    return Markup("\n".join(parts))


def escaped(value: object) -> Markup:
    """Return text as HTML, also for attributes in double quotes; characters that cannot be shown become spaces."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape("".join(each if each.isprintable() else " " for each in str(value))))


def script_data(value: Any) -> Markup:
    """Return JSON that is inert within a ``script`` element: it contains no ``<``."""
    return Markup(json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


@lru_cache
def _template(name: str) -> Template:
    return Template((ASSETS / f"{name}.html").read_text(encoding="utf-8"))
