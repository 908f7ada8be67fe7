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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple
from unittest import mock

import numba
import numpy as np
import tyro
from cuda.pathfinder import find_nvidia_binary_utility
from numba import cuda
from numba.core.types import functions
from numba.cuda import compiler, dispatcher
from numba.cuda.core import errors as cuda_errors
from numba.cuda.cudadrv import nvvm
from tyro.conf import Positional

from nclone_env.config import EnvironmentConfig
from nclone_env.env.arrays.buffers import make_buffers
from nclone_env.env.compiled.observe import kernel_view, no_observations
from nclone_env.env.compiled.records import NEXT_STEP
from nclone_env.env.compiled.step import step_range
from nclone_env.env.compiled.step_arrays import make_step_arrays
from nclone_env.env.levels import playable_levels
from nclone_env.obs.spec import observation_specs
from nclone_env.sim import copy
from nclone_env.sim.copy import copy_world, hash_world
from nclone_env.sim.state import make_worlds
from nclone_env.sim.tick import start, tick
from profiling.measure import describe

Capability = tuple[int, int]
CAPABILITY: Capability = (8, 0)
_WORLDS = 2  # only the types of the arrays matter
_OPCODE = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.:]*)", re.MULTILINE)
_FLOAT = r"\bb?f(16|32|64)(x2)?"


def play(levels, worlds, inputs):
    """Play a world from the start of its level with a row of inputs, (n, frames) uint8."""
    index = cuda.grid(1)
    if index < inputs.shape[0]:
        start(levels, worlds, index, index % levels.header.shape[0])
        for frame in range(inputs.shape[1]):
            tick(levels, worlds, index, inputs[index, frame])


def branch(source, indices, target, hashes):
    """Copy world ``indices[index]`` and hash the copy; ``indices`` is (n,) int64, ``hashes`` (n,) uint64."""
    index = cuda.grid(1)
    if index < indices.shape[0]:
        copy_world(source, indices[index], target, index)
        hashes[index] = hash_world(target, index)


def step(arrays, out, final):
    """Step an environment; arguments as of ``step_range``."""
    index = cuda.grid(1)
    if index < arrays.actions.shape[0]:
        step_range(arrays, out, final, 0, 0, index, index + 1)


PROGRAMS: dict[str, Callable[..., None]] = {"play": play, "branch": branch, "step": step}


def arguments(name: str) -> tuple[Any, ...]:
    """Return arguments of the types that a program is compiled for."""
    config = EnvironmentConfig()
    levels = playable_levels(config)
    worlds = make_worlds(_WORLDS, levels)
    actions = np.zeros(_WORLDS, np.int64)
    if name == "play":
        return levels.arrays, worlds, np.zeros((_WORLDS, 1), np.uint8)
    if name == "branch":
        return worlds, actions, worlds, np.zeros(_WORLDS, np.uint64)
    specs = observation_specs(config)
    none = no_observations(specs)
    out = kernel_view(make_buffers(specs, _WORLDS), none)
    return make_step_arrays(config, levels, _WORLDS, NEXT_STEP, slots=1), out, none


@contextmanager
def without_gpu(capability: Capability) -> Iterator[None]:
    """Patch numba-cuda 0.30 so that it compiles the kernels without a GPU.

    It asks the GPU for its capability when a kernel calls another, it has its own function for ``each``, and it expects
    its own class of the error by which Numba's types say that a loop is not unrolled yet.
    """
    device = SimpleNamespace(compute_capability=capability)
    with (
        mock.patch.object(dispatcher, "get_current_device", return_value=device),
        mock.patch.object(copy, "each", cuda.literal_unroll),
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
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.ptx").write_text(ptx)
    return not any(findings)


def main(
    program: Positional[Literal["play", "branch", "step"] | None] = None,
    capability: str = "8.0",
    folder: Path | None = None,
) -> int:
    """Print a block for each program and a line for the control.

    Args:
        program: the program to compile, all by default.
        capability: compute capability of the GPU.
        folder: keep the PTX here.

    Returns:
        The exit code.
    """
    print(f"{describe()}, numba-cuda {version('numba-cuda')}, compute capability {capability}")
    major, minor = (int(number) for number in capability.split("."))
    names = [program] if program else list(PROGRAMS)
    compiled = {name: compile_llvm(name, (major, minor)) for name in {"play", *names}}
    clean = [report(name, compiled[name], (major, minor), folder) for name in names]
    control = find(compile_ptx(compiled["play"], (major, minor), fuse=True)).fused
    print(f"control, play with CUDA's default options: {control:,} fused")
    return 0 if all(clean) and control else 1


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
