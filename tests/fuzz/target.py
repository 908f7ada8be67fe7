"""What a target of the fuzzer is: how its inputs are made, and what may become of them."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SOURCE = "mutant"
"""Name under which readers get an input; a message that refuses the input contains it."""


Mutate = Callable[[random.Random], Any]
"""Makes a damaged input as a function of random numbers alone."""


@dataclass(frozen=True)
class Target:
    """One reader, or one set of calls, and the inputs it is tried with.

    Attributes:
        name: as in ``--target``.
        examples: makes undamaged inputs; each of them loads.
        mutate: makes a damaged input.
        read: reads an input, and plays or uses what loads.
        errors: classes that may refuse an input.
        source: a message that refuses an input contains it.
    """

    name: str
    examples: Callable[[], Sequence[Any]]
    mutate: Mutate
    read: Callable[[Any], object]
    errors: tuple[type[Exception], ...]
    source: str = SOURCE

    def input(self, seed: int, number: int) -> Any:
        """Return an input of a seed by its number."""
        return self.mutate(random.Random(f"{self.name} {seed} {number}"))


def in_file(read: Callable[[Path], Any], data: bytes, name: str = SOURCE) -> Any:
    """Return what a function reads in a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return read(path)
