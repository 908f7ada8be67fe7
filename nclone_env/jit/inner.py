"""Fast cold compilation: kernels inside others are typed and lowered, but not compiled on their own.

Numba compiles every function that a kernel calls as if Python called it too: it is optimised and gets machine code and
wrappers, and so does each layer around it, which contains it. The few kernels that Python calls consist of some two
hundred others, a dozen layers deep. Here only the outermost is finished; those inside are linked into it as they are
and optimised there, once.

Every kernel of the package took 93 s of processor time and 17 MB of cache this way, 210 s and 83 MB with Numba alone
(Numba 0.68, one core of an AMD EPYC, when the package was smaller).

Two thirds of that time is typing and lowering, done for each kernel by itself. So the result is kept on disk
(``jit.parts``), for other kernels with the same parts and for the next version of the sources.

Machine code is made for ``target.target()``, by a code generator beside Numba's own, which serves all other functions.
For other machines a kernel is compiled once more, as a part, and left as it was lowered (``jit.retarget``).

This module subclasses private parts of Numba; where they differ, ``jit.dispatcher`` does without it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import lru_cache
from pickle import PicklingError
from typing import Any, NamedTuple, NoReturn

from llvmlite.binding import Linkage, address_of_symbol, parse_bitcode
from numba import types
from numba.core import caching, cgutils, compiler
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.funcdesc import default_mangler
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys

from nclone_env.jit.exact import ExactContext
from nclone_env.jit.notice import notice
from nclone_env.jit.parts import Part, part_name, read_part, write_part
from nclone_env.jit.target import target


class MachineCode(NamedTuple):
    """What is kept of a compiled kernel."""

    name: str
    code: bytes
    """An object file."""
    defined: set[str]
    """Names of the functions in it."""
    used: set[str]
    """Names of the functions outside that it calls. LLVM ends the process if one of them is missing."""


class _KernelLibrary(JITCodeLibrary):
    """The code of a kernel, which is linked with that of the kernels it calls only where it is finished."""

    _shared_module: Any

    def __init__(self, codegen: JITCPUCodegen, name: str):
        super().__init__(codegen, name)
        self.callees: dict[_InnerLibrary, None] = {}  # in the order of their first calls

    def add_linking_library(self, library: Any) -> None:
        if isinstance(library, _InnerLibrary):
            library._ensure_finalized()
            self.callees[library] = None
        else:
            super().add_linking_library(library)

    def _link_callees(self, module: Any) -> None:
        """Link all that is called, at any depth, into a module, each once."""
        linked: set[_InnerLibrary] = set()
        pending = list(self.callees)
        while pending:
            library = pending.pop()
            if library not in linked:
                linked.add(library)
                module.link_in(library._final_module, preserve=True)
                pending += library.callees


class _InnerLibrary(_KernelLibrary):
    """The code of a kernel that only other kernels call."""

    part: str | None = None
    """The name under which it is kept, None if it is not."""

    @classmethod
    def of(cls, name: str, part: Part, callees: Iterable[_InnerLibrary]) -> _InnerLibrary:
        """Return the library that was kept under a name."""
        library = cls(_codegen(), name)
        library.part = name
        library.callees = dict.fromkeys(callees)
        library._final_module = parse_bitcode(part.bitcode)
        library._finalized = True
        return library

    def _optimize_final_module(self) -> None:
        """Leave it to the module that this one is linked into, which may be so several times."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = Linkage.linkonce_odr

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the module with all callees, for Numba's own libraries."""
        self._ensure_finalized()
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            self._link_callees(self._shared_module)
        return self._shared_module


class _LoweredLibrary(_InnerLibrary):
    """The code of a kernel as it was lowered: places in arrays that optimisation computes depend on the machine.

    It is not kept as a part: before optimisation it has addresses of this process, in what is never run.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to :mod:`jit.retarget`, which knows the machine."""


class _OuterLibrary(_KernelLibrary):
    """The code of a kernel that Python calls, with all kernels inside."""

    def _optimize_final_module(self) -> None:
        self._link_callees(self._final_module)
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        super()._optimize_final_module()

    def serialize_using_object_code(self) -> MachineCode:
        """Return the machine code without bitcode: nothing is linked to it, so it is loaded in half the time."""
        defined: set[str] = set()
        used: set[str] = set()
        for function in self._final_module.functions:
            (used if function.is_declaration else defined).add(function.name)
        used = {name for name in used if not name.startswith("llvm.")}
        return MachineCode(self.name, self._get_compiled_object(), defined, used)

    @classmethod
    def _unserialize(cls, codegen: JITCPUCodegen, state: MachineCode) -> JITCodeLibrary:
        library = codegen.create_library(state.name)
        library.enable_object_caching()
        library._set_compiled_object(state.code)
        library._finalize_final_module()
        codegen._engine._defined_symbols |= state.defined
        return library


