from __future__ import annotations

import subprocess
import sys

from nclone_env.render.raster import all_glyphs, full_size_planes


def test_glyphs_are_made_once_and_read_only():
    assert all_glyphs() is all_glyphs()
    assert not any(array.flags.writeable for array in all_glyphs())
    assert all(array.flags.c_contiguous for array in all_glyphs())


def test_kinds_are_numbers_of_planes():
    for table in (all_glyphs().appearances, all_glyphs().door_appearances):
        assert table.min() >= -1
        assert table.max() < len(full_size_planes())
    assert (all_glyphs().door_appearances[[5, 6, 8]] >= 0).all()


def test_the_package_itself_does_not_import_opencv():
    code = "import sys, nclone_env; sys.exit(any(name in sys.modules for name in ('cv2', 'pygame')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
