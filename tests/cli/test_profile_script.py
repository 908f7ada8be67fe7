"""A program under ``profile script`` prints, writes and ends as it does alone."""

import os
import py_compile
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nclone_env.cli.app import main

from ..shared import contents

REPORT = "memory_profiling_report.txt"
PROGRAMS = {
    # What runs at the end.
    "an exit function reads a global": "import atexit\nlog = [1]\natexit.register(lambda: print(log))\nprint('end')",
    "an exit function fails": "import atexit\natexit.register(divmod, 1, 0)\nprint('end')",
    "an exit function starts a process": (
        "import atexit, subprocess, sys\natexit.register(subprocess.run, [sys.executable, '-c', 'print(7)'])"
    ),
    "destructor of a global": "class A:\n    def __del__(self): print('gone')\na = A()\nprint('end')",
    "text left in a buffer": "import sys\nsys.stdout.write('no newline')\nopen('left', 'w').write('text')",
    # Threads and pools.
    "timers": (
        "import threading\nleft = [3]\ndef beat():\n    left[0] -= 1\n    print(left)\n"
        "    if left[0]: threading.Timer(0.05, beat).start()\nbeat()"
    ),
    "a thread starts a thread": (
        "import threading, time\ndef second(): time.sleep(0.1); print('second')\n"
        "def first(): time.sleep(0.1); threading.Thread(target=second).start()\n"
        "threading.Thread(target=first).start()"
    ),
    "daemon thread": (
        "import threading, time\ndef work():\n    while True: time.sleep(0.001)\n"
        "threading.Thread(target=work, daemon=True).start()\nprint('end')"
    ),
    "threads that are listed": "import threading\nprint(threading.active_count(), len(threading.enumerate()))",
    "a wait for all threads": (
        "import threading\nthreading.Thread(target=print, args=('work',)).start()\n"
        "for thread in threading.enumerate():\n    if thread is not threading.main_thread(): thread.join()\n"
        "print('end')"
    ),
    "pool of threads left open": (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
        "print(list(pool.map(abs, [-1])))"
    ),
    "work left in a pool": (
        "import time\nfrom concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n"
        "name = 'task'\ndef work(n): time.sleep(0.1); print(name, n)\nfor n in range(2): pool.submit(work, n)"
    ),
    "pool of processes left open": (
        "import multiprocessing\ndef double(n): return 2 * n\nif __name__ == '__main__':\n"
        "    pool = multiprocessing.get_context('fork').Pool(2)\n    print(pool.map(double, [1, 2]))"
    ),
    "spawned processes": (
        "import multiprocessing\ndef double(n): return 2 * n\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(double, [1, 2]))"
    ),
    # Exit statuses, exceptions.
    "exit by a number": "import sys\nsys.exit(3)",
    "exit by a text": "import sys\nsys.exit('failed')",
    "exception": "def fail(): raise ValueError('of the program')\nfail()",
    "exception of a thread": "import threading\nthreading.Thread(target=divmod, args=(1, 0), name='T').start()",
    "own excepthook": "import sys\nsys.excepthook = lambda kind, error, trace: print('mine', error)\n1 / 0",
    "interrupted": "print('end', flush=True)\nraise KeyboardInterrupt",
    "deep recursion": "def deep(): deep()\ntry: deep()\nexcept RecursionError: print('deep')",
    "no memory": "try: bytearray(1 << 60)\nexcept MemoryError: print('caught')\nbytearray(1 << 60)",
    "syntax error": "print('a')\ndef (",
    # Ends without an end.
    "exit at once": "import os\nprint('lost')\nos._exit(4)",
    "exit at once in a thread": (
        "import os, threading\nthreading.Thread(target=os._exit, args=(5,)).start()\nwhile True: pass"
    ),
    "another program": (
        "import os, sys\nprint('mine', flush=True)\nos.execv(sys.executable, [sys.executable, '-c', 'print(7)'])"
    ),
    "another program that is missing": (
        "import os\ntry: os.execvp('nosuch', ['nosuch'])\nexcept OSError as error: print(error)"
    ),
    "terminated": "import os, signal\nprint('lost')\nos.kill(os.getpid(), signal.SIGTERM)",
    "killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "own handler": (
        "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: print('term'))\n"
        "os.kill(os.getpid(), signal.SIGTERM)"
    ),
    "default set again": (
        "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_DFL)\nos.kill(os.getpid(), signal.SIGTERM)"
    ),
    "waits for a signal": (
        "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "os.kill(os.getpid(), signal.SIGTERM)\nprint(signal.sigwait([signal.SIGTERM]))"
    ),
    "a loop that handles a signal": (
        "import asyncio, os, signal\nasync def main():\n    event = asyncio.Event()\n"
        "    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, event.set)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n    await event.wait()\n    print('term')\nasyncio.run(main())"
    ),
    "ends at once when it exits": "import atexit, os\natexit.register(os._exit, 4)\nprint('end', flush=True)",
    "limit of memory": (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\ndef take():\n    held = []\n"
        "    while True: held.append(bytearray(1 << 14))\ntry: take()\nexcept MemoryError: pass\nprint('caught')"
    ),
    # Copies of the process.
    "fork": "import os\nif not os.fork(): print('child', flush=True); os._exit(3)\nprint(os.wait()[1])",
    "a copy that ends by itself": (
        "import atexit, os\natexit.register(print, 'bye', flush=True)\nif os.fork(): print(os.wait()[1])"
    ),
    "a copy that fails": "import os\nif not os.fork(): 1 / 0\nprint(os.wait()[1])",
    "a copy that is terminated": (
        "import os, signal, time\nchild = os.fork()\nif not child: time.sleep(9)\ntime.sleep(0.1)\n"
        "os.kill(child, signal.SIGTERM)\nprint(os.wait()[1])"
    ),
    "daemon": (
        "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nfor n in range(3): os.close(n)\ntime.sleep(3)\n"
        "os._exit(0)"
    ),
    # Streams and files.
    "closes its output": "import sys\nprint('end')\nsys.stdout.close()",
    "closes all files": "import os\nprint('end', flush=True)\nos.closerange(0, 9999)",
    "replaces its output": "import io, sys\nsys.stdout = io.StringIO()\nprint('nowhere')",
    "sends its output to a file": (
        "import os\nfile = os.open('log', os.O_CREAT | os.O_WRONLY)\nos.dup2(file, 1)\nprint('in it')"
    ),
    "numbers of files": "import os\nprint(os.open('/dev/null', 0), sorted(map(int, os.listdir('/proc/self/fd')))[:5])",
    "few files": (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n"
        "try: open('/dev/null'), open('/dev/null')\nexcept OSError as error: print(error)"
    ),
    "reads its input": "print(input(), input())",
    "much text": "text = '\\N{SNOWMAN}' * 100_000\nprint(text)",
    # What the profiler needs, replaced or forbidden.
    "no files": (
        "import builtins, io, time\ndef forbidden(*_, **__): raise RuntimeError('no files')\n"
        "builtins.open = io.open = forbidden\ntime.sleep(0.2)\nprint('end')"
    ),
    "no files by an audit": (
        "import sys, time\ndef look(event, _):\n    if event == 'open': raise RuntimeError('no files')\n"
        "sys.addaudithook(look)\ntime.sleep(0.2)\nprint('end')"
    ),
    "own collector": "import gc, time\ngc.collect = lambda *_: 1 / 0\ntime.sleep(0.2)\nprint('end')",
    "no modules": (
        "import sys, time\nfor name in [name for name in sys.modules if name.startswith(('numpy', 'nclone_env'))]:\n"
        "    del sys.modules[name]\ntime.sleep(0.2)\nprint('end')"
    ),
    # What it sees of itself.
    "names of the module": (
        "import sys\nprint(__name__, __file__, __spec__, sys.argv, sys.path, sys.flags, sys.warnoptions)\n"
        "print(sorted(globals()), __annotations__, __loader__.path, sys.modules['__main__'].__dict__ is globals())"
    ),
    "its environment": "import os\nprint(sorted(os.environ.items()))",
    "environment of its processes": (
        "import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-c', 'import os, sys; print(sorted(os.environ.items()), sys.path)'], "
        "capture_output=True, text=True).stdout)"
    ),
    "its folder after another": (
        "import os, pathlib\nos.chdir('/')\nprint(sorted(os.listdir(pathlib.Path(__file__).parent)))"
    ),
    "its own classes": "import pickle\nclass A: x = 1\nprint(pickle.loads(pickle.dumps(A)).x, A.__module__)",
    "modules with names of others": (
        "import queue, numbers, statistics\nprint(queue.mine, numbers.mine, statistics.mean([1]))"
    ),
    "no sitecustomize": "import sys\nprint('sitecustomize' in sys.modules)",
    "warnings": "import warnings\nwarnings.warn('old', DeprecationWarning)\nprint('end')",
    "temporary files": (
        "import os, tempfile\nos.environ['TMPDIR'] = os.getcwd()\nprint(tempfile.gettempdir() == os.getcwd())"
    ),
    "own trace function": "import sys\nsys.settrace(lambda *_: None)\nprint(sys.gettrace() is None)",
}
WITHOUT_REPORT = (
    *("killed", "default set again", "few files"),
    *("no files", "no files by an audit", "own collector", "no modules"),
)
QUICK = (
    *("an exit function reads a global", "pool of threads left open", "exit at once", "a copy that is terminated"),
    "waits for a signal",
)
OTHER_FORMS = ("compiled", "package", "module", "folder", "archive", "missing main", "not found")


