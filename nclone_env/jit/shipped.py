"""Machine code that a wheel brings: files as in the cache, and a manifest with their digests.

The folder is part of the package, like its sources, and only read. A file is unpickled only if its SHA-256 is that of
the manifest. Code is found under the name that it would have in the cache, so code of other sources, for another
processor or of another Numba is never found. If a kernel is compiled therefore, a line on stderr says why.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba

from nclone_env.jit.folder import CODE_SUFFIX
from nclone_env.jit.sources import compiler_digest
from nclone_env.jit.target import CodeTarget, target

FOLDER = Path(__file__).parents[1] / "_code"
MANIFEST = "manifest.json"


def python_tag() -> str:
    """Return the part of the names of files that stands for this Python; Windows has no ABI flags."""
    return f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"


def write_manifest(folder: Path, baselines: Iterable[str]) -> None:
    """Write the manifest of a folder of compiled code, for processes like this one; remove all other files."""
    for path in folder.iterdir():
        if path.suffix != CODE_SUFFIX:
            path.unlink()
    manifest = {
        "numba": numba.__version__,
        "compiler": compiler_digest(),
        "python": python_tag(),
        "targets": [target()._replace(processor=name, features="") for name in baselines],
        "files": {path.name: _digest(path.read_bytes()) for path in sorted(folder.glob(f"*{CODE_SUFFIX}"))},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))


def shipped_code(name: str) -> tuple[bytes | None, str]:
    """Return a file of compiled code that came with the package, named as in the cache; None if there is no valid one.

    Also return why there is none; empty if none is to be expected.
    """
    files, reason = _manifest()
    path, digest = FOLDER / name, files.get(name)
    if digest is None:
        return None, reason or _other_sources(name, files)
    try:
        data = path.read_bytes()
    except OSError as error:
        return None, f"{path}: {error.strerror}"
    return (data, "") if _digest(data) == digest else (None, f"{path} is damaged; install the package again")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=1)
def _manifest() -> tuple[Mapping[str, str], str]:
    """Return the digests of the files by name, and why there are none; empty for a package without code."""
    path = FOLDER / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        reason = _difference(manifest)
        files = {str(name): str(digest) for name, digest in manifest["files"].items()}
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}, f"{path} is damaged; install the package again"
    return ({}, reason) if reason else (files, "")


def _difference(manifest: Mapping[str, Any]) -> str:
    """Return why code cannot be for this process; empty if it may be."""
    targets = [CodeTarget(*each) for each in manifest["targets"]]
    if manifest["python"] != python_tag():
        return f"it is for {manifest['python']}, this is {python_tag()}"
    if manifest["numba"] != numba.__version__:
        return f"it is for numba {manifest['numba']}, this is {numba.__version__}"
    if manifest["compiler"] != compiler_digest():
        return "it is for another NumPy, or NUMBA_BOUNDSCHECK is set"
    if target() not in targets:
        return f"it is for {', '.join(each.processor for each in targets)}, this is {target().processor}"
    return ""


def _other_sources(name: str, files: Iterable[str]) -> str:
    """Return a reason if a kernel has code of other sources; empty if it has none, or only for other arguments."""
    kernel, _, rest = name.partition("-")
    digests = {other.split("-")[1].partition(".")[0] for other in files if other.startswith(f"{kernel}-")}
    changed = digests and rest.partition(".")[0] not in digests
    return "it is of other sources than those installed" if changed else ""
