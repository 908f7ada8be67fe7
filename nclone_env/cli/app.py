"""The ``nclone-env`` program: runs a subcommand and maps errors to exit codes.

An error, also of files or of the output itself, is told in one line on stderr, or in none, and by the exit status. The
modules of subcommands are imported only if they are run, or their options are needed: all take most of a second.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from glob import glob
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nclone_env._files import naming
from nclone_env._version import __version__
from nclone_env.cli.progress import EndedError, ended_by_signals
from nclone_env.errors import ConfigError, NcloneError, cut, did_you_mean, plain, shortened
from nclone_env.machine import check_address_space

if TYPE_CHECKING:
    import tyro

PROGRAM = "nclone-env"
_COMPLETION = ("--tyro-print-completion", "--tyro-write-completion")
_NO_MEMORY = "can't start new thread", "failed to map segment", "annot allocate memory"
"""What the errors of threads and of the dynamic loader say if memory is short."""
_WORKER_ENDED = "terminated abruptly"
"""What the error of a pool of processes says."""
_ADDRESSES, _ADDRESSES_OF_TORCH = 1_000_000_000, 1_700_000_000
"""Bytes of address space that a command needs with two threads; with less, libraries abort as they are loaded."""
_WITH_TORCH = ("train", "evaluate", "watch", "benchmark")
_SHELLS = ("bash", "zsh", "fish")
_ALSO_CALLED = {"check": ("validate", "verify"), "test": ("validate", "verify", "evaluate"), "enjoy": ("watch",)}
"""What other programs call commands."""
_COMMAND = "_command"
_BROKEN_PIPE = 128 + 13  # as shells report SIGPIPE
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
        "train": "profile:train_command",
        "script": "profile:script",
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
"""Module in ``nclone_env.cli`` and function of each subcommand, or those of a group.

A function whose name ends with ``_COMMAND`` returns the command for the arguments of the program.
"""
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
    "gallery": "Write a web site of levels: watch runs and policies, play, make runs frame by frame, edit, check.",
    "warmup": "Compile kernels into the cache.",
    "levels": "List, show, validate, convert and generate levels.",
    "replay": "Verify, convert and record recordings.",
}
"""What ``--help`` says of each subcommand; ``COMMAND --help`` shows the docstring of its function."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process; return the exit status."""
    return _guarded(lambda: _run(sys.argv[1:] if args is None else list(args)))


def _run(args: list[str]) -> int:
    before, warnings.showwarning = warnings.showwarning, _printer_of_warnings()
    try:
        if args == ["--version"]:
            sys.stdout.write(f"{PROGRAM} {__version__}\n")
            return 0
        with ended_by_signals():
            return _run_command(args)
    except NcloneError as error:
        _complain(f"{_shown(error)}{_misplaced(args)}")
        return 2
    except (MemoryError, RuntimeError, ImportError) as error:
        if _WORKER_ENDED in str(error):
            _complain(
                "a worker process was ended: by a system without memory, where fewer processes help, or as the script "
                "that calls this command does so outside 'if __name__ == \"__main__\":'"
            )
        elif isinstance(error, MemoryError) or any(said in str(error) for said in _NO_MEMORY):
            _complain(f"not enough memory: {plain(error) or 'an allocation failed'}")
        else:
            raise
        return 1
    except KeyboardInterrupt as error:
        _complain(f"{error}" or "interrupted")
        return 128 + (error.number if isinstance(error, EndedError) else signal.SIGINT)
    finally:
        warnings.showwarning = before


def _complain(text: str) -> None:
    """Write why the command ends, if it can be written: the exit status tells it, too."""
    with suppress(OSError):
        sys.stderr.write(f"{PROGRAM}: {text}\n")


def _printer_of_warnings() -> Callable[..., None]:
    """Return a function that prints a warning as one line, without the line of source that gives it, and once.

    Python's filter does not suffice: it forgets what it has shown whenever a library changes filters.
    """
    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        line = f"{PROGRAM}: {category.__name__}: {plain(message)}\n"
        if line not in printed:
            printed.add(line)
            sys.stderr.write(line)

    return show


