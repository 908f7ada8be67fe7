"""Files of every kind: examples, their readers, and the errors that may refuse them.

An input is an example with damaged bytes, or one whose parts were exchanged before it was sealed again: with the sizes,
digests and checksums that its reader looks at first.
"""

import io
import json
import random
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import nclone_env.gallery.entries as entries
from nclone_env import EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.config import OBSERVATION_NAMES
from nclone_env.errors import (
    CheckpointError,
    FormatError,
    LevelFormatError,
    NcloneError,
    RecordingError,
    SnapshotError,
    UnsupportedLevelError,
)
from nclone_env.gallery.site import index_page, level_list, level_script, play_page
from nclone_env.generate.levels import CollectionFiles
from nclone_env.level.build import everything, moving
from nclone_env.level.formats.attract import read_attract, read_peer
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.formats.pack_text import LAYOUTS
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.formats.text import format_text, parse_text
from nclone_env.level.formats.userlevels import UserlevelPage
from nclone_env.level.level import RawLevel, validate
from nclone_env.level.load import load_level, load_levels
from nclone_env.level.solutions import known_solutions
from nclone_env.replay.recording import Recording, read_recording, write_recording
from nclone_env.replay.verification import verify_peer
from profiling.measure import basic_sets
from tests.level.level_bases import make_level, make_pack, make_page, read_pack, swapped_hex

from ..env import peek
from ..shared import archived, members_of
from .accidents import EDGES, VALUES, damaged, drawn, with_other_parts
from .playing import check_finite, check_worlds, play_inputs, play_level
from .target import SOURCE, Mutate, Target, in_file

_MOST_FRAMES = 2000  # are played
_STEPS = 5
_SEALED = struct.Struct("<8s5I8s32sI")  # header of a recording
_SNAPSHOT_HEADER = 48
_TEXT_WORDS = (
    b'"""', b"'''", b"=", b"\n", b"#", b"[", b"{", b"mine 1 2", b"exit 9 9", b"tiles", b"1e999", b"nan", b"\\", b"\0",
    b"\xef\xbb\xbf", b"\xff", b"[[a]]\n", b"\r\n", "é".encode(), b"9" * 5000, b"[" * 3000, b"{a={a=" * 500,
)  # fmt: skip
_PACK_WORDS = (b"$", b"#", b"\n", b"00", b" ", b"\xff")
_PICKLE_WORDS = (b"\x80\x02", b"cos\nsystem\n", b"}q\x01", b"K\xff", b"<f8")
_HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</title><script>", "javascript:alert(1)", "&#x3c;b",
    "\x1b[31m", "\n", "\u202e", "\ud800", "../../x", "'onload='x", "x" * 5000,
)  # fmt: skip


def mutant(
    examples: Callable[[], Sequence[Any]],
    *changes: Callable[[random.Random, Any], Any],
    words: Sequence[bytes] = (b"\0", b"\xff"),
) -> Mutate:
    """Return a function that damages the bytes of an example, or changes its parts in one of some ways."""

    def mutate(rng: random.Random) -> bytes:
        data, share = rng.choice(examples()), rng.random()
        if share < 0.02:
            return rng.randbytes(rng.choice((0, 1, 8, 2000)))
        return damaged(rng, data, words) if share < 0.3 or not changes else rng.choice(changes)(rng, data)

    return mutate


def with_other_values(rng: random.Random, value: Any, values: Sequence[Any] = VALUES) -> Any:
    """Return nested dicts and lists with one to three other parts."""
    for _ in range(rng.randint(1, 3)):
        value = with_other_parts(rng, value, lambda rng: drawn(rng, values))
    return value


def json_of(rng: random.Random, value: Any) -> bytes:
    """Return JSON; what it cannot hold becomes text."""
    text = json.dumps(value, default=str, skipkeys=True)
    if rng.random() < 0.03:
        text = text.replace("1", rng.choice(("1" * 5000, "NaN", "1e999", "[" * 10**5, "-0")), 1)
    return text.encode()


# Levels: tiles and records that no editor would make


