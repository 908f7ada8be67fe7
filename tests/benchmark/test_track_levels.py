"""The levels of tracks, by their digests."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from nclone_env.benchmark import load_track
from nclone_env.benchmark import track_levels as module
from nclone_env.errors import ConfigError
from nclone_env.level.formats import write_pack
from nclone_env.level.load import load_levels


@pytest.fixture
def few(tmp_path, monkeypatch):
    """The first and the last levels of Generated-v1 as a track, with an empty cache."""
    monkeypatch.setattr(module, "cache_root", lambda: tmp_path)
    track = load_track("Generated-v1")
    return replace(track, levels=(track.levels[0], track.levels[-1]), bands=2)


def test_built_in_levels():
    levels = module.track_levels(load_track("Builtin-v1"))
    assert len(levels) == 16
    assert levels[0].name == "first-steps/01-walk"


def test_generated_levels_are_made_again_if_their_file_is_damaged(few, tmp_path):
    made = module.track_levels(few)
    assert [level.raw.digest[:16] for level in made] == [level.digest for level in few.levels]
    (file,) = (tmp_path / "benchmark").iterdir()
    data = file.read_bytes()
    file.write_bytes(data.replace(b"#", b"?"))
    assert [level.raw.digest for level in module.track_levels(few)] == [level.raw.digest for level in made]
    assert file.read_bytes() == data


def test_another_level_is_refused(few):
    other = replace(few, levels=(few.levels[0]._replace(digest="0" * 16), few.levels[1]))
    with pytest.raises(ConfigError, match=r"levels: expected \w+/\d+ with digest 0{16}, got \w{16}"):
        module.track_levels(other)


def test_packs_are_pinned(tmp_path):
    levels = load_levels("jumps")
    data = write_pack([level.raw for level in levels])
    (tmp_path / "A.txt").write_bytes(data)
    (tmp_path / "B.txt").write_bytes(data + b"\n")
    track = load_track("Builtin-v1")
    rows = tuple(track.levels[6 + n]._replace(reference=f"A#{n}") for n in (0, 3))
    track = replace(track, source="packs", packs={"A": hashlib.sha256(data).hexdigest()}, levels=rows)
    found = module.track_levels(track, {"A": tmp_path / "A.txt"})
    assert [level.raw.digest for level in found] == [levels[n].raw.digest for n in (0, 3)]
    with pytest.raises(ConfigError, match=r"packs: expected A with SHA-256 \w{64}, got \w{64} of "):
        module.track_levels(track, {"A": tmp_path / "B.txt"})
    with pytest.raises(ConfigError, match=r"packs: expected --packs A=FILE, a pack with SHA-256 .* got none"):
        module.track_levels(track)
