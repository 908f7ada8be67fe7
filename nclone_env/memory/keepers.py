"""Who keeps memory: from sampled survivors of a line, through their referrers, to a name that a person knows."""

import contextvars
import gc
import sys
import time
import types
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress, repeat
from operator import is_
from typing import Any, NamedTuple

from nclone_env.memory.measurements import NATIVE, Keeper
from nclone_env.memory.stats import GrownLine
from nclone_env.memory.survivors import (
    FOLDER,
    NO_HOLDERS,
    SAMPLES,
    asked,
    grown_object,
    is_among,
    objects,
    running_variables,
    survivors,
    untracked_holder,
)
from nclone_env.memory.traced import is_own

_LARGE = 1024  # bytes of an object that may be all that grows
_DEPTH = 14
_WIDTH = 12  # objects of a level that are followed
_REACH = 300_000  # objects that are looked at from a variable
_GRAPH = 5_000  # operations of a graph that are counted
_FRAME_TYPES = (types.FrameType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_CACHE = type(lru_cache(lambda: None))


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
    variables = list(running_variables())  # held: the code goes on and sets them again
    names, held = {id(value): name for name, value in variables}, [value for _, value in variables]
    del variables
    traced = objects()
    include()
    deadline = time.thread_time() + seconds
    found = survivors({place: line.place for line in lines for place in line.places}, [*held, *traced], deadline)
    traced.clear()
    for things in found.values():
        things[:] = [thing for thing in things if id(thing) not in names or asked(sys.getsizeof, thing, 0) > _LARGE]
    samples = {
        line: things[:: max(1, len(things) // SAMPLES)][:SAMPLES]
        for line, things in found.items()
        if len(things) >= SAMPLES or asked(sys.getsizeof, next(iter(things), 0), 0) > _LARGE  # others are made just now
    }
    walk = _Walk(names, time.thread_time() + seconds, {id(held), *map(id, found.values()), *map(id, samples.values())})
    chains: dict[str, list[tuple[str, str]]] = {line.place: [] for line in lines}
    for number in range(SAMPLES):  # of all lines first: in a large heap there is time for a few
        for line, things in samples.items():
            chain = walk.chain(things[number]) if number < len(things) else None
            if chain is not None:
                chains[line].append(chain)
    for grown in lines:
        if not chains[grown.place] and time.thread_time() < walk.deadline:
            things = samples.get(grown.place, [])
            chain = walk.holder(things)
            if chain is None:
                chain = walk.chain(grown_object(set(grown.places), grown.grown_bytes, walk.deadline))
            if chain is None and things and time.thread_time() < walk.deadline:
                chain = ("memory of native code" if gc.isenabled() else "garbage, not collected"), describe(things[0])
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

    variables = [item for item in running_variables() if has_graph(item[1])]  # the code goes on and sets them again
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
        names = {id(value): variable for variable, value in running_variables()}
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
            id(vars(module)): name
            for name, module in list(sys.modules.items())
            if issubclass(type(module), types.ModuleType)
        }
        self._modules[id(vars(sys.modules["__main__"]))] = "__main__"
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
        """Return the variable from which one of some objects can be reached, however long the chain between them is."""
        wanted, seen = set(map(id, things)), {*self._ours, *self._modules}
        for name, root in self._roots() if things else ():
            level, enough = [root], len(seen) + _REACH
            while level and len(seen) < enough and time.thread_time() < self.deadline:
                if any(id(thing) in wanted for thing in level):
                    return name, f"{describe(root)} ... {describe(things[0])}"
                seen.update(map(id, level))
                parts = {id(part): part for part in gc.get_referents(*level) if type(part) not in NO_HOLDERS}
                level = [part for key, part in parts.items() if key not in seen]
        return None

    def _roots(self) -> Iterator[tuple[str, Any]]:
        """Yield name and value of the user's running variables, of those of contexts, and of the user's modules."""
        yield from running_variables(is_own)
        contexts = [thing for thing in objects() if type(thing) is contextvars.Context]
        variables = (item for context in contexts for item in context.items())
        yield from ((f"context variable {variable.name}", value) for variable, value in variables)
        for module in list(sys.modules.values()):
            if is_own(getattr(module, "__file__", None) or "<frozen"):
                yield from ((f"{module.__name__}.{name}", value) for name, value in list(vars(module).items()))

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
            return f"module {holder.__name__}", True
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
        attributes = asked(vars, holder, None)
        if isinstance(attributes, dict):
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
        found = untracked_holder([node.thing for node in level], deadline)
    seen |= {id(found), *map(id, found)}
    for referrer in found:
        parts = gc.get_referents(referrer)
        node = next((node for node in level if is_among(parts, node.thing)), None)
        if node is not None and type(referrer) is not _Node:
            yield node, referrer


def _above(holder: Any, node: _Node, name: str) -> _Node:
    names = (*node.names, name) if name and node.names[-1:] != (name,) else node.names
    count, container, kind = node.size, node.container, type(holder)
    if issubclass(kind, Sequence | Mapping | set | frozenset | deque):
        is_attributes = kind is dict and set(map(type, list(holder))) == {str}
        length = asked(len, holder, 0)
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
    return type(thing).__name__ + asked(_shape, thing, "")


def _shape(thing: Any) -> str:
    shape, dtype = getattr(thing, "shape", None), getattr(thing, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        return f" {tuple(shape)} {str(dtype).removeprefix('torch.')}"
    return ""


def _key(mapping: Mapping[Any, Any], thing: Any) -> str:
    """Return the text under which a mapping has an object; empty if there is none."""
    copied: dict[Any, Any] = asked(dict, mapping, {})  # another thread may change it
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


def _is_ours(thing: Any) -> bool:
    frame = _frame(thing) if issubclass(type(thing), _FRAME_TYPES) else None
    code = thing.__code__ if type(thing) is types.FunctionType else frame.f_code if frame is not None else None
    return code is not None and code.co_filename.startswith(FOLDER)
