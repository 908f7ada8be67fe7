"""Who keeps memory: from sampled survivors of a line, through their referrers, to a name that a person knows."""

from __future__ import annotations

import gc
import os
import sys
import time
import types
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from nclone_env.memory.measurements import NATIVE, Keeper, Place
from nclone_env.memory.traced import place_of

_SAMPLES = 3  # survivors of a line that are followed
_CANDIDATES = 300  # of which they are chosen
_DEPTH = 14
_WIDTH = 12  # objects of a level that are followed
_LOOK = 4096  # objects between two looks at the clock
_GRAPH = 5_000  # operations of a graph that are counted
_FOLDER = str(Path(__file__).parent) + os.sep
_FRAME_TYPES = (types.FrameType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_CACHE = type(lru_cache(lambda: None))
_CONTAINERS = (list, dict, set, deque)
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


def find_keepers(lines: Mapping[str, Collection[Place]], seconds: float) -> tuple[Keeper, ...]:
    """Return the keeper of each line for which one is found.

    Args:
        lines: the places of each line by its name in the report.
        seconds: of this thread, to search in at most.
    """
    deadline = time.thread_time() + seconds
    by_place = {place: name for name, places in lines.items() for place in places}
    found = _survivors(by_place, deadline)
    samples = {line: things[:: max(1, len(things) // _SAMPLES)][:_SAMPLES] for line, things in found.items()}
    walk = _Walk(deadline + seconds, {id(things) for things in (*found.values(), *samples.values())})
    keepers = []
    for line, things in samples.items():
        chains = [chain for thing in things if (chain := walk.chain(thing))]
        if chains:
            (name, kind), _ = Counter(chains).most_common(1)[0]
            keepers.append(Keeper(line, name, kind))
    return tuple(keepers)


def find_graphs(seconds: float) -> tuple[Keeper, ...]:
    """Return the tensor of torch whose graph of operations is the largest, if torch is loaded and there is one."""
    torch = sys.modules.get("torch")
    if not hasattr(torch, "Tensor"):
        return ()
    deadline = time.thread_time() + seconds
    tensors = [thing for thing in gc.get_objects() if type(thing) is torch.Tensor and thing.grad_fn is not None]  # type: ignore[union-attr]
    sizes = [(_operations(tensor.grad_fn), -number) for number, tensor in enumerate(tensors)]
    if not sizes:
        return ()
    operations, number = max(sizes)
    tensor = tensors[-number]
    del tensors
    chain = _Walk(deadline).chain(tensor)
    name = chain[0] if chain else "a tensor"
    head, *others = name.split(" < ")
    return (Keeper(NATIVE, " < ".join((f"{head}.grad_fn", *others)), f"graph of {operations:,} operations"),)


def _operations(grad_fn: Any) -> int:
    seen, waiting = {grad_fn}, [grad_fn]
    while waiting and len(seen) < _GRAPH:
        for following, _ in waiting.pop().next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return len(seen)


def _survivors(by_place: Mapping[Place, str], deadline: float) -> dict[str, list[Any]]:
    """Return objects that were allocated at each line, newest first."""
    from _tracemalloc import _get_object_traceback as traceback_of

    found: dict[str, list[Any]] = {}
    missing = set(by_place.values())
    things = [thing for generation in (0, 1, 2) for thing in reversed(gc.get_objects(generation))]  # newest first
    containers = sorted((thing for thing in things if type(thing) in _CONTAINERS), key=len, reverse=True)[:_LARGEST]
    for holders, parts in ((containers, _sampled), (things, _with_parts), (things, _parts_of_parts)):
        for first in range(0, len(holders), _LOOK):
            if not missing or time.thread_time() > deadline:
                break
            some = [thing for thing in holders[first : first + _LOOK] if type(thing) not in _NO_HOLDERS]
            traced = [part for thing in some for part in parts(thing) if traceback_of(part) is not None]
            for thing in traced:
                stack = traceback_of(thing)
                place = place_of(tuple(stack)) if stack else None
                line = by_place.get(place) if place else None
                if line is not None and len(found.setdefault(line, [])) < _CANDIDATES:
                    found[line].append(thing)
            missing = {line for line in missing if len(found.get(line, ())) < _SAMPLES}
    things.clear()  # now, rather than when garbage is collected: it has all objects
    return found


def _sampled(container: Any) -> list[Any]:
    """Return some parts of a container."""
    parts = list(container.values() if isinstance(container, dict) else container)
    return parts[:: max(1, len(parts) // _ENOUGH)]


def _with_parts(thing: Any) -> list[Any]:
    """Return an object and its parts: the collector shows no numbers, texts and arrays on their own."""
    return [thing, *gc.get_referents(thing)]


def _parts_of_parts(thing: Any) -> list[Any]:
    """Return some parts of the dictionaries that an object has and that the collector does not track either."""
    inner = (part for part in gc.get_referents(thing) if type(part) is dict and not gc.is_tracked(part))
    return [part for holder in inner if len(holder) >= _ENOUGH for part in _sampled(holder)]


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
            seen |= {id(following), *map(id, level)}
            for node, referrer in _referrers(level, seen):
                name, is_root = self._name(referrer, node)
                if is_root:
                    return _answer(thing, node, name)
                following.append(_above(referrer, node, name))
                if name and best is None:
                    best = _answer(thing, following[-1], "")
            level = following[:_WIDTH]
        return best

    def _name(self, holder: Any, node: _Node) -> tuple[str, bool]:
        """Return the name under which ``holder`` has the object, and whether that is enough for a person."""
        thing = node.thing
        if isinstance(holder, dict):
            module = self._modules.get(id(holder))
            if module is None:
                return "", False
            name = _key(holder, thing)
            return (name if module == "__main__" else f"{module}.{name}"), bool(name)
        if isinstance(holder, _FRAME_TYPES):
            frame = _frame(holder)
            code = frame.f_code if frame is not None else None
            local = _key(frame.f_locals, thing) if frame is not None else ""
            return f"{code.co_name}.{local}" if code is not None and local else "", bool(local)
        if isinstance(holder, type):
            name = _key(vars(holder), thing) or node.key
            return f"{holder.__name__}.{name}", bool(name)
        if isinstance(holder, _CACHE):
            return f"{getattr(holder, '__name__', 'function')}.cache", False
        if isinstance(holder, types.FunctionType):
            return _closure_name(holder, node), False
        if type(holder).__name__ == "_local":
            return f"thread-local {node.key}", False
        attributes = getattr(holder, "__dict__", None)
        if isinstance(attributes, dict) and not isinstance(holder, types.ModuleType):
            inner = attributes is thing
            name = node.key if inner else _key(attributes, thing)
            return f"{type(holder).__name__}.{name}" if name else "", False
        return "", False


def _referrers(level: Sequence[_Node], seen: set[int]) -> Iterator[tuple[_Node, Any]]:
    """Yield nodes with each object that refers to theirs; a look at all objects takes tens of milliseconds."""
    nodes = {id(node.thing): node for node in level}
    referrers = gc.get_referrers(*(node.thing for node in level))
    seen.add(id(referrers))
    found = [thing for thing in referrers if id(thing) not in seen and not _is_ours(thing)]
    if not found:  # they are in a dictionary that the collector does not track
        found = [part for part in _untracked() if any(id(value) in nodes for value in part.values())][:1]
    seen |= {id(found), *map(id, found)}
    for referrer in found:
        part = next((part for part in gc.get_referents(referrer) if id(part) in nodes), None)
        if part is not None and not isinstance(referrer, _Node):
            yield nodes[id(part)], referrer


def _untracked() -> Iterator[dict[Any, Any]]:
    """Yield the larger dictionaries that the collector does not track."""
    for thing in gc.get_objects():
        for part in gc.get_referents(thing) if type(thing) not in _NO_HOLDERS else ():
            if type(part) is dict and len(part) >= _ENOUGH and not gc.is_tracked(part):
                yield part


def _above(holder: Any, node: _Node, name: str) -> _Node:
    names = (*node.names, name) if name and node.names[-1:] != (name,) else node.names
    count, container = node.size, node.container
    if isinstance(holder, Sequence | Mapping | set | frozenset) or type(holder).__name__ == "deque":
        is_attributes = isinstance(holder, dict) and holder and all(isinstance(key, str) for key in holder)
        if len(holder) > count and not is_attributes:
            count, container = len(holder), type(holder).__name__
    elif isinstance(holder, _CACHE):
        count, container = holder.cache_info().currsize, "lru_cache"
    key = node.key
    if isinstance(holder, dict):
        key = _key(holder, node.thing) or key
    elif isinstance(holder, types.CellType):
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
    shape, dtype = getattr(thing, "shape", None), getattr(thing, "dtype", None)
    name = type(thing).__name__
    if isinstance(shape, tuple) and dtype is not None:
        return f"{name} {tuple(shape)} {str(dtype).removeprefix('torch.')}"
    return name


def _key(mapping: Mapping[Any, Any], thing: Any) -> str:
    """Return the text under which a mapping has an object; empty if there is none."""
    return next((key for key, value in list(mapping.items()) if value is thing and isinstance(key, str)), "")


def _closure_name(function: types.FunctionType, node: _Node) -> str:
    """Return the function with its variable on the way, whose cell the node below the tuple of cells notes."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if node.key == str(id(cell)):
            return f"{function.__qualname__}.{name}"
    return function.__qualname__


def _frame(holder: Any) -> types.FrameType | None:
    if isinstance(holder, types.FrameType):
        return holder
    for name in ("gi_frame", "cr_frame", "ag_frame"):
        if hasattr(holder, name):
            frame: types.FrameType | None = getattr(holder, name)
            return frame
    return None


def _locals() -> Iterator[tuple[str, Any]]:
    """Yield ``function.variable`` and value of all functions that run now, in all threads, without the profiler's."""
    for outermost in sys._current_frames().values():
        frame: types.FrameType | None = outermost
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(_FOLDER):
                if code.co_name != "<module>":
                    yield from ((f"{code.co_name}.{name}", value) for name, value in list(frame.f_locals.items()))
            frame = frame.f_back


def _is_ours(thing: Any) -> bool:
    frame = _frame(thing) if isinstance(thing, _FRAME_TYPES) else None
    code = thing.__code__ if isinstance(thing, types.FunctionType) else frame.f_code if frame is not None else None
    return code is not None and code.co_filename.startswith(_FOLDER)


def _has_dict(module: Any) -> bool:
    return isinstance(module, types.ModuleType)
