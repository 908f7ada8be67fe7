"""Who keeps memory: from sampled survivors of a line, through their referrers, to a name that a person knows."""

import contextvars
import ctypes
import gc
import itertools
import re
import sys
import types
import weakref
from array import array
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from heapq import nlargest
from io import BytesIO
from itertools import compress, filterfalse, islice, repeat
from operator import is_, is_not, itemgetter
from typing import Any, NamedTuple

import numpy as np

from nclone_env.machine import available_bytes
from nclone_env.memory.explain.stats import GrownLine
from nclone_env.memory.measure.measurements import NATIVE, Keeper, Place
from nclone_env.memory.measure.snapshots import FOLDER, Budget, is_own, place_of

_LARGE = 1024  # bytes of an object that may be all that grows
_DEPTH = 14
_WIDTH = 12  # objects of a level that are followed
_REACH = 300_000  # objects that are looked at from a variable
_GRAPH = 5_000  # operations of a graph that are counted
_GENERATORS: dict[type, str] = {types.GeneratorType: "gi", types.CoroutineType: "cr", types.AsyncGeneratorType: "ag"}
"""Types of objects that have a frame, with the prefix of their attributes."""
_CODES = {types.FrameType: "f_code", types.FunctionType: "__code__"} | {
    kind: f"{prefix}_code" for kind, prefix in _GENERATORS.items()
}
"""Types of objects that have code, with the attribute."""
_ROOTS = (dict, types.ModuleType, types.FrameType, *_GENERATORS, type)
"""Types of objects that have variables of the program: those are looked at however many objects refer to one."""
_CACHE = type(lru_cache(lambda: None))
_SAMPLES, _FEWEST = 5, 3  # survivors of a line that are followed at most, and at least
_NESTED = 3  # levels of dictionaries and tuples that the collector does not track
_LOOK = 4096  # objects between two looks at the clock
_UNTRACKED = (dict, tuple)  # those of numbers and texts; a tuple made for each object would be traced
_NO_HOLDERS = types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.GetSetDescriptorType, type
"""Types of which there are many, and which hold what they hold in dictionaries and cells; classes lead to modules."""
_NEWEST = 10  # part of the objects that are so young that they may be in use
_FOREIGN, _NAMELESS, _HIDDEN, _UNSAID = 1, 2, 3, 4
"""Doubt in a chain that ends at a running variable of a library, or is that of few samples; that ends at no variable at
all; where nothing is seen; or that ends at an attribute of a library's object, which says nothing."""
_FEW, _FIRST_LOOKS = 128, 8  # traced objects of a look, and looks before that at containers
_HAS_ATTRIBUTES, _HEADER = 1 << 4, 4 * tuple.__itemsize__
"""Flag of types whose objects have attributes, and the bytes of a block before such an object."""
_CONTAINERS = (list, dict, set, deque)
_BUFFERS = frozenset((*_CONTAINERS, bytearray, array, BytesIO))
"""Types of objects that grow in place."""
_LIMITS = {id(getattr(re, name, None)): most for name, most in (("_cache", 512), ("_cache2", 256))}
"""Entries of the library's dictionaries that stop to grow, by address: those of expressions that were compiled."""
_LONG = frozenset((*_CONTAINERS, tuple, frozenset))
_KNOWN = frozenset((*_LONG, *_BUFFERS, str, np.ndarray))
_SLOTS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_mro, _namespace = (type.__dict__[name].__get__ for name in ("__mro__", "__dict__"))
"""Of a class, whatever its own class says."""
_variables = vars(types.ModuleType)["__dict__"].__get__
"""Of a module, whatever its class says."""
_NEAR = 100  # objects near running variables
_FIXED = {*_NO_HOLDERS, int, float, str, bytes, bool, tuple, type(None)}
"""Types of objects that take no further memory."""
_LARGEST, _ENOUGH = 200, 10  # containers that are searched early, as what grows is among them, and parts of each


