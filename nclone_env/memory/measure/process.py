"""Queries to the operating system and the C library: memory of this process, and a description of the machine."""

import ctypes
import gc
import os
import platform
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from nclone_env.errors import MissingExtraError, installation, shortened
from nclone_env.machine import available_cores
from nclone_env.memory.measure.measurements import INTERPRETER, Machine, OwnedNode, Stage
from nclone_env.memory.measure.tree import MemoryNode

_PACKAGES = ("nclone-env", "numpy", "numba", "gymnasium")
_IF_IMPORTED = {"torch": "torch", "stable_baselines3": "stable-baselines3"}  # module to package
_PROC = Path("/proc")
_ROLLUP = "smaps_rollup"
_SMAPS = Path("/proc/self/smaps_rollup")
_PRINT_RSS = f"print([line.split()[1] for line in open({str(_SMAPS)!r}) if line.startswith('Rss:')][0])"
_MALLINFO2 = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)
_PAGEMAP, _MAPS = Path("/proc/self/pagemap"), Path("/proc/self/maps")
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_SHARED = Path("/dev/shm")
_NAMELESS = re.compile(
    rf"^(\w+)-(\w+) ..\Ss \w+ (\S+) (\d+) +(?:/dev/zero|/SYSV|/memfd:|{_SHARED}/).* \(deleted\)$", re.M
)
"""Shared memory in a list of mappings: first and last address, device and number of the file."""
_IN_SHARED = re.compile(rf" (\w+:\w+) (\d+) +{_SHARED}/")
_RESERVED = re.compile(r"^(\w+)-(\w+) rw\Sp \w+ \S+ \d+ *(\[heap\]|/.*|)$", re.M)
"""Private memory in one that may be written, with the name of its file."""
_STARTED = time.time()
_ours: dict[tuple[str, str], bool] = {}
"""Whether a file of shared memory is ours, by its device and number."""
_ENTRY = 8  # bytes of an entry of the page map
_PRESENT, _SWAPPED, _FILE, _OWN = 63, 62, 61, 56
"""Bits of an entry. File: of a file, or of shared memory; own: mapped only here, as the common page of zeros is not."""
_PIECE = 1 << 28  # bytes whose pages are looked at together
_LEAST = 1 << 17  # bytes of what is reserved at once; from there on the C library has the system map a block
_MAPPED = 2  # mark of such a block, in the last bits of its size
_TOGETHER = 1024  # addresses of one reading
_FARTHEST = 256  # pages between two blocks that are still read together


class ResidentBytes(NamedTuple):
    """Resident memory of a process, in bytes."""

    rss: int
    """Resident set size: all resident pages."""
    pss: int
    """Proportional set size: pages shared by several processes count in proportion."""
    data: int
    """PSS without file-backed pages."""
    anonymous: int
    """Private pages, with written ones of files mapped privately: what another process does leaves it as it is."""


def resident_bytes() -> ResidentBytes:
    """Return the resident memory of this process, read from ``/proc/self/smaps_rollup`` or from psutil."""
    return _read_rollup(_SMAPS) if _SMAPS.exists() else _resident_by_psutil()


def _read_rollup(path: Path) -> ResidentBytes:
    found = dict.fromkeys(("Rss:", "Pss:", "Pss_File:", "Anonymous:"), 0)
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(" ")
        if name in found:
            found[name] = int(rest.split()[0]) * 1024
    return ResidentBytes(found["Rss:"], found["Pss:"], found["Pss:"] - found["Pss_File:"], found["Anonymous:"])


def _resident_by_psutil() -> ResidentBytes:
    try:
        import psutil
    except ImportError as error:
        raise MissingExtraError(
            f"resident memory: expected /proc/self/smaps_rollup or psutil, found neither; {installation('profile')}"
        ) from error
    info = psutil.Process().memory_full_info()
    return ResidentBytes(info.rss, getattr(info, "pss", info.rss), info.uss, info.uss)  # PSS exists only on Linux


def worker_bytes(field: Literal["data", "anonymous"] = "data") -> int:
    """Return a field of the resident memory of all descendants of this process; 0 where ``/proc`` is missing."""
    return sum(worker_sizes(field).values())


