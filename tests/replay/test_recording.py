"""Recordings round-trip and verify; damaged files are refused."""

import dataclasses
import hashlib
import re
import struct
import tracemalloc
import zlib

import numpy as np
import pytest

from nclone_env.errors import InputsError, RecordingError, UnknownLevelError
from nclone_env.level import RawLevel, build_room, write_map
from nclone_env.replay import Recording, load_recording, write_recording
from nclone_env.replay.recording import MAGIC, read_recording, trajectory_hash
from nclone_env.sim import Session, simulate

from .bases import DEADLY, RIGHT

SETTINGS = {"frame_skip": 4, "level": "déjà vu"}
RECORDING = Recording.of(DEADLY, [RIGHT] * 30 + [1, 3, 5, 0] * 5, SETTINGS, seed=2**63 + 5)
DATA = write_recording(RECORDING)


def built(
    frames=2, metadata=b'{"seed":null,"settings":{}}', level=None, inputs=b"\1\2", digest=None, version=1
) -> bytes:
    """Return the bytes of a recording built from the description of the format, with valid checksums."""
    level = zlib.compress(write_map(DEADLY.raw)) if level is None else level
    inputs = zlib.compress(inputs)
    body = metadata + level + inputs
    digest = bytes.fromhex(DEADLY.raw.digest) if digest is None else digest
    header = MAGIC + struct.pack("<5I", version, frames, len(metadata), len(level), len(inputs)) + bytes(8) + digest
    header += struct.pack("<I", zlib.crc32(body))
    return header + struct.pack("<I", zlib.crc32(header)) + body


def refused(data: bytes) -> str:
    with pytest.raises(RecordingError) as caught:
        read_recording(data, "x")
    return str(caught.value)


def test_round_trip():
    again = read_recording(DATA)
    assert again.level.digest == DEADLY.raw.digest
    assert again.inputs.tobytes() == RECORDING.inputs.tobytes()
    assert (again.trajectory_hash, again.settings, again.seed) == (RECORDING.trajectory_hash, SETTINGS, 2**63 + 5)
    assert write_recording(again) == DATA
    assert again.verify().agrees


@pytest.mark.parametrize("frames", [0, 1, 5000])
def test_round_trip_of_any_length(frames):
    recording = Recording.of(DEADLY, np.random.default_rng(frames).integers(0, 16, frames))
    again = read_recording(write_recording(recording))
    assert again.inputs.tolist() == recording.inputs.tolist()
    assert again.seed is None
    assert again.verify().agrees


def test_the_format_by_hand():
    read = read_recording(built())
    assert read.inputs.tolist() == [1, 2]
    assert (read.trajectory_hash, read.settings, read.seed) == ("0" * 16, {}, None)


def test_the_hash_by_hand():
    run = simulate(DEADLY, RECORDING.inputs)
    rows = [
        struct.pack("<4db", run.x[t], run.y[t], run.xspeed[t], run.yspeed[t], run.state[t]) for t in range(len(run))
    ]
    assert hashlib.blake2b(b"".join(rows), digest_size=8).hexdigest() == RECORDING.trajectory_hash


def test_the_hash_detects_one_bit():
    for name in ("x", "y", "xspeed", "yspeed"):
        run = simulate(DEADLY, RECORDING.inputs)
        getattr(run, name)[17] = np.nextafter(getattr(run, name)[17], np.inf)
        assert trajectory_hash(run) != RECORDING.trajectory_hash


def test_another_input_does_not_verify():
    for frame in (0, 20, 29):
        inputs = RECORDING.inputs.copy()
        inputs[frame] ^= RIGHT
        verdict = Recording(RECORDING.level, inputs, RECORDING.trajectory_hash).verify()
        assert not verdict.agrees
        assert verdict.reason.startswith(f"expected trajectory hash {RECORDING.trajectory_hash}, got ")


def test_another_level_does_not_verify():
    higher = build_room("gold 44 58", spawn=(40, 57))
    assert not Recording(higher, RECORDING.inputs, RECORDING.trajectory_hash).verify().agrees


def test_every_truncated_prefix_is_refused():
    for length in range(len(DATA)):
        refused(DATA[:length])


