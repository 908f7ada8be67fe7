"""Commands in surroundings in which they can write little or nothing; prints as JSON what came of each.

The commands run in children of a process that has imported and compiled everything. The children of root become other
users. ``python -m tests.faults.surroundings FOLDER commands caches trainings``.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np
from numba.core.registry import cpu_target

from nclone_env import jit
from nclone_env.cli.app import main

from . import injector, kernels

LEVEL = "first-steps/01-walk"
UNKNOWN = 54321  # a user without an entry in passwd
TRAINING = ("--num-envs", "8", "--num-steps", "16", "--num-minibatches", "2", "--episodes", "1", "--no-video")


def convert(folder):
    return main(["levels", "convert", LEVEL, str(folder / "level.map"), "--force"])


def show(folder):
    return main(["levels", "show", LEVEL, "--output", str(folder / "level.png"), "--force"])


def list_levels(folder):
    return main(["levels", "list"])


def record(folder):
    return main(["replay", "record", LEVEL, "--inputs", "50R", "--output", str(folder / "a.replay"), "--force"])


def train(folder, timesteps, *options):
    return main(["train", "--output", str(folder), "--total-timesteps", str(timesteps), *TRAINING, *options])


def add(kind):
    """Return the sum of numbers of a type by a kernel, and how often its code was found in the cache."""
    jit.cache_folder.cache_clear()
    total = jit.kernel(kernels.total)
    total(np.arange(5, dtype=kind))
    sys.stdout.write(f"hits {sum(total.stats.cache_hits.values())}\n")


def as_user(job, user=UNKNOWN):
    """Return a job that another user does, if this is root."""

    def changed():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        return job()

    return changed


def with_variables(job, **variables):
    """Return a job with other environment variables; None removes one."""

    def changed():
        for name, value in variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = str(value)
        return job()

    return changed


def with_limit(job, size):
    """Return a job whose files can have so many bytes, as if the disk were full."""

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return job()

    return limited


def with_closed(job, number):
    """Return a job without standard output (1) or error (2), as after ``>&-``."""

    def closed():
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
        return job()

    return closed


def with_output(job, path):
    """Return a job that prints to a file; None: to a pipe without a reader."""

    def redirected():
        if path is None:
            reader, descriptor = os.pipe()
            os.close(reader)
        else:
            descriptor = os.open(path, os.O_WRONLY)
        sys.stdout = open(descriptor, "w")  # noqa: SIM115
        return job()

    return redirected


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes().hex() for path in folder.rglob("*") if path.is_file()}


def told(job, folder):
    """Run a job; return its exit status, what it says, and the files before and after."""
    before = files(folder)
    outcome = injector.run(job)
    return {"status": outcome.status, "said": outcome.said, "before": before, "after": files(folder)}


def writable(folder):
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def cases(place):
    """Yield the name and the result of each case."""
    folder = writable(place / "files")
    for job in (list_levels, convert, show, record):
        with redirect_stdout(StringIO()):
            job(folder)  # imports what the children, as other users, might not be allowed to read
    yield "undisturbed", told(partial(record, folder), folder)
    yield "full disk", told(with_limit(partial(show, folder), 4096), folder)
    yield "no standard output", told(with_closed(partial(record, folder), 1), folder)
    yield "no standard error", told(with_closed(partial(record, folder), 2), folder)
    yield "no reader", told(with_output(partial(list_levels, folder), None), folder)
    yield "full output", told(with_output(partial(list_levels, folder), "/dev/full"), folder)
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NCLONE_ENV_CACHE_DIR"))
    nowhere["TMPDIR"] = writable(place / "temporary")
    yield "unknown user", told(as_user(with_variables(partial(list_levels, folder), **nowhere)), folder)
    folder.chmod(0o555)
    yield "read-only", told(as_user(partial(convert, folder)), folder)
    folder.chmod(0o755)


def caches(place):
    """Yield the name and the result of each case of the kernel cache."""
    cache, old = place / "cache", np.int64
    here = {"NCLONE_ENV_CACHE_DIR": cache, "HOME": None, "XDG_CACHE_HOME": None}
    again = with_variables(partial(add, old), **here)
    other = with_variables(partial(add, np.float64), **here)
    for kind in (old, np.float64):
        with redirect_stdout(StringIO()):
            add(kind)  # in the cache of this process
    cpu_target.target_context.refresh()  # imports what compiling needs, which other users may not read
    yield "first", told(again, cache)
    yield "second", told(again, cache)
    for path in (cache, *cache.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield "read-only, cached", told(as_user(again), cache)
    yield "read-only, not cached", told(as_user(other), cache)
    for path in (cache, *cache.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (kernel,) = cache.rglob("*.nbc")
    whole = kernel.read_bytes()
    kernel.write_bytes(whole[: len(whole) // 2])
    yield "damaged", told(again, cache)
    (cache / jit.compiler_digest()).chmod(0o775)
    yield "of others", told(again, cache)
    (cache / jit.compiler_digest()).chmod(0o755)
    cannot = {**here, "NCLONE_ENV_CACHE_DIR": place / "missing" / "cache"}
    (place / "missing").write_text("no folder")
    yield "none", told(with_variables(partial(add, old), **cannot), cache)


def trainings(place):
    """Yield the name and the result of each case of a training."""
    folder = place / "runs"
    folder.mkdir()
    yield "first", told(partial(train, folder, 256, "--name", "run"), folder) | {"after": None}
    size = (folder / "run" / "checkpoint.pt").stat().st_size
    resumed = partial(train, folder, 512, "--resume", str(folder / "run"))
    other = partial(train, folder, 512, "--name", "run", "--overwrite")
    yield "full disk, other run", told(with_limit(other, size // 2), folder)
    yield "full disk, resumed", told(with_limit(resumed, size // 2), folder)
    yield "resumed", told(resumed, folder) | {"after": None}


CASES = {"commands": cases, "caches": caches, "trainings": trainings}


def report(place, names):
    """Return the results of the cases of each name."""
    place.chmod(0o755)
    results = {}
    for name in names:
        part = place / name
        part.mkdir()
        results |= CASES[name](part)
        shutil.rmtree(part)
    return results


if __name__ == "__main__":
    given = Path(sys.argv[1])
    results = report(given, sys.argv[2:])
    (given / "results.json").write_text(json.dumps(results))
