"""Report of the conformance test at the end of a run, and garbage collection without the objects of all tests.

The processes of pytest-xdist hand their totals to the one that reports.
"""

import gc
import os
import signal
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import asdict

import pytest

from .shared import COMPARISONS, Comparison


def pytest_configure(config):
    config.stash[COMPARISONS] = {}
    os.environ["NCLONE_ENV_QUIET"] = "1"  # tests that read stderr need not know what is compiled
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # else threads of torch spin while they wait
    os.fsync = lambda descriptor: None  # nothing that tests write must outlast a power failure
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background and under nohup ignore it
    with suppress(ImportError):  # what tests other libraries has none
        from hypothesis import settings

        settings.load_profile("ci")  # the same examples in each run, however busy the machine is


def pytest_collection_modifyitems(config, items):
    """Let processes that share the work begin with modules of few tests: a long one at the end would run alone."""
    if hasattr(config, "workerinput"):
        sizes = Counter(item.path for item in items)
        items.sort(key=lambda item: (sizes[item.path], item.path))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Let every second process import modules from the last one on: each rewrites the assertions of half of them."""
    report = yield
    number = getattr(collector.config, "workerinput", {}).get("workerid", "gw0").removeprefix("gw")
    if isinstance(collector, pytest.Directory) and int(number) % 2:
        report.result.reverse()
    return report


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        totals = session.config.stash[COMPARISONS]
        session.config.workeroutput["comparisons"] = {name: asdict(total) for name, total in totals.items()}


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_testnodedown(node):
    totals = node.config.stash[COMPARISONS]
    for name, counted in getattr(node, "workeroutput", {}).get("comparisons", {}).items():  # a crashed process has none
        totals.setdefault(name, Comparison()).add(Comparison(**counted))


def pytest_terminal_summary(terminalreporter, config):
    for name, comparison in sorted(config.stash[COMPARISONS].items()):
        terminalreporter.write_line(f"conformance of {name}: {comparison}")


def freeze_heap():
    """Keep the objects that exist out of further garbage collections, each of which would take up to a second."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish():
    freeze_heap()


def pytest_runtest_teardown(item, nextitem):
    if nextitem is None or nextitem.path != item.path:
        freeze_heap()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current directory, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def pygame(monkeypatch):
    """The library, which draws windows that are not shown."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    return pytest.importorskip("pygame")


@pytest.fixture
def press(pygame, monkeypatch):
    """What lets windows find keys before each picture: it takes the names of those that are held, by picture."""
    from nclone_env.render.window import Window
    from nclone_env.replay.view import compile_kernels

    compile_kernels()  # a window that waits for them would take the first keys
    show = Window.show

    def begin(pictures):
        frames = iter(pictures)

        def shown(window, picture):
            wanted = set(next(frames).split())
            for kind, names in ((pygame.KEYUP, window.held - wanted), (pygame.KEYDOWN, wanted - window.held)):
                for name in names:
                    pygame.event.post(pygame.event.Event(kind, key=pygame.key.key_code(name)))
            return show(window, picture)

        monkeypatch.setattr(Window, "show", shown)
        monkeypatch.setattr(Window, "_wait", lambda window: None)

    return begin


@pytest.fixture
def frozen_heap(request, monkeypatch):
    """Nothing else makes objects: pytest-xdist would send the tests of the next file, 25 KB of 800, in the last two."""
    read_on = threading.Event()
    if hasattr(request.config, "workerinput"):
        plugins = request.config.pluginmanager.get_plugins()
        (pipe,) = [plugin.channel.gateway._io for plugin in plugins if type(plugin).__name__ == "WorkerInteractor"]
        read = pipe.read
        monkeypatch.setattr(pipe, "read", lambda size: read_on.wait() and read(size))
    freeze_heap()
    yield
    read_on.set()
