"""Building blocks of kernels beyond plain Python: scratch on the stack, byte copies, shared counters, calls by address.

All work with ``NUMBA_DISABLE_JIT=1`` as well.
"""

from collections.abc import Callable
from threading import Lock

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nclone_env.jit.private import IS_INTERPRETED, RequireLiteralValue, TypingError, cgutils

each = numba.literal_unroll
"""``for name in each(NAMES)`` in a kernel: the loop body once for each name, so that ``record[name]`` has a type."""

BLENDED = 8
"""Bytes that :func:`blend_bytes` blends."""

if IS_INTERPRETED:

    def local_f64(count: int, zeroed: int | None = None) -> np.ndarray:
        """Return a scratch array of ``count`` float64 values, zeroed."""
        return np.zeros(count)

    def copy_bytes(target: np.ndarray, target_offset: int, source: np.ndarray, source_offset: int, count: int) -> None:
        """Copy ``count`` bytes between C-contiguous uint8 arrays; offsets count bytes from the first."""
        chunk = source.reshape(-1)[source_offset : source_offset + count]
        target.reshape(-1)[target_offset : target_offset + count] = chunk

    def blend_bytes(target: np.ndarray, target_offset: int, source: np.ndarray, alpha: int, ink: int) -> None:
        """Blend eight bytes with opacities and colours of another array; see the compiled form."""
        below = target.reshape(-1)[target_offset : target_offset + BLENDED]
        given = source.reshape(-1)
        scaled = below.astype(np.uint16) * (255 - given[alpha : alpha + BLENDED].astype(np.uint16)) + 128
        below[:] = ((scaled + (scaled >> 8)) >> 8) + given[ink : ink + BLENDED]

    def stream_bytes(target: np.ndarray, source: np.ndarray) -> None:
        """Copy a C-contiguous uint8 array to one of the same size, past the caches where that is possible."""
        copy_bytes(target, 0, source, 0, source.size)

    _COUNTING = Lock()

    def next_number(counter: np.ndarray) -> int:
        """Return ``counter[0]``, (k,) int64, and add 1 to it; threads that share a counter get different numbers.

        A thread that gets a number, or reads it by :func:`read_number`, also sees what was written before.
        """
        with _COUNTING:
            number = int(counter[0])
            counter[0] = number + 1
        return number

    def read_number(counter: np.ndarray) -> int:
        """Return ``counter[0]``, (k,) int64, which other threads count up by :func:`next_number`."""
        return int(counter[0])

    def call_at(address: Callable[..., None], arguments: tuple) -> None:
        """Call the kernel at an address of ``jit.address_of`` with a tuple of arguments of exactly its types.

        The caller does not contain its code, which saves compiling it again.
        """
        address(*arguments)

