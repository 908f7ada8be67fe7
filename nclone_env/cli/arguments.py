"""Arguments of the command line: classes of options, and whole numbers as people write them, 1e6 and 2_000_000."""

import ast
import dataclasses
import inspect
import itertools
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Annotated, Any, get_args, get_type_hints

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from nclone_env.errors import shortened
from nclone_env.options import is_group, key_of

_LARGEST = 2**53  # larger numbers with a decimal exponent are not exact

ARGUMENTS = ConstructorRegistry()


@ARGUMENTS.struct_rule
def class_of_options(info: StructTypeInfo) -> StructConstructorSpec | None:
    """Return how a class of options (``nclone_env.options``) is read; None for other types.

    Options have their keys and aliases as names, those of groups stand beside the others. Fields that are no options
    of the command line keep the values of the default.
    """
    if not is_group(info.type) or not any(field.metadata for field in dataclasses.fields(info.type)):
        return None
    default = info.default if isinstance(info.default, info.type) else info.type()
    kinds = [kind for kind in reversed(info.type.__mro__) if dataclasses.is_dataclass(kind)]
    hints = get_type_hints(info.type, include_extras=True)
    texts = {name: text for kind in kinds for name, text in _docstrings(kind).items()}
    shown = [field for field in dataclasses.fields(info.type) if field.metadata.get("on_command_line", True)]
    return StructConstructorSpec(
        instantiate=partial(dataclasses.replace, default),
        fields=tuple(
            StructFieldSpec(
                name=field.name,
                type=_named(field, hints[field.name]),
                default=getattr(default, field.name),
                helptext=texts.get(field.name),
            )
            for field in shown
        ),
    )


def _named(field: dataclasses.Field[Any], hint: Any) -> Any:
    """Return the annotation of a field with its name on the command line."""
    if is_group(hint):
        return hint if field.metadata.get("named") else Annotated[hint, tyro.conf.arg(name="")]
    if get_args(hint) == (Any, ...):  # levels: by name or path here
        hint = tuple[str, ...]
    aliases = [f"--{alias.replace('_', '-')}" for alias in (field.metadata.get("alias"),) if alias]
    return Annotated[hint, tyro.conf.arg(name=key_of(field), aliases=aliases)]


@cache
def _docstrings(kind: type) -> Mapping[str, str]:
    """Return the text below each field of a class, by its name."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    return {
        field.target.id: " ".join(str(ast.literal_eval(text.value)).split())
        for field, text in itertools.pairwise(tree.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr)
    }


@ARGUMENTS.primitive_rule
def whole_number(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
    """Return how an ``int`` is read; None for other types."""
    if info.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: read_whole_number(words[0]),
        is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


def read_whole_number(word: str) -> int:
    """Return the whole number that a word stands for.

    Raises:
        ValueError: if it stands for none.
    """
    with suppress(ValueError):
        return int(word)
    with suppress(ValueError):
        value = float(word)
        if value.is_integer() and abs(value) <= _LARGEST:
            return int(value)
    raise ValueError(f"expected a whole number, such as 1000000 or 1e6, got {shortened(word)}")
