"""Pictures as files: the same pixels, in the order of the colours that the reader expects."""

import cv2
import numpy as np
import pytest

from nclone_env.render.files import encoded, write_picture

PICTURE = np.random.default_rng(0).integers(0, 256, (12, 20, 3), np.uint8)


@pytest.mark.parametrize("suffix", [".png", ".webp"])
def test_pictures_are_read_back(suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    write_picture(path, PICTURE)
    assert path.read_bytes() == encoded(PICTURE, suffix)
    read = cv2.imread(str(path))
    assert (read[:, :, ::-1] == PICTURE).all()
    assert not (read == PICTURE).all()
