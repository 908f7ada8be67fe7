"""Build the WebAssembly module of the pages into the package (``make web``), and print its sizes.

The kernels are compiled by the LLVM of Numba. Only a linker is needed: ``wasm-ld`` (of Debian's ``lld``), or the
package ``ziglang``, which has it as well. The module imports nothing. It carries what ``simulator.js`` has to know, and
the digest of its sources, in a section of its own.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro

from nclone_env import gallery
from nclone_env.jit.retarget import WASM, object_file
from profiling.checks import web_programs
from profiling.measure import describe

MODULE = Path(gallery.__file__).with_name("web") / "play.wasm"
_FLAGS = ["--no-entry", "--stack-first", "-z", "stack-size=262144", "--export=__heap_base", "--gc-sections"]


def linker() -> list[str]:
    """Return the command of a linker for WebAssembly.

    Raises:
        SystemExit: if there is none.
    """
    found = next(
        filter(None, map(shutil.which, ["wasm-ld", *(f"wasm-ld-{number}" for number in range(30, 13, -1))])), None
    )
    if found:
        return [found]
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "wasm-ld"]
    sys.exit("make web: expected a linker, got none: apt-get install lld, or pip install ziglang")


def link(code: bytes, exports: Iterable[str]) -> bytes:
    """Return the module of an object file."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "play.o", Path(folder) / "play.wasm"
        source.write_bytes(code)
        names = [f"--export={name}" for name in exports]
        subprocess.run([*linker(), *_FLAGS, "--strip-all", "-O2", *names, "-o", str(target), str(source)], check=True)
        return target.read_bytes()


def with_section(module: bytes, name: str, content: bytes) -> bytes:
    """Return a module with a custom section at its end."""
    named = _length(len(name)) + name.encode() + content
    return module + b"\0" + _length(len(named)) + named


def _length(number: int) -> bytes:
    """Return a number in seven bits a byte, lowest first."""
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + _length(rest) if rest else bytes([low])


def main() -> None:
    """Build the module."""
    began = time.process_time()
    exports = web_programs.exports()
    code = link(object_file(exports, WASM), exports)
    layout = json.dumps(web_programs.layout(), separators=(",", ":")).encode()
    module = with_section(code, web_programs.SECTION, layout)
    MODULE.write_bytes(module)
    print(describe())
    print(f"{MODULE.name}: {len(module):,} bytes, {len(gzip.compress(module, 9)):,} compressed")
    print(
        f"{len(layout):,} bytes of it are what pages know of it; {time.process_time() - began:.0f} s of processor time"
    )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
