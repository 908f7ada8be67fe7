"""Run the kernels on a GPU and on the processor, compare all results bit by bit, and print the speed of both.

Takes the folder of PTX that ``profiling.checks.cuda_ptx --folder`` writes, also on another machine. ``play`` plays
random inputs, held for four frames, each level in an equal share of the worlds; ``step`` steps environments with the
three default observations, pictures among them. As a control, ``play`` compiled with CUDA's default options must
differ. Exits with 1 if a program differs or the control does not. Needs a GPU and the extra ``cuda``.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro
from cuda.core import Device, LaunchConfig, ObjectCode, launch
from numba import cuda
from tyro.conf import Positional

from nclone_env.env.compiled.step import begin, step_range
from nclone_env.game import INPUT_OF_ACTION, NUM_ACTIONS
from nclone_env.jit import kernel
from profiling.checks.cuda_programs import arguments as program_arguments
from profiling.checks.cuda_programs import play_world
from profiling.measure import describe

HOLD = 4
THREADS = 64


class Program:
    """A program of a folder of PTX on the GPU."""

    def __init__(self, folder: Path, name: str):
        ptx = (folder / f"{name}.ptx").read_text()
        entry = re.search(r"\.entry (\w+)\(", ptx)[1]
        self._device = Device()
        self._device.set_current()
        self._stream = self._device.default_stream
        self._kernel = ObjectCode.from_ptx(ptx.encode()).get_kernel(entry)

    def __call__(self, threads: int, arguments: tuple[Any, ...]) -> float:
        """Run in as many threads with arguments on the GPU; return the seconds."""
        config = LaunchConfig(grid=-(-threads // THREADS), block=THREADS)
        began = time.perf_counter()
        launch(self._stream, config, self._kernel, *parameters(arguments))
        self._stream.sync()
        return time.perf_counter() - began


def leaves(value: Any) -> Iterator[Any]:
    """Iterate over the arrays of nested tuples, and None where one is left out."""
    if isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def mapped(value: Any, function: Any) -> Any:
    """Return nested tuples with a function applied to their arrays."""
    if isinstance(value, tuple):
        parts = [mapped(part, function) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return None if value is None else function(value)


def parameters(arguments: tuple[Any, ...]) -> Iterator[int]:
    """Iterate over the parameters of compiled code: for each array its owners, sizes, address, shape and strides."""
    for array in leaves(arguments):
        if array is None:
            yield 0
        else:
            address = array.__cuda_array_interface__["data"][0] if array.size else 0
            yield from (0, 0, array.size, array.dtype.itemsize, address, *array.shape, *array.strides)


def on_gpu(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return copies of the arguments on the GPU."""
    return mapped(arguments, lambda array: cuda.to_device(np.ascontiguousarray(array)))


def different_bytes(arguments: tuple[Any, ...], copies: tuple[Any, ...]) -> tuple[int, int]:
    """Return the number of bytes in which arrays differ from those on the GPU, and of all."""
    different = total = 0
    for array, copy in zip(leaves(arguments), leaves(copies), strict=True):
        if array is not None and array.size:
            left, right = (np.frombuffer(value.tobytes(), np.uint8) for value in (array, copy.copy_to_host()))
            different, total = different + int(np.count_nonzero(left != right)), total + len(left)
    return different, total


def random_inputs(worlds: int, frames: int, seed: int) -> np.ndarray:
    """Return (worlds, frames) uint8 input bytes, each held for ``HOLD`` frames."""
    actions = np.random.default_rng(seed).integers(NUM_ACTIONS, size=(worlds, -(-frames // HOLD)))
    return np.repeat(np.asarray(INPUT_OF_ACTION, np.uint8)[actions], HOLD, axis=1)[:, :frames]


@kernel
def play_range(levels, worlds, inputs, hashes, stop):
    """Play worlds 0 to ``stop - 1`` on the processor."""
    for index in range(stop):
        hashes[index] = play_world(levels, worlds, index, inputs)


@kernel
def begin_range(arrays):
    """Begin the first episode of each environment."""
    for index in range(arrays.actions.shape[0]):
        begin(arrays, index)


class Compared(NamedTuple):
    """What a comparison found: bytes that differ, bytes in all, and frames or steps per second of both."""

    different: int
    total: int
    gpu: float
    processor: float


def play(program: Program, worlds: int, levels: tuple[str, ...], frames: int, seed: int) -> Compared:
    """Play worlds on both."""
    arguments = program_arguments("play", worlds, levels, frames)
    arguments[2][:] = random_inputs(worlds, frames, seed)
    copies = on_gpu(arguments)
    program(worlds, copies)  # the first launch loads the code
    play_range(*arguments, 1)
    seconds = program(worlds, copies)
    began = time.perf_counter()
    play_range(*arguments, worlds)
    elapsed = time.perf_counter() - began
    return Compared(*different_bytes(arguments, copies), worlds * frames / seconds, worlds * frames / elapsed)


def step(program: Program, environments: int, levels: tuple[str, ...], steps: int, seed: int) -> Compared:
    """Step environments on both, with equal random actions; what a step writes is compared after each."""
    arrays, out, final = program_arguments("step", environments, levels)
    arrays.episodes["seed"] = np.arange(environments)
    begin_range(arrays)
    copy, copied_out, copied_final = on_gpu((arrays, out, final))
    rng, bytes_found, times = np.random.default_rng(seed), np.zeros(2, np.int64), np.zeros((steps, 2))
    for number in range(steps):
        arrays.actions[:] = rng.integers(NUM_ACTIONS, size=environments)
        copy.actions.copy_to_device(arrays.actions)
        times[number, 0] = program(environments, (copy, copied_out, copied_final))
        began = time.perf_counter()
        step_range(arrays, out, final, 0, 0, 0, environments)
        times[number, 1] = time.perf_counter() - began
        bytes_found += different_bytes((written(arrays), out), (written(copy), copied_out))
    return Compared(*bytes_found, *environments / np.median(times, axis=0))


def written(arrays: Any) -> tuple[Any, ...]:
    """Return the arrays of environments that a step writes, without the observations."""
    return arrays.episodes, arrays.results, arrays.worlds


def main(
    folder: Positional[Path],
    levels: tuple[str, ...] = ("first-steps", "jumps", "hazards"),
    worlds: tuple[int, ...] = (1024, 16384, 131072),
    frames: int = 600,
    environments: tuple[int, ...] = (1024, 8192),
    steps: int = 50,
    seed: int = 0,
) -> int:
    """Print a line for each program and number of worlds.

    Args:
        folder: PTX of this GPU's compute capability or a lower one.
        levels: levels to play.
        worlds: numbers of worlds; the control plays the first.
        frames: frames of a world.
        environments: numbers of environments; each takes about 100 KB on both sides.
        steps: steps of an environment.
        seed: of the inputs.

    Returns:
        The exit code.
    """
    print(f"{describe()}; {Device().name}")
    clean = True
    for name, run, counts, length in (
        ("play", play, worlds, frames),
        ("step", step, environments, steps),
        ("fused", play, worlds[:1], frames),
    ):
        program = Program(folder, name)
        for count in counts:
            found = run(program, count, levels, length, seed)
            clean &= (found.different > 0) == (name == "fused")
            print(
                f"{name}, {count:,} worlds: {found.different:,} of {found.total:,} bytes differ; "
                f"{found.gpu:,.0f}/s, one core {found.processor:,.0f}/s",
                flush=True,
            )
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
