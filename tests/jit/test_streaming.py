"""Copies past the caches are copies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.jit import kernel, stream_bytes


@kernel
def stream(target, source):
    stream_bytes(target, source)


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_every_byte_is_copied_and_no_other_is_touched(target_offset, source_offset, size, seed):
    source = np.random.default_rng(seed).integers(0, 256, 400, dtype=np.uint8)
    target = np.full(400, 77, np.uint8)
    expected = target.copy()
    expected[target_offset : target_offset + size] = source[source_offset : source_offset + size]
    stream(target[target_offset : target_offset + size], source[source_offset : source_offset + size])
    assert target.tobytes() == expected.tobytes()


def test_a_picture_is_copied():
    source = np.random.default_rng(0).integers(0, 256, (84, 84, 1), dtype=np.uint8)
    target = np.zeros_like(source)
    stream(target, source)
    assert target.tobytes() == source.tobytes()


def test_only_contiguous_bytes_are_accepted():
    with pytest.raises(Exception, match="expected C-contiguous uint8 arrays"):
        stream(np.zeros(8), np.zeros(8))
