from __future__ import annotations

import subprocess
import sys

import numpy as np

from nclone_env.render.glyphs import glyphs


def test_glyphs_are_made_once_and_read_only():
    assert glyphs() is glyphs()
    assert not any(array.flags.writeable for array in glyphs())
    assert all(array.flags.c_contiguous for array in glyphs())


def test_all_glyphs_take_little_memory():
    node = glyphs().memory()
    assert node.total_bytes == sum(array.nbytes for array in glyphs()) < 600_000
    assert node.bytes_where(shared=False) == 0


def test_no_two_kinds_have_the_same_picture_but_mines_and_the_dead():
    """Toggle mines are mines (3); dead, dying and disabled ninjas lie alike, twice two of each facing."""
    for stamps in (glyphs().stamps, glyphs().global_stamps[:, 0]):
        assert len({item.tobytes() for item in stamps}) == len(stamps) - 3 - 4


def test_kinds_are_numbers_of_stamps():
    for table in (glyphs().kinds, glyphs().door_kinds):
        assert table.min() >= -1
        assert table.max() < len(glyphs().stamps)
    assert (glyphs().door_kinds[[5, 6, 8]] >= 0).all()


def test_blending_cannot_overflow():
    for stamps in (glyphs().stamps, glyphs().global_stamps):
        alpha, ink = np.moveaxis(stamps, -3, 0).astype(int)
        assert (ink <= alpha).all()


def test_boxes_hold_everything_that_is_visible():
    for which, stamps in enumerate((glyphs().stamps, glyphs().global_stamps)):
        for (first_row, end_row, first_column, end_column), kind in zip(glyphs().boxes[which], stamps, strict=True):
            visible = kind[:, 0].copy()
            assert visible.any()
            visible[:, first_row:end_row, first_column:end_column] = 0
            assert not visible.any()


def test_global_stamps_keep_the_area_at_every_phase():
    fine = glyphs().stamps[:, 0, 0].sum((1, 2)) / (4.125 * 4.6875)
    coarse = glyphs().global_stamps[:, :, 0].sum((2, 3))
    assert abs(coarse - fine[:, None]).max() <= 0.5 * 49


def test_the_package_itself_does_not_import_opencv():
    code = "import sys, nclone_env; sys.exit(any(name in sys.modules for name in ('cv2', 'pygame')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
