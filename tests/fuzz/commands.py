"""Command lines with other words; each ends with an exit status and, if it fails, with a short message.

No window opens, and ``train`` ends where it would make its environments.
"""

import contextlib
import io
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from nclone_env.cli.app import main

from .files import any_level, checkpoint, checkpoints, map_bytes, recording, recordings, text_level
from .target import Target

_COMMANDS = (
    "levels list", "levels list L", "levels show L --output o.png --force", "levels validate L L F",
    "levels convert L o.toml --force", "levels convert F o.map --force",
    "replay verify R", "replay verify R F", "replay record L --inputs 24RJ --output o.replay --force",
    "run --headless --num-envs 2 --steps 3 --levels L --observations game_state --seed 5",
    "solve L --frames 500 --output out --seed 3", "evaluate F --episodes 1", "levels generate --output o.txt --count 0",
    "gallery L L --recordings R --output site --force --title T", "gallery --recordings R",
    "play L L --ghost R --output out --scale 0.5", "play L",
    "watch R R --output o.mp4 --force --scale 0.1 --views 2", "watch K R --levels L --argmax --seed 3 --scale 0.5",
    "compare K K --output c.png", "evaluate K --episodes 0",
    "train --levels L --held-out 0.2 --total-timesteps 99 --name n --output out --overwrite",
    "train --levels L --num-envs 4 --init K --output out --no-video", "train --resume K --total-timesteps 100",
)  # fmt: skip
_WORDS = (
    "", "-1", "0", "1", "nan", "inf", "1e309", "nope", "é", "a" * 5000, "--", "-h", "--help", "../..", "/dev/null",
    "/dev/zero", "/", "~", "s.toml#1", "p.txt#0-99999999999", "p.txt#-1", "p.txt#a", "p.txt#" + "0," * 3000,
    "first-steps", "hazards/01-mind-the-mine", "--seed", "--force", "--x", "--levels", "None", "True", "24RJ 3.",
    "9" * 5000, "99999R " * 300, "o.xyz", "s.toml/x", "{}", "'", "%s", "$HOME", "*", "global_view", "graph", "\udcff",
)  # fmt: skip
_FILES = {"L": ("s.toml", "p.txt#0", "m.map", "first-steps/01-walk"), "F": ("s.toml", "p.txt", "m.map", "."),
          "R": ("r.replay", "m.map"), "K": ("k.pt", "run", "run/checkpoint.pt", ".")}  # fmt: skip

Command = tuple[tuple[str, ...], dict[str, bytes]]
"""The words, and the files in the folder that the command is called in."""


class _RefusedError(Exception):
    """The exit status is not 0; the message is what was printed."""


class _Begun(BaseException):
    """A training is about to make its environments."""


def command(rng: random.Random) -> Command:
    line = rng.choice(_COMMANDS).split()
    words = [rng.choice(_FILES.get(word, (word,))) for word in line]
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        place, action = rng.randrange(len(words) + 1), rng.random()
        if action < 0.5 and place < len(words):
            words[place] = rng.choice(_WORDS)
        elif action < 0.8:
            words.insert(place, rng.choice(_WORDS))
        elif place < len(words):
            del words[place]
    files = {"s.toml": text_level(rng), "p.txt": any_level(rng), "m.map": map_bytes(rng), "r.replay": recording(rng)}
    if "o.mp4" in line:
        files["r.replay"] = rng.choice(recordings())  # of few frames: a video takes as long as its recording
    if "K" in line:
        files |= {name: rng.choice((checkpoints()[0], checkpoint(rng))) for name in ("k.pt", "run/checkpoint.pt")}
    return tuple(words), files


def call(given: Command) -> None:
    words, files = given
    output, errors, here = io.StringIO(), io.StringIO(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / name).parent.mkdir(exist_ok=True)
            (Path(folder) / name).write_bytes(data)
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), _without_window_and_training():
                status, message = main(words), errors.getvalue()
        except _Begun:
            status = 0
        except SystemExit as end:  # the parser of the arguments
            status, message = end.code, "usage"
        finally:
            os.chdir(here)
    if status not in (0, 1, 2, None):
        raise AssertionError(f"exit status {status!r}")
    if status:
        raise _RefusedError(message or "printed to the standard output")


@contextlib.contextmanager
def _without_window_and_training() -> Iterator[None]:
    from nclone_env.train.runs import begin as module

    def begin(*arguments: object) -> None:
        raise _Begun

    with mock.patch.dict(os.environ, SDL_VIDEODRIVER="none"), mock.patch.object(module, "set_up", begin):
        yield


def examples() -> list[Command]:
    rng = random.Random(0)
    files = {"r.replay": recordings()[0], "m.map": b"", "s.toml": b"", "p.txt": b""}
    files["k.pt"] = checkpoints()[0]
    assert command(rng)
    listed = ["levels list", "replay verify r.replay", "levels show first-steps/01-walk --output o.png"]
    listed += ["run --headless --num-envs 2 --steps 3 --levels hazards --observations game_state graph global_view"]
    listed += ["watch r.replay --output o.mp4 --scale 0.1", "gallery --recordings r.replay", "compare k.pt"]
    listed += ["train --levels first-steps --output out", "train --resume k.pt --total-timesteps 100000000"]
    return [(tuple(line.split()), files) for line in listed]


TARGETS = (Target("command", examples, command, call, (_RefusedError,), source=""),)