@lru_cache(maxsize=1)
def raw_levels() -> tuple[RawLevel, ...]:
    """Return the built-in levels, and one with every tile and some of every kind of record."""
    return (*(level.raw for level in load_levels(basic_sets())), make_level(author="me", level_id=7))


def changed(rng: random.Random, raw: RawLevel) -> tuple[np.ndarray, np.ndarray]:
    """Return tiles (23, 42) and records (N, 5), both uint8, of a level after some changes."""
    tiles, rows = raw.tiles.copy(), raw.records.tolist()
    for _ in range(rng.choice((0, 1, 3))):
        row, column = rng.randrange(23), rng.randrange(42)
        tiles[row : row + rng.randint(1, 8), column : column + rng.randint(1, 8)] = rng.randrange(
            256 if rng.random() < 0.1 else 38
        )
    for _ in range(rng.choice((0, 1, 2, 5, 20))):
        rows = with_other_parts(rng, rows, _record)
    numbers = [list(_flat(row)) for row in rows] if isinstance(rows, list) else [[rows]]
    whole = [number % 256 for row in numbers for number in (*row, *[0] * (-len(row) % 5))]
    return tiles, np.array(whole, np.uint8).reshape(-1, 5)


def _record(rng: random.Random) -> Any:
    """Return a number of a record, or a record."""
    if rng.random() < 0.5:
        return rng.choice(EDGES)
    return [rng.randrange(40), rng.randrange(180), rng.randrange(104), rng.randrange(8), rng.randrange(4)]


