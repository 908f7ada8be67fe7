"""Arguments of the command line: how they are read, and mistakes in them in one line each, as those of the package.

Classes of options are read, and whole numbers as people write them, 1e6, 2_000_000 and 5M.
"""

import ast
import dataclasses
import inspect
import io
import itertools
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache, partial
from pathlib import Path
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

from nclone_env._files import expanded
from nclone_env.errors import PATH, ConfigError, did_you_mean, is_path, shortened
from nclone_env.options import is_group, key_of, number_in

_FEWEST_COLUMNS = 20
_AS_FLAGS = {"", "true", "false", "yes", "no", "on", "off", "none", "null", "0", "1"}
"""What stands behind a flag by mistake."""
_DASHES = ("\u2013", "\u2014", "\u2212")
"""What programs for texts make of hyphens."""
_FLAG = re.compile(r"(--(?:[\w-]+\.)*)([\w-]+)=(true|false)", re.IGNORECASE)
_OF_SCRIPTS = "write -- before the options of the script, and a module without -m; "
_OF_SEVERAL = "Could not find valid parse for arguments: "
_NUMBERS = {"float": "a number", "int": "a whole number"}

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


_READERS: dict[Any, Callable[[str], Any]] = {}
"""How a word is read, by its type."""


def _rule(kind: type, metavar: str, read: Callable[[str], Any]) -> None:
    """Say how one word is read as a value of a type; ``True``, which is an ``int``, is none of that."""

    def rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if info.type is not kind:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar=metavar,
            instance_from_str=lambda words: read(words[0]),
            is_instance=lambda value: isinstance(value, kind) and not isinstance(value, bool),
            str_from_instance=lambda value: [str(value)],
        )

    ARGUMENTS.primitive_rule(rule)
    _READERS[kind] = read


def read_whole_number(word: str) -> int:
    """Return the whole number that a word stands for."""
    number = number_in(word)
    if isinstance(number, int):
        return number
    raise ValueError(f"expected a whole number, such as 1000000, 1e6 or 1M, got {shortened(word)}")


def _read_path(word: str) -> Path:
    """Return a path with the home folder in place of ``~``, as by a shell, which leaves that in ``--output=~/runs``."""
    if not is_path(word):
        raise ValueError(f"expected {PATH}, got {shortened(word)}")
    return expanded(word)


_rule(Path, "PATH", _read_path)
_rule(int, "INT", read_whole_number)


def with_flags(words: Sequence[str], run: Callable[[list[str]], Any], command: Sequence[str]) -> list[str]:
    """Return arguments with ``--flag`` or ``--no-flag`` in place of ``--flag=True`` or ``--flag=False``.

    Agents of sweeps write flags so. Arguments behind ``--`` are left as they are, and those of other options.
    """
    end = words.index("--") if "--" in words else len(words)
    found = [_FLAG.fullmatch(word) for word in words[:end]]
    options = _options(run, command) if any(found) else set()
    return [*(_flag(word, match, options) for word, match in zip(words, found)), *words[end:]]


def _flag(word: str, match: re.Match[str] | None, options: set[str]) -> str:
    if match is None:
        return word
    group, name = match[1].replace("_", "-"), match[2].replace("_", "-")
    names = [f"{group}{each}" for each in (name, name[3:] if name.startswith("no-") else f"no-{name}")]
    return names[match[3].lower() == "false"] if options.issuperset(names) else word


def check_repeats(words: Sequence[str], run: Callable[[list[str]], Any], command: Sequence[str]) -> None:
    """Reject an option of several values that is given twice, of which the parser would take the last alone."""
    own = words[: words.index("--")] if "--" in words else words
    names = [word.partition("=")[0].replace("_", "-") for word in own if word.startswith("--")]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    several = re.findall(r"(--[\w.-]+) \[", _help(run, command)) if twice else ()
    for name in [name for name in twice if name in several]:
        raise ConfigError(f"{name}: expected once, with all its values behind it, got it {names.count(name)} times")


def check_hyphens(words: Sequence[str]) -> None:
    """Reject an option that begins with a dash, as programs for texts make it of hyphens."""
    for word in words[: words.index("--") if "--" in words else None]:
        if word[:1] in _DASHES and word[1:2].isalpha() and not os.path.exists(word):
            raise ConfigError(f"arguments: expected two hyphens before an option, got {shortened(word)}")


@contextmanager
def wide_enough() -> Iterator[None]:
    """Give the parser a terminal of 20 columns at least: its layout never ends with a few."""
    before = os.environ.get("COLUMNS")
    if shutil.get_terminal_size().columns < _FEWEST_COLUMNS:
        os.environ["COLUMNS"] = str(_FEWEST_COLUMNS)
    try:
        yield
    finally:
        os.environ.pop("COLUMNS", None)
        if before is not None:
            os.environ["COLUMNS"] = before


