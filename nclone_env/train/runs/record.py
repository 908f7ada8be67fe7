"""``run.toml``: what a run was, and the recipe with which ``nclone-env train --config`` repeats it.

A recipe is TOML: options of :class:`TrainConfig` by key, those of the reward in a table of that name, and ``init``.
Those that it leaves out have their defaults; ``recipes`` has those that ship with the package. The file of a run has
all, and the table ``run``: time, command, version, commit, machine, libraries, the digests of its levels and files, and
in ``run.resumed`` where it was continued.
"""

import hashlib
import json
import platform
import shlex
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from nclone_env._files import expanded, open_regular, there, unless_it_fails, write_file
from nclone_env._version import __version__
from nclone_env.errors import ConfigError, checked, cut, did_you_mean, plain, shortened
from nclone_env.level import Level, appearance, load_levels
from nclone_env.memory import machine
from nclone_env.options import flat, from_flat
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.checkpoint import commit
from nclone_env.train.policies.files import policy_file
from nclone_env.train.ranks import Ranks
from nclone_env.train.runs.folder import RECORD
from nclone_env.train.runs.recipes import named_recipe, recipe_names

_OWN, _INIT = "run", "init"
_PLACE = ("name", "output")
"""Options that say where a run is written, and nothing about what it is."""
_LIBRARIES = ("numpy", "numba", "llvmlite", "gymnasium", "torch")
MADE_BY = ("version", "commit", "processor", "python", *_LIBRARIES)
"""What the bits of a result may depend on besides options and levels: keys of the table ``run``."""
_SAID = ("time", "command", "system", "continued")
"""What else the table ``run`` says as text."""
_MOST_BYTES = 1 << 24
_HEAD = "# Options of a training run: nclone-env train --config FILE repeats it. The table run says how it was made.\n"


@dataclass(frozen=True)
class Recipe:
    """A file of options, as :func:`read_recipe` returns it."""

    path: Path
    config: TrainConfig
    init: Path | None
    """The policy that the run begins with, if not with a new one."""
    made: Mapping[str, Any]
    """The table ``run``; empty in a recipe that no run wrote."""
    name: str = ""
    """Its name, if it ships with the package."""

    def differences(self) -> list[str]:
        """Return in what this computer and copy of the package differ from those of the run, and what it changed."""
        here = _made_by()
        names = [name for name in here if name in self.made and self.made[name] != here[name]]
        said = [f"{name}: {self.made[name] or 'unknown'} in the run, here {here[name] or 'unknown'}" for name in names]
        for part in self.made.get("resumed", ()):
            changed = ", ".join(f"{key} {value}" for key, value in part.get("options", {}).items())
            said += [f"resumed after {part.get('timesteps')} timesteps with {changed}, not repeated"] if changed else []
        return said

    def check_inputs(self, config: TrainConfig, init: str | Path | None) -> None:
        """Check that levels and files that the run was given, and this one is, are what they were.

        Raises:
            ConfigError: if one is another by its digest.
        """
        same = "levels" in self.made and config.environment.levels == self.config.environment.levels
        now = {"levels": _level_digests(config) if same else {}, "files": _file_digests(config, init)}
        for kind, digests in now.items():
            for name, digest in self.made.get(kind, {}).items():
                if digests.get(name, digest) != digest:
                    got = f"one with the digest {digests[name][:8]}"
                    raise ConfigError(
                        f"{self.path}: {kind}: expected {plain(name)} with the digest {digest[:8]}, as in that run, "
                        f"got {got}; restore it, or take the table {_OWN}.{kind} out of a copy of the file"
                    )


@checked()
def read_recipe(path: str | Path) -> Recipe:
    """Read a recipe: the options of a training run in a file, of the run in a folder, or those of a name.

    A file, or the folder of a run, has precedence over a recipe of the same name that ships with the package.

    Raises:
        ConfigError: if the file is missing or no TOML, or an option is unknown or out of range; it names the file.
    """
    given, path = str(path), expanded(path)
    path = path / RECORD if there(path.is_dir) else path
    shipped = None if there(path.exists) else named_recipe(given)
    path = shipped or path
    try:
        with open_regular(path, _MOST_BYTES) as file:
            data = file.read()
        if 0 in data:
            raise ConfigError(f"expected a text of options in UTF-8, got {appearance(data)}")
        values = tomllib.loads(data.decode("utf-8-sig", errors="surrogateescape"))
        made, init = values.pop(_OWN, {}), values.pop(_INIT, None)
        if not isinstance(made, dict) or not isinstance(init, str | None):
            raise ConfigError(f"{_OWN}, {_INIT}: expected a table and a text, got {shortened((made, init))}")
        _check_made(made, _OWN)
        config = from_flat(TrainConfig(), values)
        return Recipe(path, config, None if init is None else Path(init), made, given if shipped else "")
    except OSError as error:
        names = recipe_names()
        raise ConfigError(
            f"config: expected a file of options, the folder of a run that has a {RECORD}, or one of "
            f"{', '.join(names)}, got {plain(cut(given))}: {error.strerror}{did_you_mean(given, names)}"
        ) from error
    except (ConfigError, ValueError, RecursionError) as error:  # the last of values within values
        rules = "; numbers are written 5000000, 5_000_000 or 5e6, and texts in quotation marks"
        raise ConfigError(f"{plain(path)}: {error}{'' if isinstance(error, ConfigError) else rules}") from error


