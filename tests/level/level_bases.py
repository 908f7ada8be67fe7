"""Small levels and files that the format tests start from."""

import struct
import zlib
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from nclone_env.level import RawLevel, write_map
from nclone_env.level.formats.pack_text import Pack
from nclone_env.level.routes.lattice import CLOSEST, LATTICE, bar_steps

LATIN_1 = st.characters(min_codepoint=32, max_codepoint=255, exclude_categories=["Cc"])
RECORDS = (
    (0, 66, 26, 0, 0),
    (1, 10, 12, 0, 0),
    (2, 14, 12, 0, 0),
    (3, 40, 80, 0, 0),
    (3, 50, 80, 0, 0),
    (4, 44, 80, 0, 0),
    (4, 54, 80, 0, 0),
    (5, 20, 30, 2, 0),
    (6, 20, 40, 2, 0),
    (7, 22, 44, 0, 0),
    (8, 30, 40, 0, 0),
    (9, 32, 44, 0, 0),
    (11, 60, 60, 6, 0),
    (14, 70, 70, 4, 3),
    (28, 90, 70, 0, 0),
    (39, 90, 90, 1, 1),
)
PACK_EXTRAS = {**dict.fromkeys((5, 6, 8, 10, 11, 20), 1), **dict.fromkeys((12, 13, 14, 15, 23, 26), 2)}
"""How many of orientation and mode a pack has for a type."""


def lattices(edge, tiles):
    """Return the half-edges of (25, 44) tiles by a kernel: (51, 88) horizontal and (50, 89) vertical ones."""
    flat = [[edge(tiles, 0, line, part) for part in range(88)] for line in range(51)]
    upright = [[edge(tiles, 1, line, part) for line in range(89)] for part in range(50)]
    return np.array(flat), np.array(upright)


def one_way_steps(one_ways) -> np.ndarray:
    """Return (101, 177) uint8: the steps from each node that some one-way platforms, ``ENTITY``, bar."""
    barred = np.zeros(LATTICE, np.uint8)
    for one in one_ways:
        bar_steps(barred, float(one["x"]), float(one["y"]), int(one["orientation"]), CLOSEST)
    return barred


def make_level(records=RECORDS, **fields) -> RawLevel:
    """Return a level with every tile number once and some of every kind of record."""
    tiles = np.zeros((23, 42), np.uint8)
    tiles[3, :38] = np.arange(38)
    arrays = {"tiles": tiles, "records": np.array(records, np.uint8).reshape(-1, 5)}
    return RawLevel(**{**arrays, "title": "a level", **fields})


def make_attract(raw: RawLevel, inputs: bytes, surplus: bytes = b"", kind: int = 0, replay_id: int = 3) -> bytes:
    """Return an attract file as the game writes it: switches counted, surplus records at the end."""
    data = bytearray(write_map(raw))
    types = np.bincount(raw.records[:, 0], minlength=40).astype("<u2")
    data[1150:1230] = types.tobytes()
    data += surplus
    replay = struct.pack("<B6IBI", kind, 30 + len(inputs), 1, len(inputs), replay_id, 0, 0, 1, 0xFFFFFFFF) + inputs
    data[:8] = struct.pack("<2I", len(data) - 8, len(replay))
    return bytes(data) + replay


def make_pack(*levels: RawLevel) -> bytes:
    """Return a pack of levels as the game writes it; their records must be in the order of map bytes."""
    return b"\n".join(b"$" + raw.title.encode("latin-1") + b"#" + pack_digits(raw) + b"#" for raw in levels) + b"\n"


def read_pack(data: bytes, source: str = "<bytes>") -> list[RawLevel]:
    """Return all levels of a pack."""
    pack = Pack(data, source)
    return [pack.level(number) for number in range(len(pack))]


def make_page(*levels: RawLevel) -> bytes:
    """Return a page of userlevels as the server of the game sends it."""
    heads, blocks = b"", b""
    for raw in levels:
        heads += struct.pack("<2I16sI16s", raw.level_id, 7, raw.author.encode(), 3, b"2026-11-01-10:00")
        packed = zlib.compress(write_map(replace(raw, author=""))[8:], 9)
        blocks += struct.pack("<IH", 6 + len(packed), len(raw.records)) + packed
    return b"2026-11-27-18:22" + struct.pack("<8I", len(levels), 0, 0, 10, 0, 5, 500, 0) + heads + blocks


def pack_digits(raw: RawLevel) -> bytes:
    """Return the hex digits of a level in a pack, low nibble first."""
    data = bytes(4) + raw.tiles.tobytes()
    for kind in (0, 1, 2, 3, 5, 6, 8, *range(10, 29)):
        found = np.flatnonzero(raw.records[:, 0] == kind)
        data += len(found).to_bytes(2, "big")
        for row in found:
            values = raw.records[row, 1 : 3 + PACK_EXTRAS.get(kind, 0)].tobytes()
            if kind in (3, 6, 8):
                values += raw.records[row + (len(found) if kind == 3 else 1), 1:3].tobytes()
            data += values
    return swapped_hex(data + bytes(4))


def swapped_hex(data: bytes) -> bytes:
    return "".join(f"{value & 15:x}{value >> 4:x}" for value in data).encode()


def same(left: RawLevel, right: RawLevel) -> bool:
    """Return whether two levels say the same, source aside."""
    fields = ("title", "author", "level_id", "game_mode")
    return (
        np.array_equal(left.tiles, right.tiles)
        and np.array_equal(left.records, right.records)
        and all(getattr(left, field) == getattr(right, field) for field in fields)
    )


@st.composite
def levels(draw):
    """Draw a level that every format can hold."""
    coordinates = st.tuples(st.integers(0, 255), st.integers(0, 255))
    plain = st.sampled_from([0, 1, 2, 4, 10, 14, 20, 23, 25, 27, 29, 39])
    records = [(0, *draw(coordinates), 0, 0)]
    for kind in draw(st.lists(plain, max_size=8)):
        records.append((kind, *draw(coordinates), draw(st.integers(0, 7)), draw(st.integers(0, 3))))
    exits = draw(st.integers(0, 3))
    records += [(3, *draw(coordinates), 0, 0) for _ in range(exits)]
    records += [(4, *draw(coordinates), 0, 0) for _ in range(exits)]
    for door in draw(st.lists(st.sampled_from([6, 8]), max_size=3)):
        records += [(door, *draw(coordinates), draw(st.integers(0, 7)), 0), (door + 1, *draw(coordinates), 0, 0)]
    seed = draw(st.integers(0, 2**32 - 1))
    return RawLevel(
        tiles=np.random.default_rng(seed).integers(0, 38, (23, 42), np.uint8),
        records=np.array(records, np.uint8),
        title=draw(st.text(LATIN_1, max_size=128)),
        author=draw(st.text(LATIN_1, max_size=16)),
        level_id=draw(st.integers(0, 2**32 - 1)),
        game_mode=draw(st.sampled_from([0, 1, 2, 4])),
    )
