"""Coverage-guided fuzzing of the readers of files, which are pure Python, with atheris. Ends at the first finding.

python -m tests.fuzz.coverage TARGET [-max_total_time=60] [-runs=N] [FOLDER]

Inputs that reach new code are kept in the folder, if there is one; options are those of libFuzzer.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import FunctionType

import atheris

from nclone_env.env import snapshot
from nclone_env.level import level, solutions
from nclone_env.level.formats import attract, map_bytes, pack_text, reader, text
from nclone_env.replay import recording

from .targets import TARGETS
from .trial import attempt

_FORMATS = (attract, map_bytes, pack_text, reader, text)
_READERS = (*_FORMATS, level, recording, snapshot, solutions)


def instrument() -> None:
    """Let the functions of the readers report which branches they take; kernels stay as they are."""
    for module in _READERS:
        parts = [part for part in vars(module).values() if getattr(part, "__module__", None) == module.__name__]
        for part in parts:
            for item in vars(part).values() if isinstance(part, type) else (part,):
                if isinstance(item, FunctionType):
                    atheris.instrument_func(item)


def main(name: str, options: list[str]) -> None:
    """Fuzz one target; raise ``AssertionError`` at the first finding."""
    target = TARGETS[name]
    instrument()

    def try_one(data: bytes) -> None:
        trial = attempt(target, data)
        assert not trial.fault, f"{trial.fault}\n{trial.detail}"

    with tempfile.TemporaryDirectory() as folder:
        for number, example in enumerate(target.examples()):
            target.read(example)  # compiles what is to be compiled
            (Path(folder) / str(number)).write_bytes(example)
        kept = [option for option in options if not option.startswith("-")]
        flags = [option for option in options if option.startswith("-")]
        atheris.Setup([sys.argv[0], *flags, *kept, folder], try_one)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
