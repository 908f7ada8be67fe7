"""Compile the kernels for CUDA without a GPU, one world per thread, and check that results would be bit-identical.

The programs are ``play`` (the simulator), ``branch`` (copies and hashes of worlds) and ``step`` (an environment with
the default observations). Needs the extra ``cuda`` (``make cuda``); exits with 1 if a check fails.

A program gives the bits of the CPU if every floating-point operation rounds once, to nearest: PTX marks it ``.rn``. No
product may be fused with a sum, and no operation be left to the assembler, approximated or called from a library. As a
control, ``play`` is also compiled with CUDA's default options, which must be found to fuse.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Literal, NamedTuple
from unittest import mock

import numba
import tyro
from cuda.pathfinder import find_nvidia_binary_utility
from numba import cuda
from numba.core.types import functions
from numba.cuda import compiler, dispatcher
from numba.cuda.core import errors as cuda_errors
from numba.cuda.cudadrv import nvvm
from tyro.conf import Positional

from nclone_env.sim import state
from profiling.checks.cuda_programs import PROGRAMS, arguments
from profiling.measure import describe

Capability = tuple[int, int]
CAPABILITY: Capability = (8, 0)
_OPCODE = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.:]*)", re.MULTILINE)
_FLOAT = r"\bb?f(16|32|64)(x2)?"


@contextmanager
def without_gpu(capability: Capability) -> Iterator[None]:
    """Patch numba-cuda 0.30 so that it compiles the kernels without a GPU.

    It asks the GPU for its capability when a kernel calls another, it has its own function for ``each``, and it expects
    its own class of the error by which Numba's types say that a loop is not unrolled yet.
    """
    device = SimpleNamespace(compute_capability=capability)
    with (
        mock.patch.object(dispatcher, "get_current_device", return_value=device),
        mock.patch.object(state, "each", cuda.literal_unroll),
        mock.patch.object(functions, "errors", cuda_errors),
    ):
        yield


def compile_llvm(name: str, capability: Capability = CAPABILITY) -> list[str]:
    """Return the LLVM modules of a program, its callees among them."""
    signature = tuple(numba.typeof(argument) for argument in arguments(name))
    with without_gpu(capability):
        library, _ = compiler._compile_pyfunc_with_fixup(
            PROGRAMS[name], signature, device=False, cc=capability, abi="numba"
        )
    return library.llvm_strs


def compile_ptx(modules: list[str], capability: Capability = CAPABILITY, fuse: bool = False) -> str:
    """Return the PTX of LLVM modules; ``fuse`` lets products be fused with sums, CUDA's default."""
    architecture = f"compute_{capability[0]}{capability[1]}"
    code = nvvm.compile_ir(modules, arch=architecture, opt=3, fma=fuse, ftz=False, prec_div=True, prec_sqrt=True)
    return code.decode().strip("\0")


class Findings(NamedTuple):
    """Counts of instructions and functions that would change results.

    Attributes:
        fused: products fused with sums.
        unrounded: sums, products, quotients and roots without a rounding mode, which the assembler may fuse.
        approximate: approximations, and numbers flushed to zero.
        calls: function calls; everything should be inlined.
        external: functions declared but not defined.
    """

    fused: int
    unrounded: int
    approximate: int
    calls: int
    external: int


def opcodes(ptx: str) -> Counter[str]:
    """Count the instructions of each kind."""
    return Counter(_OPCODE.findall(ptx))


def find(ptx: str) -> Findings:
    """Count the findings in PTX."""
    counts = opcodes(ptx)

    def count(pattern: str) -> int:
        return sum(number for opcode, number in counts.items() if re.fullmatch(pattern, opcode))

    return Findings(
        fused=count(rf"(fma|mad)\..*{_FLOAT}"),
        unrounded=count(rf"(add|sub|mul|div|sqrt|rcp)\.(?!r[nzmp]\.)(.*\.)?{_FLOAT}"),
        approximate=count(r".*\.(approx|full|ftz)\b.*"),
        calls=count(r"call(\..*)?"),
        external=len(re.findall(r"^\s*\.extern\s+\.func\b", ptx, re.MULTILINE)),
    )


def assemble(ptx: str, capability: Capability = CAPABILITY) -> str:
    """Return the report of NVIDIA's assembler: registers, stack and spilled bytes per thread."""
    assembler = find_nvidia_binary_utility("ptxas")
    if assembler is None:
        return "no assembler found"
    with TemporaryDirectory() as folder:
        source = Path(folder) / "program.ptx"
        source.write_text(ptx)
        target = ["-arch", f"sm_{capability[0]}{capability[1]}", "-o", str(source.with_suffix(".cubin"))]
        done = subprocess.run([assembler, "-v", *target, str(source)], capture_output=True, text=True, check=True)
    registers = re.search(r"Used (\d+) registers", done.stderr)
    frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    if registers is None or frame is None:
        return done.stderr
    return f"{registers[1]} registers, {frame[1]} bytes of stack, {frame[2]} bytes spilled"


def report(name: str, modules: list[str], capability: Capability, folder: Path | None) -> bool:
    """Print the block of a program; return whether it is free of findings."""
    ptx = compile_ptx(modules, capability)
    counts, findings = opcodes(ptx), find(ptx)
    rounded = {what: counts[f"{what}.rn.f64"] for what in ("add", "sub", "mul", "div", "sqrt")}
    print(f"{name}: {counts.total():,} instructions, {len(ptx) / 1024:,.0f} KB; {assemble(ptx, capability)}")
    print("  rounded to nearest: " + ", ".join(f"{number:,} {what}" for what, number in rounded.items()))
    print("  found: " + ", ".join(f"{number} {what}" for what, number in findings._asdict().items()))
    keep(folder, name, ptx)
    return not any(findings)


def keep(folder: Path | None, name: str, ptx: str) -> None:
    """Write PTX to ``NAME.ptx`` in a folder, if there is one."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.ptx").write_text(ptx)


def main(
    program: Positional[Literal["play", "branch", "step"] | None] = None,
    capability: str = "8.0",
    folder: Path | None = None,
) -> int:
    """Print a block for each program and a line for the control.

    Args:
        program: the program to compile, all by default.
        capability: compute capability of the GPU.
        folder: keep the PTX here, for ``profiling.checks.cuda_run``; the control is ``fused.ptx``.

    Returns:
        The exit code.
    """
    print(f"{describe()}, numba-cuda {version('numba-cuda')}, compute capability {capability}")
    major, minor = (int(number) for number in capability.split("."))
    names = [program] if program else list(PROGRAMS)
    compiled = {name: compile_llvm(name, (major, minor)) for name in {"play", *names}}
    clean = [report(name, compiled[name], (major, minor), folder) for name in names]
    fused = compile_ptx(compiled["play"], (major, minor), fuse=True)
    control = find(fused).fused
    print(f"control, play with CUDA's default options: {control:,} fused")
    keep(folder, "fused", fused)
    return 0 if all(clean) and control else 1


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
