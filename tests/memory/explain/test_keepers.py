"""Who keeps the memory of a line, asked of objects that tracemalloc has seen."""

import abc
import atexit
import contextvars
import gc
import io
import itertools
import logging
import re
import sys
import tracemalloc
import types
import weakref
from collections import deque
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from nclone_env.memory.explain.keepers import (
    _UNSAID,
    _Chain,
    _Container,
    _is_ours,
    _most_common,
    _survivors,
    _Walk,
    find_graphs,
    find_keepers,
    objects,
)
from nclone_env.memory.explain.stats import GrownLine
from nclone_env.memory.measure.measurements import Place
from nclone_env.memory.measure.snapshots import Budget, start_tracing, tracing

from ...conftest import freeze_heap


class Looks:
    """Stands in for a budget: it is over after so many looks at the clock."""

    def __init__(self, left: int):
        self.left = left

    @property
    def is_over(self) -> bool:
        self.left -= 1
        return self.left < 0


class Plain:
    def __init__(self, number: int):
        self.number = number


def line_after() -> int:
    """Return the number of the line after the calling one."""
    return sys._getframe(1).f_lineno + 1


def place_at(line: int) -> Place:
    return Place(__file__, line, f"{__file__}:{line}")


def grown(line: int, size: int = 10**9) -> GrownLine:
    return GrownLine(__file__, line, "", 1.0, 0.0, size, 1, (), (place_at(line),))


def ample() -> Budget:
    """Return time for the heap of all tests, which is large."""
    return Budget(180.0, by_clock=False)


def keeper_of(line: int) -> tuple[str, str]:
    (found,) = find_keepers([grown(line)], ample())
    return found.name, found.kind


@pytest.fixture(autouse=True)
def traced(monkeypatch):
    # the modules of all other tests lead to most objects of this process
    monkeypatch.setattr("nclone_env.memory.explain.keepers.is_own", lambda file: file == __file__)
    freeze_heap()  # what Python keeps for new objects would not be traced; and a search takes a second in all objects
    with tracing():
        yield


def test_objects_with_attributes_are_found():
    kept = []  # made now: the collector does not show what is frozen
    for number in range(50):
        line = line_after()
        kept.append(Plain(number))
    assert keeper_of(line) == ("test_objects_with_attributes_are_found.kept", "list of 50: Plain")


@pytest.mark.parametrize(
    ("most", "kind", "is_filling"),
    [
        (None, "of 50: Plain", False),
        (60, "of 50, at most 60: Plain", True),
        (50, "of 50: Plain", False),
        (10**15, "of 50, at most 1,000,000,000,000,000: Plain", False),  # memory ends before
    ],
)
def test_containers_tell_the_limit_that_they_have_not_reached(most, kind, is_filling):
    kept = deque(maxlen=most)
    cached = lru_cache(most)(Plain)
    for number in range(50):
        lines = line_after(), line_after() + 1
        kept.append(Plain(number))
        cached(number)
    found = find_keepers([grown(line, 50_000) for line in lines], ample())
    assert [(keeper.kind, keeper.is_filling, keeper.is_full) for keeper in found] == [
        (f"{name} {kind}", is_filling, most == 50) for name in ("deque", "lru_cache")
    ]


def test_expressions_that_the_library_caches_will_stop_to_grow():
    re.purge()
    for number in range(50):
        line = line_after()
        re.compile(f"expression {number}")
    (found,) = find_keepers([grown(line, 50_000)], ample(), gc.unfreeze)
    assert (found.name, found.kind.split(":")[0]) == ("re._cache", "dict of 50, at most 512")
    assert found.is_filling


def test_what_keeps_generators_is_named_after_their_variable():
    lines = []

    def running(number):
        held = []
        lines.append(line_after())
        held += [Plain(number + part) for part in range(50)]
        yield number

    kept = [running(number) for number in range(5)]
    deque(map(next, kept))
    name, _ = keeper_of(lines[0])
    assert name.endswith("running.held < test_what_keeps_generators_is_named_after_their_variable.kept")
    kept.clear()
    for _ in running(0):
        assert keeper_of(lines[0])[0] == "running.held"


