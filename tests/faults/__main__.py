"""``python -m tests.faults``: kill and fail every call that writes, for each kind of file, and print the table."""

import argparse
import sys
import time

from . import injector
from .scenes import CONTROLS, SCENES
from .sweep import sweep

COLUMNS = (
    *("points", "kills", "hits", "old", "new", "between", "damaged"),
    *("swept", "errors", "refused", "survived"),
)


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def row(name, values):
    return f"| {name:<20} | " + " | ".join(f"{value:>8}" for value in values) + " |"


def cells(result):
    return [len(value) if isinstance(value, list) else value for value in (getattr(result, name) for name in COLUMNS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, help="kills and failures of each kind of file, at most")
    parser.add_argument("--only", nargs="*", help="kinds of files")
    arguments = parser.parse_args()
    if injector.unavailable():
        say(f"nothing can be injected: {injector.unavailable()}")
        return 2
    started, results = time.monotonic(), []
    say(row("kind of file", COLUMNS))
    for scene in (*SCENES, *CONTROLS):
        if scene.name in arguments.only if arguments.only else scene in SCENES:
            results.append(sweep(scene, arguments.most))
            say(row(scene.name, cells(results[-1])))
            for text in results[-1].damaged:
                say(f"  {text}")
    say(row("all", [sum(column) for column in zip(*map(cells, results))]))
    say(f"{time.monotonic() - started:.0f} s")
    return int(any(result.damaged for result in results))


if __name__ == "__main__":
    sys.exit(main())
