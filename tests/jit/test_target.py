"""What kernels are compiled for: a baseline that machines have in common, and nothing else of the process."""

import llvmlite.binding
import numba
import pytest
from numba import config

from nclone_env.jit import kernel, target
from nclone_env.jit.dispatcher import IS_PLAIN
from nclone_env.jit.target import X86_BASELINES, baseline_of

LINUX = "x86_64-unknown-linux-gnu"
V2, V3 = X86_BASELINES["x86-64-v2"], X86_BASELINES["x86-64-v3"]


@pytest.mark.parametrize(
    ("triple", "features", "baseline"),
    [
        (LINUX, V3, "x86-64-v3"),
        (LINUX, V3 | {"avx512f"}, "x86-64-v3"),
        (LINUX, V2, "x86-64-v2"),
        *((LINUX, V3 - {feature}, "x86-64-v2") for feature in sorted(V3 - V2)),
        *((LINUX, V3 - {feature}, None) for feature in sorted(V2)),
        (LINUX, frozenset(), None),
        ("x86_64-apple-darwin23.1.0", V3, "x86-64-v3"),
        ("aarch64-unknown-linux-gnu", frozenset({"neon"}), "generic"),
        ("arm64-apple-darwin23.1.0", frozenset(), "generic"),
        ("powerpc64le-unknown-linux-gnu", V3, None),
    ],
)
def test_the_best_baseline_that_a_processor_has(triple, features, baseline):
    assert baseline_of(triple, features) == baseline


@pytest.fixture
def chosen(monkeypatch):
    """Return what is compiled for with a host and Numba's settings."""

    def choose(features="", name=None, own=None):
        monkeypatch.setattr(target.llvmlite.binding, "get_process_triple", lambda: LINUX)
        monkeypatch.setattr(target.llvmlite.binding, "get_host_cpu_name", lambda: "thishost")
        monkeypatch.setattr(target, "_host_features", lambda: features)
        monkeypatch.setattr(config, "CPU_NAME", name)
        monkeypatch.setattr(config, "CPU_FEATURES", own)
        return target.target.__wrapped__()[1:3]

    return choose


def test_machines_with_a_baseline_share_a_target(chosen):
    flags = [f"+{feature}" for feature in V3]
    assert chosen(",".join(flags)) == chosen(",".join(["+avx512f", *flags, "-sse4a"])) == ("x86-64-v3", "")


@pytest.mark.parametrize("version", ["23.1.0", "24.0.0"])
def test_the_version_of_the_system_does_not_count(monkeypatch, version):
    monkeypatch.setattr(target.llvmlite.binding, "get_process_triple", lambda: f"arm64-apple-darwin{version}")
    assert target.target.__wrapped__().triple == "arm64-apple-darwin"


def test_a_processor_without_one_gets_code_of_its_own(chosen):
    assert chosen("+sse3,-avx2") == ("thishost", "+sse3,-avx2")


def test_what_numba_was_told_is_done(chosen):
    flags = ",".join(f"+{feature}" for feature in V3)
    assert chosen(flags, "znver4") == ("znver4", flags)
    assert chosen(flags, "x86-64-v2", "") == ("x86-64-v2", "")
    assert chosen(flags, None, "+sse3") == ("thishost", "+sse3")


@pytest.mark.skipif(bool(config.DISABLE_JIT) or IS_PLAIN, reason="needs the fast way to compile")
def test_other_functions_of_the_process_are_compiled_as_before():
    def double(value):
        return value + value

    ours, numbas = kernel(double), numba.njit(double)
    assert ours(2) == numbas(2) == 4
    (own,), (other,) = ours.overloads.values(), numbas.overloads.values()
    assert own.library.codegen.magic_tuple()[1:] == target.target()[1:3]
    assert other.library.codegen.magic_tuple()[1] == (config.CPU_NAME or llvmlite.binding.get_host_cpu_name())
    assert own.library.codegen is not other.library.codegen


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")
def test_numba_code_calls_kernels():
    @kernel
    def double(value):
        return value + value

    @numba.njit
    def quadruple(value):
        return double(double(value))

    assert quadruple(3) == 12
