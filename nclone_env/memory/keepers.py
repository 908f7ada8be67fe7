"""Who keeps memory: from sampled survivors of a line, through their referrers, to a name that a person knows."""

import contextvars
import ctypes
import gc
import os
import sys
import time
import types
from array import array
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from heapq import nlargest
from io import BytesIO
from itertools import compress, filterfalse, repeat
from operator import is_, is_not
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nclone_env.memory.measurements import NATIVE, Keeper, Place
from nclone_env.memory.stats import GrownLine
from nclone_env.memory.traced import is_own, place_of

_LARGE = 1024  # bytes of an object that may be all that grows
_DEPTH = 14
_WIDTH = 12  # objects of a level that are followed
_REACH = 300_000  # objects that are looked at from a variable
_GRAPH = 5_000  # operations of a graph that are counted
_FRAME_TYPES = (types.FrameType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_CACHE = type(lru_cache(lambda: None))
_SAMPLES = 3  # survivors of a line that are followed
_LOOK = 4096  # objects between two looks at the clock
_FOLDER = str(Path(__file__).parent) + os.sep
_UNTRACKED = (dict, tuple)  # those of numbers and texts; a tuple made for each object would be traced
_NO_HOLDERS = {types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.GetSetDescriptorType, type}
"""Types of which there are many, and which hold what they hold in dictionaries and cells."""
_CANDIDATES = 300  # survivors of which they are chosen
_HAS_ATTRIBUTES, _HEADER = 1 << 4, 4 * tuple.__itemsize__
"""Flag of types whose objects have attributes, and the bytes of a block before such an object."""
_CONTAINERS = (list, dict, set, deque)
_BUFFERS = frozenset((*_CONTAINERS, bytearray, array, BytesIO))
"""Types of objects that grow in place."""
_LONG = frozenset((*_CONTAINERS, tuple, frozenset))
_KNOWN = frozenset((*_LONG, *_BUFFERS, str, np.ndarray))
_SLOTS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_mro, _namespace = (type.__dict__[name].__get__ for name in ("__mro__", "__dict__"))
"""Of a class, whatever its own class says."""
_NEAR = 100  # objects near running variables
_FIXED = {*_NO_HOLDERS, int, float, str, bytes, bool, tuple, type(None)}
"""Types of objects that take no further memory."""
_LARGEST, _ENOUGH = 200, 60  # containers that are searched first, as what grows is among them, and parts of each


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
    lines: Sequence[GrownLine], seconds: float, include: Callable[[], object] = lambda: None
) -> tuple[Keeper, ...]:
    """Return the keeper of each line for which one is found within so many seconds of this thread.

    ``include`` makes the collector show the objects, too, that were made before tracing began.
    """
    variables = list(_running_variables())  # held: the code goes on and sets them again
    names, held = {id(value): name for name, value in variables}, [value for _, value in variables]
    del variables
    traced = objects()
    include()
    deadline = time.thread_time() + seconds
    found = _survivors({place: line.place for line in lines for place in line.places}, [*held, *traced], deadline)
    traced.clear()
    for things in found.values():
        things[:] = [thing for thing in things if id(thing) not in names or _size(thing) > _LARGE]
    samples = {
        line: things[:: max(1, len(things) // _SAMPLES)][:_SAMPLES]
        for line, things in found.items()
        if len(things) >= _SAMPLES or _size(next(iter(things), 0)) > _LARGE  # others are made just now
    }
    walk = _Walk(names, time.thread_time() + seconds, {id(held), *map(id, found.values()), *map(id, samples.values())})
    chains: dict[str, list[tuple[str, str]]] = {line.place: [] for line in lines}
    for number in range(_SAMPLES):  # of all lines first: in a large heap there is time for a few
        for line, things in samples.items():
            chain = walk.chain(things[number]) if number < len(things) else None
            if chain is not None:
                chains[line].append(chain)
    for grown in lines:
        if not chains[grown.place] and time.thread_time() < walk.deadline:
            things = samples.get(grown.place, [])
            chain = walk.holder(things)
            if chain is None:
                chain = walk.chain(_grown_object(set(grown.places), grown.grown_bytes, walk.deadline))
            if chain is None and things and time.thread_time() < walk.deadline:
                chain = ("memory of native code" if gc.isenabled() else "garbage, not collected"), _describe(things[0])
            chains[grown.place].extend([chain] if chain is not None else [])
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

    variables = [item for item in _running_variables() if has_graph(item[1])]  # the code goes on and sets them again
    others = [("", thing) for thing in filter(has_graph, objects())]
    tensors = [
        (_operations(thing.grad_fn), -number, thing, name) for number, (name, thing) in enumerate((*variables, *others))
    ]
    if not tensors:
        return ()
    operations, _, tensor, name = max(tensors)
    del variables, others, tensors
    if not name:
        include()
        names = {id(value): variable for variable, value in _running_variables()}
        chain = _Walk(names, time.thread_time() + seconds).chain(tensor)
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


class _Walk:
    """Search through referrers, breadth first, until a name is found."""

    def __init__(self, names: Mapping[int, str], deadline: float, ours: Collection[int] = ()):
        self.deadline, self._ours = deadline, ours
        self._modules = {
            id(_attributes(module)): name
            for name, module in [*sys.modules.items(), ("__main__", sys.modules["__main__"])]
            if issubclass(type(module), types.ModuleType)
        }
        self._locals = names

    def chain(self, thing: Any) -> tuple[str, str] | None:
        """Return the names that lead to an object, and what is kept; None if no name is found."""
        if thing is None:
            return None
        level = [_Node(thing, (), 0, "", "")]
        seen = {id(thing), id(level), id(self.__dict__), *self._ours}
        best: tuple[str, str] | None = None
        for _ in range(_DEPTH):
            for node in level:
                if id(node.thing) in self._locals:
                    return _answer(thing, node, self._locals[id(node.thing)])
            if not level or time.thread_time() > self.deadline:
                break
            following: list[_Node] = []
            roots: list[tuple[_Node, str]] = []
            seen |= {id(following), id(roots), *map(id, level)}
            for node, referrer in _referrers(level, seen, self.deadline):
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

    def holder(self, things: Sequence[Any]) -> tuple[str, str] | None:
        """Return the variable from which one of some objects can be reached, however long the chain between them is.

        Each object is looked at once, a few thousand between two looks at the clock: of a large heap there may be no
        time for more. A variable that leads to many waits after ``_REACH`` of them for the others.
        """
        wanted, seen = set(map(id, things)), {*self._ours, *self._modules}
        may_lead = gc.is_tracked if all(map(gc.is_tracked, things)) else _is_anything
        walks = [(name, root, [root]) for name, root in self._roots()] if things else []
        while walks and time.thread_time() < self.deadline:
            for name, root, ahead in walks:
                enough = len(seen) + _REACH
                while ahead and len(seen) < enough and time.thread_time() < self.deadline:
                    fresh = {id(thing): thing for thing in ahead[-_LOOK:] if id(thing) not in seen}
                    del ahead[-_LOOK:]
                    if not wanted.isdisjoint(fresh):
                        return name, f"{_describe(root)} ... {_describe(things[0])}"
                    seen.update(fresh)
                    parts = filter(may_lead, gc.get_referents(*fresh.values()))
                    ahead += [part for part in parts if type(part) not in _NO_HOLDERS]
            walks = [walk for walk in walks if walk[2]]
        return None

    def _roots(self) -> Iterator[tuple[str, Any]]:
        """Yield name and value of the user's running variables, of those of contexts, and of the user's modules."""
        yield from _running_variables(is_own)
        contexts = [thing for thing in objects() if type(thing) is contextvars.Context]
        variables = (item for context in contexts for item in context.items())
        yield from ((f"context variable {variable.name}", value) for variable, value in variables)
        for module in list(sys.modules.values()):
            variables = _attributes(module) if issubclass(type(module), types.ModuleType) else {}
            if is_own(str(variables.get("__file__") or "<frozen")):
                name = self._modules.get(id(variables), "")
                yield from ((f"{name}.{variable}", value) for variable, value in list(variables.items()))

    def _name(self, holder: Any, node: _Node) -> tuple[str, bool]:
        """Return the name under which ``holder`` has the object, and whether that is enough for a person."""
        thing, kind = node.thing, type(holder)
        if issubclass(kind, dict):
            module = self._modules.get(id(holder))
            if module is None:
                return "", False
            name = _key(holder, thing)
            return (name if module == "__main__" else f"{module}.{name}"), bool(name)
        if issubclass(kind, types.ModuleType):
            return f"module {_attributes(holder).get('__name__')}", True
        if issubclass(kind, _FRAME_TYPES):
            frame = _frame(holder)
            code = frame.f_code if frame is not None else None
            local = _key(frame.f_locals, thing) if frame is not None else ""
            return f"{code.co_name}.{local}" if code is not None and local else "", bool(local)
        if issubclass(kind, type):
            name = _key(_attributes(holder), thing) or node.key
            return f"{holder.__name__}.{name}", bool(name)
        if kind is _CACHE:
            return f"{getattr(holder, '__name__', 'function')}.cache", False
        if kind is types.FunctionType:
            return _closure_name(holder, node), False
        if kind.__name__ == "_local":
            return f"thread-local {node.key}", False
        attributes = _attributes(holder)
        name = node.key if attributes is thing else _key(attributes, thing)
        return f"{kind.__name__}.{name}" if name else "", False


def _is_anything(thing: object) -> bool:
    return True


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
        node = next((node for node in level if _is_among(parts, node.thing)), None)
        if node is not None and type(referrer) is not _Node:
            yield node, referrer


def _above(holder: Any, node: _Node, name: str) -> _Node:
    names = (*node.names, name) if name and node.names[-1:] != (name,) else node.names
    count, container, kind = node.size, node.container, type(holder)
    base = _base(holder)
    if base in _LONG:
        is_attributes = kind is dict and set(map(type, list(holder))) == {str}
        length = base.__len__(holder)
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
    kept = _describe(thing)
    kind = f"{node.container} of {node.size:,}: {kept}" if node.container else kept
    return " < ".join(names), kind


def _describe(thing: Any) -> str:
    """Return the type of an object; with shape and dtype if it is an array or a tensor."""
    base, torch = _base(thing), sys.modules.get("torch")
    tensor: Any = getattr(torch, "Tensor", None)
    if base is np.ndarray:
        return f"{type(thing).__name__} {base.shape.__get__(thing)} {base.dtype.__get__(thing)}"
    if type(thing) is tensor:
        return f"Tensor {tuple(thing.shape)} {str(thing.dtype).removeprefix('torch.')}"
    return type(thing).__name__


def _base(thing: Any) -> Any:
    """Return the type of known layout that an object is of; ``object`` if there is none.

    What the objects of a program answer is code of the program: proxies load what they stand for when they are asked,
    also for their class. Only such types are asked about them.
    """
    return next((kind for kind in _mro(type(thing)) if kind in _KNOWN), object)


def _size(thing: Any) -> int:
    return int(_base(thing).__sizeof__(thing))


def _attributes(holder: Any) -> Any:
    """Return the dictionary of an object's attributes, without its own idea of it; an empty one if it has none."""
    slots = (_namespace(kind).get("__dict__") for kind in _mro(type(holder)))
    slot = next((slot for slot in slots if type(slot) in _SLOTS), None)
    return slot.__get__(holder) if slot is not None else {}


def _key(mapping: Mapping[Any, Any], thing: Any) -> str:
    """Return the text under which a mapping has an object; empty if there is none."""
    kind: Any = dict if issubclass(type(mapping), dict) else type(mapping)
    keys, values = list(kind.keys(mapping)), list(kind.values(mapping))  # another thread may change it
    found = compress(keys, map(is_, values, repeat(thing)))
    return next((key for key in found if issubclass(type(key), str)), "")


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


def _is_ours(thing: Any) -> bool:
    frame = _frame(thing) if issubclass(type(thing), _FRAME_TYPES) else None
    code = thing.__code__ if type(thing) is types.FunctionType else frame.f_code if frame is not None else None
    return code is not None and code.co_filename.startswith(_FOLDER)


def _survivors(by_place: Mapping[Place, str], traced: list[Any], deadline: float) -> dict[str, list[Any]]:
    """Return objects that were allocated at each line, newest first; most of those in ``traced`` were traced."""
    found: dict[str, dict[int, Any]] = {}
    missing = set(by_place.values())
    place_at = cache(place_of)
    for things in _likely(traced, objects()):
        for thing, stack in _traced(things):
            place = place_at(stack)
            line = by_place.get(place) if place else None
            if line is not None and not _is_of_context(thing) and len(found.setdefault(line, {})) < _CANDIDATES:
                found[line][id(thing)] = thing
        missing = {line for line in missing if len(found.get(line, ())) < _SAMPLES}
        if not missing or time.thread_time() > deadline:
            break
    return {line: list(things.values()) for line, things in found.items()}


def _is_of_context(thing: Any) -> bool:
    """Return whether an object is a table of a context, made again whenever a variable is set: no value leads to it."""
    return type(thing).__name__.startswith("hamt") and type(thing).__module__ == "builtins"


def objects() -> list[Any]:
    """Return the variables of running code, and the objects that the collector shows, newest first, but no tuples.

    The code may be making a tuple now. That fails if there is a reference to it besides its own.
    """
    generations = gc.get_objects(0), gc.get_objects(1), gc.get_objects(2)
    found = [thing for _, thing in _running_variables()]  # made now, so that it is not among its own objects
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
        for _ in range(_SAMPLES):
            yield parts
            parts = gc.get_referents(*(part for part in parts if type(part) in _UNTRACKED))


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


def _running_variables(is_wanted: Callable[[str], bool] = lambda file: True) -> Iterator[tuple[str, Any]]:
    """Yield ``function.variable`` and value of the code that runs now in wanted files, but for the profiler's."""
    for outermost in sys._current_frames().values():
        frame: types.FrameType | None = outermost
        while frame is not None:
            code = frame.f_code
            if is_wanted(code.co_filename) and not code.co_filename.startswith(_FOLDER):
                function = "" if code.co_name == "<module>" else f"{code.co_name}."
                yield from ((f"{function}{name}", value) for name, value in list(frame.f_locals.items()))
            frame = frame.f_back


def _grown_object(places: Collection[Place], size: int, deadline: float) -> Any:
    """Return an object that has memory of its own, taken at some places, such as the table of a list; None if none has.

    It has at least ``size`` bytes, unless it is near a running variable. The search ends at a time of this thread.
    """
    near = [thing for _, thing in _running_variables(is_own) if type(thing) not in _FIXED]
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


def _untracked_holder(things: Sequence[Any], deadline: float) -> list[Any]:
    """Return a dictionary or tuple that the collector does not track and that has one of some objects, if any."""
    for some in _looks(objects()):
        parts = [*some, *gc.get_referents(*some)]
        for _ in range(_SAMPLES):
            holders = [part for part in _hidden(parts) if type(part) in _UNTRACKED]
            parts = gc.get_referents(*holders)
            if any(_is_among(parts, thing) for thing in things):
                inside = ((part, gc.get_referents(part)) for part in holders)
                return next([part] for part, parts in inside if any(_is_among(parts, thing) for thing in things))
        if time.thread_time() > deadline:
            break
    return []


def _is_among(parts: Iterable[Any], thing: Any) -> bool:
    """Return whether an object is among others; numbers made here would be traced, which takes microseconds each."""
    return any(map(is_, parts, repeat(thing)))
