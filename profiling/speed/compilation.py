"""What does compiling cost? Processor seconds of each kernel that Python calls, from an empty cache.

    python -m profiling.speed.compilation [train env plan ...]

The parts are those of ``nclone-env warmup``. A kernel's seconds include the kernels inside; ``optimised`` and
``emitted`` are the shares of LLVM once all of them are linked, the rest is typing and lowering by Numba.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import tyro
from tyro.conf import Positional

from nclone_env.cli.warmup import Part, tasks
from nclone_env.jit import inner
from nclone_env.jit.cache import KernelCache
from nclone_env.jit.notice import kernels_in
from profiling.measure import describe


class Clock:
    """Adds up the processor time of calls of a method."""

    def __init__(self, owner: type, name: str):
        self.seconds = 0.0
        method: Callable[..., Any] = getattr(owner, name)

        def measured(*arguments: Any) -> Any:
            began = time.process_time()
            try:
                return method(*arguments)
            finally:
                self.seconds += time.process_time() - began

        setattr(owner, name, measured)


class Table:
    """A row for each kernel that is compiled from now on."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, int, str]] = []
        library, missed = inner._OuterLibrary, set()
        clocks = [Clock(library, name) for name in ("_optimize_final_module", "_finalize_final_module")]
        compile_kernel, load = inner.KernelDispatcher.compile, KernelCache.load_overload

        def loaded(cache: KernelCache, *arguments: Any) -> Any:
            found = load(cache, *arguments)
            if found is None:
                missed.add(cache._function)
            return found

        def compiled(dispatcher: Any, signature: Any) -> Any:
            began, before = time.process_time(), [clock.seconds for clock in clocks]
            code, function = compile_kernel(dispatcher, signature), dispatcher.py_func
            if function in missed:
                missed.remove(function)
                parts = (clock.seconds - start for clock, start in zip(clocks, before))
                name = f"{function.__module__.removeprefix('nclone_env.')}.{function.__name__}"
                self.rows.append((time.process_time() - began, *parts, len(kernels_in(function)), name))
            return code

        KernelCache.load_overload = loaded
        inner.KernelDispatcher.compile = compiled

    def print(self, least: float) -> None:
        """Print the rows of at least so many seconds, and the sum of all."""
        print("| Kernel | Functions | Seconds | optimised | emitted |\n|---|---:|---:|---:|---:|")
        for seconds, optimised, emitted, count, name in sorted(self.rows, reverse=True):
            if seconds >= least:
                print(f"| `{name}` | {count} | {seconds:.1f} | {optimised:.1f} | {emitted:.1f} |")
        sums = [sum(row[column] for row in self.rows) for column in range(3)]
        print(f"| all {len(self.rows)} | | {sums[0]:.1f} | {sums[1]:.1f} | {sums[2]:.1f} |")


def main(parts: Positional[tuple[Part, ...]] = ("train",), least: float = 0.5) -> None:
    """Compile and print the table.

    Args:
        parts: what to compile.
        least: seconds of the kernels that are listed.
    """
    print(describe())
    with TemporaryDirectory() as folder:
        os.environ |= {"NCLONE_ENV_CACHE_DIR": folder, "NCLONE_ENV_QUIET": "1"}
        table = Table()
        for task in tasks(parts):
            task.run()
        table.print(least)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