def worker_sizes(field: Literal["data", "anonymous"]) -> dict[int, int]:
    """Return a field of the resident memory of each descendant of this process, by its number."""
    found = {}
    for child in _descendants(os.getpid()):
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended by now
            found[child] = getattr(_read_rollup(_PROC / str(child) / _ROLLUP), field)
    return found


def shared_file_bytes() -> int:
    """Return the bytes of the shared memory of this program, by its size: written or not.

    Files in ``/dev/shm`` are those made since this module was loaded that no other program mapped when first seen.
    """
    sizes = _named_files()
    if new := sizes.keys() - _ours.keys():
        mapped = _mapped_by_others()
        _ours.update({file: file not in mapped for file in new & _named_files().keys()})  # others are removed by now
    for file in _ours.keys() - sizes.keys():
        del _ours[file]
    return (Counter({file: size for file, size in sizes.items() if _ours.get(file)}) | _nameless_files()).total()


def _named_files() -> dict[tuple[str, str], int]:
    """Return the bytes of the files in ``/dev/shm`` that this user made since this module was loaded."""
    sizes = {}
    with suppress(OSError), os.scandir(_SHARED) as files:
        for file in files:
            with suppress(OSError):  # it is removed by now
                found = file.stat(follow_symlinks=False)
                if found.st_uid == os.geteuid() and found.st_ctime >= _STARTED:
                    sizes[_key(found)] = found.st_size
    return sizes


def _nameless_files() -> Counter[tuple[str, str]]:
    """Return the bytes of shared memory without a name: mapped, or of files that are open here."""
    sizes: Counter[tuple[str, str]] = Counter()
    for process in (os.getpid(), *_descendants(os.getpid())):
        mapped: Counter[tuple[str, str]] = Counter()
        with suppress(OSError):  # it has ended by now
            for first, last, *file in _NAMELESS.findall((_PROC / str(process) / "maps").read_text("utf-8", "replace")):
                mapped[file[0], file[1]] += int(last, 16) - int(first, 16)
        sizes |= mapped
    with suppress(OSError), os.scandir(_PROC / "self" / "fd") as files:
        for file in files:
            with suppress(OSError):  # it is closed by now
                name = os.readlink(file.path)
                if name.startswith((f"{_SHARED}/", "/memfd:")) and name.endswith(" (deleted)"):
                    found = file.stat()
                    sizes[_key(found)] = found.st_size
    return sizes


def _key(found: os.stat_result) -> tuple[str, str]:
    """Return device and number of a file as a list of mappings has them."""
    return f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}", str(found.st_ino)


def _mapped_by_others() -> set[tuple[str, str]]:
    """Return the files of shared memory that processes outside of this program map, of the same user.

    Never by name: the C library maps a semaphore before it has its own.
    """
    family = {os.getpid(), *_descendants(os.getpid())}
    found: set[tuple[str, str]] = set()
    for process in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            if int(process.name) not in family:
                found |= set(_IN_SHARED.findall((process / "maps").read_text("utf-8", "replace")))
    return found


