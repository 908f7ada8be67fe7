"""The processors that kernels are compiled for: a baseline of the architecture, so that code can be moved.

Numba compiles for exactly the processor at hand. Kernels are compiled for the best baseline that it has instead: all
machines with that baseline share a cache, and wheels bring code for it. Only kernels of ``jit.inner`` are compiled so:
they have a code generator of their own, and all other Numba code of the process is compiled as before.

| Baseline | Processors |
|---|---|
| ``x86-64-v3`` | with AVX2 and FMA: Intel since Haswell (2013), AMD since Excavator (2015) |
| ``x86-64-v2`` | with SSE 4.2: Intel since Nehalem (2008), AMD since Bulldozer (2011) |
| ``generic`` | every 64-bit ARM |

Others, and processors that ``NUMBA_CPU_NAME`` or ``NUMBA_CPU_FEATURES`` names, get what Numba would compile for them.
"""

from functools import lru_cache
from typing import NamedTuple

import llvmlite.binding
from numba import config

_V2 = frozenset({"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
X86_BASELINES = {"x86-64-v3": _V3, "x86-64-v2": _V2}
"""The features, in LLVM's names, that a processor needs for each; the best first."""


class CodeTarget(NamedTuple):
    """What code is compiled for, in LLVM's names; code for equal targets can be exchanged."""

    triple: str
    """Architecture and system, without a version of the system."""
    processor: str
    features: str
    """Those beyond the ones that the processor's name implies."""
    vectors: bool
    """Whether Intel's library of vector functions, which Numba uses if it is installed, may be called."""


@lru_cache(maxsize=1)
def target() -> CodeTarget:
    """Return what kernels of this process are compiled for."""
    triple = llvmlite.binding.get_process_triple().rstrip("0123456789.")  # of macOS it ends with the version
    name, features = config.CPU_NAME, config.CPU_FEATURES
    has = _host_features() if features is None else features
    if name is None and features is None:
        baseline = baseline_of(triple, frozenset(part[1:] for part in has.split(",") if part[:1] == "+"))
        if baseline:
            return CodeTarget(triple, baseline, "", _uses_vectors())
    return CodeTarget(triple, name or llvmlite.binding.get_host_cpu_name(), has, _uses_vectors())


def _host_features() -> str:
    """Return the features of the processor at hand as Numba reads them; empty if they are unknown."""
    try:
        features = llvmlite.binding.get_host_cpu_features()
    except RuntimeError:
        return ""
    for name in features:
        features[name] = features[name] and (bool(getattr(config, "ENABLE_AVX", True)) or not name.startswith("avx"))
    return str(features.flatten())


def _uses_vectors() -> bool:
    return bool(getattr(config, "USING_SVML", False))


def baseline_of(triple: str, features: frozenset[str]) -> str | None:
    """Return the best baseline for a processor with these features; None if there is none."""
    architecture = triple.partition("-")[0]
    if architecture in ("aarch64", "arm64"):
        return "generic"
    if architecture != "x86_64":
        return None
    return next((name for name, needed in X86_BASELINES.items() if needed <= features), None)
