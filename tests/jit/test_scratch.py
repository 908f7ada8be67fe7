"""Scratch on the stack, counters that threads share, calls of kernels by their address, and copies past the caches."""

from threading import Thread

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nclone_env.jit import address_of, call_at, kernel, local_f64, next_number, read_number, stream_bytes


@kernel
def take_numbers(counter, taken):
    for i in range(len(taken)):
        taken[i] = next_number(counter)


@kernel
def note_before_counting(counter, notes):
    for i in range(len(notes)):
        notes[i] = i + 1
        next_number(counter)


@kernel
def missing_notes(counter, notes):
    """Return how many of the notes that were counted are not seen, while another thread writes them."""
    missing, number = 0, 0
    while number < len(notes):
        number = read_number(counter)
        for i in range(max(0, number - 8), number):
            missing += notes[i] != i + 1
    return missing


def test_scratch_is_zeroed_as_far_as_asked():
    @numba.njit
    def none_of_it(i, j):
        scratch = local_f64(64, 0)
        scratch[i] = 1.0
        return scratch[j]

    @numba.njit
    def all_of_it(i, j):
        scratch = local_f64(64)
        scratch[i] = 1.0
        return scratch[j]

    assert none_of_it(3, 3) == all_of_it(3, 3) == 1.0
    assert all_of_it(3, 4) == 0.0
    zeros = [sum("memset" in code for code in of.inspect_llvm().values()) for of in (none_of_it, all_of_it)]
    assert zeros == [0, 1]


def test_threads_get_different_numbers():
    counter, taken = np.zeros(2, np.int64), np.zeros((4, 2000), np.int64)
    threads = [Thread(target=take_numbers, args=(counter[1:], row)) for row in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken.ravel()) == list(range(8000))
    assert counter.tolist() == [0, 8000]


def test_a_counted_note_is_seen():
    counter, notes = np.zeros(1, np.int64), np.zeros(5000, np.int64)
    missing_notes(np.full(1, len(notes)), np.arange(1, len(notes) + 1))  # compiled before the threads begin
    writer = Thread(target=note_before_counting, args=(counter, notes))
    writer.start()
    assert missing_notes(counter, notes) == 0
    writer.join()
    assert missing_notes(counter, np.zeros_like(notes)) == 8, "notes that were never written are missed"


@kernel
def write_sum(pair, scale, out):
    out[0] = (pair[0][0] + pair[1]) * scale


@kernel
def write_product(pair, scale, out):
    out[0] = pair[0][0] * pair[1] * scale


@kernel
def call_twice(first, second, pair, out):
    call_at(first, (pair, 10, out[:1]))
    call_at(second, (pair, 10, out[1:]))


def test_a_kernel_calls_others_by_their_addresses():
    pair, out = (np.array([3]), 4.0), np.zeros(2)
    addresses = [address_of(each, pair, 0, out) for each in (write_sum, write_product)]
    call_twice(*addresses, pair, out)
    assert out.tolist() == [70.0, 120.0]
    call_twice(*addresses[::-1], pair, out)
    assert out.tolist() == [120.0, 70.0]


@kernel
def stream(target, source):
    stream_bytes(target, source)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_every_byte_is_copied_and_no_other_is_touched(target_offset, source_offset, size, seed):
    source = np.random.default_rng(seed).integers(0, 256, 400, dtype=np.uint8)
    target = np.full(400, 77, np.uint8)
    expected = target.copy()
    expected[target_offset : target_offset + size] = source[source_offset : source_offset + size]
    stream(target[target_offset : target_offset + size], source[source_offset : source_offset + size])
    assert target.tobytes() == expected.tobytes()


def test_only_contiguous_bytes_are_accepted():
    with pytest.raises(Exception, match="expected C-contiguous uint8 arrays"):
        stream(np.zeros(8), np.zeros(8))
