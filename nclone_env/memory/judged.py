"""What is judged of a run: the quantities over its snapshots, their growth, and until when the program went on."""

from collections.abc import Sequence
from itertools import takewhile

from nclone_env.memory.growth import ARENA, FLOORS, Growth, growth
from nclone_env.memory.measurements import TIME_UNIT, Measurements

_OWNED_SHARE = 0.01
"""Share of the reported bytes by which they may vary: memory for final observations follows the episodes that end."""
_ENDING = 3  # snapshots
_SHORTEST = 1000.0
"""Milliseconds of a run without counted steps below which there is no verdict."""
Points = list[tuple[float, int]]
"""Step, or milliseconds, and bytes of each snapshot."""


def growths_of(measured: Measurements) -> tuple[Growth, ...]:
    """Return the growth of every quantity that was measured."""
    found, floors = series(measured), _floors(measured)
    if "owners" in found:
        floors["owners"] = int(_OWNED_SHARE * found["owners"][-1][1])
    first, last = judged_steps(measured)
    if measured.unit == TIME_UNIT and last - first < _SHORTEST:
        found = {name: [] for name in found}
    judged = {name: [point for point in points if point[0] <= last] for name, points in found.items()}
    return tuple(growth(name, points, first, floors[name]) for name, points in judged.items())


def _floors(measured: Measurements) -> dict[str, int]:
    """Return the bytes by which each quantity but that of owners may vary without anything growing."""
    process = FLOORS["process"] if measured.judged is None else ARENA  # beside code of the user
    return {**FLOORS, "traced": measured.traced_floor, "native": measured.native_floor, "process": process}


def judged_steps(measured: Measurements) -> tuple[float, float]:
    """Return the first and the last step whose snapshots, of memory and of lines, are judged."""
    settings = measured.settings
    first, last = measured.judged or (settings.warm_up_steps, settings.steps)
    return first, min([last, *(points[-1][0] for points in series(measured).values())])


def series(measured: Measurements) -> dict[str, Points]:
    """Return the quantities that were measured: (step, bytes) of each snapshot by name.

    Resident memory is judged without the arrays of owners: that their pages are committed one by one is no growth, and
    that they become larger shows in what the owners report.
    """
    snapshots = measured.snapshots
    found = {
        "native": [(item.step, item.native_bytes) for item in snapshots],
        "process": [(item.step, item.data_bytes - item.committed_bytes) for item in snapshots],
        "workers": [(item.step, item.worker_bytes) for item in snapshots],
        "owners": [(item.step, item.owned_bytes) for item in snapshots],
    }
    known = {name: points for name, points in found.items() if any(size > 0 for _, size in points)}
    traced = [(item.step, item.traced_bytes) for item in measured.traced]
    found = {"traced": traced, **known} if traced else known
    if measured.unit != TIME_UNIT or not found:
        return found
    floors = _floors(measured)
    end = min(_end(points, floors.get(name, ARENA)) for name, points in found.items())
    return {name: [point for point in points if point[0] <= end] for name, points in found.items()}


def _end(points: Points, floor: int) -> float:
    """Return the last snapshot of a program before those at its end where most of what it took is freed."""
    first, most = points[0][1], max(size for _, size in points)
    freed = takewhile(lambda point: most - point[1] > max(floor, point[1] - first), reversed(points[-_ENDING:]))
    count = sum(1 for _ in freed)
    return points[-count - 2 if count else -1][0]  # the one before may be of the same moment


def growing_alone(growths: Sequence[Growth]) -> dict[str, Growth]:
    """Return what grows by its name; without native memory that is blocks of larger objects of Python."""
    growing = {item.quantity: item for item in growths if item.verdict == "growing"}
    if "native" in growing and "traced" in growing and growing["traced"].slope > growing["native"].slope / 2:
        del growing["native"]
    return growing