def command_of(process: int) -> str:
    """Return the beginning of the command line of a process; empty if it has ended."""
    with suppress(OSError):
        words = (_PROC / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
        return shortened(" ".join(words).strip())
    return ""


def _descendants(process: int) -> Iterator[int]:
    for listing in _PROC.glob(f"{process}/task/*/children"):
        try:
            children = [int(child) for child in listing.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            yield child
            yield from _descendants(child)


def restart_peak() -> None:
    """Restart the measurement of :func:`peak_bytes`, where the system can."""
    with suppress(OSError):
        (_PROC / "self" / "clear_refs").write_text("5")


def peak_bytes() -> int:
    """Return the largest RSS since the last :func:`restart_peak`; 0 if it is not known here."""
    status = _PROC / "self" / "status"
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def bare_interpreter() -> Stage:
    """Return the resident memory of a Python subprocess without any imports.

    Its RSS is used instead of its PSS, which would count the pages it shares with this process only in part.
    """
    if not _SMAPS.exists():
        return Stage(INTERPRETER, 0, 0, 0, 0, "not measured: no /proc/self/smaps_rollup here")
    answer = subprocess.run([sys.executable, "-I", "-S", "-c", _PRINT_RSS], capture_output=True, text=True, check=True)
    rss = int(answer.stdout) * 1024
    return Stage(INTERPRETER, rss, rss, 0, 0, "a bare Python interpreter in a process of its own (RSS)")


def stage(name: str, how: str) -> Stage:
    """Return the resident memory of this process now, without garbage, and its peak; ``how`` is for the report."""
    gc.collect()
    peak = peak_bytes()
    rss, pss, data, _ = resident_bytes()
    return Stage(name, rss, pss, data, peak, how)


def machine() -> Machine:
    """Return the description of this machine for the report."""
    imported = [package for module, package in _IF_IMPORTED.items() if module in sys.modules]
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor(),
        cores=available_cores(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages=tuple((name, _version(name)) for name in (*_PACKAGES, *imported)),
        resident_source=str(_SMAPS) if _SMAPS.exists() else "psutil",
    )


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


@cache  # to read what the installer wrote takes milliseconds
def _version(package: str) -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return "not installed"


class _Mallinfo2(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_size_t) for name in _MALLINFO2)  # of <malloc.h>


def heap_bytes() -> int | None:
    """Return the bytes of blocks of the C library's allocator that were not freed, with their headers, in all arenas.

    Small ones of Python's own allocator are not seen. None without ``mallinfo2``, that is without glibc 2.33 or later.
    """
    query = _mallinfo2()
    if query is None:
        return None
    info = query()
    return int(info.uordblks + info.hblkhd)


def trim_heap() -> None:
    """Give the pages of freed blocks back to the system, where the allocator can."""
    with suppress(AttributeError, OSError, TypeError):  # another C library, or Windows
        _c_library().malloc_trim(0)


@cache  # each one makes a class, which is garbage that keeps memory until it is collected
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@cache
def _mallinfo2() -> Callable[[], _Mallinfo2] | None:
    with suppress(AttributeError, OSError, TypeError):  # another C library, or Windows
        query = _c_library().mallinfo2
        query.restype = _Mallinfo2
        return query
    return None


def committed_bytes(blocks: Iterable[tuple[int, int]]) -> int:
    """Return the bytes of (address, bytes) ranges that lie in committed pages; of all if that is unknown here."""
    ranges = np.array([(address, address + size) for address, size in blocks if size], dtype=np.int64).reshape(-1, 2)
    if not len(ranges) or not _PAGEMAP.exists():
        return int((ranges[:, 1] - ranges[:, 0]).sum())
    ranges = ranges[np.argsort(ranges[:, 0])]
    gaps = ranges[1:, 0] - np.maximum.accumulate(ranges[:, 1])[:-1]
    groups = np.split(ranges, np.flatnonzero(gaps > _FARTHEST * _PAGE) + 1)
    with closing(_PAGEMAP.open("rb", buffering=0)) as pagemap:
        return sum(_committed(pagemap.fileno(), group) for group in groups)


def committed_tree_bytes(tree: MemoryNode) -> int:
    """Return the committed bytes of a tree without mapped files; nodes that name no blocks count whole."""
    nodes = [node for _, node in tree.walk() if node.own_bytes and not node.mapped]
    unknown = sum(node.own_bytes for node in nodes if not node.blocks)
    return unknown + committed_bytes(block for node in nodes for block in node.blocks)


def owned_nodes(tree: MemoryNode) -> tuple[OwnedNode, ...]:
    """Return the nodes of a tree, parents first, with the bytes of each in committed pages."""
    return tuple(
        OwnedNode(
            depth=depth,
            name=node.name,
            shared_bytes=node.bytes_where(shared=True),
            environment_bytes=node.bytes_where(shared=False),
            committed_bytes=committed_tree_bytes(node),
            mapped=node.mapped,
        )
        for depth, node in tree.walk()
    )


def _committed(pagemap: int, ranges: np.ndarray) -> int:
    """Return the bytes of ranges, (n, 2) int64 [first, past the last address], in committed pages.

    They are looked at in pieces: of gigabytes the table of pages is large, too.
    """
    low, high = int(ranges[:, 0].min()) // _PAGE * _PAGE, int(ranges[:, 1].max())
    found = 0.0
    for start in range(low, high, _PIECE):
        bits = _are_committed(pagemap, start // _PAGE, -(-min(high, start + _PIECE) // _PAGE))
        bounds = start + np.arange(len(bits) + 1) * _PAGE
        before = np.append(0, np.cumsum(bits)) * _PAGE  # committed bytes below each bound
        found += np.diff(np.interp(ranges, bounds, before)).sum()
    return int(found)


def _are_committed(pagemap: int, first: int, end: int) -> np.ndarray:
    """Return whether each page from ``first`` to ``end - 1`` is committed, (n,) bool."""
    entries = np.frombuffer(os.pread(pagemap, (end - first) * _ENTRY, first * _ENTRY), dtype=np.uint64)
    present, swapped, file, own = ((entries >> np.uint64(bit)) & 1 for bit in (_PRESENT, _SWAPPED, _FILE, _OWN))
    found: np.ndarray = (present & own & (file ^ 1) | swapped).astype(bool)
    return found


def reserved_blocks() -> Iterator[tuple[int, int]]:
    """Yield address and bytes of private memory that is reserved at once, while its pages are committed one by one.

    That is the C library's, and files mapped privately. Other may be another allocator's, which nothing else counts.
    """
    if not _PAGEMAP.exists():
        return
    joined: list[tuple[int, int, str]] = []
    for first, last, name in _RESERVED.findall(_MAPS.read_text("utf-8", "replace")):
        start, end = int(first, 16), int(last, 16)
        if joined and joined[-1][1:] == (start, "") == (start, name):  # NumPy asks for huge pages in a part of a block
            start = joined.pop()[0]
        joined.append((start, end, name))
    for start, end, name in joined:
        if end - start - committed_bytes([(start, end - start)]) >= _LEAST:
            yield from [(start, end - start)] if name else _mapped_blocks(start, end)


def _mapped_blocks(first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield address and bytes of the blocks of the C library between two addresses: each begins with 0 and its size."""
    past = first
    with closing(_PAGEMAP.open("rb", buffering=0)) as pagemap:
        for start in range(first, end, _PIECE):
            bits = _are_committed(pagemap.fileno(), start // _PAGE, min(end, start + _PIECE) // _PAGE)
            pages = start + np.flatnonzero(bits) * _PAGE
            sizes = _block_sizes(pages)
            is_block = (sizes >= _LEAST) & (sizes <= end - pages)
            for page, size in zip(pages[is_block].tolist(), sizes[is_block].tolist()):
                if page >= past:  # not what the program has written inside of a block
                    yield page, size
                    past = page + size


def is_mapped_block(address: int, size: int) -> bool:
    """Return whether the C library has a block of so many bytes at an address, which it had the system map."""
    return size > 0 and bool(_block_sizes(np.array([address])) == size)


def _block_sizes(addresses: np.ndarray) -> np.ndarray:
    """Return the bytes, whole pages, of the blocks of the C library at some addresses, (n,) int64; 0 where none is."""
    heads, size = np.zeros((len(addresses), 2), np.int64), 2 * _ENTRY
    theirs = np.column_stack([addresses, np.full(len(addresses), size)]).astype(np.int64)
    read = _c_library().process_vm_readv  # memory that another thread gives back meanwhile ends it, no more
    for first in range(0, len(addresses), _TOGETHER):
        part = theirs[first : first + _TOGETHER]
        ours = np.array([heads.ctypes.data + first * size, len(part) * size])
        read(os.getpid(), ours.ctypes.data_as(ctypes.c_void_p), 1, part.ctypes.data_as(ctypes.c_void_p), len(part), 0)
    before, sizes = heads.T
    sizes -= _MAPPED
    sizes[-sizes % _PAGE == size] += size  # glibc 2.43 does not count the head itself
    return np.where((before == 0) & (sizes % _PAGE == 0), sizes, 0)
