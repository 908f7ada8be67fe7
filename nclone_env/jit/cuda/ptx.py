"""Kernels as PTX, the portable code of NVIDIA's GPUs, with the bits of the processor.

A kernel is lowered as for any other machine (``jit.retarget``) and compiled by the LLVM that Numba brings: neither a
GPU nor NVIDIA's compilers are needed. LLVM fuses no product with a sum unless it is told to, and marks every operation
as rounded to nearest (``.rn``), which the driver's assembler keeps; ``profiling.checks.ptx`` looks for all that
would change bits.

A program is a kernel whose last parameter is the number of a thread. Its entry takes two parameters: a block, which
holds the other parameters of the kernel in slots of eight bytes (``jit.retarget``), and the number of threads. Blocks
are passed by value, so every parameter is an operand in the constant memory of a multiprocessor; nothing has to be
written to the device before a launch, and a launch in a CUDA graph keeps its own copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from nclone_env.jit import retarget
from nclone_env.jit.cache import CodeFiles
from nclone_env.jit.decorators import type_of
from nclone_env.jit.sources import identity, short_digest, source_digest

TRIPLE = "nvptx64-nvidia-cuda"
_OLDEST = "sm_70"
"""Architecture that code is made for: the driver translates it for this one and all later ones."""
_PTX_VERSION = "ptx81"
"""The first with blocks above 4 KB: drivers from 530 on know it."""
Programs = Mapping[str, tuple[Any, tuple[Any, ...]]]
"""A kernel for each name, and arguments of the types of all parameters but the last, an ``int``."""
_FLOOR = """
declare double @llvm.floor.f64(double)
define linkonce_odr double @floor(double %value) alwaysinline {
  %whole = call double @llvm.floor.f64(double %value)
  ret double %whole
}
"""
_NARROW = re.compile(r"^(\s+(?:%\S+ = load|store) (i16|i32|i64|float|double|ptr)\b.*, align )1$", re.MULTILINE)
"""An access to a field of a record that is not declared as aligned. All fields are, and a GPU needs them to be told so,
else it reads them byte by byte: see :func:`unaligned_fields`."""
_BYTES = {"i16": 2, "i32": 4, "float": 4}


def compile_ptx(programs: Programs, fuse: bool = False) -> str:
    """Return the PTX of programs.

    Args:
        programs: kernels by the name of their entries.
        fuse: allow fused multiply-adds, whose results differ: as a control.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=_OLDEST, features=f"+{_PTX_VERSION}", opt=3)
    module = retarget.module_of("", machine)
    for name, (kernel, arguments) in programs.items():
        module.link_in(_entered(name, kernel, arguments, machine))
    for text in (retarget.ROOT, _FLOOR):
        module.link_in(retarget.module_of(text, machine))
    if fuse:
        text = re.sub(r"= (fmul|fadd|fsub) ", r"= \1 contract ", str(module))
        module = retarget.module_of(text, machine)
    for item in [*module.functions, *module.global_variables]:
        if not item.is_declaration and not item.name.startswith("llvm.") and item.name not in programs:
            item.linkage = llvm.Linkage.internal
    for function in module.functions:  # a call would pass some five hundred parameters by memory
        if not function.is_declaration and function.name not in programs:
            function.add_function_attribute("alwaysinline")
    retarget.optimise(module, machine)
    missing = [item.name for item in module.functions if item.is_declaration and not item.name.startswith("llvm.")]
    if missing or re.search(r"\bfrem\b", str(module)):
        raise RuntimeError(f"kernels for CUDA: expected no functions of libraries, got {', '.join(missing) or 'fmod'}")
    return machine.emit_assembly(module)


def _entered(name: str, kernel: Any, arguments: tuple[Any, ...], machine: Any) -> Any:
    """Return the module of a program: its kernel with all that it calls, and its entry."""
    for kind in _records(arguments):
        if unaligned_fields(kind):
            raise RuntimeError(f"kernels for CUDA: expected aligned fields, got {unaligned_fields(kind)} of {kind}")
    widened = partial(_NARROW.sub, lambda access: f"{access[1]}{_BYTES.get(access[2], 8)}")
    return retarget.lowered(kernel, (*arguments, 0), machine, partial(_entry, name), widened)


