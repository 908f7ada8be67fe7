"""The commands ``nclone-env replay ...``."""

import pytest

from nclone_env.cli.app import main
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.replay.recording import load_recording

from ..level.level_bases import make_attract
from ..replay.bases import DEADLY, RIGHT
from ..replay.test_verification import DEATH


@pytest.fixture
def folder(folder):
    """The current directory, with a level and two attract files on it, one of them wrong."""
    (folder / "deadly").write_bytes(write_map(DEADLY.raw))
    (folder / "good").write_bytes(make_attract(DEADLY.raw, bytes([RIGHT] * (DEATH + 1))))
    (folder / "bad").write_bytes(make_attract(DEADLY.raw, bytes([RIGHT] * DEATH)))
    return folder


def run(*words) -> int:
    return main(["replay", *map(str, words)])


def test_verify_prints_a_table(folder, capsys):
    assert run("verify", "good") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["file", "agrees", "frames", "end", "gold", "reason"]
    assert lines[1].split(maxsplit=5) == ["good", "yes", str(DEATH + 1), "dead", "1", "death in the last frame"]
    assert lines[2] == "1 recording, 0 disagree"


def test_a_disagreement_sets_the_exit_status(folder, capsys):
    assert run("verify", "good", "bad") == 1
    out = capsys.readouterr().out
    assert "expected death in the last frame, got" in out
    assert out.endswith("2 recordings, 1 disagree\n")


def test_malformed_and_missing_files(folder, capsys):
    (folder / "cut").write_bytes((folder / "good").read_bytes()[:-1])
    assert run("verify", "cut", "good") == 1
    out = capsys.readouterr().out
    assert "cut: offset 0: expected 8 + " in out
    assert out.endswith("2 recordings, 1 disagree\n")
    assert run("verify", "none", "good") == 1
    out = capsys.readouterr().out
    assert "none: expected a recording, got no such file" in out
    assert out.endswith("2 recordings, 1 disagree\n")


def test_a_folder_is_the_recordings_in_it(folder, capsys):
    (folder / "empty" / "inside").mkdir(parents=True)
    (folder / "readme.txt").write_text("no recording")
    assert run("verify", folder) == 1
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[1:-1]] == [f"{folder}/bad", f"{folder}/good"]
    assert run("verify", "empty") == 2
    assert (
        "files: expected at least one recording or a folder of them, got 'empty'; name the folders in it, as empty/*"
        in capsys.readouterr().err
    )


def test_record_and_verify(folder, capsys):
    assert run("record", "deadly", "--inputs", "20R 3RJ 4.") == 0
    recording = load_recording(folder / "deadly.replay")
    assert recording.inputs.tolist() == [2] * 20 + [3] * 3 + [0] * 4
    assert f"wrote deadly.replay (27 frames, hash {recording.trajectory_hash})" in capsys.readouterr().out
    assert run("verify", "deadly.replay") == 0
    assert "every frame matches" in capsys.readouterr().out


def test_a_damaged_recording_disagrees(folder, capsys):
    run("record", "deadly", "--inputs", "20R")
    data = bytearray((folder / "deadly.replay").read_bytes())
    data[30] ^= 1
    (folder / "deadly.replay").write_bytes(data)
    assert run("verify", "deadly.replay") == 1
    assert "expected a valid header checksum" in capsys.readouterr().out


def test_a_built_in_level_names_the_file(folder):
    assert run("record", "first-steps/01-walk", "--inputs", "5R") == 0
    assert (folder / "first-steps-01-walk.replay").exists()


def test_record_refuses(folder, capsys):
    assert run("record", "deadly", "--inputs", " ") == 2
    assert not list(folder.glob("*.replay"))
    (folder / "x.replay").write_text("precious")
    assert run("record", "deadly", "--inputs", "3R", "--output", "x.replay/new.replay") == 2
    assert "output: expected a folder, got x.replay, which is a file; name another" in capsys.readouterr().err
    assert run("record", "deadly", "--inputs", "3R", "--output", "x.replay") == 2
    assert (folder / "x.replay").read_text() == "precious"
    assert run("record", "deadly", "--inputs", "3R", "--output", "x.replay", "--force") == 0
    assert load_recording(folder / "x.replay").verify().agrees


def test_record_from_the_keyboard(folder, press, capsys):
    press(["s", "right", "s", "escape"])
    assert run("record", "deadly", "--human", "--scale", "0.1") == 0
    assert load_recording(folder / "deadly.replay").inputs.tolist() == [RIGHT]
    assert capsys.readouterr().out == "saved to deadly.replay (1 frames)\n"
