"""Matrix products in kernels, by the BLAS that SciPy brings; a module of its own because SciPy is optional.

``numpy.dot`` cannot be used in kernels: Numba's version of it needs the run-time memory manager, which is off in them.
All arrays are 2-dimensional, C-contiguous and float32. Nothing is checked: the caller keeps the shapes consistent.
Works with ``NUMBA_DISABLE_JIT=1`` as well.
"""

from __future__ import annotations

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.errors import TypingError
from numba.extending import get_cython_function_address, intrinsic

_SYMBOL = "nclone_env_sgemm"
llvmlite.binding.add_symbol(_SYMBOL, get_cython_function_address("scipy.linalg.cython_blas", "sgemm"))

if config.DISABLE_JIT:

    def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        """Write a @ b, (n, k) by (k, m), to ``out``, (n, m)."""
        np.matmul(a, b, out=out)

    def multiply_transposed(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        """Write a @ b.T, (n, k) by (m, k), to ``out``, (n, m)."""
        np.matmul(a, b.T, out=out)

    def add_transposed_multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        """Add a.T @ b, (k, n) by (k, m), to ``out``, (n, m)."""
        out += np.matmul(a.T, b)

else:

    @intrinsic
    def multiply(typing_context, a, b, out):
        """Write a @ b, (n, k) by (k, m), to ``out``, (n, m)."""
        return _signature(a, b, out), _product()

    @intrinsic
    def multiply_transposed(typing_context, a, b, out):
        """Write a @ b.T, (n, k) by (m, k), to ``out``, (n, m)."""
        return _signature(a, b, out), _product(b_transposed=True)

    @intrinsic
    def add_transposed_multiply(typing_context, a, b, out):
        """Add a.T @ b, (k, n) by (k, m), to ``out``, (n, m)."""
        return _signature(a, b, out), _product(a_transposed=True, add=True)


def _signature(*arrays):
    """Return the signature of a product; raise TypingError for arrays that it cannot take."""
    for array in arrays:
        if not isinstance(array, types.Array) or (array.ndim, array.layout, array.dtype) != (2, "C", types.float32):
            raise TypingError(f"products: expected C-contiguous float32 matrices, got {array}")
    return types.void(*arrays)


def _product(a_transposed: bool = False, b_transposed: bool = False, add: bool = False):
    """Return the code generator of a product.

    BLAS takes matrices by columns. Read that way a matrix by rows is its transpose, so out.T = b.T @ a.T is computed,
    without moving anything. All arguments are pointers.
    """

    def codegen(context, builder, signature, args):
        a, b, out = (context.make_array(kind)(context, builder, arg) for kind, arg in zip(signature.args, args))
        (a_rows, a_columns), (_, b_columns), (rows, columns) = (
            cgutils.unpack_tuple(builder, array.shape, 2) for array in (a, b, out)
        )

        def pointer(kind, value):
            place = cgutils.alloca_once(builder, kind)
            builder.store(value, place)
            return place

        def number(value):
            return pointer(ir.IntType(32), builder.trunc(value, ir.IntType(32)))

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
            number(b_columns),
            a.data,
            number(a_columns),
            factor(float(add)),
            out.data,
            number(columns),
        ]
        function_type = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, _SYMBOL), arguments)
        return context.get_dummy_value()

    return codegen
