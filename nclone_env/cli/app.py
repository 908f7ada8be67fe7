"""The ``nclone-env`` program: assembles the subcommands and maps errors to exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tyro

from nclone_env import __version__
from nclone_env.cli.compare import compare
from nclone_env.cli.evaluate import evaluate
from nclone_env.cli.gallery import make_gallery
from nclone_env.cli.generate import generate_levels
from nclone_env.cli.levels import convert_level, list_levels, show_level, show_library, validate_levels
from nclone_env.cli.numbers import NUMBERS
from nclone_env.cli.play import play_levels
from nclone_env.cli.profile import profile_command, with_default_target
from nclone_env.cli.prove import check_proof, prove_levels
from nclone_env.cli.replay import export_video, play_replay, record_replay, verify_replays
from nclone_env.cli.run import run
from nclone_env.cli.solve import solve_levels
from nclone_env.cli.streams import guarded
from nclone_env.cli.train import train_command
from nclone_env.cli.warmup import warmup
from nclone_env.cli.watch import watch_runs
from nclone_env.errors import ConfigError, NcloneError, did_you_mean, shortened

PROGRAM = "nclone-env"
LEVELS: Mapping[str, Callable[..., int]] = {
    "list": list_levels,
    "show": show_level,
    "validate": validate_levels,
    "convert": convert_level,
    "cache": show_library,
    "generate": generate_levels,
}
REPLAY: Mapping[str, Callable[..., int]] = {
    "verify": verify_replays,
    "record": record_replay,
    "play": play_replay,
    "video": export_video,
}
COMMANDS: Mapping[str, Callable[..., Any] | Mapping[str, Callable[..., int]]] = {
    "train": train_command,
    "evaluate": evaluate,
    "compare": compare,
    "play": play_levels,
    "watch": watch_runs,
    "run": run,
    "solve": solve_levels,
    "prove": prove_levels,
    "check-proof": check_proof,
    "profile": profile_command,
    "gallery": make_gallery,
    "warmup": warmup,
    "levels": LEVELS,
    "replay": REPLAY,
}
"""Subcommands by name: functions, or those of a group. ``train_command`` and ``profile_command`` make theirs."""
_GROUPS = {
    "levels": "List, show, validate, convert and generate levels.",
    "replay": "Verify, record and play recordings, and export them as video.",
}


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status.

    Args:
        args: arguments after the program name; ``sys.argv[1:]`` if None.
    """
    return guarded(lambda: _run(sys.argv[1:] if args is None else list(args)))


def _run(args: list[str]) -> int:
    try:
        if args == ["--version"]:
            sys.stdout.write(f"{PROGRAM} {__version__}\n")
            return 0
        _check_names(args, COMMANDS)
        given = with_default_target(args)
        description = "N++ for reinforcement learning. --version prints the version."
        return _app(given).cli(prog=PROGRAM, args=given, description=description, registry=NUMBERS)
    except NcloneError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write(f"{PROGRAM}: interrupted\n")
        return 130


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


def _app(args: Sequence[str]) -> tyro.extras.SubcommandApp:
    made: dict[str, Any] = {"train": train_command(args), "profile": profile_command()}
    app = tyro.extras.SubcommandApp()
    for name, command in COMMANDS.items():
        if not isinstance(command, Mapping):
            app.command(name=name)(made.get(name, command))
            continue
        group = tyro.extras.SubcommandApp()
        for each, function in command.items():
            group.command(name=each)(function)
        app.command(group, name=name, help=_GROUPS[name])
    return app