def test_numbers_in_tuples_that_the_collector_does_not_track_are_found():
    kept = {}
    for number in range(300):
        line = line_after()
        kept[number] = (0.5, (number + 1000.5, 1.5))
    name, kind = keeper_of(line)
    assert name.endswith(".kept")
    assert kind.startswith("dict of 300")


def test_the_list_of_a_user_comes_before_a_pool_that_knows_its_arrays():
    class Pool:
        def __init__(self):
            self.made = []

    class Environment:
        def __init__(self):
            self.pool = Pool()

    environment = Environment()
    video = []
    for _ in range(50):
        line = line_after()
        array = np.zeros(64)
        environment.pool.made.append(array)
        video.append(array)
    assert keeper_of(line)[0].endswith(".video")


def test_a_tuple_can_be_made_during_a_search():
    held = []
    assert tuple(held.append(objects()) for _ in range(3)) == (None, None, None)
    assert any(thing is held for thing in held[0])


@pytest.mark.parametrize(("look", "is_safe"), [(objects, True), (lambda: len([gc.get_objects()]), False)])
def test_no_tuple_is_held_where_another_thread_may_go_on(look, is_safe):
    """Threads take turns where functions are called and return, and one that is making a tuple shall be able to."""
    made, counts = [([],)], set()  # in a list: variables are looked at
    sys.setprofile(lambda *about: counts.add(sys.getrefcount(made[0])))
    try:
        look()
    finally:
        sys.setprofile(None)
    assert (len(counts) == 1) is is_safe


def test_a_chain_of_tuples_is_found():
    kept = ()
    for number in range(50):
        line = line_after()
        kept = (number + 1000.5, kept, [])
    assert keeper_of(line)[0].endswith(".kept")


ASKED = []


def ask(thing, *about):
    """Answer as a proxy does that loads what it stands for."""
    ASKED.append((type(thing), about))
    raise RuntimeError


class Lazy:
    __getattribute__ = __len__ = __iter__ = __sizeof__ = __bool__ = __eq__ = __hash__ = ask
    __class__ = property(ask)
    __dict__ = property(ask)


class LazyList(list):
    __getattribute__ = __len__ = __iter__ = __sizeof__ = __bool__ = __eq__ = ask
    __class__ = property(ask)


class LazyDict(dict):
    __getattribute__ = __len__ = __iter__ = __sizeof__ = __bool__ = __eq__ = __getitem__ = keys = items = ask


class LazyModule(types.ModuleType):
    __getattribute__ = ask


@pytest.mark.parametrize("make", [LazyList, LazyDict])
def test_objects_of_the_program_are_never_asked(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "lazy_module", LazyModule("lazy_module"))
    monkeypatch.setitem(sys.modules, "lazy_object", Lazy())
    kept = make()
    for number in range(50):
        line = line_after()
        thing = Lazy()
        list.append(kept, thing) if make is LazyList else dict.__setitem__(kept, number, thing)
    del thing
    ASKED.clear()
    assert keeper_of(line) == ("test_objects_of_the_program_are_never_asked.kept", f"{make.__name__} of 50: Lazy")
    assert ASKED == []
    with pytest.raises(RuntimeError):
        len(kept)
    assert ASKED


def test_a_variable_that_is_set_again_each_time_is_found():
    rewards = np.zeros(0)
    for number in range(51):
        line = line_after()
        rewards = np.arange(20.0 * number)
    assert len(rewards) == 1000
    assert keeper_of(line) == (
        "test_a_variable_that_is_set_again_each_time_is_found.rewards",
        "ndarray (1000,) float64",
    )


@pytest.mark.parametrize("make", [list, bytearray])
def test_an_object_that_grows_in_place_is_found_by_its_size(make):
    tracemalloc.stop()
    older = make()
    start_tracing()
    for _ in range(10_000):
        line = line_after()
        older.extend(b"0123456789" * 3)  # nothing is allocated but its own memory
    (found,) = find_keepers([grown(line, 290_000)], ample())
    assert found.name.endswith(".older")
    assert found.kind == make.__name__