class _Container(NamedTuple):
    """A container on the way from a survivor to a name."""

    size: int = 0
    """Its length."""
    name: str = ""
    most: int | None = None
    """The length that it has at most; None: it has no limit."""

    @property
    def is_full(self) -> bool:
        """Whether it has reached its limit."""
        return self.most is not None and 0 < self.most <= self.size

    def text(self, sizes: bool) -> str:
        """Return its type, with its length if ``sizes``, and its limit if it has not reached that."""
        length, most = f" of {self.size:,}" if sizes else "", self.most or 0
        return f"{self.name}{length}{f', at most {most:,}' if self.size < most else ''}"


class _Node(NamedTuple):
    """An object on the way from a survivor to a name."""

    thing: Any
    names: tuple[str, ...] = ()
    """From the survivor on."""
    container: _Container = _Container()
    """The largest so far."""
    key: str = ""
    """Under which the object below is in ``thing``, if that is a dictionary."""


class _Chain(NamedTuple):
    """Names that lead to an object."""

    names: tuple[str, ...]
    """From the object to a variable."""
    container: _Container
    """The largest on the way."""
    kept: str
    """The type of the object."""
    doubt: int
    """As that of a :class:`Keeper`."""


def find_keepers(
    lines: Sequence[GrownLine], budget: Budget, include: Callable[[], object] = lambda: None, sizes: bool = True
) -> tuple[Keeper, ...]:
    """Return the keeper of each line for which one is found in time: a third is for what is kept, one for its chains.

    ``include`` makes the collector show the objects, too, that were made before tracing began. ``sizes`` tells whether
    to say how large the containers are: not while they grow.
    """
    variables = list(_running_variables())  # held: the code goes on and sets them again
    own = {id(value): name for name, value in _running_variables(is_own)}
    held = [value for _, value in variables]
    names = {id(value): (own.get(id(value), name), id(value) in own) for name, value in variables}
    del variables
    traced = objects()
    del traced[: len(traced) // _NEWEST]
    include()
    places = {place: line.place for line in lines for place in line.places}
    found = _survivors(places, [*held, *traced], budget.part(1 / 3))
    traced.clear()
    for things in found.values():
        things[:] = [thing for thing in things if id(thing) not in names or _size(thing) > _LARGE]
    samples = {
        line: things[:: max(1, len(things) // _SAMPLES)][:_SAMPLES]
        for line, things in found.items()
        if len(things) >= _FEWEST or _size(next(iter(things), 0)) > _LARGE  # others are made just now
    }
    each = [(line, thing) for line, things in samples.items() for thing in things]
    ours = [held, each, *each, *found.values(), *samples.values()]
    walk = _Walk(names, budget.part(1 / 2), {id(ours), *map(id, ours)})
    chains: dict[str, list[_Chain | None]] = {line.place: [] for line in lines}
    for number, chain in enumerate(walk.chains([thing for _, thing in each])):
        chains[each[number][0]].append(chain)
    walk.budget = budget
    keepers = []
    for grown in lines:
        ways, things = chains[grown.place], samples.get(grown.place, [])
        common = _most_common(ways, things)
        chain = common if common is not None and not common.doubt else None
        if chain is None and not budget.is_over:
            chain = walk.holder([thing for thing, one in zip(things, ways) if one is None or one.doubt])
        if chain is None and not budget.is_over:
            large = _grown_object(set(grown.places), walk.ends, grown.grown_bytes, budget)
            chain = walk.chains([large])[0] if large is not None else None
        chain = chain or common
        if chain is None and things and not any(ways) and not gc.isenabled() and not budget.is_over:
            chain = _Chain(("garbage, not collected",), _Container(), _describe(things[0]), _HIDDEN)
        if chain is not None and chain.doubt < _UNSAID:
            inside = f"{chain.container.text(sizes)}: " if chain.container.size else ""
            name, kind = " < ".join(chain.names), f"{inside}{chain.kept}"
            limits = _will_fill(chain.container, grown.grown_bytes), chain.container.is_full
            keepers.append(Keeper(grown.place, name, kind, chain.doubt, *limits))
    return tuple(keepers)


def _will_fill(container: _Container, grown_bytes: int) -> bool:
    """Return whether a container that took so many bytes will reach its limit: there is memory for the rest."""
    missing, left = (container.most or 0) - container.size, available_bytes()
    return missing > 0 and (left is None or grown_bytes / max(container.size, 1) * missing < left)


def _most_common(chains: Sequence[_Chain | None], things: Sequence[Any]) -> _Chain | None:
    """Return the shortest of the chains to the variable that most of the things lead to; None if most lead to none.

    Only chains of the least doubt count: others may lead there as well. What few things of a type lead to keeps few: an
    iterator beside another one that lags behind. Those of other types may be deeper, and the time over: a doubt.
    """
    least = min((chain.doubt for chain in chains if chain is not None), default=0)
    best = [chain if chain is not None and chain.doubt == least else None for chain in chains]
    kinds = {type(thing) for thing, chain in zip(things, best) if chain is not None}
    ends = Counter(chain.names[-1] if chain is not None else "" for chain in best)
    ends[""] = sum(chain is None and type(thing) in kinds for thing, chain in zip(things, best))
    end, votes = max(ends.items(), key=itemgetter(1))
    those = (chain for chain in best if chain is not None and chain.names[-1] == end)
    found = min(those, key=lambda chain: (len(chain.names), -chain.container.size), default=None)
    few = found is not None and 2 * votes <= len(chains)
    return found._replace(doubt=max(least, _FOREIGN)) if found is not None and few else found


def find_graphs(budget: Budget, include: Callable[[], object]) -> tuple[Keeper, ...]:
    """Return the tensor of torch whose graph of operations is the largest, if torch is loaded and there is one.

    There is none if several have as many: then it is the number of tensors that grows, such as that of kept losses.
    The arguments are those of :func:`find_keepers`.
    """
    torch = sys.modules.get("torch")
    if not hasattr(torch, "Tensor"):
        return ()

    def has_graph(thing: Any) -> bool:
        return type(thing) is torch.Tensor and thing.grad_fn is not None  # type: ignore[union-attr]

    variables = list(_running_variables())  # held, and first: the code goes on and sets them again
    tensors = {id(value): value for value in filter(has_graph, [value for _, value in variables] + objects())}
    sizes = [_operations(value.grad_fn) for value in tensors.values()]
    most = max(sizes, default=0)
    if not sizes or (most < _GRAPH and sizes.count(most) >= _FEWEST):
        return ()
    tensor = [*tensors.values()][sizes.index(most)]
    name = next((name for name, value in variables if value is tensor), "")
    del variables, tensors
    if not name:
        include()
        names = {id(value): (variable, True) for variable, value in _running_variables()}
        (chain,) = _Walk(names, budget).chains([tensor])
        name = " < ".join(chain.names) if chain else "a tensor"
    head, *holders = name.split(" < ")
    kind = f"graph of {_operations(tensor.grad_fn):,} operations"
    return (Keeper(NATIVE, " < ".join((f"{head}.grad_fn", *holders)), kind),)


def _operations(grad_fn: Any) -> int:
    seen, waiting = {grad_fn}, [grad_fn]
    while waiting and len(seen) < _GRAPH:
        for following, _ in waiting.pop().next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return len(seen)


class _Search:
    """The way from one object to a name, level by level."""

    __slots__ = ("_following", "_kinds", "_others", "_roots", "_seen", "_thing", "answer", "level")

    def __init__(self, thing: Any):
        self._thing, self.level, self._seen = thing, [_Node(thing)], {id(thing)}
        self._following: list[_Node] = []
        self._kinds: Counter[type] = Counter()  # of those
        self._roots: list[_Chain] = []
        self._others: list[_Chain] = []
        self.answer: _Chain | None = None

    def look_at(self, variables: Mapping[int, tuple[str, bool]]) -> None:
        """Compare the level with running variables: name, and whether it is the user's, by the address of the value."""
        for node in self.level if self.answer is None else ():
            name, is_of_user = variables.get(id(node.thing), ("", False))
            if is_of_user:
                self.answer = self._to(node, name)
                break
            self._others += [self._to(node, name, _FOREIGN)] if name else []

    def meet(self, referrer: Any, parts: set[int], name_of: Callable[[Any, _Node], tuple[str, bool]]) -> None:
        """Take an object into account that refers to others, by their addresses."""
        node = next((node for node in self.level if id(node.thing) in parts), None)
        if node is None or id(referrer) in self._seen:
            return
        self._seen.add(id(referrer))
        name, is_root = name_of(referrer, node)
        if is_root and _is_of_library(referrer):
            self._others.append(self._to(node, name, _FOREIGN))
        elif is_root:
            self._roots.append(self._to(node, name))
        elif not self.is_full_of(type(referrer)):
            self._kinds[type(referrer)] += 1
            self._following.append(_above(referrer, node, name))
            waits = type(referrer) is types.GeneratorType and not _is_of_library(referrer)  # in a loop without a name
            doubt = 0 if waits else _UNSAID if _has_class_of_library(referrer) else _NAMELESS
            self._others += [self._to(self._following[-1], "", doubt)] if name else []

    def is_full_of(self, kind: type) -> bool:
        """Return whether no more objects of a type of the level above are followed: thousands may know one."""
        return len(self._following) >= _WIDTH or self._kinds[kind] >= _WIDTH // 2

    def rise(self) -> None:
        """Go on to the next level, or end at the shortest way: a pool of results knows them, the user keeps them."""
        self.answer = min(self._roots, key=lambda chain: len(chain.names), default=None)
        self.level, self._following = self._following, []
        self._kinds.clear()

    def doubtful(self) -> _Chain | None:
        """Return a way to no variable of the program, or to none at all."""
        sign = -1 if self.level else 1  # what was not looked at may hold it, while a library works with it
        return min(self._others, key=lambda chain: sign * chain.doubt, default=None)

    def _to(self, node: _Node, root: str, doubt: int = 0) -> _Chain:
        names = node.names
        if root and not (names and names[-1].split(".")[0] == root.rpartition(".")[2]):
            names = (*names, root)
        return _Chain(names, node.container, _describe(self._thing), doubt)


class _Walk:
    def __init__(self, names: Mapping[int, tuple[str, bool]], budget: Budget, ours: Set[int] = frozenset()):
        self.budget, self._ours = budget, ours
        self._modules = {
            id(_variables(module)): name
            for name, module in [*sys.modules.items(), ("__main__", sys.modules["__main__"])]
            if issubclass(type(module), types.ModuleType)
        }
        self._locals = names
        self.ends: set[int] = set()
        """Addresses of objects that nothing was seen to refer to."""

    def chains(self, things: Sequence[Any]) -> list[_Chain | None]:
        """Return the names that lead to each object, and what is kept; None if no name is found.

        The searches share each look at all objects, which takes tens of milliseconds.
        """
        searches = [_Search(thing) for thing in things]
        self._ours |= {id(things)}
        for _ in range(_DEPTH):
            for search in searches:
                search.look_at(self._locals)
            going = [search for search in searches if search.answer is None and search.level]
            if not going or self.budget.is_over:
                break
            level = {id(node.thing): node.thing for search in going for node in search.level}
            for referrer, parts in self._referrers(level, going):
                for search in going:
                    search.meet(referrer, parts, self._name)
            for search in going:
                search.rise()
        return [search.answer or search.doubtful() for search in searches]

    def _referrers(self, things: dict[int, Any], searches: Sequence[_Search]) -> Iterator[tuple[Any, set[int]]]:
        """Yield each object that refers to some, by their addresses, with the addresses of these, as long as it helps.

        Thousands may refer to one: once all searches are full, the only ones that help are those with variables.
        """
        each = tuple(things.values())  # from Python 3.14 on this is among the referrers
        referrers, left, wanted = gc.get_referrers(*each), set(things), np.array([*things], np.uint64)
        ours, skipped = {id(things), id(each), id(referrers), id(searches), *self._ours}, False
        for number, referrer in enumerate(referrers):
            referrers[number] = None
            kind = type(referrer)
            if all(search.is_full_of(kind) for search in searches):
                if self.budget.is_over:
                    skipped = True
                    break
                if not issubclass(kind, _ROOTS):
                    skipped = True
                    continue
            if id(referrer) in ours or kind in (_Node, _Search) or _is_weak(referrer) or _is_ours(referrer):
                continue  # what the callback of a weak reference needs is kept, too, but nothing of the program
            found = _among(gc.get_referents(referrer), wanted)
            left -= found
            yield referrer, found
        unseen = [things[address] for address in left if not (skipped and gc.is_tracked(things[address]))]
        for holder, found in _untracked_holders(unseen, objects() if unseen else [], ours, self.budget):
            left -= found
            yield holder, found
        self.ends |= set() if skipped else left

    def holder(self, things: Sequence[Any]) -> _Chain | None:
        """Return the variable from which most of some objects can be reached, however long the chain between them is.

        Each object is looked at once, a few thousand between two looks at the clock: of a large heap there may be no
        time for more. A variable that leads to many waits after ``_REACH`` of them for the others.
        """
        tracked = [*filter(gc.is_tracked, things)]
        things = tracked or things
        wanted, seen = set(map(id, things)), {*self._ours, *self._modules, id(tracked)}
        reached = Counter[int]()
        walks = [(name, root, [root]) for name, root in self._roots()] if things else []
        while walks and not self.budget.is_over:
            for name, root, ahead in walks:
                enough = len(seen) + _REACH
                while ahead and len(seen) < enough and not self.budget.is_over:
                    fresh = {id(thing): thing for thing in ahead[-_LOOK:] if id(thing) not in seen}
                    del ahead[-_LOOK:]
                    reached[id(ahead)] += len(wanted.intersection(fresh))
                    if 2 * reached[id(ahead)] > len(wanted):
                        return _Chain((name,), _Container(), f"{_describe(root)} ... {_describe(things[0])}", 0)
                    seen.update(fresh)
                    parts = gc.get_referents(*fresh.values())
                    parts = [*filter(gc.is_tracked, parts)] if tracked else parts  # others do not lead there
                    kinds = {kind for kind in set(map(type, parts)) if not issubclass(kind, _NO_HOLDERS)}
                    ahead += compress(parts, map(kinds.__contains__, map(type, parts)))
            walks = [walk for walk in walks if walk[2]]
        return None

    def _roots(self) -> Iterator[tuple[str, Any]]:
        """Yield name and value of the user's running variables, of those of contexts, and of the user's modules."""
        yield from _running_variables(is_own)
        contexts = [thing for thing in objects() if type(thing) is contextvars.Context]
        variables = (item for context in contexts for item in context.items())
        yield from ((f"context variable {variable.name}", value) for variable, value in variables)
        for module in list(sys.modules.values()):
            variables = _variables(module) if issubclass(type(module), types.ModuleType) else {}
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
        if kind is types.FrameType or kind in _GENERATORS:  # that has no frame once it has ended
            frame = holder if kind is types.FrameType else getattr(holder, f"{_GENERATORS[kind]}_frame")
            local = _key(frame.f_locals, thing) if frame is not None else ""
            may_rest = kind in (types.FrameType, types.GeneratorType)  # one in a traceback, one that is kept somewhere
            rests = may_rest and all(one is not frame for one in _running_frames())
            return f"{frame.f_code.co_name}.{local}" if local else "", bool(local) and not rests
        if issubclass(kind, type):
            name = _key(_attributes(holder), thing) or node.key
            return f"{holder.__name__}.{name}", bool(name)
        if kind is _CACHE:
            return f"{getattr(holder, '__name__', 'function')}.cache", False
        if kind is types.FunctionType:
            is_attribute = thing is _attributes(holder)
            return f"{holder.__qualname__}.{node.key}" if is_attribute else _closure_name(holder, node), False
        if kind.__name__ == "_local":
            return f"thread-local {node.key}", False
        attributes = _attributes(holder)
        name = node.key if attributes is thing else _key(attributes, thing)
        return f"{kind.__name__}.{name}" if name else "", False


def _above(holder: Any, node: _Node, name: str) -> _Node:
    names = (*node.names, name) if name and node.names[-1:] != (name,) else node.names
    container, kind = node.container, type(holder)
    base = _base(holder)
    if base in _LONG:
        length = base.__len__(holder)
        is_attributes = kind is dict and length < _LARGEST and set(map(type, list(holder))) == {str}
        if length > container.size and not is_attributes:
            most = deque.maxlen.__get__(holder) if base is deque else _LIMITS.get(id(holder))
            container = _Container(length, kind.__name__, most)
    elif kind is _CACHE:
        found = holder.cache_info()
        cache_of = _Container(found.currsize, "lru_cache", found.maxsize)
        container = cache_of if cache_of.size > container.size or not cache_of.is_full else container
    key = node.key
    if issubclass(kind, dict):
        key = _key(holder, node.thing) or key
    elif kind is types.CellType:
        key = str(id(holder))
    return _Node(holder, names, container, key)


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
    """Return the bytes of an object of known layout, 0 of others: generators and tasks would answer with an address."""
    base = _base(thing)
    return 0 if base is object else int(base.__sizeof__(thing))


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


def _is_weak(thing: Any) -> bool:
    return issubclass(type(thing), weakref.ReferenceType)


def _is_of_library(thing: Any) -> bool:
    file = _file(thing)
    return file is not None and not is_own(file)


def _has_class_of_library(thing: Any) -> bool:
    """Return whether the class of an object is in a module of Python code that is not the user's."""
    module = sys.modules.get(str(_namespace(type(thing)).get("__module__")))
    file = _attributes(module).get("__file__") if type(thing) is not _CACHE else None
    return file is not None and not is_own(str(file))


def _is_ours(thing: Any) -> bool:
    return (_file(thing) or "").startswith(FOLDER)


def _file(thing: Any) -> str | None:
    """Return the file with the code of a frame, a generator or a function; None of other objects."""
    name = _CODES.get(type(thing))
    return getattr(thing, name).co_filename if name is not None else None


def _survivors(by_place: Mapping[Place, str], traced: list[Any], budget: Budget) -> dict[str, list[Any]]:
    """Return objects of all ages that were allocated at each line; most of those in ``traced`` were traced.

    Those in the largest containers count only if there are too few others: a table of texts that was made at once would
    have more of them than all that leaks.
    """
    found: dict[str, dict[int, Any]] = {line: {} for line in by_place.values()}
    others: dict[str, dict[int, Any]] = {line: {} for line in found}
    place_at = cache(place_of)
    for are_contained, things in _likely(traced, objects()):
        for thing, stack in _traced(things):
            place = place_at(stack)
            line = by_place.get(place) if place else None
            is_of_context = type(thing).__name__.startswith("hamt")  # made again whenever a variable is set
            if line is not None and not is_of_context:
                (others if are_contained or _is_weak(thing) else found)[line][id(thing)] = thing
        if all(max(len(found[line]), len(others[line])) >= _SAMPLES for line in found) or budget.is_over:
            break
    survivors = {}
    for line, direct in found.items():
        most = [*(direct if len(direct) >= _FEWEST else {**others[line], **direct}).values()]
        strong = [thing for thing in most if not _is_weak(thing)]
        survivors[line] = strong if len(strong) >= _FEWEST else most
    return survivors


def objects() -> list[Any]:
    """Return the variables of running code, and the objects that the collector shows, newest first, but no tuples.

    The code may be making a tuple now. That fails if there is a reference to it besides its own, so that one call takes
    all and leaves them out: between two calls another thread may go on.
    """
    found, things = [thing for _, thing in _running_variables()], list[Any]()
    take = map(things.extend, map(reversed, map(gc.get_objects, range(3))))
    others = compress(things, map(is_not, map(type, things), repeat(tuple)))
    found.extend(itertools.chain(filter(None, take), others, filter(None, map(list.clear, [things]))))
    itself = next(compress(itertools.count(), map(is_, found, repeat(found))), len(found))
    del found[itself : itself + 1]
    return found


def _likely(traced: list[Any], things: list[Any]) -> Iterator[tuple[bool, list[Any]]]:
    """Yield some traced things, parts of containers near running variables and of the largest of all, and the rest.

    That is the other traced things, and what all refer to. A word before each part tells whether it is of containers.
    The call stack of a traced object takes 0.1 ms: a program that has imported libraries meanwhile has too many.
    """
    looks = (
        (False, [*some, *_hidden(gc.get_referents(*filterfalse(_is_container, some)))]) for some in _looks(traced, _FEW)
    )
    yield from islice(looks, _FIRST_LOOKS)
    for some in (_near(), things):
        containers = nlargest(_LARGEST, filter(_is_container, some), len)
        parts = [part for container in containers for part in _sampled(container)]
        yield True, [*parts, *_bases(parts)]
    yield from looks
    for some in _looks(things):  # of numbers, texts and arrays, which the collector does not show
        parts = _hidden(gc.get_referents(*some))
        for _ in range(_NESTED):
            yield False, [*parts, *_bases(parts)]
            parts = gc.get_referents(*(part for part in parts if type(part) in _UNTRACKED))


def _looks(things: list[Any], size: int = _LOOK) -> Iterator[list[Any]]:
    """Yield things of all ages in parts of which each takes little time; between two one may look at the clock."""
    count = len(things) // size + 1
    return (things[first::count] for first in range(count))


def _hidden(parts: list[Any]) -> list[Any]:
    """Return those of some objects that :func:`objects` does not show."""
    tuples = compress(parts, map(is_, map(type, parts), repeat(tuple)))
    return [*filterfalse(gc.is_tracked, parts), *filter(gc.is_tracked, tuples)]


def _bases(things: Sequence[Any]) -> list[Any]:
    """Return the arrays of which some things are views: the collector does not see that these keep them."""
    return [thing.base for thing in things if type(thing) is np.ndarray and thing.base is not None]


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


def _is_container(thing: Any) -> bool:
    is_one = type(thing) in _CONTAINERS or (type(thing) is np.ndarray and thing.dtype == object and thing.ndim > 0)
    return is_one and len(thing) >= _ENOUGH


def _sampled(container: Any) -> list[Any]:
    if type(container) is np.ndarray:
        parts = [part for part in container.ravel().tolist() if part is not None]  # those of a table not yet full
    else:
        parts = list(container.values() if isinstance(container, dict) else container)
    return parts[:: max(1, len(parts) // _ENOUGH)]


def _running_variables(is_wanted: Callable[[str], bool] = lambda file: True) -> Iterator[tuple[str, Any]]:
    """Yield ``function.variable`` and value of the code that runs now in wanted files, but for the profiler's."""
    for frame in _running_frames():
        code = frame.f_code
        if is_wanted(code.co_filename):
            function = "" if code.co_name == "<module>" else f"{code.co_name}."
            yield from ((f"{function}{name}", value) for name, value in list(frame.f_locals.items()))


def _running_frames() -> Iterator[types.FrameType]:
    """Yield those of all threads, but for the profiler's: one that refers to itself would keep lists of a search."""
    ahead: list[types.FrameType | None] = [*reversed(sys._current_frames().values())]
    while ahead:
        frame = ahead.pop()
        if frame is not None:
            ahead.append(frame.f_back)
            if not _is_ours(frame):
                yield frame


def _near() -> list[Any]:
    """Return the values of the user's running variables, and what they refer to, but at most ``_NEAR``."""
    near = [thing for _, thing in _running_variables(is_own) if type(thing) not in _FIXED]
    small = [thing for thing in near[:_NEAR] if type(thing) not in _CONTAINERS or len(thing) <= _LOOK]
    inner = [thing for thing in gc.get_referents(*small) if type(thing) not in _FIXED]
    return [*near, *inner][:_NEAR]


def _grown_object(places: Collection[Place], ends: Set[int], size: int, budget: Budget) -> Any:
    """Return an object that has memory of its own, taken at some places, such as the table of a list; None if none has.

    It has at least ``size`` bytes, or its size is not known, and it is near a running variable; there also one counts
    that has an object of ``ends`` which the collector cannot see in it, such as the parts of a StringIO.
    """
    for thing in _near():
        if (_base(thing) is object or _size(thing) >= size) and _has_memory_of(thing, places, ends):
            return thing
    for some in _looks(objects()):
        for part in (*some, *_hidden(gc.get_referents(*some))):
            if type(part) in _BUFFERS and sys.getsizeof(part) >= size and _has_memory_of(part, places):
                return part
        if budget.is_over:
            break
    return None


def _has_memory_of(thing: Any, places: Collection[Place], ends: Set[int] = frozenset()) -> bool:
    """Return whether a word of an object is the address of a block that was taken at one of some places, or an end."""
    words = memoryview(ctypes.string_at(id(thing), type(thing).__basicsize__ // 8 * 8)).cast("Q")
    if not ends.isdisjoint(words):
        return True
    stacks = (_traceback_at()(0, word) for word in words if word)
    return any(place_of(stack) in places for stack in stacks if stack is not None)


def _untracked_holders(
    things: Sequence[Any], everything: list[Any], ours: Collection[int], budget: Budget
) -> Iterator[tuple[Any, set[int]]]:
    """Yield dictionaries and tuples that the collector does not track, with the addresses of those they have.

    Also arrays of objects and views, which it does not look into. Of what it tracks these alone may have some. All
    objects are those of a caller: its own frame among them would keep the lists of this search, and the next one would
    find these.
    """
    left = set(map(id, things))
    may_be_in_others = not all(map(gc.is_tracked, things))
    for some in _looks(everything):
        given = tuple(some)  # from Python 3.14 on this generator, which is among them, refers to it
        known = {id(given), *ours}
        parts = [*some, *gc.get_referents(*given)]
        for _ in range(_NESTED if may_be_in_others else 1):
            hidden, wanted = _hidden(parts), np.array([*left], np.uint64)
            holders = [part for part in hidden if type(part) in _UNTRACKED and id(part) not in known]
            arrays = ((part, _among_parts(part, wanted)) for part in hidden if type(part) is np.ndarray)
            for holder, inside in (*_holders_of(holders, wanted), *filter(itemgetter(1), arrays)):
                left -= inside
                yield holder, inside
            parts = gc.get_referents(*holders)
        if not left or budget.is_over:
            break


def _holders_of(holders: list[Any], wanted: np.ndarray) -> Iterator[tuple[Any, set[int]]]:
    """Yield those of some objects that refer to some addresses, (n,) uint64, with these: found by halves."""
    inside = _among(gc.get_referents(*holders), wanted)
    if inside and len(holders) == 1:
        yield holders[0], inside
    elif inside:
        for half in (holders[: len(holders) // 2], holders[len(holders) // 2 :]):
            yield from _holders_of(half, wanted)


def _among_parts(array: np.ndarray, wanted: np.ndarray) -> set[int]:
    """Return those of some addresses, (n,) uint64, that a contiguous array of objects has, or a view is of."""
    if not (array.dtype == object and array.size and array.data.contiguous):
        base = id(array.base)  # of an array of its own that of None, which is not wanted
        return {base} if base in wanted else set()
    there = np.frombuffer(ctypes.string_at(array.ctypes.data, array.nbytes), np.uint64)
    return set(wanted[np.isin(wanted, there)].tolist())


def _among(parts: list[Any], wanted: np.ndarray) -> set[int]:
    """Return those of some addresses, (n,) uint64, that parts have. Numbers made one by one would be traced: slowly."""
    table = ctypes.c_void_p.from_address(id(parts) + list.__basicsize__ - 2 * tuple.__itemsize__).value
    there = np.frombuffer(ctypes.string_at(table, 8 * len(parts)) if table else b"", np.uint64)
    return set(wanted[(wanted[:, None] == there).any(axis=1)].tolist())
