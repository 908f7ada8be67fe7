"""The floating-point mode of compiled code: the same bits with denormal numbers switched off in the calling thread."""

import sys
import threading

import numpy as np
import pytest
from llvmlite import binding, ir

from nclone_env.jit import exact, kernel, plain_dispatcher, specialised
from nclone_env.jit.dispatcher import OPTIONS
from nclone_env.jit.private import IS_INTERPRETED

from ..processes import flushing

pytestmark = pytest.mark.skipif(IS_INTERPRETED, reason="Python itself computes in the mode of the thread")


def halves(values):
    """Replace the first value by its half, and return that of the second."""
    values[0] *= 0.5
    return values[1] * 0.5


@pytest.mark.parametrize(
    "make",
    [
        kernel,
        lambda function: specialised(kernel(function), np.zeros(2)),
        lambda function: plain_dispatcher(function, OPTIONS),
    ],
    ids=["kernel", "specialised", "plain"],
)
def test_a_call_computes_with_denormal_numbers_and_leaves_the_mode_as_it_was(make):
    halved, expected = make(halves), sys.float_info.min / 2
    for mode in (flushing, flushing, threading.Lock):  # the last one changes nothing
        values = np.full(2, sys.float_info.min)
        with mode():
            returned = np.array([halved(values)])
            by_numpy = np.full(1, sys.float_info.min) * 0.5
        assert values[0] == returned[0] == expected
        assert (by_numpy[0] == 0) == (mode is flushing)


def test_other_threads_compute_alike():
    halved, found = kernel(halves), []

    def work():
        values = np.full(2, sys.float_info.min)
        found.append((np.array([halved(values), values[0]]), np.full(1, sys.float_info.min) * 0.5))

    with flushing():
        thread = threading.Thread(target=work)  # inherits the mode
        thread.start()
    thread.join()
    ((computed, by_numpy),) = found
    assert computed.tolist() == [sys.float_info.min / 2] * 2
    assert by_numpy[0] == 0


@pytest.mark.parametrize(
    ("triple", "written", "times"),
    [
        ("x86_64-unknown-linux-gnu", 'call void @"llvm.x86.sse.ldmxcsr"', 2),
        ("aarch64-unknown-linux-gnu", 'call void @"llvm.aarch64.set.fpcr"', 2),
        ("arm64-apple-darwin24", 'call void @"llvm.aarch64.set.fpcr"', 2),
        ("riscv64-unknown-linux-gnu", "call", 0),
    ],
)
def test_the_mode_is_that_of_the_processor(triple, written, times):
    module = ir.Module()
    module.triple = triple
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "entered")
    builder = ir.IRBuilder(function.append_basic_block())
    exact.leave(builder, exact.enter(builder))
    builder.ret_void()
    binding.parse_assembly(str(module)).verify()
    assert str(module).count(written) == times