def _run_command(args: list[str]) -> int:
    from tyro.conf import PositionalMetavarFromFieldName

    from nclone_env.cli.arguments import (  # they need tyro, which --version does not
        ARGUMENTS,
        check_hyphens,
        check_repeats,
        in_one_line,
        wide_enough,
        with_flags,
    )
    from nclone_env.cli.output import release_claims

    given = _matched(with_default_target(args))
    command = _command(given, COMMANDS)
    _check_shell(args)
    name = command[0] if command else PROGRAM
    if name in (*_WITH_TORCH, "data", "profile"):
        os.getcwd()  # in a removed folder the libraries of torch end the process
    check_address_space(name, _ADDRESSES_OF_TORCH if name in _WITH_TORCH else _ADDRESSES)
    description = "N++ for reinforcement learning. --version prints the version, COMMAND --help the options."

    def run(words: list[str]) -> Any:
        config = (PositionalMetavarFromFieldName,)
        return parser(words).cli(prog=PROGRAM, args=words, description=description, config=config, registry=ARGUMENTS)

    try:
        with in_one_line(run, command, given), wide_enough():
            check_hyphens(given)
            check_repeats(given, run, command)
            done = run(with_flags(given, run, command))
        return done() if callable(done) else int(done)  # a command may leave its work to be done outside the parser
    finally:
        release_claims()


def parser(args: Sequence[str]) -> tyro.extras.SubcommandApp:
    """Return the parser of the command line, with the options of the subcommand that ``args`` begins with.

    Without a subcommand there is only the list of them, unless the completion of a shell is asked for: it has the
    options of all.
    """
    import tyro  # which --version does not need

    first = args[0] if args else ""
    needed = COMMANDS.keys() if first.startswith("--tyro") else {first}
    app = tyro.extras.SubcommandApp()
    for name, command in COMMANDS.items():
        if name not in needed:
            app.command(name=name, help=SUMMARIES[name])(lambda: 0)
        elif isinstance(command, str):
            app.command(name=name)(_of_arguments(command, args))
        else:
            group = tyro.extras.SubcommandApp()
            for each, place in command.items():
                group.command(name=each)(_later(_of_arguments(place, args)))
            app.command(group, name=name, help=SUMMARIES[name])
    return app


def _of_arguments(place: str, args: Sequence[str]) -> Callable[..., int]:
    """Return the function of a subcommand, whose defaults may depend on the arguments."""
    found: Callable[..., Any] = load(place)
    return found(args) if place.endswith(_COMMAND) else found


def _later(command: Callable[..., int]) -> Callable[..., Callable[[], int]]:
    """Return a command that returns what is to be done, to be called outside the parser.

    tracemalloc decodes the line tables of the innermost frames at every allocation, and those of the parser's long
    functions would take three times as long as all the others.
    """
    if isinstance(command, partial):
        return partial(_later(command.func), **command.keywords)

    @wraps(command)
    def parsed(*args: Any, **kwargs: Any) -> Callable[[], int]:
        return partial(command, *args, **kwargs)

    return parsed