def test_the_end_of_a_chain_of_objects_is_found():
    chain = []
    newest = chain
    for _ in range(500):
        line = line_after()
        newest.append([])
        newest = newest[-1]
    newest = None
    assert len(chain) == 1
    assert keeper_of(line) == ("test_the_end_of_a_chain_of_objects_is_found.chain", "list ... list")


def test_views_keep_the_arrays_that_they_are_of():
    kept = []
    for number in range(50):
        line = line_after()
        large = np.arange(number, 1000.0)
        kept.append(large[:1])
    name, kind = keeper_of(line)
    assert name == "test_views_keep_the_arrays_that_they_are_of.kept"
    assert kind == "list of 50: ndarray (1000,) float64"  # that of the view is (1,)


@pytest.mark.parametrize("of", [pytest.param(Plain, marks=pytest.mark.slow), str])
def test_arrays_of_objects_are_looked_into(of):
    table = np.empty(1000, object)
    for number in range(50):
        line = line_after()
        table[number] = of(number + 1000)
    assert keeper_of(line)[0] == "test_arrays_of_objects_are_looked_into.table"


def test_a_call_that_has_ended_is_kept_by_its_traceback():
    def fail(number):
        plain = Plain(number)
        raise ValueError(plain.number)

    errors = []
    for number in range(50):
        try:
            fail(number)
        except ValueError as error:
            errors.append(error)
    name, kind = keeper_of(fail.__code__.co_firstlineno + 1)
    assert name == "fail.plain < test_a_call_that_has_ended_is_kept_by_its_traceback.errors"
    assert kind == "list of 50: Plain"


def test_an_attribute_of_a_function_is_named():
    def remember(number):
        remember.seen.append(Plain(number))

    remember.seen = []
    for number in range(50):
        remember(number)
    name, kind = keeper_of(remember.__code__.co_firstlineno + 1)
    assert name.endswith("remember.seen < test_an_attribute_of_a_function_is_named.remember")
    assert kind == "list of 50: Plain"


def slot(variable: contextvars.ContextVar) -> int:
    """Return the place of a variable in the table of a context: two in one place have a table of their own there."""
    number = hash(variable) % 2**64
    return (number ^ number >> 32) % 32


@pytest.mark.parametrize("in_one_slot", [False, True])
def test_what_a_context_keeps_is_found_beside_another_variable(in_one_slot):
    history = contextvars.ContextVar("history", default=())
    others = [contextvars.ContextVar(str(number)) for number in range(1000)]
    other = next(one for one in others if (slot(one) == slot(history)) == in_one_slot)

    def work():
        other.set(1)
        for number in range(500):
            line = line_after()
            history.set((number, history.get()))
        return keeper_of(line)

    assert contextvars.copy_context().run(work)[0] == "context variable history"


def handlers(search):
    logger = logging.Logger("of this call")
    for _ in range(500):
        logger.addHandler(logging.NullHandler())
    return search()


def finalizers(search):
    for number in range(500):
        plain = Plain(number)
        weakref.finalize(plain, plain.__init__, 0)
    return search()


def lagging_iterator(search):
    history, now = itertools.tee([number] for number in range(5000))
    for _ in now:
        pass
    return search(), history


def text_buffer(search):
    output = io.StringIO()
    for number in range(500):
        output.write(f"line {number}")
    return search()


def texts_made_at_once(search):
    texts, kept = [str(number + 1000) for number in range(5000)], []
    for number in range(500):
        kept.append([number])
    return search(), texts


