"""A hand-written recording with round numbers."""

from __future__ import annotations

from nclone_env.memory.recording import (
    COMPILED_CODE,
    ENVIRONMENTS,
    INTERPRETER,
    LIBRARIES,
    FunctionTime,
    Machine,
    ProfileSettings,
    Recording,
    Resident,
    SourceLine,
    Stage,
    Traced,
)
from nclone_env.memory_tree import MemoryNode

STEPS = range(0, 1001, 100)


def recording(traced_per_step: int = 0) -> Recording:
    """Return a hand-written recording of 4 environments over 1,000 steps."""
    tree = MemoryNode(
        "environment",
        children=(MemoryNode("levels", 3000, shared=True), MemoryNode("state", 4000, shared=False)),
    )
    return Recording(
        machine=Machine("Linux", "a processor", 2, "CPython 3.11", (("numpy", "2.4"),), "a table"),
        settings=ProfileSettings(4, levels=("one",), observations=("game_state",)),
        stages=(
            Stage(INTERPRETER, 8_000, "by hand"),
            Stage(LIBRARIES, 50_000, "by hand"),
            Stage(COMPILED_CODE, 60_000, "by hand"),
            Stage(ENVIRONMENTS, 67_500, "by hand"),
        ),
        memory=tree,
        resident=tuple(Resident(step, 90_000, 80_000, 70_000) for step in STEPS),
        traced=tuple(Traced(step, 5_000 + traced_per_step * step, 10) for step in STEPS),
        first_lines=(SourceLine("a.py", 1, 100, 1), SourceLine("b.py", 2, 900, 3)),
        last_lines=(
            SourceLine("a.py", 1, 400, 2),
            SourceLine("b.py", 2, 900, 3),
            SourceLine("c.py", 3, 50, 1),
        ),
        functions=(
            FunctionTime("a.py", 1, "outer", 1000, 0.1, 1.0),
            FunctionTime("a.py", 9, "inner", 2000, 0.9, 0.9),
            FunctionTime("a.py", 19, "tiny", 1, 1e-6, 1e-6),
        ),
        plain_seconds=0.5,
        profiled_seconds=2.0,
    )