@contextmanager
def in_one_line(run: Callable[[list[str]], Any], command: Sequence[str], given: Sequence[str]) -> Iterator[None]:
    """Turn what the parser refuses of given words into a :class:`ConfigError`; ``run`` runs ``--help`` of a command."""
    try:
        from tyro import _errors as events  # their hook is new, and no part of the interface yet
    except ImportError:
        yield
        return

    def refuse(event: Any) -> None:
        said = _said(event, lambda: _options(run, command), given)
        if said:
            end = "" if said.endswith("?") else ";"
            fix = _OF_SCRIPTS if [*command] == ["profile", "script"] else ""
            raise ConfigError(f"{said}{end} {fix}{' '.join(['nclone-env', *command])} --help explains the arguments")

    with events.on_parse_error(refuse):
        yield


def _said(event: Any, options: Callable[[], set[str]], given: Sequence[str]) -> str:
    """Return what was expected in place of what an event of the parser is about; empty if the event is unknown."""
    name = type(event).__name__
    if name == "InvalidChoice":
        got = f"{shortened(event.value)}{did_you_mean(event.value, event.choices)}"
        return f"{_name(event.argument)}: expected one of {', '.join(event.choices)}, got {got}"
    if name == "UnrecognizedArgs":
        token = event.tokens[0]
        if not token.startswith("-"):
            fix = "; a flag is --flag, --no-flag, --flag=True or --flag=False" if token.lower() in _AS_FLAGS else ""
            return f"arguments: expected no more, got {shortened(token)}{fix}"
        option = token.partition("=")[0]
        return f"{shortened(option).strip(chr(39))}: there is no such option{_similar(option, options())}"
    if name == "MissingArgs":
        missing = [_name(each.arg) for each in event.missing_arguments]
        return f"{', '.join(missing)}: expected a value, got {_given(missing, given)}"
    if name == "BadValue":
        value, name = event.offending_value, _name(event.argument)
        expected, got = ("a value", _given([name], given)) if value is None else ("no value", shortened(value))
        return f"{name}: expected {expected}, got {got}"
    if name == "MissingSubcommand":
        names = [each.rpartition(":")[2] for each in event.subcommand_spec.parser_from_name]
        token = event.found_token
        hint = did_you_mean(token, names) if token else ""
        return f"command: expected one of {', '.join(names)}, got {shortened(token) if token else 'none'}{hint}"
    return _of_value(event) if name == "InstantiationFailure" else ""


def _given(missing: Sequence[str], words: Sequence[str]) -> str:
    """Return what came in place of missing arguments: none, or an option with the name of a positional one."""
    options = {word[2:].partition("=")[0].replace("-", "_"): word for word in words if word[:2] == "--"}
    return next((f"{options[name]}; write its value alone" for name in missing if name in options), "none")


def _of_value(event: Any) -> str:
    """Return what is said of a value that is none of its type."""
    found = re.match(r"Error parsing (--[\w.-]+|[\w.-]+): (.*)", event.message, flags=re.DOTALL)
    name, message = found.groups() if found else ("arguments", event.message)
    name = name if event.argument is None else _name(event.argument)
    # of int | None
    if message.startswith(_OF_SEVERAL):
        message = _of_word(event.argument.field.type_stripped, ast.literal_eval(message.removeprefix(_OF_SEVERAL)))
    several = re.findall(r"(?:<class '[\w.]+'>|Annotated\[.*\]): (?!.*does not match choices)([^\n]+)", message)
    message = several[-1].strip() if several else message
    number = re.match(r"could not convert string to (\w+): (.*)", message)
    if number:
        message = f"expected {_NUMBERS.get(number[1], number[1])}, got {number[2]}"
    return f"{name}: {' '.join(message.split())}"


def _of_word(hint: Any, words: Sequence[str]) -> str:
    """Return what is said of the first of several words that is none of their type."""
    read = _READERS.get(get_args(hint)[0], str)
    for word in words:
        try:
            read(word)
        except ValueError as fault:
            return str(fault)
    return f"{_OF_SEVERAL}{words}"


def _name(argument: Any) -> str:
    """Return the name of an argument as people write it: an option, or the name of a positional one."""
    name = str(argument.display_name()).rpartition("/")[2]  # of several spellings the last
    return name if name.startswith("-") else str(getattr(argument.field, "name", "")) or name


def _similar(option: str, options: set[str]) -> str:
    """Return a hint at an option of the same name in a group, or else at a similar one."""
    grouped = [each for each in sorted(options) if each.endswith(f".{option.lstrip('-')}")]
    return did_you_mean(grouped[0] if grouped else option, options)


def _options(run: Callable[[list[str]], Any], command: Sequence[str]) -> set[str]:
    """Return the options of a command."""
    return set(re.findall(r"(?<![\w-])--[a-z](?:[\w.-]*\w)?", _help(run, command)))


def _help(run: Callable[[list[str]], Any], command: Sequence[str]) -> str:
    """Return what ``--help`` of a command prints."""
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        run([*command, "--help"])
    return printed.getvalue()