def made(folder: Path, form: str) -> list[str]:
    """Write a program in some form; return the words after ``python``."""
    folder.mkdir()
    text = "from . import other\nprint(__name__, __package__, other.X, __spec__.name)"
    if form in PROGRAMS:
        (folder / "case.py").write_text(PROGRAMS[form])
        for name in ("queue", "numbers") if "queue" in PROGRAMS[form] else ():
            (folder / f"{name}.py").write_text(f"mine = {name!r}")
        return ["case.py"]
    if form == "compiled":
        (folder / "plain.py").write_text("print('compiled', __file__)")
        by_contents = py_compile.PycInvalidationMode.CHECKED_HASH  # else the file has the time of its source in it
        py_compile.compile(str(folder / "plain.py"), cfile=str(folder / "case.pyc"), invalidation_mode=by_contents)
        return ["case.pyc"]
    if form == "package":
        (folder / "tool").mkdir()
        for name, content in (("__init__", ""), ("__main__", text), ("other", "X = 1")):
            (folder / "tool" / f"{name}.py").write_text(content)
        return ["-m", "tool"]
    if form == "module":
        (folder / "work").mkdir()
        (folder / "work" / "other.py").write_text("X = 1")
        (folder / "work" / "job.py").write_text(text)
        return ["-m", "work.job"]
    if form == "archive":
        with zipfile.ZipFile(folder / "case.zip", "w") as archive:
            archive.writestr("__main__.py", "import sys\nprint(sys.path[0], __file__)\nimport near\n")
            archive.writestr("near.py", "print('near')")
        return ["case.zip"]
    (folder / "case").mkdir()
    if form == "folder":
        (folder / "case" / "__main__.py").write_text("import sys\nprint(sys.path[0], __file__)")
    return ["case"] if form in ("folder", "missing main") else ["-m", "json.none"]


