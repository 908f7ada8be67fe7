"""Options: fields that check themselves, and the names of a tree in one flat list."""

import io
import json
import math
from collections import Counter, UserString
from dataclasses import dataclass, fields
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, get_type_hints

import numpy as np
import pytest

from nclone_env.cli.arguments import _docstrings
from nclone_env.config import EnvironmentConfig, RewardConfig
from nclone_env.errors import ConfigError, Within
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
        ({"inner": {"size": 2.5}}, r"inner_size: expected a whole number from 1 to 9, got 2\.5"),
        ({"inner": {"size": 10.0}}, r"inner_size: expected a whole number from 1 to 9, got 10"),
        ({"inner": {"size": "2"}}, r"inner_size: expected a whole number from 1 to 9, got '2'; did you mean 2\?"),
        ({"limit": "2.5M"}, r"limit: expected .* got '2.5M'; did you mean 2500000\?"),
        ({"inner": {"share": "3e-4"}}, r"share: expected a finite number, got '3e-4'; did you mean 0.0003\?"),
        ({"inner": {"share": "some"}}, "share: expected a finite number, got 'some'$"),
        ({"limit": math.inf}, "limit: expected a whole number from 1 to 9223372036854775807, got inf"),
        ({"limit": 2.0**54}, "limit: expected a whole number from 1 to 9223372036854775807, got 1.8"),
        ({"inner": {"share": math.nan}}, "share: expected a finite number, got nan"),
        ({"inner": {"share": 10**400}}, "share: expected a finite number, got 1"),
        ({"inner": {"sise": 1}}, "inner: unknown field 'sise'; did you mean 'size'. valid fields: size, share"),
        ({"inner": 3}, "inner: expected Inner or a mapping, got 3$"),
        ({"inner": SimpleNamespace(size=1)}, r"or a mapping, got namespace\(size=1\); give its fields by vars\(\)$"),
        ({"kind": "c"}, "kind: expected one of 'a', 'b', got 'c'"),
        ({"mode": "z"}, "mode: expected one of None, 'x', 'y', got 'z'"),
        ({"limit": 2**63}, "limit: expected a whole number from 1 to 9223372036854775807, got 9223372036854775808"),
        ({"names": ("a", 1)}, "names: expected text, got 1"),
        ({"flag": 1}, "flag: expected True or False, got 1"),
        ({"folder": 1}, "folder: expected a path on this machine, got 1"),
        ({"folder": ""}, "folder: expected a path on this machine, got ''"),
        ({"folder": "s3://bucket/run"}, "folder: expected a path on this machine, got 's3://bucket/run'"),
        ({"limit": Decimal("1.5")}, "limit: expected a whole number from 1 to 9223372036854775807, got 1.5"),
        ({"limit": Fraction(10) ** 400}, "limit: expected a whole number from 1 to 9223372036854775807, got Fr"),
        ({"inner": {"share": Decimal("sNaN")}}, "share: expected a finite number, got Decimal"),
        ({"kind": "A"}, "kind: expected one of 'a', 'b', got 'A'; did you mean 'a'"),
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


def other_forms(value: Any) -> list[Any]:
    """Return what programs give for a value: scalars of NumPy, exact numbers, members, other iterables and paths."""
    if isinstance(value, bool):
        return [np.bool_(value), np.array(value)]
    if isinstance(value, (int, float)):
        kinds = [float, np.float32, np.float64, np.longdouble, np.array]
        kinds += [Decimal, Fraction, lambda number: Enum("Member", {"ONLY": number}).ONLY]
        kinds += [np.int64, lambda whole: np.array(whole, float)] if isinstance(value, int) else []
        kinds = [kind for kind in kinds if kind is not np.float32 or float(kind(value)) == value]
        return [kind(value) for kind in kinds]
    if isinstance(value, tuple):
        lists = [list(value), iter(value), dict.fromkeys(value), dict.fromkeys(value).keys(), (each for each in value)]
        return [each for each in lists if not isinstance(each, dict)] + ([np.array(value)] if value else [])
    if isinstance(value, Path):
        return [str(value), np.str_(value), f"~/{value}", Path("~") / value]
    return [np.str_(value), np.array(value), UserString(value)] if isinstance(value, str) else []


