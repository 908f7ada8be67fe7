"""Rendering of recordings, and video export."""

import numpy as np
import pytest

from nclone_env.game import DEAD
from nclone_env.render.picture import used_area_of, world_picture, zoom_of
from nclone_env.replay import Recording, frame_rate, recording_pictures, write_video
from nclone_env.replay.text import GOLD as YELLOW
from nclone_env.replay.text import bar_height
from nclone_env.sim import Session, simulate

from .bases import DEADLY, RIGHT

imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")


def test_pictures_show_the_run():
    pictures = list(recording_pictures(Recording.of(DEADLY, [RIGHT] * 20), scale=0.5))
    assert len(pictures) == 21
    session, area = Session(DEADLY), used_area_of(DEADLY.raw)
    zoom = zoom_of(area)
    width, height = round(area.width * zoom / 2), round(area.height * zoom / 2)
    shape = height + bar_height(width), width, 3
    assert all(picture.shape == shape and picture.dtype == np.uint8 for picture in pictures)
    for picture in pictures:
        assert (picture[:height] == world_picture(session.levels, session.worlds, 0, 0.5 * zoom, area)).all()
        session.tick(RIGHT)
    assert (pictures[0] != pictures[-1]).any()


def bars_of(run, scale=0.5):
    """Return the bars of a recording."""
    pictures = list(recording_pictures(run, scale))
    return [picture[-bar_height(picture.shape[1]) :] for picture in pictures]


def test_the_bar_tells_time_gold_and_the_end():
    run = Recording.of(DEADLY, [RIGHT] * 200)
    bars = bars_of(run)
    frames = simulate(DEADLY, run.inputs)
    died = int(np.argmax(frames.state == DEAD)) + 1
    changes = {frame for frame in range(1, len(bars)) if (bars[frame] != bars[frame - 1]).any()}
    assert changes == {*range(1, died + 2)}, "the time stands still after death; no key is held then"
    (took,) = np.flatnonzero(np.diff(frames.gold)) + 2
    gold = {frame for frame in range(1, died) if yellow_pixels(bars[frame]) != yellow_pixels(bars[frame - 1])}
    assert gold == {took}


def yellow_pixels(bar):
    """Return the number of pixels of a bar that are yellow."""
    return (bar == YELLOW).all(axis=2).sum()


def test_the_bar_shows_the_keys_that_are_held():
    held = {code: bars_of(Recording.of(DEADLY, [code] * 2))[1] for code in range(8)}
    keys = {code: bar[:, -66:].tobytes() for code, bar in held.items()}
    assert len(set(keys.values())) == 8


def test_the_name_in_the_bar_is_that_of_the_recording():
    names = ({}, {"level": "first"}, {"level": "another"}, {"level": "x" * 1_000_000})
    recordings = [Recording.of(DEADLY, [RIGHT], settings) for settings in names]
    assert len({next(iter(recording_pictures(each, 0.5))).tobytes() for each in recordings}) == 4


def test_video(tmp_path):
    path = tmp_path / "episode.mp4"
    pictures = (np.full((50, 65, 3), 40 * step, np.uint8) for step in range(5))
    assert write_video(pictures, path, rate=15) == 5
    assert [p.name for p in tmp_path.iterdir()] == ["episode.mp4"]
    reader = imageio_ffmpeg.read_frames(str(path))
    facts = next(reader)
    frames = list(reader)
    assert facts["size"] == (64, 50)
    assert facts["fps"] == 15
    assert "yuv420p" in facts["pix_fmt"]
    assert "h264" in facts["codec"]
    assert len(frames) == 5
    shades = [np.frombuffer(frame, np.uint8).mean() for frame in frames]
    assert shades == pytest.approx([0, 40, 80, 120, 160], abs=6)  # lossy


@pytest.mark.parametrize(("suffix", "codec"), [(".webm", "vp9"), (".gif", "gif")])
def test_other_formats(tmp_path, suffix, codec):
    path = tmp_path / f"run{suffix}"
    pictures = [np.full((50, 64, 3), 40 * step, np.uint8) for step in range(5)]
    assert write_video(pictures, path, rate=frame_rate(path) // 2) == 5
    reader = imageio_ffmpeg.read_frames(str(path))
    assert codec in next(reader)["codec"]
    shades = [np.frombuffer(frame, np.uint8).mean() for frame in reader]
    assert shades == pytest.approx([0, 40, 80, 120, 160], abs=6)


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"path: expected a name ending in .mp4, .webm, .gif, got 'x.avi'"):
        write_video([np.zeros((4, 4, 3), np.uint8)], tmp_path / "x.avi", 15)


def test_video_needs_pictures(tmp_path):
    with pytest.raises(ValueError, match="pictures: expected at least one"):
        write_video([], tmp_path / "x.mp4", 15)
