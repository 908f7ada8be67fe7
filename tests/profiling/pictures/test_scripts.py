"""The scripts that film write what they say."""

import numpy as np
import pytest

from profiling.pictures import entity_clips, readme


def test_the_loop_shows_a_run_with_its_path_and_views(tmp_path):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="needs the extra video")
    level, inputs = "first-steps/01-walk", np.full(40, 2, np.uint8)
    path = tmp_path / "new" / "loop.gif"
    path.parent.mkdir()
    readme.write_loop(level, inputs, path)
    reader = imageio_ffmpeg.read_frames(str(path))
    facts = next(reader)
    assert facts["size"][0] == readme.WIDTH
    assert len(list(reader)) == 14 + readme.RATE
    pictures = readme.level_pictures(level, inputs)
    drawn = [(abs(picture.astype(int) - readme.COLOUR).max(axis=2) < 40).sum() for picture in pictures]
    assert drawn[0] < drawn[20] < drawn[39]


def test_a_clip_is_filmed(tmp_path, monkeypatch):
    pytest.importorskip("imageio_ffmpeg", reason="needs the extra video")
    short = entity_clips.clips()["thwump"]._replace(inputs=bytes(12), frames=(1, 3, 5, 7, 9, 11))
    monkeypatch.setattr(entity_clips, "clips", lambda: {"thwump": short})
    monkeypatch.setattr(entity_clips, "FRAMES_PER_SECOND", 4)
    entity_clips.main(tmp_path, ("thwump",))
    assert {path.name for path in tmp_path.iterdir()} == {"thwump.mp4", "thwump.png"}
