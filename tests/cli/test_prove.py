"""The commands ``nclone-env prove`` and ``check-proof``."""

import json

import numpy as np
import pytest

from nclone_env.cli.app import main
from nclone_env.level.build import build_level, hall_tiles
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.replay.recording import Recording

TILES = hall_tiles((3, 38), (12, 16))
AT_ONCE = build_level("exit 22 60", "exit_switch 21 60", tiles=TILES, spawn=(20, 60))
ABOVE = build_level("exit 22 40", "exit_switch 20 40", tiles=hall_tiles((3, 38), (5, 16)), spawn=(20, 66))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, level in (("near", AT_ONCE), ("above", ABOVE)):
        (tmp_path / name).write_bytes(write_map(level.raw))
    return tmp_path


def run(*words) -> int:
    return main([*map(str, words)])


def test_a_certificate_is_written_and_holds(folder, capsys):
    assert run("prove", "near", "--frames", 50_000) == 0
    assert "1 of 1 levels with a proof; certificates in proofs" in capsys.readouterr().out
    file = folder / "proofs" / "000-near.proof.json"
    assert json.loads(file.read_bytes())["frames"] == 2
    assert run("check-proof", file, "near") == 0
    assert "holds: no solution has fewer than 2 frames" in capsys.readouterr().out
    assert run("check-proof", file, "above") == 1
    assert "of another level" in capsys.readouterr().out


def test_a_level_without_a_proof_is_named_with_the_reason(folder, capsys):
    assert run("prove", "near", "above", "--frames", 300_000, "--memory", 3_000_000) == 1
    out = capsys.readouterr().out
    assert "fill the memory" in out
    assert "1 of 2 levels with a proof" in out
    assert [path.name for path in (folder / "proofs").iterdir()] == ["000-near.proof.json"]


def test_a_recording_is_taken_as_the_solution(folder, capsys):
    Recording.of(AT_ONCE, np.zeros(2, np.uint8)).save(folder / "one.replay")
    assert run("prove", "near", "--recording", "one.replay") == 0
    assert run("prove", "near", "above", "--recording", "one.replay") == 2
    assert "recording: expected one level, got 2" in capsys.readouterr().err
    assert run("prove", "above", "--recording", "one.replay", "--output", "none") == 2
    assert "recording: expected one of 'above', got one.replay, which is of another level" in capsys.readouterr().err
    Recording.of(AT_ONCE, np.zeros(1, np.uint8)).save(folder / "short.replay")
    assert run("prove", "near", "--recording", "short.replay", "--force") == 2
    assert "inputs: expected those of a solution, which win in their last frame" in capsys.readouterr().err
    damaged = (folder / "one.replay").read_bytes()
    (folder / "other.replay").write_bytes(damaged[:-1] + bytes([damaged[-1] ^ 1]))
    assert run("prove", "near", "--recording", "other.replay") == 2
    assert not (folder / "none").exists()


def test_certificates_are_replaced_only_if_asked_for(folder, capsys):
    proofs = folder / "proofs"
    proofs.mkdir()
    (proofs / "001-near.proof.json").write_text("mine")
    assert run("prove", "near", "--frames", 50_000) == 0, "a certificate of another number may stay"
    file = proofs / "000-near.proof.json"
    before = file.read_bytes()
    for levels in (("near",), ("above", "near")):
        capsys.readouterr()
        assert run("prove", *levels, "--frames", 50_000) == 2
        out, error = capsys.readouterr()
        name = f"proofs/00{len(levels) - 1}-near.proof.json"
        assert error.strip() == f"nclone-env: {name}: already exists; --force overwrites it, or name another"
        assert out == "", "nothing was searched for"
    file.write_text("mine")
    assert run("prove", "near", "--frames", 50_000, "--force") == 0
    assert file.read_bytes() == before
    assert (proofs / "001-near.proof.json").read_text() == "mine"


def test_a_folder_is_needed(folder, capsys):
    assert run("prove", "near", "--output", "near") == 2
    assert "output: expected a folder, got near, which is a file" in capsys.readouterr().err


def test_a_check_that_needs_more_memory_says_so(folder, capsys):
    level = build_level("exit 23 62", "exit_switch 22 62", tiles={(1, 1): 1}, spawn=(20, 60))
    (folder / "step").write_bytes(write_map(level.raw))
    assert run("prove", "step", "--frames", 100_000) == 0
    file = folder / "proofs" / "000-step.proof.json"
    assert run("check-proof", file, "step") == 0
    capsys.readouterr()
    assert run("check-proof", file, "step", "--memory", 1_000) == 1
    assert "it needs more than 1,000 bytes of memory; give more with --memory" in capsys.readouterr().out
    assert run("check-proof", file, "step", "--memory", 0) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "levels: expected at least one level, got none"),
        (("near", "--frames", 0), "frames: expected a number above 0, got 0"),
        (("near", "--memory", -1), "memory: expected a number above 0, got -1"),
        (("nothing",), "level: expected a built-in set or level, a file or a folder, got 'nothing'"),
    ],
)
def test_bad_arguments(folder, capsys, words, message):
    assert run("prove", *words) == 2
    assert message in capsys.readouterr().err


def test_a_malformed_certificate_is_named(folder, capsys):
    (folder / "bad.json").write_text("{}")
    assert run("check-proof", "bad.json", "near") == 1
    assert "bad.json: format: expected 1, got None" in capsys.readouterr().out
    assert run("check-proof", "missing.json", "near") == 2
