"""Commands in surroundings in which they can write little or nothing; prints as JSON what came of each.

The commands run in children of a process that has imported and compiled everything. The children of root become other
users. ``python -m tests.faults.surroundings FOLDER``. The cache of kernels is that of ``tests/jit``.
"""

import json
import os
import resource
import sys
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

from nclone_env.cli.app import main

from . import injector

LEVEL = "first-steps/01-walk"
UNKNOWN = 54321  # a user without an entry in passwd


def convert(folder):
    return main(["levels", "convert", LEVEL, str(folder / "level.map"), "--force"])


def show(folder):
    return main(["levels", "show", LEVEL, "--output", str(folder / "level.png"), "--force"])


def list_levels(folder):
    return main(["levels", "list"])


def record(folder):
    return main(["replay", "record", LEVEL, "--inputs", "50R", "--output", str(folder / "a.replay"), "--force"])


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


if __name__ == "__main__":
    given = Path(sys.argv[1])
    given.chmod(0o755)
    (given / "results.json").write_text(json.dumps(dict(cases(given))))