def _flat(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def map_of(raw: RawLevel, tiles: np.ndarray, records: np.ndarray) -> bytes:
    """Return map bytes; nothing is checked."""
    counts = np.bincount(records[:, 0], minlength=40)[:40].astype("<u2")
    counts[[7, 9]] = 0
    return write_map(raw)[:184] + tiles.tobytes() + counts.tobytes() + records.tobytes()


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


def attract_of(block: bytes, inputs: bytes) -> bytes:
    """Return an attract file of a map block; nothing is checked."""
    replay = struct.pack("<B6IBI", 0, 30 + len(inputs), 1, len(inputs), 3, 0, 0, 1, 0xFFFFFFFF) + inputs
    return struct.pack("<2I", len(block) - 8, len(replay)) + block[8:] + replay


def nonsense(rng: random.Random, data: bytes = b"") -> bytes:
    """Return map bytes of a level that was changed."""
    raw = rng.choice(raw_levels())
    return map_of(raw, *changed(rng, raw))


def nonsense_text(rng: random.Random, data: bytes) -> bytes:
    with suppress(LevelFormatError):  # it cannot be written as text
        return format_text(read_map(nonsense(rng))).encode()
    return damaged(rng, data, _TEXT_WORDS, most=1)


def nonsense_line(rng: random.Random, data: bytes) -> bytes:
    raw = rng.choice(raw_levels())
    return pack_line(raw.title.encode("latin-1"), *changed(rng, raw))


def _inputs(rng: random.Random) -> bytes:
    return bytes(rng.choices(range(16 if rng.random() < 0.2 else 8), k=rng.choice((0, 1, 40, 300))))


def texts() -> list[bytes]:
    return [format_text(raw).encode() for raw in raw_levels()]


def maps() -> list[bytes]:
    return [write_map(raw) for raw in raw_levels()]


def attract_files() -> list[bytes]:
    return [attract_of(data, bytes(range(8)) * 20) for data in maps()]


def packs() -> list[bytes]:
    return [make_pack(raw) for raw in raw_levels()[:-1]]


def pages() -> list[bytes]:
    levels = raw_levels()[:-1]
    return [make_page(*levels[:number]) for number in (1, 2, 5)]


def nonsense_page(rng: random.Random, data: bytes) -> bytes:
    block = zlib.compress(nonsense(rng)[8:])
    return data[: 48 + 44] + struct.pack("<IH", 6 + len(block), rng.randrange(9)) + block


text_level, map_bytes = mutant(texts, nonsense_text, words=_TEXT_WORDS), mutant(maps, nonsense)
attract_file = mutant(attract_files, lambda rng, data: attract_of(nonsense(rng), _inputs(rng)))
pack_file = mutant(packs, nonsense_line, words=_PACK_WORDS)


def any_level(rng: random.Random) -> bytes:
    return rng.choice((map_bytes, attract_file, pack_file, text_level))(rng)


def use(raw: RawLevel) -> None:
    """Validate a level, write it in every format, and play it."""
    validate(raw)
    with suppress(LevelFormatError):  # loads, but cannot be written
        data = write_map(raw)
        assert write_map(read_map(data)) == data
        text = format_text(raw)
        assert write_map(parse_text(text)) == data
    play_level(load_level(raw))


def read_page(data: bytes) -> None:
    """Read each level of a page, use those that are whole, and raise the first error if none is."""
    file = LevelFile(data, SOURCE)
    if not isinstance(file.pack, UserlevelPage):
        use(file.level(0))
        return
    page, faults = file.pack, []
    assert len(page.titles) == len(page)
    for number in range(len(page)):
        try:
            use(page.level(number))
        except LevelFormatError as error:
            faults.append(error)
    if len(faults) == len(page):
        raise faults[0] if faults else LevelFormatError(SOURCE, "file", "levels", "none")


def read_attract_file(data: bytes) -> None:
    file = read_attract(data, SOURCE)
    use(file.level)
    play_inputs(load_level(file.level), file.inputs)


def play(data: bytes) -> None:
    """Play a level with any observations: every number that is returned is finite."""
    rng = random.Random(data)
    slow = {"player_frame": 0.2, "global_view": 0.2}
    names = [name for name in OBSERVATION_NAMES if rng.random() < slow.get(name, 0.5)]
    config = EnvironmentConfig(
        levels=(data,),
        observations=tuple(names or ["game_state"]),
        mirrored=rng.random() < 0.3,
        paths=rng.choice(("tiles", "doors")),
        frame_skip=rng.choice((1, 4, 20)),
        max_frames=rng.choice((50, 300)),
        observation={
            "dtype": rng.choice(("float32", "float16")),
            "local_position": rng.random() < 0.3,
            "outcome_frames": 12,  # hundreds of movers take long
        },
        reward={"gold": 1.0},
    )
    mode = rng.choice(("NextStep", "SameStep"))
    with closing(NPlusPlusVectorEnv(config, 2, num_threads=1, autoreset_mode=mode)) as envs:
        _check(envs.reset(seed=0)[0])
        for _ in range(40):
            observations, rewards, *_, info = envs.step([rng.randrange(6), rng.randrange(6)])
            _check(observations | {"rewards": rewards, "return": info["episode_return"]})
        check_worlds(envs.worlds)


def _check(arrays: dict[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        check_finite(name, array)


# Recordings


@lru_cache(maxsize=1)
def recordings() -> list[bytes]:
    """Return a recording of some inputs on each level."""
    inputs = random.Random(0).choices(range(8), k=90)
    return [write_recording(Recording.of(raw, inputs, {"level": "a", "n": 4}, 7)) for raw in raw_levels()]


def other_recording(rng: random.Random, data: bytes) -> bytes:
    """Exchange metadata, level, inputs, or a number of the header; sizes, digest and checksums are right again."""
    fields, start = list(_SEALED.unpack_from(data)), _SEALED.size + 4
    ends = np.cumsum([start, *fields[3:6]]).tolist()
    text, level, inputs = (data[first:end] for first, end in pairwise(ends))
    level, inputs, part = zlib.decompress(level), zlib.decompress(inputs), rng.random()
    if part < 0.4:
        text = json_of(rng, with_other_values(rng, json.loads(text)))
    elif part < 0.8:
        level = nonsense(rng) if rng.random() < 0.7 else damaged(rng, level)
    else:
        inputs = rng.choice((damaged(rng, inputs), _inputs(rng), bytes(rng.choice((10**5, 10**7, 2**24)))))
    with suppress(LevelFormatError):
        fields[7] = bytes.fromhex(read_map(level).digest)
    packed = text, zlib.compress(level), zlib.compress(inputs)
    fields[2:6] = len(inputs), *map(len, packed)
    if rng.random() < 0.1:
        fields[rng.randrange(1, 6)] = rng.choice((*EDGES, 2**24, 2**31, 2**32 - 1))
    fields[8] = zlib.crc32(b"".join(packed))
    header = _SEALED.pack(*fields)
    return header + zlib.crc32(header).to_bytes(4, "little") + b"".join(packed)


def read_own(data: bytes) -> None:
    found = read_recording(data, SOURCE)
    use(found.level)
    if len(found.inputs) <= _MOST_FRAMES:
        found.verify()


@lru_cache(maxsize=1)
def peers() -> list[bytes]:
    """Return recordings of the package nclone: with a version, and as older files without one."""
    found = []
    for name in ("first-steps/01-walk", "jumps/01-stairs"):
        level, inputs = write_map(load_level(name).raw), known_solutions()[name]
        found.append(struct.pack("<3I?", 1, len(level), len(inputs), True) + level + inputs)
        found.append(struct.pack("<2I", len(level), len(inputs)) + level + inputs)
    return found


def other_peer(rng: random.Random, data: bytes) -> bytes:
    level, inputs = nonsense(rng), _inputs(rng)
    lengths = [len(level), len(inputs)]
    if rng.random() < 0.1:
        lengths[rng.randrange(2)] = rng.choice((*EDGES, 1230, 1235, 2**24, 2**31, 2**32 - 1))
    head = struct.pack("<3IB", 1, *lengths, rng.choice((0, 1, 255))) if rng.random() < 0.5 else b""
    return (head or struct.pack("<2I", *lengths)) + level + inputs


def read_other(data: bytes) -> None:
    found = read_peer(data, SOURCE)
    use(found.level)
    if len(found.inputs) <= _MOST_FRAMES:
        verdict = verify_peer(found)
        with suppress(RecordingError):  # loads, but cannot be written
            again = read_recording(write_recording(Recording.of(found.level, found.inputs, {}, 0)), SOURCE)
            assert again.verify().end == verdict.end


recording, peer = mutant(recordings, other_recording), mutant(peers, other_peer)


# Snapshots


@lru_cache(maxsize=1)
def environments() -> tuple[NPlusPlusEnv, NPlusPlusVectorEnv]:
    """Return a single and a vector environment with the same levels, begun."""
    names = ("game_state", "entity_states", "locals", "reachability", "free_motion", "action_outcomes", "action_mask")
    levels = (everything(), moving(), "hazards", "first-steps/03-drop")
    fields: dict[str, Any] = {"levels": levels, "observations": names, "max_frames": 160}
    env, envs = NPlusPlusEnv(**fields), NPlusPlusVectorEnv(None, 2, autoreset_mode="SameStep", **fields)
    env.reset(seed=0)
    envs.reset(seed=0)
    return env, envs


@lru_cache(maxsize=1)
def snapshots() -> list[bytes]:
    """Return the states of an environment in the middle of episodes."""
    env, _ = environments()
    actions, found = random.Random(1), []
    for seed in range(12):
        env.reset(seed=seed)
        for _ in range(seed):
            if any(env.step(actions.randrange(6))[2:4]):
                break
        found.append(env.get_state())
    return found


def other_header(rng: random.Random, data: bytes) -> bytes:
    return _with_checksum(damaged(rng, data[:_SNAPSHOT_HEADER], most=1) + data[_SNAPSHOT_HEADER:])


def other_numbers(rng: random.Random, data: bytes) -> bytes:
    """Forge numbers of two arrays, with those of another snapshot or with such as may be impossible."""
    changed, other, place = bytearray(data), rng.choice(snapshots()), _SNAPSHOT_HEADER
    arrays = list(peek.parts_of(environments()[0], data).values())
    forged = rng.choices([number for number, array in enumerate(arrays) if len(array)], k=2)
    for number, array in enumerate(arrays):
        values = np.frombuffer(changed, array.dtype, len(array), place)
        given = np.frombuffer(other + data, array.dtype, len(array), place)  # it may be shorter
        if array.dtype.names:
            name = rng.choice(array.dtype.names)
            values, given = values[name], given[name]
        if number in forged:
            chosen = rng.randrange(len(values))
            values[chosen] = given[chosen] if rng.random() < 0.3 else _number(rng, values.dtype)
        place += array.nbytes
    return _with_checksum(bytes(changed))


def other_version(rng: random.Random, data: bytes) -> bytes:
    """Return a snapshot of version 1, whose arrays are as large as the levels need at most, often with damage."""
    (env, _), header = environments(), bytearray(data[:_SNAPSHOT_HEADER])
    parts, levels = peek.parts_of(env, data), env.level_set
    rows, most = parts["trail"].reshape(-1, 2), max(int(env.worlds.rooms["trail"]["used"][-1]), 1)
    frame, trail = int(parts["ninjas"]["frame"][0]), np.zeros((most, 2))
    trail[np.arange(frame - len(rows), frame) % most] = rows
    sizes = {"entity_states": -(-max(levels.max_entities, 1) // 8) * 8, "movers": max(levels.max_movers, 1)}
    for name, size in sizes.items():
        parts[name] = np.concatenate((parts[name], np.zeros(size - len(parts[name]), parts[name].dtype)))
    contents = b"".join(part.tobytes() for part in (parts | {"trail": trail}).values())
    struct.pack_into("<2I", header, 8, 1, len(contents))
    if rng.random() < 0.8:
        contents = damaged(rng, contents, most=1)[: len(contents)].ljust(len(contents), b"\0")
    return _with_checksum(bytes(header) + contents + bytes(4))


def _with_checksum(data: bytes) -> bytes:
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def _number(rng: random.Random, dtype: np.dtype) -> float:
    """Return a number of a dtype, often an extreme one."""
    if dtype.kind == "f":
        return rng.choice((np.nan, np.inf, -np.inf, 1e300, -1e9, 2.0**29, 0.0, 5e-324, rng.uniform(-2000, 2000)))
    if dtype.kind == "b":
        return rng.random() < 0.5
    limits = np.iinfo(dtype)
    return rng.choice([edge for edge in (limits.min, limits.max, *EDGES) if limits.min <= edge <= limits.max])


def go_on(data: bytes) -> None:
    """Continue a snapshot in both environments."""
    env, envs = environments()
    env.set_state(data)
    _play_on(env)
    for restore in (lambda: envs.set_state(1, data), lambda: env.reset(options={"state": data})):
        try:
            restore()
        except SnapshotError:
            continue  # an episode that is over
        _play_on(env)
        for _ in range(_STEPS):
            observations, rewards, *_ = envs.step([2, 5])
            _check(observations | {"rewards": rewards})


def _play_on(env: NPlusPlusEnv) -> None:
    check_worlds(env.worlds)
    for action in range(_STEPS):
        if peek.step_arrays(env).episodes["over"][0]:
            env.reset()
        observation, reward, *_ = env.step(action)
        _check(observation | {"reward": np.array(reward)})


# Checkpoints


@lru_cache(maxsize=1)
def fields() -> dict[str, Any]:
    """Return the fields of a small checkpoint."""
    import dataclasses

    import torch

    from nclone_env.options import flat
    from nclone_env.train.config import TrainConfig
    from nclone_env.train.policies.checkpoint import Checkpoint
    from nclone_env.train.policies.network import ActorCritic
    from tests.train.runs import curve_of

    checkpoint = Checkpoint(
        train_config=flat(TrainConfig.of(hidden_size=8)),
        observation_shapes={"game_state": [30]},
        policy=ActorCritic({"game_state": (30,)}, hidden_size=8).state_dict(),
        optimiser={"mean": torch.arange(3.0), "square": torch.ones(3), "count": 7},
        counters={"timesteps": 5, "updates": 1, "episodes": 2},
        episodes={"vector_steps": 5, "counts": torch.ones(2)},
        observations={"game_state": torch.full((1, 2, 30), 0.5)},
        environments={"snapshots": torch.arange(5, dtype=torch.uint8), "sizes": torch.tensor([2, 3])},
        curve=curve_of([{"timesteps": 5, "success_rate": 0.5, "steps_per_second": 9.0}]),
        held_out={},
        selection={},
        reference={},
    )
    return {item.name: getattr(checkpoint, item.name) for item in dataclasses.fields(checkpoint)[:-1]}


def saved(fields: Any) -> bytes:
    import torch

    stream = io.BytesIO()
    torch.save(fields, stream)
    return stream.getvalue()


@lru_cache(maxsize=1)
def checkpoints() -> list[bytes]:
    return [saved(fields())]


def other_member(rng: random.Random, data: bytes) -> bytes:
    """Damage, exchange or leave out members of an archive, and pack or rename some."""
    members, names = members_of(data), ("", "../x", "/x", "data.pkl", "a" * 300)
    name, other = rng.sample(list(members), 2)
    members[name] = rng.choice((members[other], bytes(10**6), *[damaged(rng, members[name], _PICKLE_WORDS)] * 4))
    if rng.random() < 0.1:
        del members[other]
    method = zipfile.ZIP_DEFLATED if rng.random() < 0.1 else zipfile.ZIP_STORED
    return archived(((rng.choice(names) if rng.random() < 0.01 else each, members[each]) for each in members), method)


def other_fields(rng: random.Random, data: bytes) -> bytes:
    """Exchange a part of a field, or a field."""
    whole = dict(fields())
    name = rng.choice(("train_config", "observation_shapes", "policy", ""))
    changed = whole | {name: with_other_values(rng, dict(whole[name]))} if name else with_other_values(rng, whole)
    try:
        return saved(changed)
    except Exception:  # noqa: BLE001 - a value that no checkpoint can hold
        return saved(whole | {"format": drawn(rng, VALUES[:20])})


def read_checkpoint(data: bytes) -> None:
    from nclone_env.train.policies.checkpoint import load_checkpoint, restore_config, restore_policy

    with warnings.catch_warnings(action="ignore"):
        content = in_file(load_checkpoint, data, f"{SOURCE}.pt")
        restore_policy(content)
        restore_config(content)


checkpoint = mutant(checkpoints, other_member, other_fields, other_fields)


# Packs with their tables and recordings, and the pages of a gallery

Parts = tuple[bytes, bytes, tuple[tuple[str, bytes], ...]]
"""Pack, table, and recordings by the names of their files."""


class _MissingError(FormatError):
    """Nothing is left of the input."""


@lru_cache(maxsize=1)
def collections() -> list[Parts]:
    """Return what the generator writes: a pack, its table and its recordings."""
    lines, rows, files = [], [], []
    for number, level in enumerate(load_levels(["first-steps/01-walk", "jumps/01-stairs"])):
        inputs, name = known_solutions()[level.name], f"{number:03}-{level.name.replace('/', '-')}.replay"
        lines.append(make_pack(level.raw))
        row = {"number": number, "family": "pads", "seed": 1, "difficulty": 40, "digest": level.raw.digest}
        rows.append(json.dumps({**row, "recording": name, "frames": len(inputs)}).encode() + b"\n")
        files.append((name, write_recording(Recording.of(level, inputs, {"level": level.name}, 1))))
    return [(b"".join(lines), b"".join(rows), tuple(files))]


def collection(rng: random.Random) -> Parts:
    """Return a collection of which one to three parts are changed."""
    data, table, files = collections()[0]
    for part in rng.sample(range(3), rng.randint(1, 3)):
        if part == 0:
            data = pack_file(rng) if rng.random() < 0.5 else damaged(rng, data, _PACK_WORDS)
        elif part == 1 and rng.random() < 0.3:
            table = damaged(rng, table, (b"{", b"[" * 10**5, b'"', b"1e999", b"null", b"\n", b"\xff"))
        elif part == 1:
            rows = [json.loads(line) for line in table.splitlines()]
            table = b"\n".join(json_of(rng, with_other_values(rng, row, (*VALUES, *_HOSTILE * 3))) for row in rows)
        else:
            files = tuple((name, rng.choice((data, any_run(rng), b""))) for name, data in files)[rng.randrange(2) :]
    return data, table, files


def any_run(rng: random.Random) -> bytes:
    """Return a file that may be a recording, of any format."""
    if rng.random() < 0.8:
        return rng.choice((recording, peer, attract_file))(rng)
    settings = {name: rng.choice(_HOSTILE[:-1]) for name in ("level", "seed")}
    return write_recording(Recording.of(rng.choice(raw_levels()), _inputs(rng) or b"\0", settings, 7))


def runs(rng: random.Random) -> tuple[bytes, ...]:
    """Return recordings of a gallery without names of levels."""
    return tuple(any_run(rng) for _ in range(rng.randint(1, 3)))


def all_runs() -> list[tuple[bytes, ...]]:
    """Return undamaged recordings."""
    return [tuple(content for _, content in collections()[0][2]), (peers()[0],)]


def read_collection(parts: Parts) -> None:
    """Collect a pack with its table and recordings, and make its pages."""
    with tempfile.TemporaryDirectory() as folder:
        made = CollectionFiles(Path(folder) / f"{SOURCE}.txt")
        made.folder.mkdir()
        made.pack.write_bytes(parts[0])
        made.table.write_bytes(parts[1])
        for name, content in parts[2]:
            (made.folder / name).write_bytes(content)
        make_pages([str(made.pack)], [])


def read_runs(files: tuple[bytes, ...]) -> None:
    """Collect recordings in a folder, and make their pages."""
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(files):
            (Path(folder) / f"{number}-{SOURCE}.replay").write_bytes(content)
        make_pages([], [Path(folder)])


def make_pages(names: Sequence[str], recordings: Sequence[Path]) -> None:
    """Make all pages but the pictures; they must hold no markup of their inputs.

    Raises:
        FormatError: if nothing is left to show; the first fault.
    """
    faults: list[NcloneError] = []
    found = entries.collect(names, recordings, faults.append)
    for fault in faults:
        assert SOURCE in str(fault), fault
        assert len(str(fault)) < 1000, fault
    if not found:
        raise faults[0] if faults else _MissingError(SOURCE, "levels", "at least one", "none")
    for script in (*map(level_script, found), level_list("title", found)):
        script.encode()
        assert "<" not in script
    _check_page(play_page("title"))
    _check_page(index_page("title", found))


class _Page(HTMLParser):
    """Finds what a hostile input would have to bring in."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        assert not any(name.startswith("on") for name in values), attributes
        assert not (tag == "img" and values.get("src") == "x"), attributes
        assert not any((value or "").startswith("javascript:") for value in values.values()), attributes

    def handle_data(self, data: str) -> None:
        assert self.lasttag != "script" or "alert(1)" not in data, data


def _check_page(page: str) -> None:
    page.encode()
    assert "\x1b" not in page
    _Page().feed(page)


snapshot = mutant(snapshots, other_header, other_numbers, other_numbers, other_version)
_LEVEL, _RECORDING = (LevelFormatError,), (RecordingError,)
TARGETS = (
    Target("text", texts, text_level, lambda data: use(LevelFile(data, SOURCE, is_text=True).level()), _LEVEL),
    Target("map", maps, map_bytes, lambda data: use(read_map(data, SOURCE)), _LEVEL),
    Target("attract", attract_files, attract_file, read_attract_file, _LEVEL),
    Target("pack", packs, pack_file, lambda data: [use(raw) for raw in read_pack(data, SOURCE)], _LEVEL),
    Target("page", pages, mutant(pages, nonsense_page), read_page, _LEVEL),
    Target("environment", maps, nonsense, play, (LevelFormatError, UnsupportedLevelError), source=""),
    Target("recording", recordings, recording, read_own, _RECORDING),
    Target("peer", peers, peer, read_other, _LEVEL),
    Target("snapshot", snapshots, snapshot, go_on, (SnapshotError,), "state"),
    Target("checkpoint", checkpoints, checkpoint, read_checkpoint, (CheckpointError,)),
    Target("collection", collections, collection, read_collection, (FormatError,)),
    Target("gallery", all_runs, runs, read_runs, (FormatError,)),
)
