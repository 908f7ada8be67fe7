"""Measurements written by hand, with round numbers."""

from nclone_env.memory.measure.measurements import (
    COMPILED_CODE,
    INTERPRETER,
    LIBRARIES,
    MADE,
    NATIVE,
    WORKER,
    Advice,
    AllocatingLine,
    Allocations,
    FunctionTime,
    Keeper,
    Machine,
    Measurements,
    OwnedNode,
    PhaseTime,
    ProfileSettings,
    SizePoint,
    Snapshot,
    SourceLine,
    Stage,
    Traced,
    UntracedLine,
)

STEPS = range(0, 1001, 50)


def measurements(traced_per_step: int = 0, native_per_step: int = 0) -> Measurements:
    """Return measurements written by hand: 4 environments over 1,000 steps."""
    return Measurements(
        machine=Machine("Linux", "a processor", 2, "CPython 3.11", (("numpy", "2.4"),), "a table"),
        settings=ProfileSettings(4),
        name="stub",
        unit="vector step",
        facts=(("levels", "one"), ("observations", "game_state")),
        env_steps=4,
        snapshots=tuple(
            Snapshot(step, 90_000, 80_000, 70_000, 0, 50_000 + native_per_step * step, 7_000, 6_000) for step in STEPS
        ),
        stages=(
            Stage(INTERPRETER, 9_000, 8_000, 0, 0, "by hand"),
            Stage(LIBRARIES, 55_000, 50_000, 40_000, 99_000, "by hand"),
            Stage(COMPILED_CODE, 65_000, 60_000, 50_000, 98_000, "by hand"),
            Stage(MADE, 90_000, 80_000, 70_000, 97_000, "by hand"),
        ),
        owners=(
            OwnedNode(0, "environment", 3_000, 4_000, 6_000, mapped=False),
            OwnedNode(1, "levels", 3_000, 0, 2_000, mapped=False),
            OwnedNode(1, "state", 0, 3_980, 3_980, mapped=False),
            OwnedNode(1, "first detail", 0, 8, 8, mapped=False),
            OwnedNode(1, "second detail", 0, 12, 12, mapped=False),
        ),
        traced=tuple(Traced(step, 5_000 + traced_per_step * step) for step in STEPS),
        line_steps=(200, 1000),
        lines=(
            SourceLine("a.py", 1, (100, 400), (1, 2), ("caller.py:7", "main.py:1")),
            SourceLine("b.py", 2, (900, 900), (3, 3)),
            SourceLine("c.py", 3, (0, 50), (0, 1), ("mine.py:5",), "mine.py:5"),
        ),
        untraced=(UntracedLine(NATIVE, "native.py:4", 0.5), UntracedLine(WORKER, "worker.py:6", 1.0)),
        advice=(Advice("--picture-size 64", 2_048, "--picture-size 64 saves 2.0 KB."),),
        keepers=(Keeper("a.py:1", "Keep.kept < env", "list of 2: bytes"),),
        judged=(200, 1000),
        loading=0.01,
        step_peaks=(9_999,) * 200 + (300,) * 799 + (500,),
        sizes=(
            SizePoint(10, 21_000, 0, 10_000, 13_000, None),
            SizePoint(20, 31_000, 0, 20_000, 23_000, None),
            SizePoint(40, 51_000, 0, 40_000, 43_000, None),
            SizePoint(10, 99_000, 0, 10_000, 13_000, -500),
            SizePoint(40, 99_000, 0, 40_000, 43_000, 1_000),
        ),
        allocations=Allocations(
            (AllocatingLine("a.py", 1, 20, 2_000, ("caller.py:7",)), AllocatingLine("b.py", 2, 5, 30_720)),
            10,
            b"a page",
        ),
        phases=(PhaseTime("whole step", 0.002), PhaseTime("simulation", 0.0015), PhaseTime("rest", -0.00001)),
        functions=(
            FunctionTime("a.py", 1, "outer", 1000, 0.1, 1.0),
            FunctionTime("a.py", 9, "inner", 2000, 0.9, 0.9),
            FunctionTime("a.py", 19, "tiny", 1, 1e-6, 1e-6),
        ),
        profile=b"a profile",
        step_seconds=(0.0005,) * 1000,
        profiled_seconds=2.0,
    )