def without_ours(text: str, mark: str) -> str:
    """Return a text of a program without what the profiler says."""
    before, _, report = text.partition("\nMemory profile: ")
    return before + report.partition(mark)[2].partition("\n")[2]


@pytest.fixture
def input_given(tmp_path):
    """Give this process, and those that it starts, an input of two lines."""
    (tmp_path / "input").write_text("one\ntwo\n")
    before, given = os.dup(0), os.open(tmp_path / "input", os.O_RDONLY)
    os.dup2(given, 0)
    yield given
    os.dup2(before, 0)
    os.close(before)
    os.close(given)


@pytest.mark.parametrize(
    "form",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in (*PROGRAMS, *OTHER_FORMS)],
)
def test_a_program_ends_as_it_does_alone(form, tmp_path, monkeypatch, capfd, input_given):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setattr(sys, "orig_argv", [sys.executable])  # workers of pytest-xdist have -u, which programs would get
    for name, value in {"COLUMNS": "80", "LINES": "24", "PYGAME_HIDE_SUPPORT_PROMPT": "hide"}.items():
        monkeypatch.setenv(name, value)  # the command line sets them
    words = made(tmp_path / "case", form)
    monkeypatch.chdir(tmp_path / "case")
    status = subprocess.run([sys.executable, *words], check=False, timeout=60).returncode
    alone = status if status >= 0 else 128 - status, *capfd.readouterr(), contents(tmp_path / "case")
    os.lseek(input_given, 0, os.SEEK_SET)
    (tmp_path / "case").rename(tmp_path / "alone")
    made(tmp_path / "case", form)
    monkeypatch.chdir(tmp_path / "case")
    status = main(["profile", "script", "--output-dir", str(tmp_path / "out"), words[-1] + "/" * (form == "package")])
    output, errors = capfd.readouterr()
    errors = "".join(line for line in errors.splitlines(keepends=True) if not line.startswith("nclone-env: "))
    assert (status, without_ours(output, f"wrote {tmp_path}"), errors, contents(tmp_path / "case")) == alone
    assert (tmp_path / "out" / REPORT).exists() == (form not in WITHOUT_REPORT)


