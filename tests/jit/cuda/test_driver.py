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


def test_what_the_driver_refuses_is_told_in_its_words(monkeypatch):
    class Library:
        def cuModuleLoadData(self, *_):
            return 218

        def cuGetErrorString(self, status, text):
            text._obj.value = b"a PTX JIT compilation failed"

    monkeypatch.setattr(driver, "_driver", Library)
    with pytest.raises(DriverError, match=r"cuModuleLoadData: a PTX JIT compilation failed \(CUDA error 218\)"):
        Entry("", "step")


def test_a_launch_passes_block_and_threads_as_one_buffer(monkeypatch):
    seen = {}

    class Library:
        def cuModuleLoadData(self, *_):
            return 0

        def cuModuleGetFunction(self, function, module, name):
            seen["name"] = name.value
            return 0

        def cuLaunchKernel(self, function, *rest):
            seen["grid"], extra = [each.value for each in rest[:7]], rest[-1]
            size = ctypes.c_size_t.from_address(extra[3]).value
            seen["marks"] = extra[0], extra[2], extra[4]
            seen["block"] = np.frombuffer((ctypes.c_char * size).from_address(extra[1]), np.int64).tolist()
            return 0

    monkeypatch.setattr(driver, "_driver", Library)
    Entry("", "step").launch(np.array([5, 6, 7]), threads=100, threads_each=64, stream=9)
    assert seen == {"name": b"step", "grid": [2, 1, 1, 64, 1, 1, 0], "marks": (1, 2, None), "block": [5, 6, 7, 100]}
