"""The ``nclone-env`` program: runs a subcommand and maps errors to exit codes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from nclone_env import __version__
from nclone_env.cli.streams import guarded
from nclone_env.errors import ConfigError, NcloneError, did_you_mean, plain, shortened
from nclone_env.memory_limit import check_address_space

PROGRAM = "nclone-env"
_COMPLETION = ("--tyro-print-completion", "--tyro-write-completion")
_NO_MEMORY = "can't start new thread", "failed to map segment", "annot allocate memory", "terminated abruptly"
"""What the errors of threads, the dynamic loader and pools of processes say if memory is short."""
_ADDRESSES, _ADDRESSES_OF_TORCH = 1_000_000_000, 1_700_000_000
"""Bytes of address space that a command needs with two threads; with less, libraries abort as they are loaded."""
_WITH_TORCH = ("train", "evaluate", "watch", "benchmark")
_SHELLS = ("bash", "zsh", "fish")


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status.

    Args:
        args: arguments after the program name; ``sys.argv[1:]`` if None.
    """
    return guarded(lambda: _run(sys.argv[1:] if args is None else list(args)))


def _run(args: list[str]) -> int:
    before, warnings.showwarning = warnings.showwarning, _show_warning
    try:
        if args == ["--version"]:
            sys.stdout.write(f"{PROGRAM} {__version__}\n")
            return 0
        return _run_command(args)
    except NcloneError as error:
        sys.stderr.write(f"{PROGRAM}: {_shown(error)}\n")
        return 2
    except (MemoryError, RuntimeError, ImportError) as error:
        if not isinstance(error, MemoryError) and not any(said in str(error) for said in _NO_MEMORY):
            raise
        sys.stderr.write(f"{PROGRAM}: not enough memory: {plain(error) or 'an allocation failed'}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write(f"{PROGRAM}: interrupted\n")
        return 130
    finally:
        warnings.showwarning = before


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning as one line, without the line of source that gives it."""
    sys.stderr.write(f"{PROGRAM}: {category.__name__}: {plain(message)}\n")


def _run_command(args: list[str]) -> int:
    from nclone_env.cli.arguments import ARGUMENTS  # they need tyro, which --version does not
    from nclone_env.cli.commands import COMMANDS, PROFILES, parser
    from nclone_env.cli.mistakes import in_one_line
    from nclone_env.cli.output import release_claims

    _check_names(args, {**COMMANDS, "profile": dict.fromkeys(PROFILES, "")})
    _check_shell(args)
    name = args[0] if args else PROGRAM
    check_address_space(name, _ADDRESSES_OF_TORCH if name in _WITH_TORCH else _ADDRESSES)
    given = with_default_target(args)
    description = "N++ for reinforcement learning. --version prints the version, COMMAND --help the options."

    def run(words: list[str]) -> Any:
        return parser(words).cli(prog=PROGRAM, args=words, description=description, registry=ARGUMENTS)

    try:
        with in_one_line(run, given, {**COMMANDS, "profile": dict.fromkeys(PROFILES, "")}):
            done = run(given)
        return done() if callable(done) else int(done)  # a command may leave its work to be done outside the parser
    finally:
        release_claims()


def _shown(error: NcloneError) -> str:
    """Return a message with escapes for the control characters of names in it."""
    return "\n".join(map(plain, str(error).split("\n")))


def _check_names(args: Sequence[str], commands: Mapping[str, Any]) -> None:
    """Reject an unknown subcommand, also one of a group.

    Raises:
        ConfigError: if there is no such subcommand; it names the most similar one.
    """
    if not args or args[0].startswith("-"):
        return
    found = commands.get(args[0])
    if found is None:
        hint = did_you_mean(args[0], commands)
        raise ConfigError(f"command: expected one of {', '.join(commands)}, got {shortened(args[0])}{hint}")
    if isinstance(found, Mapping):
        _check_names(args[1:], found)


def _check_shell(args: Sequence[str]) -> None:
    """Reject a completion that cannot be written: tyro names four shells, and fails on one of them.

    Raises:
        ConfigError: if no shell follows the option, or another.
    """
    if args and args[0] in _COMPLETION and (len(args) < 2 or args[1] not in _SHELLS):
        got = shortened(args[1]) if len(args) > 1 else "none"
        raise ConfigError(f"{args[0]}: expected one of {', '.join(_SHELLS)}, got {got}; name one of these shells")


def with_default_target(args: list[str]) -> list[str]:
    """Return the arguments of the program, with the vector environment where ``profile`` names no target."""
    named = args[:1] != ["profile"] or (len(args) > 1 and (not args[1].startswith("-") or args[1] in ("-h", "--help")))
    return args if named else ["profile", "vector", *args[1:]]