def test_every_flipped_bit_is_refused():
    for place in range(len(DATA)):
        for bit in range(8):
            data = bytearray(DATA)
            data[place] ^= 1 << bit
            refused(bytes(data))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"x: offset 0: expected the magic bytes of a recording, .*, got b''"),
        (MAGIC, "x: offset 8: expected a header of 76 bytes, got end of file"),
        (DATA + b"\0", rf"x: offset {len(DATA)}: expected a file of {len(DATA)} bytes, got {len(DATA) + 1}"),
        (built(version=2), "x: offset 8: expected format version 1, got 2"),
        (built(frames=3), "expected 3 frames, got 2"),
        (built(frames=1), "expected one zlib stream of at most 1 bytes, got other data"),
        (built(frames=2**20 + 1), "x: offset 12: expected at most 1048576 frames, got 1048577"),
        (built(inputs=b"\1\x10"), "expected bytes 0..15, got inputs: .* got 16 at frame 1"),
        (built(digest=bytes(32)), "x: offset 36: expected the digest of the level, "),
        (built(level=b"nothing"), "x: offset 103: expected zlib data, got"),
        (built(level=zlib.compress(b"short")), "x: level at offset 103, offset 5: expected a map of at least 1230"),
        (built(level=zlib.compress(bytes(10_000_000))), "expected one zlib stream of at most 165065 bytes"),
        (built(level=zlib.compress(write_map(DEADLY.raw)) + b"x"), "expected one zlib stream of at most 165065 bytes"),
        (built(metadata=b"{"), "x: offset 76: expected JSON in UTF-8, got"),
        (built(metadata=b"[" * 100_000), "x: offset 76: expected JSON in UTF-8, got"),
        (built(metadata=b"{}"), "x: offset 76: expected an object with the keys seed and settings, got"),
        (built(metadata=b'{"seed":1,"settings":[]}'), "expected an object with the keys seed and settings, got"),
    ],
    ids=range(17),
)
def test_malformed_recordings_are_named(data, message):
    assert re.search(message, refused(data))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"inputs": np.zeros(5)}, InputsError, "inputs: expected a one-dimensional sequence"),
        ({"inputs": np.full(5, 200, np.uint8)}, InputsError, "inputs: expected bytes from 0 to 15"),
        ({"inputs": None}, InputsError, "inputs: expected a one-dimensional sequence"),
        ({"inputs": [1, 256]}, InputsError, "inputs: expected bytes from 0 to 15"),
        ({"trajectory_hash": "x"}, RecordingError, "trajectory_hash: expected 16 hex digits, got 'x'"),
        ({"trajectory_hash": None}, RecordingError, "trajectory_hash: expected 16 hex digits, got None"),
        ({"settings": 5}, RecordingError, "settings and seed: expected JSON values"),
        ({"seed": "x"}, RecordingError, "settings and seed: expected JSON values"),
    ],
)
def test_objects_are_checked_as_files(change, error, message):
    good = Recording.of(DEADLY, b"\1\2", {"a": 1}, np.int64(3))
    assert read_recording(write_recording(good)).seed == 3
    with pytest.raises(error, match=message):
        write_recording(dataclasses.replace(good, **change))


def test_unrepresentable_recordings_are_refused():
    with pytest.raises(RecordingError, match="settings and seed: expected JSON values"):
        write_recording(Recording.of(DEADLY, b"", {"a": float("nan")}))
    with pytest.raises(RecordingError, match="settings and seed: expected JSON values"):
        write_recording(Recording.of(DEADLY, b"", {"a": object()}))
    with pytest.raises(RecordingError, match="title: expected at most 128 characters"):
        write_recording(Recording.of(RawLevel(DEADLY.raw.tiles, DEADLY.raw.records, title="x" * 129), b""))
    with pytest.raises(InputsError):
        Recording.of(DEADLY, [16])


def test_files(tmp_path):
    path = tmp_path / "a.replay"
    RECORDING.save(path)
    assert path.read_bytes() == DATA
    assert load_recording(path).verify().agrees
    path.write_bytes(DATA[:-1])
    with pytest.raises(RecordingError, match=r"a\.replay: "):
        load_recording(path)
    with pytest.raises(UnknownLevelError):
        load_recording(tmp_path / "none")


def test_inputs_are_read_only():
    for recording in (RECORDING, read_recording(DATA)):
        with pytest.raises(ValueError, match="read-only"):
            recording.inputs[0] = 1


def test_a_long_recording_needs_little_memory():
    """The file of half a million frames is small, and what its verification holds of each frame too."""
    inputs = np.random.default_rng(0).integers(0, 8, 50_000).repeat(10)
    tracemalloc.start()
    try:
        recording = Recording.of(DEADLY, inputs)
        assert recording.verify().agrees
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60 * len(inputs)
    run = simulate(DEADLY, inputs)
    once = Session(DEADLY).record(inputs, entities=False).ninjas
    assert once["x"].tobytes() == run.x.tobytes()
    assert once["state"].tobytes() == run.state.tobytes()