@pytest.mark.parametrize("kind", [EnvironmentConfig, TrainConfig, Outer])
def test_each_option_is_a_value_of_its_type_however_it_is_given(kind, monkeypatch):
    """Sweeps give scalars of NumPy: a checkpoint with one could not be read again, nor a specification be JSON."""
    monkeypatch.setenv("HOME", str(Path.cwd()))
    default, tried = kind(), 0
    for each in leaves(kind):
        value = each.value(default)
        for given in [] if is_group(each.hint) else other_forms(value):
            options = from_flat(default, {each.key: given})
            made, expected = each.value(options), Path.cwd() / value if "~" in str(given) else value
            assert made == expected
            assert type(made) is type(value), (each.key, given)
            if isinstance(value, tuple):
                assert list(map(type, made)) == list(map(type, value))
            assert json.loads(json.dumps(flat(options)))[each.key] == flat(replace(options, {}))[each.key]
            tried += 1
    assert tried > 15


def test_numbers_are_of_the_type_of_the_annotation_whatever_the_default_is():
    made = Outer(inner={"share": np.float32(0.5)}, limit=np.uint8(7), mode=np.str_("x"), named={"share": 1})
    assert [type(each) for each in (made.inner.share, made.limit, made.mode, made.named.share)] == [
        float, int, str, float
    ]  # fmt: skip
    reward = RewardConfig(**{field.name: np.float64(0.25) for field in fields(RewardConfig)})
    assert {type(getattr(reward, field.name)) for field in fields(RewardConfig)} == {float}
    for size in ((np.int64(84), np.int64(84)), np.array([84, 84.0]), iter([84, 84]), [84, 84]):
        view = EnvironmentConfig(render={"global_view_size": size}).render.global_view_size
        assert view == (84, 84)
        assert {type(side) for side in view} == {int}


class Word(str, Enum):  # noqa: UP042 - the text of a StrEnum is its value
    ONE = "a"


def test_iterables_are_several_and_text_bytes_mappings_and_paths_are_one():
    for given in (["a", "b"], iter("ab"), {"b", "a"}, frozenset("ab"), {"a": 1, "b": 2}.keys(), np.array(["a", "b"])):
        assert Outer(names=given).names == ("a", "b")
    for given in (b"ab", bytearray(b"ab"), memoryview(b"ab"), {"a": 1}):
        assert Outer(anything=given).anything == (given,)
    assert Outer(anything=Path("ab")).anything == (Path("ab"),)
    for given in (UserString("ab"), io.StringIO("a\nb"), io.BytesIO(b"a\nb")):
        assert Outer(anything=given).anything == (given,)
    assert type(Outer(names=Word.ONE).names[0]) is type(Outer(kind=Word.ONE).kind) is str
    with pytest.raises(ConfigError, match=r"names: expected text, got .*'a': 1"):
        Outer(names={"a": 1})
    with pytest.raises(ConfigError, match="names: expected text, got array"):
        Outer(names=np.array([["a"]]))


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


def test_messages_have_one_line_whatever_the_value_is():
    for given, said in (
        (np.zeros((2, 2)), "array([[0., 0.], [0., 0.]])"),
        ("a\nb", "'a\\nb'"),
        (Unprintable(), "Unprintable that cannot be printed"),
        (10**5000, "int too long to print"),
        (np.ma.masked, "masked"),  # its item is 0
    ):
        with pytest.raises(ConfigError) as caught:
            Outer(flag=given)
        assert str(caught.value) == f"flag: expected True or False, got {said}"


def test_paths_of_programs_and_files_have_a_home(monkeypatch):
    monkeypatch.setenv("HOME", "/home/of/me")
    assert Outer(folder="~/runs").folder == Outer(folder=Path("~/runs")).folder == Path("/home/of/me/runs")
    assert Outer(folder="~no-such-user/x").folder == Path("~no-such-user/x")
    assert Outer(folder="C://runs").folder == Path("C://runs"), "a drive of Windows is no address"
    assert Outer(names=["~/a", "a~b", Path("c")], anything=["~/a", Path("~/b"), b"~"]).names == (
        "/home/of/me/a", "a~b", "./c"
    )  # fmt: skip
    assert Outer(anything=["~/a", Path("~/b"), b"~"]).anything == ("/home/of/me/a", Path("/home/of/me/b"), b"~")
    assert TrainConfig.of(levels=(each for each in (Path("jumps"), "hazards"))).environment.levels == (
        "./jumps", "hazards"
    )  # fmt: skip


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


@pytest.mark.parametrize("kind", [EnvironmentConfig, TrainConfig])
def test_every_option_of_the_command_line_says_what_it_is(kind):
    """``--help`` shows the text below the field."""
    groups = {kind, *(group for group in get_type_hints(kind).values() if is_group(group))}
    for each in groups:
        assert _docstrings(each).keys() == {field.name for field in fields(each)}
