"""Fast cold compilation: kernels inside others are typed and lowered, but not compiled on their own.

Numba compiles every function that a kernel calls as if Python called it too: it is optimised and gets machine code and
wrappers, and so does each layer around it, which contains it. The few kernels that Python calls consist of some two
hundred others, a dozen layers deep. Here only the outermost is finished; those inside are linked into it as they are
and optimised there, once.

``nclone-env warmup`` with an empty cache takes 93 s of processor time and 17 MB of cache this way, 210 s and 83 MB with
Numba alone (Numba 0.68, one core of an AMD EPYC).

This module subclasses private parts of Numba; where they differ, ``jit.dispatcher`` does without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from llvmlite.binding import Linkage
from numba import types
from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher

from nclone_env.jit.notice import notice


class _InnerLibrary(JITCodeLibrary):
    """The code of a kernel that only other kernels call."""

    def _optimize_final_module(self) -> None:
        """Leave it to the module that this one is linked into."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _OuterLibrary(JITCodeLibrary):
    """The code of a kernel that Python calls, with all kernels inside."""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        super()._optimize_final_module()


class _InnerCompiler(compiler.Compiler):
    def define_pipelines(self) -> list[Any]:
        _use_library(self.state, _InnerLibrary)
        self.state.flags.no_cpython_wrapper = True
        self.state.flags.no_compile = True
        return super().define_pipelines()


class _OuterCompiler(compiler.Compiler):
    def define_pipelines(self) -> list[Any]:
        _use_library(self.state, _OuterLibrary)
        self.state.flags.forceinline = False  # it would be inlined into its wrapper: twice the code
        return super().define_pipelines()


def _use_library(state: Any, library: type[JITCodeLibrary]) -> None:
    state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
    state.library.enable_object_caching()
    state.flags.no_cfunc_wrapper = True


class _InnerDispatcher(CPUDispatcher):
    """Compiles a kernel as a part of others, once for constants and variables: the optimiser knows the constants."""

    def get_call_template(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> tuple[Any, ...]:
        return super().get_call_template(
            tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in kws.items()}
        )

    def add_overload(self, result: Any) -> None:
        """Keep a compilation under a key of its own: there is no entry point for Python that could be the key."""
        key = object()
        self.targetctx.insert_user_function(key, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result._replace(entry_point=key)
        notice.advance()

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(f"{self.py_func.__name__}: only other kernels can call .inner; call the kernel itself")


class KernelDispatcher(CPUDispatcher):
    """Compiles a kernel for Python as any function, and apart from that as a part of other kernels."""

    def __init__(self, py_func: Callable[..., Any], targetoptions: dict[str, Any]):
        super().__init__(py_func, targetoptions=targetoptions, pipeline_class=_OuterCompiler)
        self.inner = _InnerDispatcher(py_func, targetoptions=targetoptions, pipeline_class=_InnerCompiler)

    def compile(self, sig: Any) -> Any:
        """Return the compiled code for a signature."""
        is_done = False
        try:
            code = super().compile(sig)
            is_done = True
        finally:
            notice.end(is_done)
        return code

    @property
    def _numba_type_(self) -> types.Dispatcher:
        return types.Dispatcher(self.inner)