def _check_made(made: Mapping[str, Any], where: str) -> None:
    """Check a table ``run``, or one of ``run.resumed``: each value of a key that is read, or written, has its kind."""
    for name, value in made.items():
        here = f"{where}.{plain(name)}"
        if name == "resumed":
            _expect(here, value, list, "a list of tables")
            for number, part in enumerate(value):
                _expect(f"{here}[{number}]", part, dict, "a table")
                _check_made(part, f"{here}[{number}]")
        elif name in ("levels", "files", "options"):
            _expect(here, value, dict, "a table")
            for key, item in value.items() if name != "options" else ():
                _expect(f"{here}.{shortened(key)}", item, str, "a digest")
        elif name in ("cores", "processes", "timesteps"):
            _expect(here, value, int, "a whole number")
        elif name in (*MADE_BY, *_SAID):
            _expect(here, value, str, "a text")


def _expect(where: str, value: Any, kind: type, expected: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ConfigError(f"{where}: expected {expected}, got {shortened(value)}; leave it out")


def write_record(
    folder: Path,
    config: TrainConfig,
    init: str | Path | None,
    ranks: Ranks,
    source: Path | None,
    levels: Iterable[Level] | None = None,
) -> None:
    """Write what a run is that begins now, continued from the checkpoint ``source`` of another if there is one.

    ``levels`` are those of the configuration, loaded; None: they are loaded now.
    """
    with unless_it_fails(folder / RECORD):
        options = {key: value for key, value in flat(config).items() if key not in _PLACE}
        if init is not None:
            options[_INIT] = str(init)
        made = {
            **_begun(),
            **_made_by(),
            "system": machine().system,
            "cores": machine().cores,
            "processes": ranks.count,
        }
        if source is not None:
            made["continued"] = str(source)
        tables = {"levels": _level_digests(config, levels), "files": _file_digests(config, init)}
        lines = _lines({**options, _OWN: {**made, **tables}})
        write_file(folder / RECORD, (_HEAD + "\n".join(lines) + "\n").encode(errors="surrogateescape"))


def note_resumption(folder: Path, config: TrainConfig, timesteps: int) -> None:
    """Add to what a run is that it is continued in its folder: when, where, and with which other options."""
    with unless_it_fails(folder / RECORD):
        before = read_recipe(folder)
        changed = _changed(before.config, config)
        made = {name: value for name, value in _made_by().items() if before.made.get(name) != value}
        row = {"timesteps": timesteps, **_begun(), **made, **({"options": changed} if changed else {})}
        lines = (f"[[{_OWN}.resumed]]", *_lines(row, (_OWN, "resumed")))
        text = (folder / RECORD).read_bytes() + ("\n" + "\n".join(lines) + "\n").encode(errors="surrogateescape")
        write_file(folder / RECORD, text)


def _changed(before: TrainConfig, after: TrainConfig) -> dict[str, Any]:
    """Return the options that differ, as in the second; those without a value as text."""
    old, new = flat(before), flat(after)
    differing = (key for key in new if key not in _PLACE and new[key] != old[key])
    return {key: "none" if new[key] is None else new[key] for key in differing}


def _begun() -> dict[str, str]:
    """Return when and by which command this process works on the run."""
    name = Path(sys.argv[0]).name
    started = "python -m nclone_env" if name == "__main__.py" else name
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(filter(None, (started, shlex.join(sys.argv[1:])))),
    }


def _made_by() -> dict[str, str]:
    """Return the values of ``MADE_BY`` here."""
    own = __version__, commit(), machine().processor, platform.python_version()
    return dict(zip(MADE_BY, (*own, *map(_library, _LIBRARIES)), strict=True))


@cache
def _library(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _level_digests(config: TrainConfig, levels: Iterable[Level] | None = None) -> dict[str, str]:
    """Return the digest of tiles and entities of each level by its name."""
    loaded = load_levels(config.environment.levels) if levels is None else levels
    return {level.name: level.raw.digest for level in loaded}


def _file_digests(config: TrainConfig, init: str | Path | None) -> dict[str, str]:
    """Return the digests of the files that a run is given besides its levels."""
    files = (path for path in map(Path, (*config.starts, *config.clone.warm_start)) if there(path.is_file))
    named = {str(path): path for path in files}
    if init is not None:
        named[str(init)] = policy_file(init)
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in named.items()}


def _lines(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the lines of a TOML table; what is None is left out."""
    for name, value in values.items():
        if value is not None and not isinstance(value, Mapping):
            yield f"{_key(name)} = {_value(value)}"
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield f"\n[{'.'.join(map(_key, (*path, name)))}]"
            yield from _lines(value, (*path, name))


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool | str):  # as in JSON, but for one control character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
