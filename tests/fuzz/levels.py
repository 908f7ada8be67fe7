"""Levels in every format, with damaged bytes and with well-formed nonsense; what loads is played."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np

from nclone_env.errors import LevelFormatError
from nclone_env.game import kind_name
from nclone_env.level.catalog import basic_sets
from nclone_env.level.formats.attract import read_attract
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.formats.pack_text import LAYOUTS, read_pack
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.formats.text import TILE_CHARACTERS, format_text, parse_text
from nclone_env.level.level import RawLevel, validate
from nclone_env.level.load import load_level, load_levels
from tests.level.level_bases import make_level, make_pack, swapped_hex

from .accidents import EDGES, damaged
from .playing import play_inputs, play_level
from .target import SOURCE, Mutate, Target

_TEXT_WORDS = (
    b'"""', b"'''", b"=", b"\n", b"#", b"[", b"{", b"mine 1 2", b"exit 9 9", b"tiles", b"1e999", b"nan", b"\\", b"\0",
    b"\xef\xbb\xbf", b"\xff", b"[[a]]\n", b"\r\n", "é".encode(),
)  # fmt: skip
_TEXT_VALUES = (
    "1", "-1", "1.0", "1e999", "nan", "true", "[]", "{}", '""', '"x"', "'''\n'''", "1979-05-27", "0x" + "f" * 5000,
    "9" * 5000, '"\\u0000"', '"' + "é" * 200 + '"', "[" * 3000, "{a={a=" * 500, '"solo"', '"race"', "4294967296", "",
)  # fmt: skip


@lru_cache(maxsize=1)
def raw_levels() -> tuple[RawLevel, ...]:
    """Return the built-in levels, and one with every tile and some of every kind of record."""
    return (*(level.raw for level in load_levels(basic_sets())), make_level(author="me", level_id=7))


# Well-formed nonsense: tiles and records that no editor would make


def changed(rng: random.Random, raw: RawLevel) -> tuple[np.ndarray, np.ndarray]:
    """Return tiles (23, 42) and records (N, 5), both uint8, of a level after some changes."""
    tiles, rows = raw.tiles.copy(), raw.records.tolist()
    for _ in range(rng.choice((0, 0, 1, 3))):
        row, column = rng.randrange(23), rng.randrange(42)
        most = 256 if rng.random() < 0.1 else 38
        tiles[row : row + rng.randint(1, 8), column : column + rng.randint(1, 8)] = rng.randrange(most)
    if rng.random() < 0.1:
        tiles[:] = np.frombuffer(bytes(rng.choices(range(38), k=23 * 42)), np.uint8).reshape(23, 42)
    for _ in range(rng.choice((0, 1, 1, 2, 5, 20))):
        _change_record(rng, rows)
    return tiles, np.array(rows, np.uint8).reshape(-1, 5)


def _change_record(rng: random.Random, rows: list[list[int]]) -> None:
    place, action = rng.randrange(len(rows) + 1), rng.random()
    some = [rng.randrange(40), rng.randrange(180), rng.randrange(104), rng.randrange(8), rng.randrange(4)]
    if action < 0.4:
        rows.insert(place, some)
    elif action < 0.45:
        rows[place:place] = [some] * rng.choice((2, 30, 400))
    elif action < 0.6:
        door = rng.choice((3, 6, 8))
        rows[place:place] = [[door, *some[1:3], 0, 0], [door + 1, *some[1:3], 0, 0]]
    elif place < len(rows) and action < 0.9:
        rows[place][rng.randrange(5)] = rng.choice(EDGES) if rng.random() < 0.5 else rng.randrange(256)
    elif place < len(rows) and len(rows) > 1:
        del rows[place]


def map_of(raw: RawLevel, tiles: np.ndarray, records: np.ndarray) -> bytes:
    """Return map bytes; nothing is checked."""
    counts = np.bincount(records[:, 0], minlength=40)[:40].astype("<u2")
    counts[[7, 9]] = 0
    return write_map(raw)[:184] + tiles.tobytes() + counts.tobytes() + records.tobytes()


def attract_of(block: bytes, inputs: bytes) -> bytes:
    """Return an attract file of a map block; nothing is checked."""
    replay = struct.pack("<B6IBI", 0, 30 + len(inputs), 1, len(inputs), 3, 0, 0, 1, 0xFFFFFFFF) + inputs
    return struct.pack("<2I", len(block) - 8, len(replay)) + block[8:] + replay


def pack_line(title: bytes, tiles: np.ndarray, records: np.ndarray) -> bytes:
    """Return a line of a pack; nothing is checked."""
    data = bytes(4) + tiles.tobytes()
    for kind, layout in LAYOUTS.items():
        own = records[records[:, 0] == kind]
        data += len(own).to_bytes(2, "big")
        for _, x, y, orientation, mode in own.tolist():
            values = {"x": x, "y": y, "o": orientation, "m": mode, "X": y, "Y": x}
            data += bytes(values[field] for field in layout)
    return b"$" + title + b"#" + swapped_hex(data + bytes(4)) + b"#\n"


