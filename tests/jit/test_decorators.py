"""Options of kernels, types of their arguments, and kernels inside others."""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import config

from nclone_env.jit import called_kernel, kernel, specialised
from nclone_env.jit.decorators import type_of
from nclone_env.jit.dispatcher import IS_PLAIN

compiled_only = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")
fast_only = pytest.mark.skipif(IS_PLAIN, reason="needs the fast compilation")


@compiled_only
def test_kernels_release_the_interpreter_and_keep_strict_arithmetic():
    for decorator in (kernel, called_kernel):
        dispatcher = decorator(lambda x: x)
        assert dispatcher.targetoptions["nogil"] is True
        assert not dispatcher.targetoptions.get("fastmath", False)
        assert dispatcher.targetoptions["error_model"] == "numpy"


@compiled_only
def test_a_specialised_kernel_is_its_machine_code():
    @kernel
    def half(x):
        return x / 2

    function = specialised(half, 3.0)
    assert function(5.0) == 2.5
    assert function is half.overloads[(numba.float64,)].entry_point


PLAIN, ALIGNED = (np.dtype([("x", "i1"), ("y", "f8")], align=align) for align in (False, True))
PADDED = np.dtype({"names": ["x", "y"], "formats": ["i1", "f8"], "offsets": [0, 8], "itemsize": 16})  # equals ALIGNED


class Two(NamedTuple):
    first: np.ndarray
    second: tuple[int, float]


def frozen(array):
    array.flags.writeable = False
    return array


def test_types_are_those_of_numba():
    """Asked twice, as the second answer is remembered."""
    arrays = [np.zeros(shape, dtype) for shape in (3, (3, 4)) for dtype in (PLAIN, ALIGNED, PADDED, "f8", "u1")]
    arrays += [frozen(np.zeros(3, ALIGNED)), np.zeros((3, 4), ALIGNED).T, np.zeros((3, 4), ALIGNED)[:, ::2]]
    arrays += [np.zeros(25, np.uint8)[1:].view("f8"), np.zeros(3, ALIGNED).view(np.recarray)]
    others = [7, 2.5, True, np.uint8(1), np.zeros(1, ALIGNED)[0], kernel(frozen), (), (1, 2), (1, 2.0)]
    for argument in (*arrays, *others, *(Two(array, (1, 2.0)) for array in arrays)):
        assert type_of(argument) == type_of(argument) == numba.typeof(argument)
    assert len({type_of(array) for array in arrays}) > 10


def inlined_by_force(inner) -> bool:
    """Return whether a kernel that others call is marked so."""
    (result,) = inner.overloads.values()
    (function,) = (f for f in result.library.get_defined_functions() if f.name == result.fndesc.llvm_func_name)
    return b"alwaysinline" in list(function.attributes)


@fast_only
def test_a_kernel_inside_others_is_compiled_once_and_not_for_python():
    def total(a, b):
        return a + b

    part, seldom = kernel(total), called_kernel(total)

    def totals(x):
        return part(x, 1) + part(x, 2) + part(x, x) + seldom(x, 3)

    whole = kernel(totals)
    assert whole(10) == 11 + 12 + 20 + 13
    assert len(part.inner.overloads) == len(seldom.inner.overloads) == 1  # constants and variables alike
    assert not part.overloads
    assert not seldom.overloads
    assert inlined_by_force(part.inner)
    assert not inlined_by_force(seldom.inner)
    assert part(2, 3) == 5  # from Python as well


@fast_only
def test_a_kernel_inside_others_cannot_be_called_from_python():
    @kernel
    def part(x):
        return x + 1

    @kernel
    def whole(x):
        return part(x)

    assert whole(1) == 2
    with pytest.raises(TypeError, match=r"part: only other kernels can call \.inner; call the kernel itself"):
        part.inner(1)
    (result,) = part.inner.overloads.values()
    for entry in (result.entry_point, part.inner.compile((numba.int64,)), part.inner.compile((numba.float64,))):
        with pytest.raises(TypeError, match="not callable"):
            entry(1)
