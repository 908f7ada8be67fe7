"""Levels, runs and galleries of the tests."""

from dataclasses import replace
from pathlib import Path

from nclone_env.cli.app import main
from nclone_env.level import build_room, write_map
from nclone_env.replay.recording import Recording

WINNABLE = build_room("gold 44 58", "exit 60 58", "exit_switch 48 58", title="Winnable")
DEADLY = build_room("mine 60 58", "gold 44 58", title="Deadly")
RIGHT = bytes([2] * 90)


def level_file(path: Path, level, **header: str) -> Path:
    """Write map bytes and return the path."""
    path.write_bytes(write_map(replace(level.raw, **header)))
    return path


def recording_file(path: Path, level=WINNABLE, inputs: bytes = RIGHT) -> Path:
    Recording.of(level, inputs).save(path)
    return path


def gallery(*words: object) -> int:
    return main(["gallery", *map(str, words)])