def text_of(rng: random.Random, tiles: np.ndarray, records: np.ndarray) -> str:
    """Return a text level, some of them with other keys and values; nothing is checked."""
    picture = "\n".join("".join(TILE_CHARACTERS[tile % len(TILE_CHARACTERS)] for tile in row) for row in tiles.tolist())
    entities = "\n".join(f"{kind_name(kind)} {' '.join(map(str, rest))}" for kind, *rest in records.tolist())
    items = [("format", "1"), ("title", '"t"'), ("author", '"a"'), ("level_id", "7"), ("game_mode", '"solo"')]
    items += [("tiles", f'"""\n{picture}\n"""'), ("entities", f'"""\n{entities}\n"""')]
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        place, action = rng.randrange(len(items)), rng.random()
        if action < 0.5:
            items[place] = (items[place][0], rng.choice(_TEXT_VALUES))
        elif action < 0.6:
            items.insert(place, (rng.choice(("x", '"tiles"', "a.b", "", "é", "title")), rng.choice(_TEXT_VALUES)))
        elif action < 0.8:
            items[place] = items[place - 1]
        else:
            del items[place]
    return "".join(f"{key} = {value}\n" for key, value in items)


# Inputs by format


def map_bytes(rng: random.Random) -> bytes:
    raw = rng.choice(raw_levels())
    return _perhaps_damaged(rng, map_of(raw, *changed(rng, raw)))


def attract_file(rng: random.Random) -> bytes:
    raw = rng.choice(raw_levels())
    inputs = bytes(rng.choices(range(16 if rng.random() < 0.2 else 8), k=rng.choice((0, 1, 40, 300))))
    block = map_of(raw, *changed(rng, raw)) + bytes(rng.choice((0, 0, 5, 7)))
    return _perhaps_damaged(rng, attract_of(block, inputs))


def pack_file(rng: random.Random) -> bytes:
    chosen = rng.choices(raw_levels(), k=rng.choice((1, 1, 2, 3)))
    data = b"".join(pack_line(raw.title.encode("latin-1"), *changed(rng, raw)) for raw in chosen)
    if rng.random() < 0.3:
        digits = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            digits[rng.randrange(len(digits))] = rng.choice(b"0123456789abcdef")
        return bytes(digits)
    return _perhaps_damaged(rng, data, (b"$", b"#", b"\n", b"00", b" ", b"\xff"))


def text_level(rng: random.Random) -> bytes:
    text = text_of(rng, *changed(rng, rng.choice(raw_levels()))).encode()
    return damaged(rng, text, _TEXT_WORDS) if rng.random() < 0.4 else text


def any_level(rng: random.Random) -> bytes:
    return rng.choice((map_bytes, attract_file, pack_file, text_level))(rng)


def or_other(mutate: Mutate) -> Mutate:
    """Return a function that makes noise and files of other formats now and then."""

    def chosen(rng: random.Random) -> bytes:
        share = rng.random()
        if share < 0.02:
            return rng.randbytes(rng.choice((0, 1, 8, 2000)))
        return any_level(rng) if share < 0.05 else mutate(rng)

    return chosen


def _perhaps_damaged(rng: random.Random, data: bytes, words: Sequence[bytes] = (b"\0", b"\xff")) -> bytes:
    return damaged(rng, data, words) if rng.random() < 0.4 else data


# What becomes of them


def read_text(data: bytes) -> None:
    use(LevelFile(data, SOURCE, is_text=True).level())


def read_map_bytes(data: bytes) -> None:
    use(read_map(data, SOURCE))


def read_attract_file(data: bytes) -> None:
    file = read_attract(data, SOURCE)
    use(file.level)
    play_inputs(load_level(file.level), file.inputs)


def read_pack_file(data: bytes) -> None:
    for raw in read_pack(data, SOURCE):
        use(raw)


def use(raw: RawLevel) -> None:
    """Validate a level, write it in every format, and play it."""
    validate(raw)
    with suppress(LevelFormatError):  # loads, but cannot be written
        data = write_map(raw)
        assert write_map(read_map(data)) == data
        text = format_text(raw)
        assert write_map(parse_text(text)) == data
    play_level(load_level(raw))


def _texts() -> list[bytes]:
    return [format_text(raw).encode() for raw in raw_levels()]


def _maps() -> list[bytes]:
    return [write_map(raw) for raw in raw_levels()]


def _attract_files() -> list[bytes]:
    return [attract_of(data, bytes(range(8)) * 20) for data in _maps()]


def _packs() -> list[bytes]:
    return [make_pack(raw) for raw in raw_levels()[:-1]]


TARGETS = (
    Target("text", _texts, or_other(text_level), read_text, (LevelFormatError,)),
    Target("map", _maps, or_other(map_bytes), read_map_bytes, (LevelFormatError,)),
    Target("attract", _attract_files, or_other(attract_file), read_attract_file, (LevelFormatError,)),
    Target("pack", _packs, or_other(pack_file), read_pack_file, (LevelFormatError,)),
)