WAITING = "import time\nprint('waits', flush=True)\ntry: time.sleep(60)\nfinally: print('saved', flush=True)"


@pytest.mark.parametrize("ignores", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_program_that_waits_ends_after_its_time(ignores, tmp_path, capfd):
    """The shell starts jobs in the background so that they ignore Ctrl-C."""
    start = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" if ignores else ""
    (tmp_path / "case.py").write_text(start + WAITING)
    assert main(["profile", "script", "--seconds", "1", "--output-dir", str(tmp_path), str(tmp_path / "case.py")]) == 0
    assert capfd.readouterr().out.startswith("waits\nsaved\n\nMemory profile: ")


@pytest.mark.parametrize("options", [(), pytest.param(("--fail-on-growth",), marks=pytest.mark.slow)])
def test_a_program_that_is_terminated_leaves_its_report(options, tmp_path):
    (tmp_path / "case.py").write_text(WAITING)
    program = str(Path(sys.executable).with_name("nclone-env"))
    command = [program, "profile", "script", *options, "--output-dir", str(tmp_path), str(tmp_path / "case.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.terminate()
        text = process.stdout.read()
    assert process.returncode == -signal.SIGTERM
    assert "saved" not in text
    assert text.startswith("\nMemory profile: ")
    assert (tmp_path / REPORT).exists()


def test_another_sitecustomize_is_imported_too(tmp_path, monkeypatch, capfd):
    (tmp_path / "sitecustomize.py").write_text("print('theirs')")
    (tmp_path / "case.py").write_text(
        "import os, sitecustomize\nprint(os.environ['PYTHONPATH'], sitecustomize.__file__)"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["profile", "script", "--output-dir", str(tmp_path / "out"), str(tmp_path / "case.py")]) == 0
    assert capfd.readouterr().out.startswith(f"theirs\n{tmp_path} {tmp_path / 'sitecustomize.py'}\n\nMemory profile: ")
