"""The subcommands of ``nclone-env``: where each is, and what it does in one line.

Their modules are imported only if they are run, or their options are needed: all of them take most of a second.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from importlib import import_module
from typing import Any

import tyro

COMMANDS: Mapping[str, str | Mapping[str, str]] = {
    "train": "train:train_command",
    "evaluate": "policies:evaluate",
    "compare": "train:compare",
    "play": "replay:play_levels",
    "watch": "watch:watch_runs",
    "run": "profile:run",
    "solve": "solve:solve_levels",
    "merge": "merge:merge_shards",
    "benchmark": {
        "list": "benchmark:list_tracks",
        "show": "benchmark:show_track",
        "run": "benchmark:run_baseline",
        "submit": "benchmark:submit_runs",
        "verify": "benchmark:verify_submissions",
        "table": "benchmark:write_table",
    },
    "data": {"export": "benchmark:export_data"},
    "policies": {"list": "policies:list_policies", "show": "policies:show_policy", "push": "policies:push"},
    "profile": {
        "vector": "profile:vector",
        "single": "profile:single",
        "gym": "profile:gym",
        "sync": "profile:sync",
        "async": "profile:workers",
        "sb3": "profile:sb3",
        "train": "profile:train",
        "script": "profile_script:script",
        "compare": "profile:compare",
    },
    "gallery": "gallery:make_gallery",
    "warmup": "warmup:warmup",
    "levels": {
        "list": "levels:list_levels",
        "show": "levels:show_level",
        "validate": "levels:validate_levels",
        "convert": "levels:convert_level",
        "cache": "levels:show_library",
        "generate": "levels:generate_levels",
    },
    "replay": {
        "verify": "replay:verify_replays",
        "convert": "replay:convert_replay",
        "record": "replay:record_replay",
    },
}
"""Module in ``nclone_env.cli`` and function of each subcommand, or those of a group."""
SUMMARIES: Mapping[str, str] = {
    "train": "Train a policy with PPO, evaluate it against a random baseline, and save the results.",
    "evaluate": "Print the success rate of a checkpoint's policy on each level next to a random baseline.",
    "compare": "Compare training runs: print tables, and plot their learning curves.",
    "play": "Play levels with the keyboard in a window.",
    "watch": "Watch policies and recordings, several at once.",
    "run": "Step environments with uniform random actions, in a window or headless.",
    "solve": "Search for the best inputs that complete levels; record each solution.",
    "merge": "Join the shards of a job.",
    "benchmark": "Evaluate policies on named tracks, and prove results by playing them again.",
    "data": "Export episodes as data sets for offline learning.",
    "policies": "List and show the policies that ship with the package, and put your own on a hub.",
    "profile": "Measure memory and time of environments, training runs and scripts.",
    "gallery": "Write a web site of levels, with a player for the runs on them.",
    "warmup": "Compile kernels into the cache.",
    "levels": "List, show, validate, convert and generate levels.",
    "replay": "Verify, convert and record recordings.",
}
"""What ``--help`` says of each subcommand; ``COMMAND --help`` shows the docstring of its function."""


def parser(args: Sequence[str]) -> tyro.extras.SubcommandApp:
    """Return the parser of the command line, with the options of the subcommand that ``args`` begins with.

    Without a subcommand there is only the list of them, unless the completion of a shell is asked for: it has the
    options of all.
    """
    first = args[0] if args else ""
    needed = COMMANDS.keys() if first.startswith("--tyro") else {first}
    app = tyro.extras.SubcommandApp()
    for name, command in COMMANDS.items():
        if name not in needed:
            app.command(name=name, help=SUMMARIES[name])(lambda: 0)
        elif isinstance(command, str):
            found = load(command)
            app.command(name=name)(found(args) if name == "train" else found)  # which depends on the arguments
        else:
            group = tyro.extras.SubcommandApp()
            for each, place in command.items():
                group.command(name=each)(_later(load(place)))
            app.command(group, name=name, help=SUMMARIES[name])
    return app


def _later(command: Callable[..., int]) -> Callable[..., Callable[[], int]]:
    """Return a command that returns what is to be done, to be called outside the parser.

    tracemalloc decodes the line tables of the innermost frames at every allocation, and those of the parser's long
    functions would take three times as long as all the others.
    """

    @wraps(command)
    def parsed(*args: Any, **kwargs: Any) -> Callable[[], int]:
        return partial(command, *args, **kwargs)

    return parsed


def load(place: str) -> Any:
    """Import the function of a subcommand."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"nclone_env.cli.{module}"), name)