def _records(arguments: Any) -> Iterator[np.dtype]:
    for each in arguments:
        if isinstance(each, tuple):
            yield from _records(each)
        elif each is not None:
            yield each.dtype


def unaligned_fields(record: np.dtype) -> list[str]:
    """Return the fields of a record, at any depth, that do not lie at multiples of their size in an array of it."""
    found = []
    for name, (kind, offset, *_) in (record.fields or {}).items():
        if kind.fields:
            found += [f"{name}.{inner}" for inner in unaligned_fields(kind)]
        size = max((part[0].alignment for part in kind.fields.values()), default=1) if kind.fields else kind.alignment
        if offset % size or record.itemsize % size:
            found.append(name)
    return found


def _entry(name: str, symbol: str, kinds: Sequence[str]) -> str:
    """Return the LLVM code of an entry: it reads the parameters of its kernel and adds the number of the thread."""
    slots = kinds[2:-1]
    reading = "\n".join(
        f"  %p{slot} = getelementptr i8, ptr %block, i64 {8 * slot}\n  %v{slot} = load {kind}, ptr %p{slot}, align 8"
        for slot, kind in enumerate(slots)
    )
    given = [f"{kind} %v{slot}" for slot, kind in enumerate(slots)]
    return f"""
declare i32 @{symbol}({", ".join(kinds)})
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @{name}(ptr byval([{len(slots)} x i64]) align 8 %block, i64 %count) {{
  %result = alloca ptr
  %error = alloca ptr
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %wide = zext i32 %ctaid to i64
  %each = zext i32 %ntid to i64
  %own = zext i32 %tid to i64
  %first = mul i64 %wide, %each
  %index = add i64 %first, %own
  %runs = icmp slt i64 %index, %count
  br i1 %runs, label %run, label %done
run:
{reading}
  %status = call i32 @{symbol}({", ".join([f"{kinds[0]} %result", f"{kinds[1]} %error", *given, "i64 %index"])})
  br label %done
done:
  ret void
}}
"""


def block_of(arguments: tuple[Any, ...]) -> tuple[np.ndarray, dict[Any, int]]:
    """Return the block, (slots,) int64, of the arguments of a program, and the slot of the address of each array.

    Arrays are anything with ``address``, ``itemsize`` and ``shape``, C-contiguous; None takes one slot. All are in
    nested tuples.
    """
    slots: list[int] = []
    places: dict[Any, int] = {}

    def add(value: Any) -> None:
        if isinstance(value, tuple):
            for part in value:
                add(part)
        elif value is None:
            slots.append(0)
        else:
            strides: list[int] = []
            size = int(value.itemsize)
            for length in reversed(value.shape):
                strides.insert(0, size)
                size *= length
            places[value] = len(slots) + 4
            items = size // int(value.itemsize)
            slots.extend((0, 0, items, value.itemsize, value.address if items else 0, *value.shape, *strides))

    add(arguments)
    return np.array(slots, np.int64), places


def kept_ptx(name: str, kernel: Any, arguments: tuple[Any, ...]) -> str:
    """Return the PTX of one program, as it came with the package or was kept by the first process that asked for it."""
    known = identity(kernel.py_func) if hasattr(kernel, "py_func") else None
    if known is None:
        return compile_ptx({name: (kernel, arguments)})
    files = CodeFiles(f"{name}-{short_digest(known)}.ptx")
    own = source_digest(__name__, retarget.__name__)
    key = *(str(type_of(argument)) for argument in arguments), llvm.llvm_version_info, own
    kept = files.load(key)
    if kept is None:
        kept = compile_ptx({name: (kernel, arguments)})
        files.save(key, kept)
    return str(kept)