else:

    @intrinsic(prefer_literal=True)
    def local_f64(typing_context, count, zeroed=None):
        """Return a scratch array of ``count`` (a literal) float64 values on the stack.

        The first ``zeroed`` (a literal) values are zero, without it all; the rest must be written before it is read.
        The array lives until the calling kernel returns and must not leave it.
        """
        literals = [count] if zeroed is None else [count, zeroed]
        if not all(isinstance(number, types.IntegerLiteral) for number in literals):
            raise RequireLiteralValue("local_f64: counts must be literal numbers")
        size, zeros = (literals[place].literal_value for place in (0, -1))
        array_type = types.Array(types.float64, 1, "C")

        def codegen(context, builder, signature, args):
            storage_type = ir.ArrayType(ir.DoubleType(), size)
            with builder.goto_entry_block():  # cgutils.alloca_once would zero all of it
                storage = builder.alloca(storage_type)
            zeros_type = ir.ArrayType(ir.DoubleType(), zeros)
            builder.store(ir.Constant(zeros_type, None), builder.bitcast(storage, zeros_type.as_pointer()))
            array = context.make_array(array_type)(context, builder)
            item_size = context.get_constant(types.intp, 8)
            context.populate_array(
                array,
                data=builder.bitcast(storage, array.data.type),
                shape=[context.get_constant(types.intp, size)],
                strides=[item_size],
                itemsize=item_size,
                meminfo=None,
            )
            return array._getvalue()

        return array_type(count, types.none if zeroed is None else zeroed), codegen

    def _check_bytes(name, target, source):
        for array in (target, source):
            if not isinstance(array, types.Array) or array.layout != "C" or array.dtype != types.uint8:
                raise TypingError(f"{name}: expected C-contiguous uint8 arrays, got {array}")
        if not target.mutable:
            raise TypingError(f"{name}: the target is read-only")

    @intrinsic(prefer_literal=True)
    def copy_bytes(typing_context, target, target_offset, source, source_offset, count):
        """Copy ``count`` bytes between C-contiguous uint8 arrays; offsets count bytes from the first.

        Nothing is checked: the caller keeps both ranges inside their arrays and apart. A literal count
        compiles to a few moves.
        """
        _check_bytes("copy_bytes", target, source)
        literal = count.literal_value if isinstance(count, types.IntegerLiteral) else None

        def codegen(context, builder, signature, args):
            target_array, source_array = (
                context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 2)
            )
            destination = builder.gep(target_array.data, [args[1]])
            origin = builder.gep(source_array.data, [args[3]])
            size = args[4] if literal is None else context.get_constant(types.intp, literal)
            cgutils.raw_memcpy(builder, destination, origin, size, 1)
            return context.get_dummy_value()

        return types.void(target, types.intp, source, types.intp, types.intp), codegen

    @intrinsic
    def blend_bytes(typing_context, target, target_offset, source, alpha, ink):
        """Blend ``BLENDED`` bytes of a C-contiguous uint8 array with those of another; offsets count bytes.

        Each becomes ``round(below * (255 - alpha) / 255) + ink``; the bytes of both are in ``source`` from offsets
        ``alpha`` and ``ink`` on. Nothing is checked.
        """
        _check_bytes("blend_bytes", target, source)

        def codegen(context, builder, signature, args):
            to, of = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2))
            narrow, wide = (ir.VectorType(ir.IntType(bits), BLENDED) for bits in (8, 16))

            def at(data, offset):
                return builder.bitcast(builder.gep(data, [offset]), narrow.as_pointer())

            def loaded(data, offset):
                value = builder.load(at(data, offset))
                value.align = 1
                return builder.zext(value, wide)

            def filled(number):
                return ir.Constant(wide, [number] * BLENDED)

            rest = builder.sub(filled(255), loaded(of, args[3]))
            scaled = builder.add(builder.mul(loaded(to, args[1]), rest), filled(128))
            rounded = builder.lshr(builder.add(scaled, builder.lshr(scaled, filled(8))), filled(8))
            store = builder.store(builder.trunc(builder.add(rounded, loaded(of, args[4])), narrow), at(to, args[1]))
            store.align = 1
            return context.get_dummy_value()

        return types.void(target, types.intp, source, types.intp, types.intp), codegen

    @intrinsic
    def stream_bytes(typing_context, target, source):
        """Copy a C-contiguous uint8 array to one of the same size, past the caches where that is possible.

        Memory that is not in a cache is then not read before it is written. That needs a target whose address and
        size are multiples of 16; else the bytes are copied as by :func:`copy_bytes`.
        """
        _check_bytes("stream_bytes", target, source)

        def codegen(context, builder, signature, args):
            target_array, source_array = (
                context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 1)
            )
            word, size = ir.IntType(64), source_array.nitems
            bits = builder.or_(builder.ptrtoint(target_array.data, word), size)
            aligned = builder.icmp_unsigned("==", builder.and_(bits, ir.Constant(word, 15)), ir.Constant(word, 0))
            with builder.if_else(aligned) as (then, otherwise):
                with then:
                    _stream_vectors(builder, target_array.data, source_array.data, size)
                with otherwise:
                    cgutils.raw_memcpy(builder, target_array.data, source_array.data, size, 1)
            return context.get_dummy_value()

        return types.void(target, source), codegen

    def _stream_vectors(builder, target, source, size):
        """Build the loop of :func:`stream_bytes` over 16 bytes at a time.

        It needs no fence: x86 completes such stores before the next locked instruction, and no thread hands results
        to another without one.
        """
        vector, mark = ir.VectorType(ir.IntType(64), 2), builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        to, of = (builder.bitcast(data, vector.as_pointer()) for data in (target, source))
        with cgutils.for_range(builder, builder.lshr(size, ir.Constant(size.type, 4))) as loop:
            value = builder.load(builder.gep(of, [loop.index]))
            value.align = 1
            store = builder.store(value, builder.gep(to, [loop.index]))
            store.align = 16
            store.set_metadata("nontemporal", mark)

    @intrinsic
    def next_number(typing_context, counter):
        """Return ``counter[0]``, (k,) int64, and add 1 to it; threads that share a counter get different numbers.

        A thread that gets a number, or reads it by :func:`read_number`, also sees what was written before.
        """
        _check_counter("next_number", counter)

        def codegen(context, builder, signature, args):
            array = context.make_array(signature.args[0])(context, builder, args[0])
            return builder.atomic_rmw("add", array.data, ir.Constant(ir.IntType(64), 1), "acq_rel")

        return types.int64(counter), codegen

    @intrinsic
    def read_number(typing_context, counter):
        """Return ``counter[0]``, (k,) int64, which other threads count up by :func:`next_number`."""
        _check_counter("read_number", counter)

        def codegen(context, builder, signature, args):
            array = context.make_array(signature.args[0])(context, builder, args[0])
            return builder.load_atomic(array.data, "acquire", 8)

        return types.int64(counter), codegen

    @intrinsic
    def call_at(typing_context, address, arguments):
        """Call the kernel at an address of ``jit.address_of`` with a tuple of arguments of exactly its types.

        The caller does not contain its code, which saves compiling it again.
        """
        if isinstance(address, types.Dispatcher):
            return _call_of_dispatcher(typing_context, address, arguments)

        def codegen(context, builder, signature, args):
            kinds = signature.args[1].types
            function = context.call_conv.get_function_type(types.none, kinds).as_pointer()
            values = cgutils.unpack_tuple(builder, args[1])
            callee = builder.inttoptr(args[0], function)
            status, _ = context.call_conv.call_function(builder, callee, types.none, kinds, values)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return context.get_dummy_value()

        return types.void(types.int64, arguments), codegen

    def _call_of_dispatcher(typing_context, dispatcher, arguments):
        """Return signature and code generator of a call of a kernel, which the caller then contains."""
        called = dispatcher.get_call_type(typing_context, arguments.types, {})

        def codegen(context, builder, signature, args):
            values = cgutils.unpack_tuple(builder, args[1])
            context.get_function(dispatcher, called)(builder, values)
            return context.get_dummy_value()

        return types.void(dispatcher, arguments), codegen

    def _check_counter(name, counter):
        if not isinstance(counter, types.Array) or counter.dtype != types.int64 or not counter.mutable:
            raise TypingError(f"{name}: expected a writable int64 array, got {counter}")
