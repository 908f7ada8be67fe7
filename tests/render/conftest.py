"""Rasterises all appearances once for the tests of this folder, which need them for many sizes."""

import functools

import pytest

from nclone_env.render import resolution


@pytest.fixture(scope="package", autouse=True)
def planes_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolution, "full_size_planes", functools.cache(resolution.full_size_planes))
        yield
