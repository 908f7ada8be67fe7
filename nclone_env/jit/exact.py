"""The floating-point mode of kernels: that of a new process, whatever a library has set in the calling thread.

The mode belongs to the thread. Fast-math libraries make all numbers below 2.2e-308 zero when they are loaded, and
``torch.set_flush_denormal`` does when it is called; others set another rounding. A ninja that stands still would then
have other bits after a minute. So compiled code sets the mode where Python enters it, and restores it where it returns.
That takes a few nanoseconds: the mode is read in each call, but only written if it differs.

This is done outside of the function that computes, which is never inlined there: compilers do not know that arithmetic
depends on the mode, and might move it.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.callconv import CPUCallConv
from numba.core.compiler import Compiler
from numba.core.cpu import CPUContext

_WORD, _VOID = ir.IntType(64), ir.VoidType()
_MXCSR, _MXCSR_FLAGS = 0x1F80, 0x3F
"""Of x86: the value in a new process, and the bits that record exceptions: they are no part of the mode."""


def enter(builder: Any) -> Any:
    """Build code that sets the mode; return the one before, a word of 64 bits, for :func:`leave`."""
    machine = _machine(builder)
    before = _read(builder, machine)
    with builder.if_then(_differs(builder, machine, before), likely=False):
        _write(builder, machine, ir.Constant(_WORD, _MXCSR if machine == "x86_64" else 0))
    return before


def leave(builder: Any, before: Any) -> None:
    """Build code that restores the mode that :func:`enter` has found."""
    machine = _machine(builder)
    with builder.if_then(_differs(builder, machine, before), likely=False):
        _write(builder, machine, before)


def _machine(builder: Any) -> str:
    """Return the architecture of the code being built; the mode of others than two is left alone."""
    name = str(builder.module.triple).partition("-")[0]
    return {"x86_64": name, "aarch64": name, "arm64": "aarch64"}.get(name, "")


def _differs(builder: Any, machine: str, mode: Any) -> Any:
    if machine == "x86_64":
        mode = builder.and_(mode, ir.Constant(_WORD, ~_MXCSR_FLAGS & 0xFFFF))
    return builder.icmp_unsigned("!=", mode, ir.Constant(_WORD, _MXCSR if machine == "x86_64" else 0))


def _read(builder: Any, machine: str) -> Any:
    if machine == "x86_64":
        place = cgutils.alloca_once(builder, ir.IntType(32))
        _call(builder, "x86.sse.stmxcsr", _VOID, _as_bytes(builder, place))
        return builder.zext(builder.load(place), _WORD)
    return _call(builder, "aarch64.get.fpcr", _WORD) if machine == "aarch64" else ir.Constant(_WORD, 0)


def _write(builder: Any, machine: str, mode: Any) -> None:
    if machine == "x86_64":
        place = cgutils.alloca_once(builder, ir.IntType(32))
        builder.store(builder.trunc(mode, ir.IntType(32)), place)
        _call(builder, "x86.sse.ldmxcsr", _VOID, _as_bytes(builder, place))
    elif machine == "aarch64":
        _call(builder, "aarch64.set.fpcr", _VOID, mode)


def _as_bytes(builder: Any, place: Any) -> Any:
    return builder.bitcast(place, ir.IntType(8).as_pointer())


def _call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Build a call of an intrinsic of LLVM: inline assembly would need a parser, which is not there on all systems."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}"), arguments)


class _Calls(CPUCallConv):
    """Calls from Python."""

    def call_function(self, builder: Any, *arguments: Any, **options: Any) -> Any:
        """Call a function in the mode of a new process."""
        before = enter(builder)
        results = super().call_function(builder, *arguments, **options)
        leave(builder, before)
        return results


class _OutsideContext(CPUContext):
    """Numba's context, for the functions around the compiled ones."""

    @property
    def call_conv(self) -> CPUCallConv:
        """How functions are called."""
        return _Calls(self)


class ExactContext(CPUContext):
    """Numba's context, but what Python calls sets the mode."""

    def create_cpython_wrapper(self, *arguments: Any, **options: Any) -> None:
        """Build the function that Python calls, which converts the arguments and calls the compiled one."""
        _switched(self, _OutsideContext).create_cpython_wrapper(*arguments, **options)


class ExactCompiler(Compiler):
    """Numba's compiler, with the context."""

    def define_pipelines(self) -> Any:
        """Return the passes; called once for each function, before they begin."""
        self.state.targetctx = _switched(self.state.targetctx, ExactContext)
        return super().define_pipelines()


def _switched(context: CPUContext, kind: type[CPUContext]) -> CPUContext:
    """Return a copy of a context that is of another class."""
    copy = context.subtarget()
    copy.__class__ = kind
    return copy
