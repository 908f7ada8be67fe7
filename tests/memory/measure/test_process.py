import mmap
import os
import subprocess
import sys
import tempfile
from multiprocessing import shared_memory

import numpy as np
import pytest

from nclone_env.memory.measure import process
from nclone_env.memory.measure.process import committed_bytes, committed_tree_bytes
from nclone_env.memory.measure.tree import MemoryNode, array_node, arrays_node, merged

PAGE = mmap.PAGESIZE
pytestmark = pytest.mark.skipif(not process._PAGEMAP.exists(), reason="needs /proc/self/pagemap")


@pytest.fixture
def region():
    """A region of 64 pages of which none is committed."""
    return np.frombuffer(mmap.mmap(-1, 64 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)


def block(array):
    return array.ctypes.data, array.nbytes


def test_only_written_pages_are_committed(region):
    assert committed_bytes([block(region)]) == 0
    region[3 * PAGE] = 1
    region[10 * PAGE : 12 * PAGE] = 1
    assert committed_bytes([block(region)]) == 3 * PAGE


def test_reading_commits_nothing(region):
    assert region.sum() == 0
    assert committed_bytes([block(region)]) == 0


def test_a_page_counts_as_far_as_a_block_covers_it(region):
    region[: 4 * PAGE] = 1
    assert committed_bytes([block(region[100:200])]) == 100
    assert committed_bytes([block(region[PAGE - 10 : 2 * PAGE + 10])]) == PAGE + 20
    assert committed_bytes([block(region[4 * PAGE - 10 : 5 * PAGE])]) == 10


def test_any_blocks_count_as_a_byte_by_byte_count_does(region):
    generator = np.random.default_rng(0)
    written = generator.random(64) < 0.4
    region.reshape(64, PAGE)[written, 0] = 1
    by_byte = np.repeat(written, PAGE)
    for _ in range(50):
        first = generator.integers(0, 64 * PAGE - 1, 20)
        blocks = [(int(a), int(min(a + generator.integers(1, 9000), 64 * PAGE))) for a in first]
        expected = sum(int(by_byte[a:b].sum()) for a, b in blocks)
        assert committed_bytes((region.ctypes.data + a, b - a) for a, b in blocks) == expected


def test_far_blocks_and_no_blocks(region):
    other = np.ones(10_000_000, np.uint8)
    region[0] = 1
    assert committed_bytes([block(other), block(region)]) == PAGE + other.nbytes
    assert committed_bytes([]) == 0


def test_a_tree_counts_nodes_without_blocks_whole_and_mapped_files_not_at_all(region):
    region[: 2 * PAGE] = 1
    known = MemoryNode("region", region.nbytes, blocks=(block(region),))
    tree = MemoryNode("all", children=(known, MemoryNode("unknown", 500), MemoryNode("file", 700, mapped=True)))
    assert committed_tree_bytes(tree) == 2 * PAGE + 500


def test_without_a_page_map_all_bytes_count(region, monkeypatch, tmp_path):
    monkeypatch.setattr(process, "_PAGEMAP", tmp_path / "missing")
    assert committed_bytes([block(region)]) == 64 * PAGE


def test_one_node_for_several_arrays():
    arrays = [np.ones(5), np.zeros(0), np.ones(7)]
    node = arrays_node("both", arrays, shared=True)
    assert (node.own_bytes, node.shared) == (96, True)
    assert node.blocks == (block(arrays[0]), block(arrays[2]))


def test_a_tree_prints_as_a_table():
    levels = MemoryNode("levels", 2048, shared=True, mapped=True)
    tree = MemoryNode("all", children=(levels, MemoryNode("worlds", 10), MemoryNode("settings", 1, shared=True)))
    assert str(tree).splitlines() == [
        "memory       bytes",
        "all         2.0 KB",
        "  levels    2.0 KB  shared, mapped file",
        "  worlds      10 B",
        "  settings     1 B  shared",
    ]


def test_merged_trees_add_what_is_not_shared():
    shared, first, second = np.ones(100), np.ones(3), np.ones(4)

    def tree(own):
        levels = MemoryNode("levels", children=(array_node("tiles", shared, shared=True),))
        return MemoryNode("env", children=(levels, array_node("state", own, shared=False)))

    found = merged([tree(first), tree(second)])
    assert found.bytes_where(shared=True) == 800
    assert found.bytes_where(shared=False) == 56
    assert found.children[1].blocks == (block(first), block(second))
    assert merged([tree(first)]) == tree(first)


def test_a_part_that_one_tree_lacks_is_kept():
    one = MemoryNode("env", children=(MemoryNode("a", 1),))
    two = MemoryNode("env", children=(MemoryNode("a", 2), MemoryNode("b", 4)))
    assert [(node.name, node.own_bytes) for node in merged([one, two]).children] == [("a", 3), ("b", 4)]


@pytest.mark.skipif(process.heap_bytes() is None, reason="needs glibc")
@pytest.mark.parametrize(
    ("head", "is_one"),
    [((0, 2), True), ((0, -14), True), ((0, -30), False), ((0, 0), False), ((0, PAGE + 2), False), ((1, 2), False)],
)
def test_the_head_of_a_block_of_old_and_new_c_libraries(head, is_one):
    words = np.array(head) + (0, 2 * PAGE)
    assert process.is_mapped_block(words.ctypes.data, 2 * PAGE) == is_one
    assert process._c_library() is process._c_library()  # one that is opened each time is garbage of a kilobyte


@pytest.mark.skipif(process.heap_bytes() is None, reason="needs glibc")
def test_blocks_of_the_c_library_are_found_among_other_mappings():
    """Those of one list of mappings may be neighbours, in any order."""
    arrays, regions = [], []
    for number in range(1, 5):
        # Larger than what a process has freed, of which the allocator would make them.
        arrays.append(np.empty((1 << 28) + number * PAGE, np.uint8))
        regions.append(mmap.mmap(-1, (number << 20), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        regions[-1][::PAGE] = bytes([1]) * (number << 8)
    blocks = set(process.reserved_blocks())
    for array, region in zip(arrays, regions):
        address = array.ctypes.data // PAGE * PAGE
        found = address, array.nbytes + PAGE  # a header of 16 bytes, and whole pages
        assert found in blocks
        assert process.is_mapped_block(*found)
        own = np.frombuffer(region, np.uint8).ctypes.data
        assert not any(first < own + len(region) and own < first + size for first, size in blocks)
    del arrays, array
    assert not process.is_mapped_block(*found)


@pytest.fixture
def only(monkeypatch):
    """The names of the files in ``/dev/shm`` that are seen: processes beside a test make and remove theirs."""
    if not process._SHARED.is_dir():
        pytest.skip("needs /dev/shm")
    names, named = set(), process._named_files

    def found():
        files = {process._key(os.stat(process._SHARED / name)) for name in names & set(os.listdir(process._SHARED))}
        return {file: size for file, size in named().items() if file in files}

    monkeypatch.setattr(process, "_named_files", found)
    return names


def share(only):
    made = shared_memory.SharedMemory(create=True, size=16 * PAGE)
    only.add(made.name)
    return made


@pytest.mark.parametrize("written", [0, 16 * PAGE])
def test_shared_memory_counts_once_by_its_size(only, written):
    before = process.shared_file_bytes()
    anonymous, shared = mmap.mmap(-1, 16 * PAGE), share(only)
    anonymous[:written] = shared.buf[:written] = bytes(written)
    assert process.shared_file_bytes() - before == 32 * PAGE
    shared.unlink()
    assert process.shared_file_bytes() - before == 32 * PAGE  # mapped and open
    shared.close()
    anonymous.close()
    assert process.shared_file_bytes() == before


def test_shared_memory_that_is_closed_and_never_removed_counts(only):
    before = process.shared_file_bytes()
    shared = share(only)
    shared.buf[:] = bytes(len(shared.buf))
    shared.close()
    try:
        assert process.shared_file_bytes() - before == 16 * PAGE
    finally:
        shared.unlink()
    assert process.shared_file_bytes() == before


OTHERS = """
from multiprocessing import get_context, shared_memory
locks = [get_context("spawn").Lock() for _ in range(2)]
made = shared_memory.SharedMemory(create=True, size=65536)
print(made.name, *(f"sem.{lock._semlock.name[1:]}" for lock in locks), flush=True)
input()
made.unlink()
"""


@pytest.mark.parametrize("family", [False, True])
def test_what_another_program_shares_counts_only_if_this_one_started_it(only, monkeypatch, family):
    if not family:
        monkeypatch.setattr(process, "_descendants", lambda _: iter(()))
    before = process.shared_file_bytes()
    command = [sys.executable, "-c", OTHERS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        only.update(other.stdout.readline().split())
        assert len(only) == 3
        assert process.shared_file_bytes() - before == family * (65536 + 2 * PAGE)  # a semaphore is mapped by pages
        other.communicate("\n")
    assert process.shared_file_bytes() == before


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")
def test_files_in_memory_without_a_name_count_once_while_they_are_open(only):
    before = process.shared_file_bytes()
    made = os.memfd_create("made")
    removed, name = tempfile.mkstemp(dir=process._SHARED)
    os.unlink(name)
    copy = os.dup(removed)
    try:
        for file in (made, removed):
            os.write(file, bytes(16 * PAGE))
        assert process.shared_file_bytes() - before == 2 * 16 * PAGE
    finally:
        for file in (made, removed, copy):
            os.close(file)
    assert process.shared_file_bytes() == before