@pytest.mark.parametrize(
    ("work", "name", "kind"),
    [
        (handlers, "Logger.handlers < handlers.logger", "list of 500: NullHandler"),
        pytest.param(finalizers, "finalize._registry", "dict of ", marks=pytest.mark.slow),
        pytest.param(lagging_iterator, "lagging_iterator.history", "_tee ... ", marks=pytest.mark.slow),
        pytest.param(text_buffer, "text_buffer.output", "StringIO", marks=pytest.mark.slow),
        (texts_made_at_once, "texts_made_at_once.kept", "list of 500: list"),
    ],
)
def test_the_keeper_is_what_holds_survivors_of_all_ages(work, name, kind):
    """Not what happens to hold the newest, nor weak references, nor what was made at once."""
    code, answers = work.__code__, []
    include = gc.unfreeze if work is finalizers else lambda: None  # their registry is older than this test
    lines = {line for part in (code, *code.co_consts) if hasattr(part, "co_lines") for *_, line in part.co_lines()}
    places = tuple(place_at(line) for line in lines if line)
    line = GrownLine(__file__, code.co_firstlineno, "", 1.0, 0.0, 10**9, 1, (), places)
    try:
        for sizes in (True, False):
            work(lambda sizes=sizes: answers.extend(find_keepers([line], ample(), include, sizes=sizes)))
            freeze_heap()  # in all objects of this process those made now would be too young
    finally:
        for item in [item for item in weakref.finalize._registry if isinstance(item.peek()[0], Plain)]:
            item.detach()
    found, growing = answers
    assert found.name.endswith(name), found
    assert found.kind.startswith(kind), found
    assert not found.doubt
    assert " of " not in growing.kind


def test_running_code_of_a_library_is_named_only_where_nothing_else_is(monkeypatch):
    def hold():
        held = []
        for number in range(50):
            held.append(Plain(number))
        return keeper(hold.__code__.co_firstlineno + 3)

    def keeper(line):
        (found,) = find_keepers([grown(line)], ample())
        return found.name, found.doubt

    assert hold() == ("hold.held", 0)
    monkeypatch.setattr("nclone_env.memory.explain.keepers.is_own", lambda file: False)
    assert hold() == ("hold.held", 1)


@pytest.mark.parametrize(("module", "name"), [(__name__, "Holder.things"), ("email.message", None)])
def test_an_attribute_of_an_object_of_a_library_is_no_keeper_by_itself(module, name):
    things = [Plain(number) for number in range(5)]
    holder: Any = type("Holder", (), {"__module__": module})()
    holder.things, thing = things, things[2]
    holder.me = holder
    things = None
    waiting = [holder]
    del holder
    ours = {id(waiting), id(vars()), *map(id, sys._current_frames().values())}
    chain = _Walk({}, ample(), ours).chains([thing])[0]
    assert chain is not None
    assert (chain.names[-1] if chain.doubt < _UNSAID else None) == name


def test_the_end_of_a_chain_is_found_behind_a_variable_that_is_too_large_to_be_walked_through(monkeypatch):
    monkeypatch.setattr("nclone_env.memory.explain.keepers._REACH", 1_000)
    first = [[[] for _ in range(2_000)]]  # leads to the chain, after `chain` has been walked through
    chain: list = []
    first.append(chain)
    monkeypatch.setattr(
        "nclone_env.memory.explain.keepers._Walk._roots", lambda walk: [("first", first), ("chain", chain)]
    )
    newest = chain
    for _ in range(500):
        line = line_after()
        newest.append([])
        newest = newest[-1]
    newest = None
    assert keeper_of(line) == ("first", "list ... list")


def test_what_an_object_of_a_class_leads_to_is_not_kept_by_it(monkeypatch):
    kind = abc.ABCMeta("Kind", (), {"chain": []})  # a class whose own class is not type
    newest = chain = kind.chain
    roots = [("object", kind()), ("chain", chain)]
    monkeypatch.setattr("nclone_env.memory.explain.keepers._Walk._roots", lambda walk: roots)
    for _ in range(500):
        line = line_after()
        newest.append([])
        newest = newest[-1]
    newest = None
    assert keeper_of(line) == ("chain", "list ... list")


