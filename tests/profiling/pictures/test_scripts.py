"""The scripts that draw write one picture each."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from profiling.pictures import contact_sheet, entity_clips, readme, sizes


@pytest.mark.parametrize("script", [contact_sheet, sizes, readme], ids=lambda script: script.__name__)
def test_a_picture_is_drawn(script, tmp_path):
    path = tmp_path / "new" / "picture.png"
    script.main(path)
    assert [file.name for file in path.parent.iterdir()] == ["picture.png"]
    picture = cv2.imread(str(path))
    assert len(np.unique(picture)) > 50


def test_a_clip_is_filmed(tmp_path):
    pytest.importorskip("imageio_ffmpeg", reason="needs the extra video")
    entity_clips.main(tmp_path, ("thwump",))
    assert {path.name for path in tmp_path.iterdir()} == {"thwump.mp4", "thwump.png"}
