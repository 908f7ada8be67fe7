"""Objects that were allocated at lines that grow, sampled among all objects of the process."""

import ctypes
import gc
import os
import sys
import time
import types
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import nlargest
from io import BytesIO
from itertools import compress, filterfalse, repeat
from operator import is_, is_not
from pathlib import Path
from typing import Any

from nclone_env.memory.measurements import Place
from nclone_env.memory.traced import is_own, place_of

SAMPLES = 3  # survivors of a line that are followed
_LOOK = 4096  # objects between two looks at the clock
FOLDER = str(Path(__file__).parent) + os.sep
UNTRACKED = (dict, tuple)  # those of numbers and texts; a tuple made for each object would be traced
NO_HOLDERS = {types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.GetSetDescriptorType, type}
"""Types of which there are many, and which hold what they hold in dictionaries and cells."""
_CANDIDATES = 300  # survivors of which they are chosen
_HAS_ATTRIBUTES, _HEADER = 1 << 4, 4 * tuple.__itemsize__
"""Flag of types whose objects have attributes, and the bytes of a block before such an object."""
_CONTAINERS = (list, dict, set, deque)
_BUFFERS = frozenset((*_CONTAINERS, bytearray, array, BytesIO))
"""Types of objects that grow in place."""
_NEAR = 100  # objects near running variables
_FIXED = {*NO_HOLDERS, int, float, str, bytes, bool, tuple, type(None)}
"""Types of objects that take no further memory."""
_LARGEST, _ENOUGH = 200, 60  # containers that are searched first, as what grows is among them, and parts of each


def survivors(by_place: Mapping[Place, str], traced: list[Any], deadline: float) -> dict[str, list[Any]]:
    """Return objects that were allocated at each line, newest first; most of those in ``traced`` were traced."""
    found: dict[str, dict[int, Any]] = {}
    missing = set(by_place.values())
    place_at = cache(place_of)
    for things in _likely(traced, objects()):
        for thing, stack in _traced(things):
            place = place_at(stack)
            line = by_place.get(place) if place else None
            if line is not None and len(found.setdefault(line, {})) < _CANDIDATES:
                found[line][id(thing)] = thing
        missing = {line for line in missing if len(found.get(line, ())) < SAMPLES}
        if not missing or time.thread_time() > deadline:
            break
    return {line: list(things.values()) for line, things in found.items()}


def objects() -> list[Any]:
    """Return the variables of running code, and the objects that the collector shows, newest first, but no tuples.

    The code may be making a tuple now. That fails if there is a reference to it besides its own.
    """
    generations = gc.get_objects(0), gc.get_objects(1), gc.get_objects(2)
    found = [thing for _, thing in running_variables()]  # made now, so that it is not among its own objects
    for things in generations:
        things.reverse()
        found.extend(compress(things, map(is_not, map(type, things), repeat(tuple))))
        things.clear()
    return found


def _likely(traced: list[Any], things: list[Any]) -> Iterator[list[Any]]:
    """Yield parts of the largest containers among all things, the traced ones, and what all things refer to."""
    containers = [thing for thing in things if type(thing) in _CONTAINERS and len(thing) >= _ENOUGH]
    yield [part for container in nlargest(_LARGEST, containers, len) for part in _sampled(container)]
    yield from _looks(traced)
    for some in _looks(things):  # of numbers, texts and arrays, which the collector does not show
        parts = _hidden(gc.get_referents(*some))
        for _ in range(SAMPLES):
            yield parts
            parts = gc.get_referents(*(part for part in parts if type(part) in UNTRACKED))


def _looks(things: list[Any]) -> Iterator[list[Any]]:
    """Yield things in parts of which each takes little time; between two of them one may look at the clock."""
    return (things[first : first + _LOOK] for first in range(0, len(things), _LOOK))


def _hidden(parts: list[Any]) -> list[Any]:
    """Return those of some objects that :func:`objects` does not show."""
    tuples = compress(parts, map(is_, map(type, parts), repeat(tuple)))
    return [*filterfalse(gc.is_tracked, parts), *filter(gc.is_tracked, tuples)]


