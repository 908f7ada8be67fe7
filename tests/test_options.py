"""Options: fields that check themselves, and the names of a tree in one flat list."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import numpy as np
import pytest

from nclone_env.cli.arguments import _docstrings
from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError, Within, check_integer
from nclone_env.options import build, check, flat, from_flat, group, is_group, leaves, option, replace
from nclone_env.train.config import TrainConfig


@dataclass(frozen=True)
class Inner:
    size: Annotated[int, Within(1, 9)] = option(3, key="inner_size", alias="width", fixed="policy")
    share: float = 0.5

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Outer:
    inner: Inner = group(Inner)
    named: Inner = group(lambda: Inner(size=5), named=True)
    kind: Literal["a", "b"] = "a"
    mode: Literal["x", "y"] | None = None
    limit: Annotated[int, Within(1, 2**63 - 1)] | None = None
    names: tuple[str, ...] = ()
    anything: tuple[Any, ...] = ()
    flag: bool = False
    folder: Path = option(Path("runs"), on_command_line=False)

    def __post_init__(self) -> None:
        check(self)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"inner": {"size": 0}}, "inner_size: expected a whole number from 1 to 9, got 0"),
        ({"inner": {"size": True}}, "inner_size: expected a whole number from 1 to 9, got True"),
        ({"inner": {"size": 2.0}}, r"inner_size: expected a whole number from 1 to 9, got 2\.0"),
        ({"inner": {"share": math.nan}}, "share: expected a finite number, got nan"),
        ({"inner": {"share": 10**400}}, "share: expected a finite number, got 1"),
        ({"inner": {"sise": 1}}, "inner: unknown field 'sise'; did you mean 'size'. valid fields: size, share"),
        ({"inner": 3}, "inner: expected Inner or a mapping, got 3"),
        ({"kind": "c"}, "kind: expected one of 'a', 'b', got 'c'"),
        ({"mode": "z"}, "mode: expected one of None, 'x', 'y', got 'z'"),
        ({"limit": 2**63}, "limit: expected a whole number from 1 to 9223372036854775807, got 9223372036854775808"),
        ({"names": ("a", 1)}, "names: expected text, got 1"),
        ({"flag": 1}, "flag: expected True or False, got 1"),
        ({"folder": 1}, "folder: expected a path, got 1"),
    ],
)
def test_values_are_checked_by_their_annotation(fields, message):
    with pytest.raises(ConfigError, match=message):
        Outer(**fields)


def test_values_are_normalised_to_their_annotation():
    made = Outer(names="one", anything=b"map", folder="here", limit=2**63 - 1, flag=np.True_, mode=None)
    assert (made.names, made.anything, made.folder) == (("one",), (b"map",), Path("here"))
    assert Outer(names=["a", "b"]).names == ("a", "b")
    assert Outer(inner={"size": np.int8(4)}).inner == Inner(4)


def test_a_mapping_replaces_fields_of_the_default_of_its_group():
    assert Outer(named={"share": 0.1}).named == Inner(size=5, share=0.1)
    assert replace(Outer(named=Inner(7)), {"kind": "b"}) == Outer(named=Inner(7), kind="b")
    with pytest.raises(ConfigError, match="outer: unknown field 'kinds'; did you mean 'kind'"):
        build(Outer, {"kinds": 1}, "outer")


def test_a_tree_is_one_flat_list():
    made = Outer(inner=Inner(4), named=Inner(6), names=("a",), folder=Path("x"))
    values = flat(made)
    assert values["inner_size"] == 4
    assert values["named"] == {"size": 6, "share": 0.5}
    assert (values["names"], values["folder"]) == (["a"], "x")
    assert from_flat(Outer(), json.loads(json.dumps(values))) == made
    assert from_flat(made, {"width": 8}) == replace(made, {"inner": Inner(8)})
    assert from_flat(made, {}) == made
    with pytest.raises(ConfigError, match="options: unknown field 'inner_sise'; did you mean 'inner_size'"):
        from_flat(Outer(), {"inner_sise": 1})


def test_what_a_checkpoint_fixes_is_stated_at_the_field():
    assert [each.key for each in leaves(Outer) if each.fixed == "policy"] == ["inner_size"]


@pytest.mark.parametrize("kind", [EnvironmentConfig, TrainConfig])
def test_every_option_has_a_name_of_its_own(kind):
    names = [each.key for each in leaves(kind)] + [
        each.field.metadata["alias"] for each in leaves(kind) if each.field.metadata.get("alias")
    ]
    assert max(Counter(names).values()) == 1


def test_whole_numbers_of_arguments():
    check_integer("count", 1, low=1)
    with pytest.raises(ConfigError, match="count: expected a whole number of at least 1, got 0"):
        check_integer("count", 0, low=1)
    with pytest.raises(ConfigError, match=r"count: expected a whole number of at least 1, got 1\.5"):
        check_integer("count", 1.5, low=1)


@pytest.mark.parametrize("kind", [EnvironmentConfig, TrainConfig])
def test_every_option_of_the_command_line_says_what_it_is(kind):
    """``--help`` shows the text below the field."""
    groups = {kind, *(group for group in get_type_hints(kind).values() if is_group(group))}
    for each in groups:
        assert _docstrings(each).keys() == {field.name for field in fields(each)}
