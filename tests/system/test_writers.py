"""Two commands that write to one place, and places and names of any kind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nclone_env._files import FileLock, remove_temporaries
from nclone_env.cli.app import main
from nclone_env.cli.output import check_free, claim, release_claims
from nclone_env.errors import ConfigError
from nclone_env.level.formats.text import format_text
from nclone_env.level.load import load_level

HOLD = """
import sys
from pathlib import Path
from nclone_env.cli.output import claim
claim(Path(sys.argv[1]))
print("claimed", flush=True)
sys.stdin.read()
"""
COMMANDS = {
    "pack.txt": ["levels", "generate", "--count", "1", "--output", "pack.txt", "--family", "pads"],
    "pack.jsonl": ["levels", "generate", "--count", "1", "--output", "pack.txt", "--family", "pads"],
    "gallery": ["gallery", "first-steps/01-walk"],
    "level.toml": ["levels", "convert", "jumps/01-stairs", "level.toml"],
    "level.png": ["levels", "show", "jumps/01-stairs", "--output", "level.png"],
    "a.replay": ["replay", "record", "jumps/01-stairs", "--inputs", "3R", "--output", "a.replay"],
    "solutions/": ["solve", "first-steps/01-walk", "--frames", "1000"],
}


@pytest.fixture(autouse=True)
def folder(folder):
    yield folder
    release_claims()


def holder(place: str) -> subprocess.Popen[str]:
    """Start a process that has claimed a place."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "claimed\n"
    return process


@pytest.mark.parametrize("place", COMMANDS)
def test_the_second_command_is_told_before_it_works(place, folder, capsys):
    if place.endswith("/"):
        Path(place).mkdir()
    with holder(place) as other:
        assert main(COMMANDS[place]) == 2
        assert "another process is writing there; wait for it, or name another" in capsys.readouterr().err
        other.kill()
    assert not [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_merge_waits_for_who_writes_to_the_same_place(is_there, folder, capsys):
    """With ``--force`` it would replace the rows of a search that still adds to them."""
    arguments = ["solve", "first-steps/01-walk", "--frames", "1000"]
    assert main([*arguments, "--shard", "1/1", "--output", "parts"]) == 0
    if is_there:
        Path("solutions").mkdir()
    with holder("solutions") as other:
        for words in (
            arguments,
            ["merge", "parts", "--output", "solutions"],
            ["merge", "parts", "--output", "solutions/"],
        ):
            assert main([*words, "--force"]) == 2
            assert "solutions: another process is writing there; wait for it" in capsys.readouterr().err
        other.kill()
    assert not [path for path in folder.glob("solutions/*") if not path.name.startswith(".")]
    assert main(["merge", "parts", "--output", "solutions", "--force"]) == 0


def test_a_claim_ends_with_the_process_and_is_swept(folder):
    with holder("pack.txt") as other:
        (left,) = folder.iterdir()
        remove_temporaries(folder)
        assert left.exists()
        other.kill()
    check_free(Path("pack.txt"), force=False)
    release_claims()
    assert not list(folder.iterdir())
    left.touch()
    remove_temporaries(folder)
    assert not left.exists()


def test_one_process_may_claim_a_place_twice(folder):
    check_free(folder / "a", force=False)
    check_free(Path("a"), force=False)
    (folder / "a").touch()
    with pytest.raises(ConfigError, match="already exists"):
        check_free(Path("a"), force=False)


def test_training_and_other_commands_lock_the_same(folder):
    from nclone_env.errors import RunFolderError
    from nclone_env.train.runs.folder import RunFolder

    (folder / "mine").mkdir()
    claim(folder / "mine")
    with pytest.raises(RunFolderError, match="another process is training in this folder"):
        RunFolder(folder / "mine")
    release_claims()
    RunFolder(folder / "mine").close()


RACE = """
import sys
from pathlib import Path
from nclone_env._files import FileLock
won = 0
sys.stdin.readline()
for number in range(int(sys.argv[1])):
    try:
        lock = FileLock(Path("lock"))
    except BlockingIOError:
        continue
    path = Path("counter")
    count = int(path.read_text()) if path.exists() else 0
    path.write_text(str(count + 1))
    won += 1
    lock.release()
print(won)
"""


def race(times: int) -> tuple[int, int]:
    """Let two processes count in a file under one lock; return what they counted, and what the file holds."""
    command = [sys.executable, "-c", RACE, str(times)]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    return sum(int(racer.communicate()[0]) for racer in racers), int(Path("counter").read_text())


def test_two_processes_never_hold_one_lock():
    counted, written = race(2000)
    assert counted == written > 100


def test_a_lock_that_was_removed_is_made_again(folder):
    lock = FileLock(folder / "lock")
    (folder / "lock").unlink()
    other = FileLock(folder / "lock")
    lock.release(remove=False)
    with pytest.raises(BlockingIOError):
        FileLock(folder / "lock")
    other.release()
    assert not (folder / "lock").exists()


NAMES = [b"caf\xe9.toml", b"a\x1b[31mb.toml", b"forged\n0 findings.toml", "\u202ename.toml".encode()]


@pytest.mark.parametrize("name", NAMES)
def test_level_files_of_any_name(name, folder, capsys):
    path = Path(os.fsdecode(name))
    path.write_text(format_text(load_level("first-steps/01-walk").raw))
    shown = {b"caf\xe9.toml": "caf\\xe9.toml", b"a\x1b[31mb.toml": "a\\x1b[31mb.toml"}.get(name)
    for command in (["list"], ["validate"], ["show", "--output", "x.png"]):
        assert main(["levels", *command, str(path)]) == 0
    out = capsys.readouterr().out
    assert shown is None or shown in out
    assert all(line.isprintable() for line in out.split("\n"))
    out.encode()
    assert load_level(path).name.isprintable()


def test_titles_on_an_ascii_terminal(folder):
    level = load_level("first-steps/01-walk").raw
    Path("a.toml").write_text(format_text(level).replace("Walk", "caf\u00e9 \u2019 \u30c6"), encoding="utf-8")
    words = "[main(['levels', word, 'a.toml']) for word in ('list', 'show')]"
    both = f"from nclone_env.cli.app import main; exit({words} != [0, 0])"
    done = subprocess.run(
        [sys.executable, "-c", both], env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"caf\\xe9 \\u2019 \\u30c6") == 2


def test_pipes_are_refused(folder, capsys):
    os.mkfifo("pipe")
    assert main(["profile", "compare", "pipe", "pipe"]) == 2
    assert "expected a file, got a device or pipe" in capsys.readouterr().err
    Path("solutions").mkdir()
    os.mkfifo("solutions/solutions.jsonl")
    assert main(["solve", "first-steps/01-walk", "--frames", "100"]) in (1, 2)
    assert "expected a file, got a device or pipe" in capsys.readouterr().err