@pytest.mark.parametrize("are_near", [True, False])
def test_containers_near_running_variables_are_looked_at_first(are_near, monkeypatch):
    """Libraries that were imported meanwhile have made more objects, and larger containers, than there is time for."""
    larger = [[[number] for number in range(100)] for _ in range(300)]
    kept = []
    for number in range(50):
        line = line_after()
        kept.append(Plain(number))
    if not are_near:
        monkeypatch.setattr("nclone_env.memory.explain.keepers._near", list)
    places = {place_at(line): "line"}
    traced = [part for some in larger for part in some]
    (found,) = _survivors(places, traced, Looks(10)).values()
    assert len(found) == (10 if are_near else 0)


@pytest.fixture
def looked_at(monkeypatch) -> list[type]:
    """The types of the objects whose names are asked for, on the way to a keeper."""
    found, name = [], _Walk._name
    monkeypatch.setattr(
        _Walk, "_name", lambda walk, holder, node: (found.append(type(holder)), name(walk, holder, node))[1]
    )
    return found


def center_of_many(count: int, monkeypatch) -> tuple[int, list[list]]:
    """Keep objects in a module; return their line, and lists that refer to what keeps them."""
    center, module = types.SimpleNamespace(entries=[]), types.ModuleType("many")
    module.center = center
    monkeypatch.setitem(sys.modules, "many", module)
    for number in range(50):
        line = line_after()
        center.entries.append(Plain(number))
    gc.collect()  # the module is older than what follows, and seen after it
    return line, [[center] for _ in range(count)]


def test_of_thousands_of_referrers_only_those_with_variables_are_looked_at(looked_at, monkeypatch):
    line, lists = center_of_many(5_000, monkeypatch)
    assert keeper_of(line) == ("SimpleNamespace.entries < many.center", "list of 50: Plain")
    assert len(lists) > 5 * looked_at.count(list) > 0