class _Codegen(JITCPUCodegen):
    """Generates code for the target of this package."""

    _library_class = _OuterLibrary

    def _get_host_cpu_name(self) -> str:
        return target().processor

    def _get_host_cpu_features(self) -> str:
        return target().features


@lru_cache(maxsize=1)
@global_compiler_lock
def _codegen() -> _Codegen:
    return _Codegen("nclone_env")


def loading_context(context: Any, code: MachineCode) -> Any:
    """Return Numba's context with the generator that loads machine code; None if a function that it uses is missing.

    Numba imports the implementations of all functions that it knows before it loads code, which takes a third of the
    time to the first step. That is needed to compile, and for code that calls one of the few in C among them.
    """
    rtsys.initialize(context)
    if not _are_known(code.used):
        context.refresh()
    return context.subtarget(_internal_codegen=_codegen()) if _are_known(code.used) else None


def _are_known(functions: set[str]) -> bool:
    return all(address_of_symbol(name) for name in functions)


class _KernelContext(ExactContext):
    """Sets the mode, and no index counts from the end: that costs a comparison each, a seventh of a frame."""

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        """Return Numba's implementation of a function; those of items of arrays get unsigned indices."""
        key = fn.get_impl_key(sig) if isinstance(fn, types.Callable) else fn
        if key not in (operator.getitem, operator.setitem) or not isinstance(sig.args[0], types.Buffer):
            return super().get_function(fn, sig, _firstcall)
        array, index, *value = sig.args
        unsigned = _unsigned(index)
        implementation = super().get_function(key, sig.replace(args=(array, unsigned, *value)), _firstcall)

        def with_unsigned_index(builder: Any, args: Any, loc: Any = None) -> Any:
            return implementation(
                builder, (args[0], self._as_unsigned(builder, index, unsigned, args[1]), *args[2:]), loc
            )

        return with_unsigned_index

    def _as_unsigned(self, builder: Any, kind: types.Type, unsigned: types.Type, index: Any) -> Any:
        """Return an index with the type of ``_unsigned``; the bits stay the same but for the sign's extension."""
        if kind == unsigned:
            return index
        if not isinstance(kind, types.BaseTuple):
            return self.cast(builder, index, kind, types.intp)
        items = zip(kind, unsigned, cgutils.unpack_tuple(builder, index, len(kind)))
        return self.make_tuple(builder, unsigned, [self._as_unsigned(builder, *item) for item in items])


def _unsigned(index: types.Type) -> types.Type:
    """Return the type of an index, or of a tuple of them, with ``uintp`` instead of signed numbers of variables."""
    if isinstance(index, types.BaseTuple):
        return types.BaseTuple.from_types(tuple(map(_unsigned, index)))
    is_signed = isinstance(index, types.Integer) and not isinstance(index, types.Literal) and index.signed
    return types.uintp if is_signed else index


class _InnerCompiler(compiler.Compiler):
    library: type[_InnerLibrary] = _InnerLibrary

    def define_pipelines(self) -> list[Any]:
        _use_library(self.state, self.library)
        if self.library is _InnerLibrary:
            self.state.library.part = _identify(self.state, "")
        self.state.flags.no_cpython_wrapper = True
        self.state.flags.no_compile = True
        return super().define_pipelines()


class _LoweringCompiler(_InnerCompiler):
    library = _LoweredLibrary


class _OuterCompiler(compiler.Compiler):
    def define_pipelines(self) -> list[Any]:
        _use_library(self.state, _OuterLibrary)
        _identify(self.state, "outer")
        self.state.flags.forceinline = False  # it would be inlined into its wrapper: twice the code
        return super().define_pipelines()


def _use_library(state: Any, library: type[JITCodeLibrary]) -> None:
    state.library = library(_codegen(), state.func_id.func_qualname)
    state.library.enable_object_caching()
    state.flags.no_cfunc_wrapper = True
    state.targetctx = state.targetctx.subtarget(mangler=_symbol)  # a copy
    state.targetctx.__class__ = _KernelContext


def _identify(state: Any, role: str) -> str | None:
    """Give a compilation the identity that is part of its symbol; return its name as a part, None if it has none.

    Numba counts the functions of a process: code that two processes have compiled for other types of arguments would
    have equal symbols, and once both are loaded, an address is that of the last.
    """
    part = part_name(state.func_id.func, state.args, state.flags)
    if part:
        state.func_id.unique_id = part.partition("-")[2] + role
    return part


