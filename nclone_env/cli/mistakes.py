"""Mistakes on the command line in one line each, as those that the package finds itself."""

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from nclone_env.errors import ConfigError, did_you_mean, shortened

_NUMBERS = {"float": "a number", "int": "a whole number"}


@contextlib.contextmanager
def in_one_line(run: Callable[[list[str]], Any], args: Sequence[str], commands: Mapping[str, Any]) -> Iterator[None]:
    """Turn what the parser refuses into a :class:`ConfigError`.

    Args:
        run: runs the program with other arguments: ``--help`` of the command.
        args: arguments of the program.
        commands: the commands by name, those of a group as a mapping.
    """
    try:
        from tyro import _errors as events  # their hook is new, and no part of the interface yet
    except ImportError:
        yield
        return
    command = _command(args, commands)

    def refuse(event: Any) -> None:
        said = _said(event, lambda: _options(run, command))
        if said:
            end = "" if said.endswith("?") else ";"
            raise ConfigError(f"{said}{end} {' '.join(['nclone-env', *command])} --help explains the arguments")

    with events.on_parse_error(refuse):
        yield


def _command(args: Sequence[str], commands: Mapping[str, Any]) -> list[str]:
    """Return the names of the command that arguments begin with."""
    found: list[str] = []
    for arg in args:
        if arg not in commands:
            break
        found.append(arg)
        inner = commands[arg]
        if not isinstance(inner, Mapping):
            break
        commands = inner
    return found


def _said(event: Any, options: Callable[[], set[str]]) -> str:
    """Return what was expected in place of what an event of the parser is about; empty if the event is unknown."""
    name = type(event).__name__
    if name == "InvalidChoice":
        got = f"{shortened(event.value)}{did_you_mean(event.value, event.choices)}"
        return f"{_name(event.argument)}: expected one of {', '.join(event.choices)}, got {got}"
    if name == "UnrecognizedArgs":
        token = event.tokens[0]
        if not token.startswith("-"):
            return f"arguments: expected no more, got {shortened(token)}"
        option = token.partition("=")[0]
        return f"{shortened(option).strip(chr(39))}: there is no such option{_similar(option, options())}"
    if name == "MissingArgs":
        missing = ", ".join(_name(each.arg) for each in event.missing_arguments)
        return f"{missing}: expected a value, got none"
    if name == "BadValue":
        value = event.offending_value
        expected, got = ("a value", "none") if value is None else ("no value", shortened(value))
        return f"{_name(event.argument)}: expected {expected}, got {got}"
    if name == "MissingSubcommand":
        names = [each.rpartition(":")[2] for each in event.subcommand_spec.parser_from_name]
        token = event.found_token
        hint = did_you_mean(token, names) if token else ""
        return f"command: expected one of {', '.join(names)}, got {shortened(token) if token else 'none'}{hint}"
    return _of_value(event) if name == "InstantiationFailure" else ""


def _of_value(event: Any) -> str:
    """Return what is said of a value that is none of its type."""
    found = re.match(r"Error parsing (--[\w.-]+|[\w.-]+): (.*)", event.message, flags=re.DOTALL)
    name, message = found.groups() if found else ("arguments", event.message)
    name = name if event.argument is None else _name(event.argument)
    several = re.findall(r"<class '\w+'>: (?!.*does not match choices)([^\n]+)", message)  # int | None
    message = several[-1].strip() if several else message
    number = re.match(r"could not convert string to (\w+): (.*)", message)
    if number:
        message = f"expected {_NUMBERS.get(number[1], number[1])}, got {number[2]}"
    return f"{name}: {' '.join(message.split())}"


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
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        run([*command, "--help"])
    return set(re.findall(r"(?<![\w-])--[a-z](?:[\w.-]*\w)?", printed.getvalue()))
