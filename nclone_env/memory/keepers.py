"""Who keeps memory: from sampled survivors of a line, through their referrers, to a name that a person knows."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
import types
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from heapq import nlargest
from itertools import compress, filterfalse, repeat
from operator import is_, is_not
from pathlib import Path
from typing import Any, NamedTuple

from nclone_env.memory.measurements import NATIVE, Keeper, Place
from nclone_env.memory.traced import place_of

_SAMPLES = 3  # survivors of a line that are followed
_LARGE = 1024  # bytes of an object that may be all that grows
_CANDIDATES = 300  # of which they are chosen
_DEPTH = 14
_WIDTH = 12  # objects of a level that are followed
_LOOK = 16384  # objects between two looks at the clock
_GRAPH = 5_000  # operations of a graph that are counted
_FOLDER = str(Path(__file__).parent) + os.sep
_HAS_ATTRIBUTES, _HEADER = 1 << 4, 4 * tuple.__itemsize__
"""Flag of types whose objects have attributes, and the bytes of a block before such an object."""
_FRAME_TYPES = (types.FrameType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_CACHE = type(lru_cache(lambda: None))
_CONTAINERS = (list, dict, set, deque)
_UNTRACKED = (dict, tuple)  # those of numbers and texts; a tuple made for each object would be traced
_LARGEST, _ENOUGH = 200, 60  # containers that are searched first, as what grows is among them, and parts of each
_NO_HOLDERS = {types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.GetSetDescriptorType, type}
"""Types of which there are many, and which hold what they hold in dictionaries and cells."""


class _Node(NamedTuple):
    """An object on the way from a survivor to a name."""

    thing: Any
    names: tuple[str, ...]
    """From the survivor on."""
    size: int
    """Length of the largest container so far."""
    container: str
    key: str
    """Under which the object below is in ``thing``, if that is a dictionary."""


def find_keepers(
    lines: Mapping[str, Collection[Place]], seconds: float, include: Callable[[], object] = lambda: None
) -> tuple[Keeper, ...]:
    """Return the keeper of each line for which one is found.

    Args:
        lines: the places of each line by its name in the report.
        seconds: of this thread, to search in at most.
        include: makes the collector show the objects, too, that were made before tracing began.
    """
    traced = _objects()
    include()
    deadline = time.thread_time() + seconds
    by_place = {place: name for name, places in lines.items() for place in places}
    found = _survivors(by_place, traced, deadline)
    traced.clear()
    samples = {
        line: things[:: max(1, len(things) // _SAMPLES)][:_SAMPLES]
        for line, things in found.items()
        if len(things) >= _SAMPLES or _asked(sys.getsizeof, things[0], 0) > _LARGE  # others are what the line makes now
    }
    walk = _Walk(deadline + seconds, {id(things) for things in (*found.values(), *samples.values())})
    chains: dict[str, list[tuple[str, str]]] = {line: [] for line in samples}
    for number in range(_SAMPLES):  # of all lines first: in a large heap there is time for a few
        for line, things in samples.items():
            chain = walk.chain(things[number]) if number < len(things) else None
            if chain is not None:
                chains[line].append(chain)
    most = {line: Counter(found).most_common(1)[0][0] for line, found in chains.items() if found}
    return tuple(Keeper(line, name, kind) for line, (name, kind) in most.items())


def find_graphs(seconds: float, include: Callable[[], object]) -> tuple[Keeper, ...]:
    """Return the tensor of torch whose graph of operations is the largest, if torch is loaded and there is one.

    The arguments are those of :func:`find_keepers`.
    """
    torch = sys.modules.get("torch")
    if not hasattr(torch, "Tensor"):
        return ()

    def has_graph(thing: Any) -> bool:
        return type(thing) is torch.Tensor and thing.grad_fn is not None  # type: ignore[union-attr]

    variables = [(name, thing) for name, thing in _locals() if has_graph(thing)]  # the code goes on and sets them again
    others = [("", thing) for thing in filter(has_graph, _objects())]
    tensors = [
        (_operations(thing.grad_fn), -number, thing, name) for number, (name, thing) in enumerate((*variables, *others))
    ]
    if not tensors:
        return ()
    operations, _, tensor, name = max(tensors)
    del variables, others, tensors
    if not name:
        include()
        chain = _Walk(time.thread_time() + seconds).chain(tensor)
        name = chain[0] if chain else "a tensor"
    head, *holders = name.split(" < ")
    return (Keeper(NATIVE, " < ".join((f"{head}.grad_fn", *holders)), f"graph of {operations:,} operations"),)


def _operations(grad_fn: Any) -> int:
    seen, waiting = {grad_fn}, [grad_fn]
    while waiting and len(seen) < _GRAPH:
        for following, _ in waiting.pop().next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return len(seen)


def _survivors(by_place: Mapping[Place, str], traced: list[Any], deadline: float) -> dict[str, list[Any]]:
    """Return objects that were allocated at each line, newest first; most of those in ``traced`` were traced."""
    found: dict[str, dict[int, Any]] = {}
    missing = set(by_place.values())
    place_at = cache(place_of)
    for things in _likely(traced, _objects()):
        for thing, stack in _traced(things):
            place = place_at(stack)
            line = by_place.get(place) if place else None
            if line is not None and len(found.setdefault(line, {})) < _CANDIDATES:
                found[line][id(thing)] = thing
        missing = {line for line in missing if len(found.get(line, ())) < _SAMPLES}
        if not missing or time.thread_time() > deadline:
            break
    return {line: list(things.values()) for line, things in found.items()}


def _objects() -> list[Any]:
    """Return the variables of running code, and the objects that the collector shows, newest first, but no tuples.

    The code may be making a tuple now. That fails if there is a reference to it besides its own.
    """
    generations = gc.get_objects(0), gc.get_objects(1), gc.get_objects(2)
    found = [thing for _, thing in _locals()]  # made now, so that it is not among its own objects
    for things in generations:
        things.reverse()
        found.extend(compress(things, map(is_not, map(type, things), repeat(tuple))))
        things.clear()
    return found


def _likely(traced: list[Any], things: list[Any]) -> Iterator[list[Any]]:
    """Yield parts of the largest containers among all things, the traced ones, and what all things refer to."""
    containers = [thing for thing in things if type(thing) in _CONTAINERS and len(thing) >= _ENOUGH]
    yield [part for container in nlargest(_LARGEST, containers, len) for part in _sampled(container)]
    for first in range(0, len(traced), _LOOK):
        yield traced[first : first + _LOOK]
    for first in range(0, len(things), _LOOK):  # of numbers, texts and arrays, which the collector does not show
        parts = _hidden(gc.get_referents(*things[first : first + _LOOK]))
        for _ in range(_SAMPLES):
            yield parts
            parts = gc.get_referents(*(part for part in parts if type(part) in _UNTRACKED))


def _hidden(parts: list[Any]) -> list[Any]:
    """Return those of some objects that :func:`_objects` does not show."""
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


class _Walk:
    """Search through referrers, breadth first, until a name is found."""

    def __init__(self, deadline: float, ours: Collection[int] = ()):
        self._deadline, self._ours = deadline, ours
        self._modules = {id(vars(module)): name for name, module in list(sys.modules.items()) if _has_dict(module)}
        self._modules[id(vars(sys.modules["__main__"]))] = "__main__"
        self._locals = {id(value): name for name, value in _locals()}

    def chain(self, thing: Any) -> tuple[str, str] | None:
        """Return the names that lead to an object, and what is kept; None if no name is found."""
        level = [_Node(thing, (), 0, "", "")]
        seen = {id(thing), id(level), id(self.__dict__), *self._ours}
        best: tuple[str, str] | None = None
        for _ in range(_DEPTH):
            for node in level:
                if id(node.thing) in self._locals:
                    return _answer(thing, node, self._locals[id(node.thing)])
            if not level or time.thread_time() > self._deadline:
                break
            following: list[_Node] = []
            roots: list[tuple[_Node, str]] = []
            seen |= {id(following), id(roots), *map(id, level)}
            for node, referrer in _referrers(level, seen, self._deadline):
                name, is_root = self._name(referrer, node)
                if is_root:
                    roots.append((node, name))
                    continue
                following.append(_above(referrer, node, name))
                if name and best is None:
                    best = _answer(thing, following[-1], "")
            if roots:  # the shortest: a pool of results knows them, but the list of the user keeps them
                return _answer(thing, *min(roots, key=lambda root: len(root[0].names)))
            level = following[:_WIDTH]
        return best

    def _name(self, holder: Any, node: _Node) -> tuple[str, bool]:
        """Return the name under which ``holder`` has the object, and whether that is enough for a person."""
        thing, kind = node.thing, type(holder)
        if issubclass(kind, dict):
            module = self._modules.get(id(holder))
            if module is None:
                return "", False
            name = _key(holder, thing)
            return (name if module == "__main__" else f"{module}.{name}"), bool(name)
        if issubclass(kind, _FRAME_TYPES):
            frame = _frame(holder)
            code = frame.f_code if frame is not None else None
            local = _key(frame.f_locals, thing) if frame is not None else ""
            return f"{code.co_name}.{local}" if code is not None and local else "", bool(local)
        if issubclass(kind, type):
            name = _key(vars(holder), thing) or node.key
            return f"{holder.__name__}.{name}", bool(name)
        if kind is _CACHE:
            return f"{getattr(holder, '__name__', 'function')}.cache", False
        if kind is types.FunctionType:
            return _closure_name(holder, node), False
        if kind.__name__ == "_local":
            return f"thread-local {node.key}", False
        attributes = _asked(vars, holder, None)
        if isinstance(attributes, dict) and not issubclass(kind, types.ModuleType):
            inner = attributes is thing
            name = node.key if inner else _key(attributes, thing)
            return f"{kind.__name__}.{name}" if name else "", False
        return "", False


def _referrers(level: Sequence[_Node], seen: set[int], deadline: float) -> Iterator[tuple[_Node, Any]]:
    """Yield nodes with each object that refers to theirs; a look at all objects takes tens of milliseconds."""
    referrers = gc.get_referrers(*(node.thing for node in level))
    seen.add(id(referrers))
    found = [thing for thing in referrers if id(thing) not in seen and not _is_ours(thing)]
    if not found:  # they are in a dictionary or a tuple that the collector does not track
        found = _untracked_holder([node.thing for node in level], deadline)
    seen |= {id(found), *map(id, found)}
    for referrer in found:
        parts = gc.get_referents(referrer)
        node = next((node for node in level if _has(parts, node.thing)), None)
        if node is not None and type(referrer) is not _Node:
            yield node, referrer


def _untracked_holder(things: Sequence[Any], deadline: float) -> list[Any]:
    """Return a dictionary or tuple that the collector does not track and that has one of some objects, if any."""
    everything = _objects()
    for first in range(0, len(everything), _LOOK):
        some = everything[first : first + _LOOK]
        parts = [*some, *gc.get_referents(*some)]
        for _ in range(_SAMPLES):
            holders = [part for part in _hidden(parts) if type(part) in _UNTRACKED]
            parts = gc.get_referents(*holders)
            if any(_has(parts, thing) for thing in things):
                return next([part] for part in holders if any(_has(gc.get_referents(part), thing) for thing in things))
        if time.thread_time() > deadline:
            break
    return []


def _has(parts: Iterable[Any], thing: Any) -> bool:
    """Return whether an object is among others; numbers made here would be traced, which takes microseconds each."""
    return any(map(is_, parts, repeat(thing)))


def _above(holder: Any, node: _Node, name: str) -> _Node:
    names = (*node.names, name) if name and node.names[-1:] != (name,) else node.names
    count, container, kind = node.size, node.container, type(holder)
    if issubclass(kind, Sequence | Mapping | set | frozenset | deque):
        is_attributes = kind is dict and set(map(type, list(holder))) == {str}
        length = _asked(len, holder, 0)
        if length > count and not is_attributes:
            count, container = length, kind.__name__
    elif kind is _CACHE:
        count, container = holder.cache_info().currsize, "lru_cache"
    key = node.key
    if issubclass(kind, dict):
        key = _key(holder, node.thing) or key
    elif kind is types.CellType:
        key = str(id(holder))
    return _Node(holder, names, count, container, key)


def _answer(thing: Any, node: _Node, root: str) -> tuple[str, str]:
    names = list(node.names)
    if root and not (names and names[-1].split(".")[0] == root.rpartition(".")[2]):
        names.append(root)
    kept = describe(thing)
    kind = f"{node.container} of {node.size:,}: {kept}" if node.container else kept
    return " < ".join(names), kind


def describe(thing: Any) -> str:
    """Return the type of an object; with shape and dtype if it is an array or a tensor."""
    return type(thing).__name__ + _asked(_shape, thing, "")


def _shape(thing: Any) -> str:
    shape, dtype = getattr(thing, "shape", None), getattr(thing, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        return f" {tuple(shape)} {str(dtype).removeprefix('torch.')}"
    return ""


def _asked(question: Callable[[Any], Any], thing: Any, otherwise: Any) -> Any:
    """Return the answer of an object of the user, which may raise anything instead."""
    try:
        return question(thing)
    except Exception:  # noqa: BLE001
        return otherwise


def _key(mapping: Mapping[Any, Any], thing: Any) -> str:
    """Return the text under which a mapping has an object; empty if there is none."""
    copied: dict[Any, Any] = _asked(dict, mapping, {})  # another thread may change it
    return next((key for key in compress(copied, map(is_, copied.values(), repeat(thing))) if isinstance(key, str)), "")


def _closure_name(function: types.FunctionType, node: _Node) -> str:
    """Return the function with its variable on the way, whose cell the node below the tuple of cells notes."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if node.key == str(id(cell)):
            return f"{function.__qualname__}.{name}"
    return function.__qualname__


def _frame(holder: Any) -> types.FrameType | None:
    if type(holder) is types.FrameType:
        return holder
    for name in ("gi_frame", "cr_frame", "ag_frame"):
        if hasattr(holder, name):
            frame: types.FrameType | None = getattr(holder, name)
            return frame
    return None


def _locals() -> Iterator[tuple[str, Any]]:
    """Yield ``function.variable`` and value of all code that runs now, in all threads, without the profiler's."""
    for outermost in sys._current_frames().values():
        frame: types.FrameType | None = outermost
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(_FOLDER):
                function = "" if code.co_name == "<module>" else f"{code.co_name}."
                yield from ((f"{function}{name}", value) for name, value in list(frame.f_locals.items()))
            frame = frame.f_back


def _is_ours(thing: Any) -> bool:
    frame = _frame(thing) if issubclass(type(thing), _FRAME_TYPES) else None
    code = thing.__code__ if type(thing) is types.FunctionType else frame.f_code if frame is not None else None
    return code is not None and code.co_filename.startswith(_FOLDER)


def _has_dict(module: Any) -> bool:
    return issubclass(type(module), types.ModuleType)