def _traced(things: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield those of some objects that tracemalloc knows, with the call stacks that made them."""
    from _tracemalloc import _get_object_traceback

    for thing, stack in zip(things, map(_get_object_traceback, things)):
        if stack is not None:
            yield thing, stack
    if sys.version_info < (3, 12):  # it looks at the wrong address of objects with attributes
        kinds = {kind for kind in set(map(type, things)) if kind.__flags__ & _HAS_ATTRIBUTES}
        those = [thing for thing in things if type(thing) in kinds] if kinds else []
        for thing in those:
            stack = _traceback_at()(0, id(thing) - _HEADER)
            if stack is not None:
                yield thing, stack


@cache
def _traceback_at() -> Callable[[int, int], Any]:
    """Return tracemalloc's function from domain and address to the call stack that took the block, or None."""
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_uint, ctypes.c_size_t)
    return prototype(("_PyTraceMalloc_GetTraceback", ctypes.pythonapi))


def _sampled(container: Any) -> list[Any]:
    """Return some parts of a container."""
    parts = list(container.values() if isinstance(container, dict) else container)
    return parts[:: max(1, len(parts) // _ENOUGH)]


def asked(question: Callable[[Any], Any], thing: Any, otherwise: Any) -> Any:
    """Return the answer of an object of the user, which may raise anything instead."""
    try:
        return question(thing)
    except Exception:  # noqa: BLE001
        return otherwise


def running_variables(is_wanted: Callable[[str], bool] = lambda file: True) -> Iterator[tuple[str, Any]]:
    """Yield ``function.variable`` and value of the code that runs now in wanted files, but for the profiler's."""
    for outermost in sys._current_frames().values():
        frame: types.FrameType | None = outermost
        while frame is not None:
            code = frame.f_code
            if is_wanted(code.co_filename) and not code.co_filename.startswith(FOLDER):
                function = "" if code.co_name == "<module>" else f"{code.co_name}."
                yield from ((f"{function}{name}", value) for name, value in list(frame.f_locals.items()))
            frame = frame.f_back


def grown_object(places: Collection[Place], size: int, deadline: float) -> Any:
    """Return an object that has memory of its own, taken at some places, such as the table of a list; None if none has.

    It has at least ``size`` bytes, unless it is near a running variable. The search ends at a time of this thread.
    """
    near = [thing for _, thing in running_variables(is_own) if type(thing) not in _FIXED]
    inner = [thing for thing in gc.get_referents(*near[:_NEAR]) if type(thing) not in _FIXED]
    for thing in (*near, *inner)[:_NEAR]:
        if _has_memory_of(thing, places):
            return thing
    for some in _looks(objects()):
        large = (part for part in (*some, *_hidden(gc.get_referents(*some))) if type(part) in _BUFFERS)
        for thing in large:
            if sys.getsizeof(thing) >= size and _has_memory_of(thing, places):
                return thing
        if time.thread_time() > deadline:
            break
    return None


def _has_memory_of(thing: Any, places: Collection[Place]) -> bool:
    """Return whether one of the words of an object is the address of a block that was taken at one of some places."""
    words = memoryview(ctypes.string_at(id(thing), type(thing).__basicsize__ // 8 * 8)).cast("Q")
    stacks = (_traceback_at()(0, word) for word in words if word)
    return any(place_of(stack) in places for stack in stacks if stack is not None)


def untracked_holder(things: Sequence[Any], deadline: float) -> list[Any]:
    """Return a dictionary or tuple that the collector does not track and that has one of some objects, if any."""
    for some in _looks(objects()):
        parts = [*some, *gc.get_referents(*some)]
        for _ in range(SAMPLES):
            holders = [part for part in _hidden(parts) if type(part) in UNTRACKED]
            parts = gc.get_referents(*holders)
            if any(is_among(parts, thing) for thing in things):
                inside = ((part, gc.get_referents(part)) for part in holders)
                return next([part] for part, parts in inside if any(is_among(parts, thing) for thing in things))
        if time.thread_time() > deadline:
            break
    return []


def is_among(parts: Iterable[Any], thing: Any) -> bool:
    """Return whether an object is among others; numbers made here would be traced, which takes microseconds each."""
    return any(map(is_, parts, repeat(thing)))