def load(place: str) -> Any:
    """Import the function of a subcommand."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"nclone_env.cli.{module}"), name)


def _shown(error: NcloneError) -> str:
    """Return a message with escapes for the control characters of names in it."""
    return "\n".join(map(plain, str(error).split("\n")))


def _command(args: Sequence[str], commands: Mapping[str, Any]) -> list[str]:
    """Return the names of the command that arguments begin with: its own, and before it that of its group."""
    if not args or args[0].startswith("-"):
        return []
    if args[0] not in commands:
        own, other = _meant(args[0], commands), _meant(args[0], COMMANDS)
        meant = own or (other and f"{PROGRAM} {other}")
        hint = f"; did you mean {meant!r}?" if meant else did_you_mean(args[0], commands)
        raise ConfigError(f"command: expected one of {', '.join(commands)}, got {shortened(args[0])}{hint}")
    inner = commands[args[0]]
    return [args[0], *(_command(args[1:], inner) if isinstance(inner, Mapping) else ())]


def _meant(word: str, commands: Mapping[str, Any]) -> str:
    """Return the command, or the subcommand behind its group, that does what a word says; empty if there is none."""
    inner = [f"{group} {name}" for group, found in commands.items() if isinstance(found, Mapping) for name in found]
    words = (word, *_ALSO_CALLED.get(word, ()))
    return next((place for each in words for place in (*commands, *inner) if place.split()[-1] == each), "")


def _matched(args: list[str]) -> list[str]:
    """Return arguments with the files that patterns match in place of them, as shells do on other systems."""
    found: list[str] = []
    for before, word in zip(["", *args], args):
        is_pattern = ("*" in word or "?" in word) and word[0] != "-" and before != "--output"
        found += (sorted(glob(word)) if is_pattern and not os.path.exists(word) else []) or [word]
    return found


def _misplaced(args: Sequence[str]) -> str:
    """Return a hint where the words of a command may have been given behind an option that takes several."""
    commands = args[: 1 if isinstance(COMMANDS.get(args[0] if args else "", {}), str) else 2]
    words, place = args[len(commands) :], COMMANDS
    for name in commands:
        place = place.get(name, "") if isinstance(place, Mapping) else ""  # type: ignore[assignment]
    last = max((number for number, word in enumerate(words) if word.startswith("--")), default=0)
    if not isinstance(place, str) or not place or not words[:1] or words[0][:2] != "--" or len(words) - last < 3:
        return ""
    parameters = signature(load(place)).parameters
    own, option = next(iter(parameters.values())), parameters.get(words[last][2:].replace("-", "_"))
    is_own = "Positional" in str(own.annotation) and "tuple" in str(own.annotation)
    is_taken = option is not None and "tuple" in str(option.annotation)
    return f"; put {own.name} before {words[last]}, which takes all words behind it" if is_own and is_taken else ""


def _check_shell(args: Sequence[str]) -> None:
    """Reject a completion that cannot be written: tyro names four shells, and fails on one of them."""
    if args and args[0] in _COMPLETION and (len(args) < 2 or args[1] not in _SHELLS):
        got = shortened(args[1]) if len(args) > 1 else "none"
        raise ConfigError(f"{args[0]}: expected one of {', '.join(_SHELLS)}, got {got}; name one of these shells")


def with_default_target(args: list[str]) -> list[str]:
    """Return the arguments of the program, with the vector environment where ``profile`` names no target."""
    named = args[:1] != ["profile"] or (len(args) > 1 and (not args[1].startswith("-") or args[1] in ("-h", "--help")))
    return args if named else ["profile", "vector", *args[1:]]


def _guarded(command: Callable[[], int]) -> int:
    """Call a command and return its exit status.

    It is 1 after an error of the system, which one line on stderr tells. If the reader of the output ends first, as in
    ``nclone-env ... | head``, it is 141 without any line, as for other programs.
    """
    _open_closed_streams()
    _show_everything()
    try:
        with _quiet_threads():
            try:
                return command()
            finally:
                with naming(Path("standard output")):
                    sys.stdout.flush()
    except OSError as error:
        broken = isinstance(error, BrokenPipeError)
        if broken or error.filename == "standard output":
            _drop_output()
        if broken:
            return _BROKEN_PIPE
        if error.filename is None and error.errno == errno.ENOENT and not _has_working_directory():
            error = FileNotFoundError(errno.ENOENT, "the working directory was removed; change to another", os.curdir)
        where = f"{plain(cut(error.filename))}: " if error.filename else ""
        _complain(f"{where}{error.strerror or error}")
        return 1


def _drop_output() -> None:
    """Send to nowhere what Python flushes at the end."""
    with suppress(OSError):  # of a stream without a number
        number = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _show_everything() -> None:
    """Print escapes for characters that the encoding of standard output or error lacks, and warnings as one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _has_working_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _open_closed_streams() -> None:
    """Open to nowhere what was closed of standard input, output and error.

    Otherwise a file that the command writes gets the number of the stream, and with it what libraries print there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115


@contextmanager
def _quiet_threads() -> Iterator[None]:
    """Print no errors of the system in threads: TensorBoard's writer raises them again when it is used next."""
    before = threading.excepthook

    def hook(arguments: threading.ExceptHookArgs) -> None:
        if not issubclass(arguments.exc_type, OSError):
            before(arguments)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before
