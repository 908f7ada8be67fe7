"""Compile the programs of environments on a GPU, without a GPU, and check that results would be bit-identical.

A program gives the bits of the CPU if every floating-point operation rounds once, to nearest: PTX marks it ``.rn``. No
product may be fused with a sum, and no operation be left to the assembler, approximated or called from a library. As a
control, one program is also compiled with products that may be fused, which must be found. Exits with 1 if a check
fails. Where NVIDIA's assembler ``ptxas`` is found, it tells registers and stack.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tyro

from nclone_env.env.cuda import PROGRAMS, arguments_of, mapped, sample
from nclone_env.jit.cuda import block_of, compile_ptx, kept_ptx
from profiling.checks.ptx import find, opcodes, slots_of
from profiling.measure import describe

OBSERVATIONS = ("game_state", "entity_states", "locals", "free_motion", "player_frame", "global_view")
AFTERWARDS = ("action_mask", "action_outcomes")
"""Observations by programs of their own."""


def programs() -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Return kernel and arguments by the name of a program: those of ``game_state`` alone, and those of all."""
    alone, with_all = arguments_of(("game_state",)), arguments_of((*OBSERVATIONS, *AFTERWARDS))
    return {
        **{name: (name, arguments) for name, arguments in alone.items()},
        **{f"{name}_all": (name, arguments) for name, arguments in with_all.items()},
    }


def assemble(ptx: str, capability: str) -> str:
    """Return the report of NVIDIA's assembler: registers, stack and spilled bytes of a thread."""
    assembler = shutil.which("ptxas")
    if assembler is None:
        return "no ptxas found"
    with TemporaryDirectory() as folder:
        source = Path(folder) / "program.ptx"
        source.write_text(ptx)
        target = ["-arch", f"sm_{capability.replace('.', '')}", "-o", str(source.with_suffix(".cubin"))]
        done = subprocess.run([assembler, "-v", *target, str(source)], capture_output=True, text=True, check=False)
    registers = re.search(r"Used (\d+) registers", done.stderr)
    frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    if done.returncode or registers is None or frame is None:
        return f"ptxas: {done.stderr.strip()}"
    return f"{registers[1]} registers, {frame[1]} bytes of stack, {frame[2]} bytes spilled"


def check(name: str, capability: str, folder: Path | None = None, fuse: bool = False) -> bool:
    """Print the block of a program; return whether it is free of findings."""
    program, arguments = programs()[name]
    kernel, given = PROGRAMS[program], mapped(arguments, sample)
    ptx = compile_ptx({program: (kernel, given)}, fuse) if fuse else kept_ptx(program, kernel, given)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}{'_fused' * fuse}.ptx").write_text(ptx)
    counts, findings = opcodes(ptx), find(ptx)
    fits = slots_of(ptx)[program] == len(block_of(arguments)[0])
    print(f"{name}: {counts.total():,} instructions, {len(ptx) / 1024:,.0f} KB; {assemble(ptx, capability)}")
    rounded = {what: counts[f"{what}.rn.f64"] for what in ("add", "sub", "mul", "div", "sqrt")}
    print("  rounded to nearest: " + ", ".join(f"{number:,} {what}" for what, number in rounded.items()))
    print("  found: " + ", ".join(f"{number} {what}" for what, number in findings._asdict().items()), flush=True)
    return fits and not any(findings)


def main(program: tuple[str, ...] = (), capability: str = "8.0", folder: Path | None = None) -> int:
    """Print a block for each program and for the control.

    Args:
        program: programs to compile, all by default: step, reset, and with all observations step_all, reset_all,
            masks_all, outcomes_all.
        capability: compute capability of the GPU that the assembler translates for.
        folder: keep the PTX here.

    Returns:
        The exit code.
    """
    print(f"{describe()}, compute capability {capability}")
    clean = [check(name, capability, folder) for name in program or programs()]
    print("control, products may be fused:")
    control = check("reset", capability, folder, fuse=True)
    return 0 if all(clean) and not control else 1


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
