"""The ``nclone-env`` program: assembles the subcommands and maps errors to exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import tyro

from nclone_env.cli.evaluate import evaluate
from nclone_env.cli.generate import generate_levels
from nclone_env.cli.levels import convert_level, list_levels, show_level, show_library, validate_levels
from nclone_env.cli.profile import profile_command, with_default_target
from nclone_env.cli.prove import check_proof, prove_levels
from nclone_env.cli.replay import export_video, play_replay, record_replay, verify_replays
from nclone_env.cli.run import run
from nclone_env.cli.solve import solve_levels
from nclone_env.cli.streams import guarded
from nclone_env.cli.train import train_command
from nclone_env.cli.warmup import warmup
from nclone_env.errors import NcloneError


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status.

    Args:
        args: arguments after the program name; ``sys.argv[1:]`` if None.
    """
    return guarded(lambda: _run(sys.argv[1:] if args is None else list(args)))


def _run(args: list[str]) -> int:
    try:
        given = with_default_target(args)
        return _app(given).cli(prog="nclone-env", args=given, description="N++ for reinforcement learning.")
    except NcloneError as error:
        sys.stderr.write(f"nclone-env: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("nclone-env: interrupted\n")
        return 130


def _app(args: Sequence[str]) -> tyro.extras.SubcommandApp:
    levels = tyro.extras.SubcommandApp()
    levels.command(name="list")(list_levels)
    levels.command(name="show")(show_level)
    levels.command(name="validate")(validate_levels)
    levels.command(name="convert")(convert_level)
    levels.command(name="cache")(show_library)
    levels.command(name="generate")(generate_levels)
    replays = tyro.extras.SubcommandApp()
    replays.command(name="verify")(verify_replays)
    replays.command(name="record")(record_replay)
    replays.command(name="play")(play_replay)
    replays.command(name="video")(export_video)
    app = tyro.extras.SubcommandApp()
    app.command(name="train")(train_command(args))
    app.command(evaluate)
    app.command(run)
    app.command(name="solve")(solve_levels)
    app.command(name="prove")(prove_levels)
    app.command(name="check-proof")(check_proof)
    app.command(profile_command(), name="profile")
    app.command(warmup)
    app.command(levels, name="levels")
    app.command(replays, name="replay")
    return app
