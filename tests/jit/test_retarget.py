"""Kernels for other machines: the code, its calls, and what Python's own kernels keep."""

import numpy as np
import pytest
from llvmlite import binding as llvm
from numba import config

from nclone_env.jit import kernel, retarget
from nclone_env.jit.dispatcher import IS_PLAIN

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT) or IS_PLAIN, reason="needs the fast way to compile")


@kernel
def root(value):
    return value**0.5 if value > 0.0 else np.sqrt(-value)


@kernel
def sums(values, scale, out):
    total = 0.0
    for index in range(values.shape[0]):
        total += root(values[index]) * scale
    out[0] = total


@kernel
def calls_a_library(values, scale, out):
    out[0] = np.arctan2(values[0], scale)


VALUES, OUT = np.array([4.0, -9.0, 2.0]), np.zeros(1)


@pytest.mark.parametrize(
    ("triple", "magic"), [(retarget.WASM, b"\0asm"), (retarget.ARM, b"\x7fELF")], ids=["wasm", "arm"]
)
def test_code_for_a_machine_and_then_for_this_one(triple, magic):
    code = retarget.object_file({"sums": (sums, (VALUES, 2.0, OUT)), "twice": (sums, (VALUES, 2.0, OUT))}, triple)
    assert code.startswith(magic)
    assert b"sums" in code
    assert b"twice" in code
    sums(VALUES, 2.0, OUT)
    assert OUT[0] == 2.0 * (2.0 + 3.0) + 2.0 * 2.0**0.5
    assert retarget.object_file({"sums": (sums, (VALUES, 2.0, OUT))}, triple).startswith(magic)  # also afterwards


def test_a_multiplication_and_a_sum_stay_two_operations():
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module, symbol = sums.lower(tuple(map(retarget.type_of, (VALUES, 2.0, OUT))))
    text = str(module.get_function(symbol))
    assert "fmul double" in text
    assert "fmul fast" not in text
    assert "contract" not in text


def test_a_function_of_a_library_is_refused():
    with pytest.raises(RuntimeError, match=r"^kernels for wasm32\S+: expected no functions of libraries, got atan2$"):
        retarget.object_file({"angle": (calls_a_library, (VALUES, 2.0, OUT))}, retarget.WASM)


def test_a_plain_function_is_refused():
    with pytest.raises(RuntimeError, match=r"^kernels for other machines: unset NUMBA_DISABLE_JIT and"):
        retarget.object_file({"plain": (max, (1.0, 2.0))}, retarget.WASM)
