"""Every function of the package that parses foreign data is reached by inputs of a target of the fuzzer.

Parsers are found in the sources: functions that call what turns bytes into values, or that read a whole file.
"""

import ast
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import pytest

import nclone_env

from . import files, submissions, tables

_TARGETS = (*files.TARGETS, *tables.TARGETS, *submissions.TARGETS)
_MUTANTS = 12
"""Inputs of each target, besides its undamaged examples."""
PACKAGE = Path(nclone_env.__file__).parent
PARSERS = {
    *(
        "json.loads",
        "json.load",
        "tomllib.loads",
        "pickle.loads",
        "torch.load",
        "np.load",
        "np.frombuffer",
        "np.fromfile",
    ),
    *("csv.reader", "csv.DictReader", "zipfile.ZipFile", "gzip.open", "zlib.decompress", "open_regular", "read_bytes"),
}
METHODS = {"unpack", "unpack_from", "iter_unpack", "decompress", "read_bytes", "read_text"}
TRUSTED = {
    "nclone_env._arrays": "compiled levels in the cache, which only its owner writes",
    "nclone_env.jit": "compiled code in the cache and in the package, and their sources",
    "nclone_env.machine": "files of the system",
    "nclone_env.memory.measure.process": "files of the system",
    "nclone_env.memory.hook": "what the process that started this one has written",
    "nclone_env.memory.passes": "a page that memray has just written",
    "nclone_env.memory.explain.workers": "numbers of a process that this one started",
    "nclone_env.memory.show.html_text": "a template of the package",
    "nclone_env.memory.explain.keepers._among": "a list of this process",
    "nclone_env.memory.explain.keepers._among_parts": "an array of this process",
    "nclone_env.memory.measure.snapshots._recorded": "files of the installer",
    "nclone_env.gallery.policies": "weights and cards of the package",
    "nclone_env.gallery.site": "templates of the package; whether a page is one of its own",
    "nclone_env.benchmark.track": "tracks of the package, by their digests; packs are compared with a digest",
    "nclone_env.benchmark.verification._bytes": "bytes of an array",
    "nclone_env.cli.benchmark.write_table": "bytes of a submission for their digest, which tells copies",
    "nclone_env.benchmark.submission.write_submission": "writes",
    "nclone_env.benchmark.entries.Entered": "bytes of a checkpoint that load_policy has read",
    "nclone_env.generate.names.named_level": "maps in the cache, which only its owner writes",
    "nclone_env.level.solutions": "solutions of the package",
    "nclone_env.level.formats.reader._read_index": "an index in the cache, which only its owner writes",
    "nclone_env.level.formats.pack_text._digits_of": "writes",
    "nclone_env.render.picture": "tiles of a level",
    "nclone_env.train.learn.demonstrations": "solutions of the package",
    "nclone_env.train.adapters.sb3.load_model": "names of an archive that Stable-Baselines3 reads",
    "nclone_env.train.policies.checkpoint.commit": "the commit of this copy of the package",
    "nclone_env.train.policies.files": "cards of the package",
    "nclone_env.train.runs.folder": "lines that are compared with names; numbers of the system",
    "nclone_env.train.runs.record._file_digests": "bytes of which it takes the digest",
    "nclone_env.train.runs.record.note_resumption": "adds to what read_recipe reads",
    "nclone_env.train.runs.recipes": "recipes of the package",
    "nclone_env.train.runs.resume": "snapshots of environments, which read_snapshot checks",
    "nclone_env.cli.profile": "a program that the user runs",
    "nclone_env.cli.watch._is_policy": "the first bytes of a file, which are compared",
    "nclone_env.cli.watch._replayed": "bytes that load_any_recording reads",
    "nclone_env.jobs.shard.as_json": "a header that it has just written",
    "nclone_env.jobs.evaluating._arrays": "arrays of episodes, which are played again before they are submitted",
}
"""Parsers without a target: what they read instead of foreign data, by the beginning of their name."""


@lru_cache(maxsize=1)
def parsers() -> set[str]:
    """Return the names of the functions that parse, each with its module."""
    return {
        name
        for path in PACKAGE.rglob("*.py")
        for name in _parsers(ast.parse(path.read_text(encoding="utf-8")), _module(path))
    }


def _module(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def _parsers(node: ast.AST, name: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from _parsers(child, f"{name}.{child.name}")
            continue
        if isinstance(child, ast.Call):
            called = ast.unparse(child.func)
            if called in PARSERS or called.rpartition(".")[2] in METHODS:
                yield name
        yield from _parsers(child, name)


@lru_cache(maxsize=1)
def reached() -> set[str]:
    """Return the names of the functions of the package that some inputs of all targets of files call."""
    found: set[str] = set()

    def note(frame, event, argument):
        if event == "call":
            code = frame.f_code
            found.add(f"{frame.f_globals.get('__name__')}.{code.co_qualname.replace('.<locals>', '')}")

    targets = [target for target in _TARGETS if target.name != "environment"]  # the levels of others, in play
    inputs = [(target, example) for target in targets for example in target.examples()]
    inputs += [(target, target.input(1, number)) for target in targets for number in range(_MUTANTS)]
    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        for target, example in inputs:
            with suppress(Exception):  # what is wrong with that is for the fuzzer to find
                target.read(example)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return found


def is_trusted(name: str) -> bool:
    return any(name == start or name.startswith(f"{start}.") for start in TRUSTED)


def test_every_reader_has_a_target():
    missing = {name for name in parsers() if not is_trusted(name)} - reached()
    assert not missing, "add a target to tests/fuzz, or say in TRUSTED what they read instead of foreign data"


def test_what_is_trusted_is_a_parser_without_a_target():
    names = parsers()
    stale = {start for start in TRUSTED if not any(name == start or name.startswith(f"{start}.") for name in names)}
    assert not stale


@pytest.mark.parametrize(
    "source", ["json.loads(x)", "file.read_bytes()", "open_regular(path, 9)", "HEAD.unpack_from(x)", "np.load(x)"]
)
def test_parsers_are_found(source):
    tree = ast.parse(f"class A:\n def one(self, x):\n  if x:\n   return [{source}]\n def two(self):\n  return 5")
    assert [*_parsers(tree, "m")] == ["m.A.one"]
