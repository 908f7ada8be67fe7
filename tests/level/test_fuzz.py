"""Mutated files: a damaged level file loads or raises LevelFormatError, nothing else."""

import random
from collections import Counter

import pytest

from nclone_env.errors import LevelFormatError
from nclone_env.level.formats.attract import read_attract
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.formats.pack_text import read_pack
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.formats.text import format_text, parse_text
from nclone_env.level.raw import RawLevel
from nclone_env.level.validate import validate

from .level_bases import make_attract, make_level, make_pack

PLAIN = make_level([(0, 10, 10, 0, 0), (3, 50, 50, 0, 0), (4, 60, 60, 0, 0)], title="plain")
BASES = tuple(
    data
    for raw in (make_level(author="me", level_id=7), PLAIN)
    for data in (
        write_map(raw),
        make_attract(raw, bytes(range(10)) * 4, b"\x02" * 15),
        format_text(raw).encode(),
        make_pack(raw),
    )
)
TWO_LEVELS = make_pack(PLAIN, make_level(title="the other"))
WORDS = (
    b'"""',
    b"'''",
    b"=",
    b"\n",
    b"#",
    b"[",
    b"{",
    b"mine 1 2",
    b"exit 9 9",
    b"tiles",
    b"1e999",
    b"nan",
    b"\\",
    b"\0",
)


def mutant(rng: random.Random) -> bytes:
    """Return one of the bases after one to four accidents."""
    data = bytearray(rng.choice(BASES))
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data) + 1) if rng.random() < 0.7 else min(rng.randrange(1200, 1320), len(data))
        length = min(rng.choice((1, 1, 2, 5, 80)), len(data) - place)
        accident = rng.randrange(6)
        if accident == 0:
            data[place : place + length] = rng.randbytes(length)
        elif accident == 1:
            del data[place : place + length]
        elif accident == 2:
            data[place:place] = rng.choice(WORDS)
        elif accident == 3:
            data[place:place] = data[place : place + length]
        elif accident == 4:
            del data[place:]
        else:
            data[place : place + 1] = bytes([rng.choice((0, 1, 3, 6, 7, 8, 9, 40, 127, 255))])
    return bytes(data)


def read_level(data, source="mutant") -> RawLevel:
    return LevelFile(data, source).level()


def outcome(function, *arguments) -> str:
    """Return whether a reader loaded or refused; a shapeless message is returned as it is."""
    try:
        result = function(*arguments)
    except LevelFormatError as error:
        message = str(error)
        return "refused" if message.startswith("mutant: ") and len(message) < 1000 else message
    if isinstance(result, RawLevel):
        validate(result)
    return "loaded"


def test_ten_thousand_mutants():
    rng = random.Random(20240229)
    outcomes = Counter(outcome(read_level, mutant(rng), "mutant") for _ in range(10_000))
    assert set(outcomes) == {"refused", "loaded"}
    assert min(outcomes.values()) > 1000


@pytest.mark.parametrize("reader", [read_map, read_attract, read_pack])
def test_each_reader_with_the_other_formats(reader):
    rng = random.Random(7)
    outcomes = Counter(outcome(reader, mutant(rng), "mutant") for _ in range(1000))
    assert set(outcomes) <= {"refused", "loaded"}
    assert outcomes["refused"] > 500


def test_text_reader_with_arbitrary_characters():
    rng = random.Random(8)
    outcomes = Counter(outcome(parse_text, mutant(rng).decode("latin-1"), "mutant") for _ in range(1000))
    assert set(outcomes) <= {"refused", "loaded"}
    assert outcomes["refused"] > 500


def test_pack_reader_with_other_digits():
    rng = random.Random(11)
    outcomes: Counter[str] = Counter()
    for _ in range(2000):
        data = bytearray(TWO_LEVELS)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(1900, len(data))] = rng.choice(b"0123456789abcdef")
        outcomes[outcome(read_pack, bytes(data), "mutant")] += 1
    assert set(outcomes) == {"refused", "loaded"}
    assert min(outcomes.values()) > 100


def test_noise():
    rng = random.Random(9)
    outcomes = Counter(outcome(read_level, rng.randbytes(rng.choice((0, 1, 8, 2000))), "mutant") for _ in range(500))
    assert outcomes == {"refused": 500}


def test_mutants_that_load_and_can_be_written_survive_the_round_trip():
    rng = random.Random(10)
    survivors = 0
    for _ in range(2500):
        try:
            data = write_map(read_level(mutant(rng)))
            text = format_text(read_map(data))
        except LevelFormatError:
            continue
        assert write_map(parse_text(text)) == data
        survivors += 1
    assert survivors > 100