def _symbol(name: str, types: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    """Return the symbol of a compilation, which its identity makes unique.

    Numba's contains the types of the arguments: a thousand characters in each call, and numbers that differ between
    processes.
    """
    return default_mangler(name, (), uid=uid)


class _PartCache(caching.NullCache):
    """Keeps a kernel as a part of others."""

    def __init__(self, dispatcher: CPUDispatcher):
        self._dispatcher = dispatcher

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was kept for the types of the arguments; None if the kernel is to be typed and lowered."""
        flags = compiler.Flags()
        self._dispatcher.targetdescr.options.parse_as_flags(flags, self._dispatcher.targetoptions)
        name = part_name(self._dispatcher.py_func, sig, flags)
        kept = None if name is None else _kept_part(name)
        if kept is None:
            return None
        library, part = kept
        description, signature = part.described_for(sig)
        return compiler.compile_result(
            signature=signature,
            fndesc=description,
            library=library,
            entry_point=object(),
            target_context=target_context,
        )

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what can be kept: code that refers to no address, of kernels that are kept themselves."""
        library = data.library
        callees = [callee.part for callee in library.callees]
        if library.part is None or None in callees or library.has_dynamic_globals or data.reload_init:
            library.part = None
            return
        data.fndesc.typemap = data.fndesc.calltypes = None
        try:
            part = Part.of(library._final_module.as_bitcode(), callees, (data.fndesc, data.signature), sig)
        except (PicklingError, TypeError, AttributeError):  # a type that cannot be pickled
            library.part = None
            return
        _kept[library.part] = library, part
        write_part(library.part, part)


_kept: dict[str, tuple[_InnerLibrary, Part]] = {}


def _kept_part(name: str) -> tuple[_InnerLibrary, Part] | None:
    """Return the library of a part, with those that it calls, and the part; None if one of them is missing."""
    if name not in _kept:
        part = read_part(name)
        if part is None:
            return None
        callees = [_kept_part(callee) for callee in part.callees]
        known = [callee[0] for callee in callees if callee]
        if len(known) < len(callees):
            return None
        _kept[name] = _InnerLibrary.of(name, part, known), part
    return _kept[name]


class _InnerDispatcher(CPUDispatcher):
    """Compiles a kernel as a part of others, once for constants and variables: the optimiser knows the constants."""

    def get_call_template(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> tuple[Any, ...]:
        return super().get_call_template(
            tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in kws.items()}
        )

    def add_overload(self, result: Any) -> None:
        """Keep a compilation under a key of its own: there is no entry point for Python that could be the key."""
        if result.entry_point is None:  # not from the cache
            result = result._replace(entry_point=object())
            self.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result
        notice.advance()

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(f"{self.py_func.__name__}: only other kernels can call .inner; call the kernel itself")


_is_lowering: ContextVar[bool] = ContextVar("lowering", default=False)


class KernelDispatcher(CPUDispatcher):
    """Compiles a kernel for Python as any function, and apart from that as a part of other kernels."""

    def __init__(self, py_func: Callable[..., Any], targetoptions: dict[str, Any]):
        super().__init__(py_func, targetoptions=targetoptions, pipeline_class=_OuterCompiler)
        self.inner = _InnerDispatcher(py_func, targetoptions=targetoptions, pipeline_class=_InnerCompiler)
        self.inner._cache = _PartCache(self.inner)
        self._lowered: _InnerDispatcher | None = None

    def compile(self, sig: Any) -> Any:
        """Return the compiled code for a signature."""
        is_done = False
        try:
            code = super().compile(sig)
            is_done = True
        finally:
            notice.end(is_done)
        return code

    @global_compiler_lock
    def lower(self, signature: tuple[types.Type, ...]) -> tuple[Any, str]:
        """Return the code for types of arguments as it was lowered, with all kernels inside, and its symbol."""
        mark = _is_lowering.set(True)
        try:
            part = self._part()
            part.compile(signature)
        finally:
            _is_lowering.reset(mark)
        result = part.overloads[signature]
        return result.library._get_module_for_linking().clone(), result.fndesc.llvm_func_name

    def _part(self) -> _InnerDispatcher:
        """Return what compiles the kernel as a part of the one that is being compiled."""
        if not _is_lowering.get():
            return self.inner
        if self._lowered is None:
            options = self.targetoptions
            self._lowered = _InnerDispatcher(self.py_func, targetoptions=options, pipeline_class=_LoweringCompiler)
        return self._lowered

    @property
    def _numba_type_(self) -> types.Dispatcher:
        return types.Dispatcher(self._part())
