"""The shortest known solutions of the built-in levels with inputs held for four frames, as agents play by default.

``levels/solutions.toml`` maps each level to words such as ``24RJ``: 24 frames of right and jump. The letters are
L left, R right, J jump, and ``.`` alone for nothing.
"""

import itertools
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from nclone_env._files import expanded
from nclone_env.errors import ConfigError, LevelFormatError, checked, shortened
from nclone_env.game import INPUT_JUMP, INPUT_LEFT, INPUT_RIGHT
from nclone_env.level.catalog import levels_folder
from nclone_env.level.level import Level
from nclone_env.level.load import load_level

MAX_INPUTS = 1 << 20
"""Frames; as many as a recording can hold."""
SOLUTIONS_FILE = "solutions.toml"
_INPUTS = {".": 0, "L": INPUT_LEFT, "R": INPUT_RIGHT, "J": INPUT_JUMP}
_INPUTS |= {"LJ": INPUT_LEFT | INPUT_JUMP, "RJ": INPUT_RIGHT | INPUT_JUMP}
_WORDS = {code: word for word, code in _INPUTS.items()}
_ANY_WORD = re.compile(r"\S+")
_WORD = re.compile(r"([1-9][0-9]{0,4})(\.|LJ|RJ|L|R|J)")
_LONGEST_WORD = 99_999


@checked()
def known_solutions(folder: str | Path | None = None) -> dict[str, bytes]:
    """Return the shortest known inputs by level name, one byte a frame; empty if there is no such file.

    Args:
        folder: folder of the levels; None: the built-in ones.

    Raises:
        LevelFormatError: if the file is malformed.
    """
    path = expanded(folder or levels_folder()) / SOLUTIONS_FILE
    if not path.exists():
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LevelFormatError(str(path), "file", "TOML", str(error)) from error
    return {name: parse_inputs(text, f"{path}: {name}") for name, text in table.items()}


def known_solutions_of(levels: Iterable[Level]) -> dict[str, bytes]:
    """Return the shortest known inputs of levels by level name, one byte a frame; without those that have none.

    Levels are compared with the built-in ones by tiles and entities, whatever they are called.
    """
    known = _known_by_digest()
    return {level.name: known[level.raw.digest] for level in levels if level.raw.digest in known}


@cache
def _known_by_digest() -> dict[str, bytes]:
    return {load_level(name).raw.digest: inputs for name, inputs in known_solutions().items()}


@checked()
def parse_inputs(text: str, source: str = "<text>") -> bytes:
    """Return the input bytes of words such as ``24RJ 3.``.

    Raises:
        LevelFormatError: if a word is malformed, or there are more than ``MAX_INPUTS`` frames; it names ``source``.
    """
    inputs = bytearray()
    for number, found in enumerate(_ANY_WORD.finditer(text), start=1):  # a list of the words could be large
        word = found[0]
        match = _WORD.fullmatch(word)
        if match is None:
            raise LevelFormatError(source, f"word {number}", "a count and one of . L R J LJ RJ", shortened(word))
        if len(inputs) + int(match[1]) > MAX_INPUTS:
            raise LevelFormatError(source, f"word {number}", f"at most {MAX_INPUTS} frames", "more")
        inputs += bytes([_INPUTS[match[2]]]) * int(match[1])
    return bytes(inputs)


@checked()
def format_inputs(inputs: bytes) -> str:
    """Return input bytes as words; the inverse of :func:`parse_inputs`.

    Raises:
        ConfigError: if one is not 0..5: there are no words for left with right, and for suicide.
    """
    words = []
    for code, run in itertools.groupby(inputs):
        if code not in _WORDS:
            raise ConfigError(f"inputs: expected bytes 0 to {max(_WORDS)}, for which there are words, got {code}")
        whole, rest = divmod(sum(1 for _ in run), _LONGEST_WORD)
        words += [f"{_LONGEST_WORD}{_WORDS[code]}"] * whole + [f"{rest}{_WORDS[code]}"] * (rest > 0)
    return " ".join(words)
