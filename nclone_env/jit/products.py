"""Matrix products in kernels, by the BLAS that SciPy brings; a module of its own because SciPy is optional.

``numpy.dot`` cannot be used in kernels: Numba's version of it needs the run-time memory manager, which is off in them.
All arrays are 2-dimensional, float32, and contiguous along the rows. Nothing is checked: the caller keeps the shapes
consistent. Works with ``NUMBA_DISABLE_JIT=1`` as well.

OpenBLAS computes a product of up to 100 ** 3 multiplications without copying its operands to packed buffers first, at
the peak of the processor; larger ones at three quarters of it. So products are split by rows into such that are small.
"""

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import get_cython_function_address, intrinsic

from nclone_env.jit.decorators import numeric_kernel
from nclone_env.jit.private import IS_INTERPRETED, TypingError, cgutils, say_missing

_SYMBOL = "nclone_env_sgemm"
_ITEM_SIZE = 4
_SMALL, _FEWEST_ROWS = 100**3, 16
"""Most multiplications of a small product, and fewest rows that are worth a product of their own."""


def _has_blas() -> bool:
    """Make the function of SciPy's BLAS known to LLVM; return whether there is one."""
    try:
        llvmlite.binding.add_symbol(_SYMBOL, get_cython_function_address("scipy.linalg.cython_blas", "sgemm"))
    except Exception as error:  # noqa: BLE001 - another version of SciPy may fail in any way
        say_missing("matrix products are computed without BLAS, ten times slower", error)
        return False
    return True


_HAS_BLAS = _has_blas()


def _product(*, a_transposed: bool = False, b_transposed: bool = False, add: bool = False):
    """Return an intrinsic of (a, b, out) that writes the product of two matrices to ``out``, or adds it."""
    if not IS_INTERPRETED and not _HAS_BLAS:
        return _product_of_loops(a_transposed, b_transposed, add)
    if IS_INTERPRETED:

        def by_numpy(a, b, out):
            result = np.matmul(a.T if a_transposed else a, b.T if b_transposed else b)
            out[:] = out + result if add else result

        return by_numpy

    @intrinsic
    def product(typing_context, a, b, out):
        return _signature(a, b, out), _generator(a_transposed, b_transposed, add)

    return product


def _product_of_loops(a_transposed: bool, b_transposed: bool, add: bool):
    """Return a kernel that computes a product as :func:`_product` does, without BLAS."""

    @numeric_kernel
    def product(a, b, out):
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                total = out[i, j] if add else np.float32(0.0)
                for k in range(a.shape[0] if a_transposed else a.shape[1]):
                    total += (a[k, i] if a_transposed else a[i, k]) * (b[j, k] if b_transposed else b[k, j])
                out[i, j] = total

    return product


def _signature(*arrays):
    """Return the signature of a product; raise TypingError for arrays that it cannot take."""
    for array in arrays:
        if not isinstance(array, types.Array) or (array.ndim, array.dtype) != (2, types.float32):
            raise TypingError(f"products: expected float32 matrices, got {array}")
    return types.void(*arrays)


def _generator(a_transposed: bool, b_transposed: bool, add: bool):
    """Return the code generator of a product.

    BLAS takes matrices by columns. Read that way a matrix by rows is its transpose, so out.T = b.T @ a.T is computed,
    without moving anything. All arguments are pointers.
    """

    def codegen(context, builder, signature, args):
        a, b, out = (context.make_array(kind)(context, builder, arg) for kind, arg in zip(signature.args, args))
        a_rows, a_columns = cgutils.unpack_tuple(builder, a.shape, 2)
        rows, columns = cgutils.unpack_tuple(builder, out.shape, 2)

        def pointer(kind, value):
            place = cgutils.alloca_once(builder, kind)
            builder.store(value, place)
            return place

        def number(value):
            return pointer(ir.IntType(32), builder.trunc(value, ir.IntType(32)))

        def row_length(array):
            stride = cgutils.unpack_tuple(builder, array.strides, 2)[0]
            return number(builder.sdiv(stride, stride.type(_ITEM_SIZE)))

        def letter(transposed):
            return pointer(ir.IntType(8), ir.IntType(8)(ord("T" if transposed else "N")))

        def factor(value):
            return pointer(ir.FloatType(), ir.FloatType()(value))

        arguments = [
            letter(b_transposed),
            letter(a_transposed),
            number(columns),
            number(rows),
            number(a_rows if a_transposed else a_columns),
            factor(1.0),
            b.data,
            row_length(b),
            a.data,
            row_length(a),
            factor(float(add)),
            out.data,
            row_length(out),
        ]
        function_type = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, _SYMBOL), arguments)
        return context.get_dummy_value()

    return codegen


_multiply = _product()
multiply_transposed = _product(b_transposed=True)
"""Write a @ b.T, (n, k) by (m, k), to ``out``, (n, m)."""
_add_multiply = _product(add=True)
_add_transposed_multiply = _product(a_transposed=True, add=True)


@numeric_kernel
def multiply(a, b, out):
    """Write a @ b, (n, k) by (k, m), to ``out``, (n, m)."""
    step = _rows_of_piece(a.shape[0], b.size)
    for first in range(0, a.shape[0], step):
        _multiply(a[first : first + step], b, out[first : first + step])


@numeric_kernel
def add_multiply(a, b, out):
    """Add a @ b, (n, k) by (k, m), to ``out``, (n, m)."""
    step = _rows_of_piece(a.shape[0], b.size)
    for first in range(0, a.shape[0], step):
        _add_multiply(a[first : first + step], b, out[first : first + step])


@numeric_kernel
def add_transposed_multiply(a, b, out):
    """Add a.T @ b, (k, n) by (k, m), to ``out``, (n, m)."""
    step = _rows_of_piece(a.shape[0], out.size)
    for first in range(0, a.shape[0], step):
        _add_transposed_multiply(a[first : first + step], b[first : first + step], out)


@numeric_kernel
def _rows_of_piece(rows, multiplications):
    """Return how many of the rows, each with so many multiplications, form a small product; all if that is too few."""
    most = _SMALL // max(multiplications, 1)
    if most < _FEWEST_ROWS or rows <= most:
        return max(rows, 1)
    pieces = -(-rows // most)
    return min(-(-rows // (pieces * _FEWEST_ROWS)) * _FEWEST_ROWS, most)
