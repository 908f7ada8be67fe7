"""Kernels for another machine: code that the LLVM of Numba compiles for any of its targets, WebAssembly and ARM too.

Numba lowers a kernel as it does for the processor at hand, with numbers of 64 bits for sizes and strides. The code is
taken before any optimisation, as the places of arrays' fields become numbers there, which depend on the size of a
pointer; it gets the layout of the target and is optimised and compiled for that. So a kernel has one source, and every
operation of it rounds as here: nothing is fused, and no function of a library is called.

Each export takes the addresses of a block and of a result. The block holds a slot of eight bytes for every parameter: a
number; or for an array seven or more, of which the first two are zero, then the number of its items, the bytes of one,
its address, its shape, and its strides in bytes. The export returns 0, or the status of an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import llvmlite.binding as llvm

from nclone_env.jit.decorators import type_of

WASM, ARM = "wasm32-unknown-unknown", "aarch64-unknown-linux-gnu"
FEATURES = {WASM: "+bulk-memory,+bulk-memory-opt,+nontrapping-fptoint,+sign-ext,+mutable-globals"}
"""What code for a target may use beyond its baseline."""
ROOT = """
declare double @llvm.sqrt.f64(double)
define linkonce_odr double @sqrt(double %value) alwaysinline {
  %root = call double @llvm.sqrt.f64(double %value)
  ret double %root
}
"""
"""The only function of a library that kernels call is an instruction of all targets."""


Exports = Mapping[str, tuple[Any, tuple[Any, ...]]]
"""A kernel for each name, and arguments of the types that it is compiled for."""


def object_file(exports: Exports, triple: str) -> bytes:
    """Return an object file with the exports, position-independent where that differs."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    relocation = "static" if triple == WASM else "pic"
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(
        cpu="generic", features=FEATURES.get(triple, ""), opt=3, reloc=relocation, codemodel="default"
    )
    module = module_of("", machine)
    for name, (kernel, arguments) in exports.items():
        module.link_in(lowered(kernel, arguments, machine, partial(_export, name)))
    module.link_in(module_of(ROOT, machine))
    for item in [*module.functions, *module.global_variables]:
        if not item.is_declaration and not item.name.startswith("llvm."):
            item.linkage = llvm.Linkage.internal
    for name in exports:
        module.get_function(name).linkage = llvm.Linkage.external
    optimise(module, machine)
    missing = [item.name for item in module.functions if item.is_declaration and not item.name.startswith("llvm.")]
    if missing:
        raise RuntimeError(f"kernels for {triple}: expected no functions of libraries, got {', '.join(missing)}")
    return bytes(machine.emit_object(module))


def module_of(text: str, machine: Any) -> Any:
    """Return the module of a text of LLVM, for a machine."""
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return module


def lowered(
    kernel: Any,
    arguments: tuple[Any, ...],
    machine: Any,
    caller: Callable[[str, Sequence[str]], str],
    changed: Callable[[str], str] = str,
) -> Any:
    """Return the module of a kernel with all that it calls, and with a function that calls it.

    Args:
        arguments: of the types that the kernel is compiled for.
        caller: returns the LLVM code of that function from the symbol of the kernel and the types of its parameters, of
            which the first two are by Numba's convention the addresses of the result and of a description of the error.
        changed: returns the LLVM code of the kernel as it should be.
    """
    if not hasattr(kernel, "lower"):
        raise RuntimeError("kernels for other machines: unset NUMBA_DISABLE_JIT and NCLONE_ENV_PLAIN_JIT")
    module, symbol = kernel.lower(tuple(map(type_of, arguments)))
    module = module_of(changed(str(module)), machine)
    module.get_function(symbol).linkage = llvm.Linkage.linkonce_odr
    kinds = [str(argument.type) for argument in module.get_function(symbol).arguments]
    module.link_in(module_of(caller(_quoted(symbol), kinds), machine), preserve=True)
    return module


def _export(name: str, symbol: str, kinds: Sequence[str]) -> str:
    """Return the LLVM code of an export that reads the parameters of a kernel from slots."""
    slots = range(len(kinds) - 2)
    reading = "\n".join(
        f"  %p{slot} = getelementptr i8, ptr %block, i64 {8 * slot}\n  %v{slot} = load {kind}, ptr %p{slot}"
        for slot, kind in zip(slots, kinds[2:])
    )
    given = [f"{kind} %v{slot}" for slot, kind in zip(slots, kinds[2:])]
    return f"""
declare i32 @{symbol}({", ".join(kinds)})
define i32 @{name}(ptr %block, ptr %result) {{
  %error = alloca ptr
{reading}
  %status = call i32 @{symbol}({", ".join([f"{kinds[0]} %result", f"{kinds[1]} %error", *given])})
  ret i32 %status
}}
"""


def _quoted(symbol: str) -> str:
    return f'"{symbol}"' if re.search(r"[^\w.$]", symbol) else symbol


def optimise(module: Any, machine: Any) -> None:
    """Optimise without vectors, which the baseline of WebAssembly does not have."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    module.verify()
