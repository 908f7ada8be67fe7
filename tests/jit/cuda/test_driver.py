"""The driver is asked for by name, and its absence is one line."""

import ctypes

import numpy as np
import pytest

from nclone_env.jit.cuda import DriverError, Entry, driver


def test_without_a_driver_one_line_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(driver, "_LIBRARIES", ("libmissing.so.1",))
    driver._driver.cache_clear()
    with pytest.raises(DriverError, match=r"expected NVIDIA's driver, got none of libmissing\.so\.1"):
        Entry("", "step")


class Library:
    """A driver that knows one entry: it notes what it is told."""

    def __init__(self, refused=0):
        self.refused, self.seen = refused, {}

    def cuCtxGetCurrent(self, context):
        context._obj.value = 3
        return 0

    def cuCtxSetCurrent(self, context):
        self.seen["context"] = context.value
        return 0

    def cuModuleLoadData(self, *_):
        return self.refused

    def cuModuleGetFunction(self, function, module, name):
        self.seen["name"] = name.value
        return 0

    def cuLaunchKernel(self, function, *rest):
        *grid, stream, parameters, extra = rest
        block = np.frombuffer((ctypes.c_int64 * 3).from_address(parameters[0]), np.int64).tolist()
        count = ctypes.c_int64.from_address(parameters[1]).value
        self.seen |= {"grid": [each.value for each in grid], "stream": stream.value, "extra": extra}
        self.seen |= {"parameters": (block, count)}
        return 0

    def cuGetErrorString(self, status, text):
        text._obj.value = b"a PTX JIT compilation failed"


def test_what_the_driver_refuses_is_told_in_its_words(monkeypatch):
    monkeypatch.setattr(driver, "_driver", lambda: Library(refused=218))
    with pytest.raises(DriverError, match=r"cuModuleLoadData: a PTX JIT compilation failed \(CUDA error 218\)"):
        Entry("", "step")


def test_a_launch_passes_block_and_threads_in_the_context_of_the_entry(monkeypatch):
    library = Library()
    monkeypatch.setattr(driver, "_driver", lambda: library)
    Entry("", "step").launch(np.array([5, 6, 7]), threads=100, threads_each=64, stream=9)
    expected = {"name": b"step", "context": 3, "grid": [2, 1, 1, 64, 1, 1, 0], "stream": 9, "extra": None}
    assert library.seen == expected | {"parameters": ([5, 6, 7], 100)}