@pytest.fixture
def no_collections():
    """Referrers are met from the youngest generation on: a collection would put the young ones behind the others."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
def test_a_walk_ends_among_the_referrers_when_its_time_is_over(monkeypatch):
    _, lists = center_of_many(5_000, monkeypatch)
    for count, is_found in ((100, False), (100_000, True)):
        (chain,) = _Walk({}, budget := Looks(count)).chains([lists[0][0].entries])
        assert (chain is not None and not chain.doubt) is is_found
    assert count - budget.left > 0.9 * len(lists)


def test_of_many_objects_of_one_class_that_know_a_table_the_class_is_named():
    """As of loggers: they all know their manager, and so does their class, through a dictionary."""

    class Known:
        table = types.SimpleNamespace(entries={})

        def __init__(self):
            self.table = Known.table

    for number in range(300):
        line = line_after()
        Known.table.entries[f"entry {number}"] = Known()
    (found,) = find_keepers([grown(line)], ample())
    assert (found.name, found.kind) == ("SimpleNamespace.entries < Known.table", "dict of 300: Known")


@pytest.mark.parametrize(
    ("samples", "name", "doubt"),
    [
        ("a0 a0 a0 a0 a0", "a", 0),
        ("a0 - - - -", "", 0),
        ("a0 b0 b0 - -", "b", 1),
        ("a0 b0 b0 b0 -", "b", 0),
        ("a0 a0 a0 b2 b2", "a", 0),
        ("a0 a0 b2 b2 b2", "", 0),
        ("a2 a2 a2 a2 a2", "a", 2),
        ("a0 int int int int", "a", 1),  # texts in what leads there are found one level later, or no more
        ("a0 a0 - int int", "a", 1),
        ("- - - - -", "", 0),
        ("", "", 0),
    ],
)
def test_a_keeper_is_what_most_samples_lead_to(samples, name, doubt):
    """Not what has the newest alone, such as an iterator beside another one that lags behind."""
    words = samples.split()
    things = [0 if word == "int" else Plain(0) for word in words]
    chains = [None if word in ("-", "int") else _Chain((word[0],), _Container(), "", int(word[1])) for word in words]
    found = _most_common(chains, things)
    assert (found.names[-1], found.doubt) == (name, doubt) if name else found is None


def test_what_is_made_again_each_time_is_no_keeper():
    """It has memory that the line took, near a running variable, and so has a buffer that grows in place."""
    for number in range(50):
        line = line_after()
        last = [number, str(number)]
    assert len(last) == 2
    assert find_keepers([grown(line)], ample()) == ()


def test_a_small_list_beside_those_that_grow_is_no_keeper():
    """Its table was taken at the line, too, but the newest of many objects does not keep the others."""
    episodes: dict[int, list[int]] = {}
    for number in range(50):
        rewards = episodes[number] = []
        for reward in range(9):
            line = line_after()
            rewards.append(reward)
    assert len(rewards) == 9
    assert find_keepers([grown(line, 50 * 128)], ample()) == ()


def test_a_generator_in_use_is_no_survivor_however_large_it_says_it_is():
    def first(numbers):
        keepers.extend(find_keepers([grown(line)], ample()))
        yield from numbers

    keepers: list = []
    line = line_after()
    for _ in (number for number in first(range(9))):
        pass
    assert keepers == []


def test_a_search_keeps_nothing_of_its_own():
    """Else the next one finds its lists among what refers to the samples."""
    table = np.empty(1000, object)
    for number in range(50):
        line = line_after()
        table[number] = Plain(number + 1000)
    gc.collect()
    gc.disable()
    try:
        assert keeper_of(line)[0] == "test_a_search_keeps_nothing_of_its_own.table"
        kept = [thing for thing in gc.get_objects() if type(thing) is types.FrameType and _is_ours(thing)]
    finally:
        gc.enable()
    assert kept == []


def test_what_only_native_code_knows_has_no_keeper():
    def save(data):
        pass

    for number in range(50):
        line = line_after()
        atexit.register(save, bytes(200 + number))
    try:
        assert find_keepers([grown(line)], ample()) == ()
    finally:
        atexit.unregister(save)


class Operation:
    def __init__(self, *before):
        self.next_functions = [(operation, 0) for operation in before]


class Tensor:
    shape, dtype = (1,), "torch.float32"

    def __init__(self, grad_fn):
        self.grad_fn = grad_fn


@pytest.mark.parametrize(
    ("most", "name", "kind"), [(3, "total.grad_fn", "graph of 3"), (9, "other.grad_fn", "graph of 5")]
)
def test_a_graph_is_that_of_a_variable_which_the_program_goes_on_to_set(most, name, kind, monkeypatch):
    """Of graphs that are larger than what is counted, that of a variable comes first."""
    monkeypatch.setattr("nclone_env.memory.explain.keepers._GRAPH", most)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor))
    total = other = Tensor(None)
    for _ in range(4):
        total = Tensor(Operation(*filter(None, [total.grad_fn])))
    before = total

    def set_again():
        nonlocal other
        other = Tensor(Operation(before.grad_fn))
        return [other]

    monkeypatch.setattr("nclone_env.memory.explain.keepers.objects", set_again)
    (found,) = find_graphs(ample(), lambda: None)
    assert found.name.endswith(f".{name}")
    assert found.kind == f"{kind} operations"


def test_graphs_of_one_size_are_no_keepers_but_what_has_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor))
    losses = [Tensor(Operation(Operation())) for _ in range(3)]
    monkeypatch.setattr("nclone_env.memory.explain.keepers.objects", lambda: losses)
    assert find_graphs(ample(), lambda: None) == ()
    losses.append(Tensor(Operation(losses[0].grad_fn)))  # one that grows
    (found,) = find_graphs(ample(), lambda: None)
    assert found.kind == "graph of 3 operations"


def test_garbage_whose_collection_is_off_is_told(monkeypatch):
    monkeypatch.setattr("nclone_env.memory.explain.keepers._Walk._roots", lambda walk: ())  # no variable leads there
    gc.disable()
    try:
        for _ in range(50):
            line = line_after()
            one = [1, 2, 3]
            one.append(one)
        del one
        assert keeper_of(line)[0] == "garbage, not collected"
    finally:
        gc.enable()
