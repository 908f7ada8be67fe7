"""Play runs by kernels compiled for 64-bit ARM and compare the hash of the world after each frame with that of here.

The code is that of ``jit.retarget``; it runs on the machine at hand in an emulator. Needs ``qemu-user`` and
``gcc-aarch64-linux-gnu`` (of Debian; on ARM Linux itself neither). As a control one input of each run is changed on one
side. Exits with 1 if a frame differs, or a control does not.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.jit import kernel
from nclone_env.jit.retarget import ARM, object_file
from nclone_env.level import Level, LevelSet, known_solutions, load_levels, pack
from nclone_env.sim import hash_world, make_worlds, start, tick
from profiling.measure import describe

_BASE, _ALIGNED = 0x2000_0000, 64
_HARNESS = """
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
int32_t hashes(char *block, char *result);
int main(int count, char **names) {  /* a file: its size, the number of blocks, their addresses, arrays */
  FILE *file = fopen(names[1], "r+b");
  uint64_t size;
  if (!file || fread(&size, 8, 1, file) != 1) return 2;
  char *memory = mmap((void *)BASE, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (memory != (char *)BASE || fseek(file, 0, SEEK_SET) || fread(memory, 1, size, file) != size) return 3;
  uint64_t *head = (uint64_t *)memory;
  for (uint64_t number = 0; number < head[1]; number++) {
    uint64_t result;
    if (hashes((char *)head[2 + number], (char *)&result)) return 4;
  }
  if (fseek(file, 0, SEEK_SET) || fwrite(memory, 1, size, file) != size) return 5;
  return fclose(file);
}
"""


class Case(NamedTuple):
    """A level and inputs to play."""

    name: str
    level: Level
    inputs: bytes


@kernel
def play_hashes(levels, worlds, inputs, hashes):
    """Play a world from its start and hash it after each frame."""
    start(levels, worlds, 0, 0)
    for frame in range(inputs.shape[0]):
        tick(levels, worlds, 0, inputs[frame])
        hashes[frame] = hash_world(worlds, 0)


def random_inputs(frames: int, seed: int) -> bytes:
    """Return inputs, each held for four frames."""
    return np.random.default_rng(seed).integers(8, size=-(-frames // 4), dtype=np.uint8).repeat(4)[:frames].tobytes()


def cases(names: tuple[str, ...], frames: int) -> Iterator[Case]:
    """Yield levels with their known and with random inputs."""
    known = known_solutions()
    for seed, level in enumerate(load_levels(list(names))):
        if level.name in known:
            yield Case(f"{level.name}, known", level, bytes(known[level.name]))
        yield Case(f"{level.name}, random", level, random_inputs(frames, seed))


def arguments(case: Case) -> tuple[Any, ...]:
    """Return the arguments of ``play_hashes`` for a case."""
    levels: LevelSet = pack([case.level])
    worlds = make_worlds(1, levels)
    codes = np.frombuffer(case.inputs, np.uint8)
    return levels.arrays, worlds, codes, np.zeros(len(codes), np.uint64)


def image(calls: list[tuple[Any, ...]]) -> tuple[bytes, list[int]]:
    """Return the memory of a process with the arguments of calls, and where the last argument of each lies."""
    blocks = [0] * len(calls)
    memory, results = bytearray(8 * (2 + len(calls))), []

    def place(data: bytes) -> int:
        memory.extend(bytes(-len(memory) % _ALIGNED))
        memory.extend(data)
        return _BASE + len(memory) - len(data)

    for number, call in enumerate(calls):
        slots: list[int] = []
        for array in (item for argument in call for item in (argument if isinstance(argument, tuple) else (argument,))):
            at = place(np.ascontiguousarray(array).tobytes())
            slots += [0, 0, array.size, array.itemsize, at, *array.shape, *array.strides]
        results.append(at - _BASE)
        blocks[number] = place(np.array(slots, np.int64).tobytes())
    memory[: 8 * (2 + len(calls))] = np.array([len(memory), len(calls), *blocks], np.uint64).tobytes()
    return bytes(memory), results


def program(folder: Path) -> list[str]:
    """Build the program for ARM in a folder; return the command that runs it.

    Raises:
        SystemExit: if a tool is missing.
    """
    native = platform.machine() in ("aarch64", "arm64")
    compiler, emulator = shutil.which("gcc" if native else "aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if compiler is None or (emulator is None and not native):
        sys.exit("retarget: expected a C compiler for ARM and qemu: apt-get install gcc-aarch64-linux-gnu qemu-user")
    example = next(cases(("first-steps",), 4))
    code, source, target = folder / "kernels.o", folder / "main.c", folder / "program"
    code.write_bytes(object_file({"hashes": (play_hashes, arguments(example))}, ARM))
    source.write_text(_HARNESS)
    flags = ["-static", "-O1", f"-DBASE={_BASE}"]
    subprocess.run([compiler, *flags, "-o", str(target), str(source), str(code)], check=True)
    return [str(target)] if native else [str(emulator), str(target)]


def run(command: list[str], folder: Path, calls: list[tuple[Any, ...]]) -> list[np.ndarray]:
    """Return the hashes of calls."""
    memory, results = image(calls)
    file = folder / "memory"
    file.write_bytes(memory)
    subprocess.run([*command, str(file)], check=True)
    after = file.read_bytes()
    return [np.frombuffer(after, np.uint64, len(call[-1]), at) for call, at in zip(calls, results)]


def main(levels: Positional[tuple[str, ...]] = ("first-steps", "jumps", "hazards"), frames: int = 600) -> int:
    """Print what differs, and the totals.

    Args:
        levels: levels to play, also files and folders.
        frames: random inputs of a run.

    Returns:
        The exit code.
    """
    print(f"{describe()}; {ARM}")
    began = time.process_time()
    played, control = list(cases(levels, frames)), []
    with TemporaryDirectory() as name:
        folder = Path(name)
        command = program(folder)
        differing = 0
        for first in range(0, len(played), 50):
            some = played[first : first + 50]
            found = run(command, folder, [arguments(case) for case in some])
            for case, hashes in zip(some, found):
                own = arguments(case)
                play_hashes(*own)
                if not np.array_equal(own[-1], hashes):
                    differing += 1
                    print(f"{case.name}: differs from frame {int(np.argmax(own[-1] != hashes))} on")
                control.append(hashes)
    changed = 0
    for case, hashes in zip(played, control):
        own = arguments(case._replace(inputs=case.inputs[:-1] + bytes([case.inputs[-1] ^ 8])))
        play_hashes(*own)
        changed += not np.array_equal(own[-1], hashes)
    total = sum(len(case.inputs) for case in played)
    print(f"{len(played):,} runs, {total:,} frames: {differing} runs differ; {changed:,} of the controls do")
    print(f"{time.process_time() - began:.0f} s of processor time")
    return 1 if differing or not changed else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
