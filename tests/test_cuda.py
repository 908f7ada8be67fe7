"""The kernels compile for CUDA without a GPU, and nothing in the code would change a bit of the results."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

pytest.importorskip("numba_cuda", reason="needs the extra cuda: make cuda")

from profiling.checks.cuda_programs import arguments
from profiling.checks.cuda_ptx import Findings, compile_llvm, compile_ptx, find, opcodes
from profiling.checks.cuda_run import mapped, parameters

CLEAN = Findings(fused=0, unrounded=0, approximate=0, calls=0, external=0)


@pytest.fixture(scope="module")
def play() -> list[str]:
    return compile_llvm("play")


def test_a_played_frame_rounds_every_operation_once(play):
    ptx = compile_ptx(play)
    assert ".visible .entry" in ptx
    assert ".target sm_80" in ptx
    assert find(ptx) == CLEAN
    counts = opcodes(ptx)
    for opcode in ("add.rn.f64", "sub.rn.f64", "mul.rn.f64", "div.rn.f64", "sqrt.rn.f64"):
        assert counts[opcode] > 100


def test_a_launch_passes_as_many_parameters_as_the_code_takes(play):
    def on_gpu(array):
        interface = {"data": (0, False)}
        described = {name: getattr(array, name) for name in ("size", "dtype", "shape", "strides")}
        return SimpleNamespace(**described, __cuda_array_interface__=interface)

    passed = list(parameters(mapped(arguments("play"), on_gpu)))
    assert len(passed) == len(re.findall(r"^\s*\.param \.u64 ", compile_ptx(play), re.MULTILINE))


def test_the_default_of_cuda_would_fuse(play):
    findings = find(compile_ptx(play, fuse=True))
    assert findings.fused > 100
    assert findings.unrounded > 100


def test_copies_and_hashes_of_worlds_hold_nothing_else():  # the command checks the step of an environment as well
    assert find(compile_ptx(compile_llvm("branch"))) == CLEAN


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("\tfma.rn.f64 \t%fd3, %fd1, %fd2, %fd0;", "fused"),
        ("\t@%p1 mad.rn.f32 %f1, %f2, %f3, %f4;", "fused"),
        ("\tmul.f64 \t%fd3, %fd1, %fd2;", "unrounded"),
        ("\t@!%p12 add.ftz.f32 %f1, %f2, %f3;", "unrounded"),
        ("\tsub.f16x2 %r1, %r2, %r3;", "unrounded"),
        ("\tdiv.approx.f32 %f1, %f2, %f3;", "approximate"),
        ("\tsqrt.rn.ftz.f32 %f1, %f2;", "approximate"),
        ("\tcall.uni (retval0), sin, (param0);", "calls"),
        ("\tcall (retval0), %rd1, (param0), prototype_0;", "calls"),
        (".extern .func (.param .b32 retval0) vprintf", "external"),
    ],
)
def test_what_changes_results_is_found(line, field):
    assert getattr(find(line + "\n"), field) == 1


@pytest.mark.parametrize(
    "line",
    [
        "\tmul.rn.f64 \t%fd3, %fd1, %fd2;",
        "\tmad.lo.s32 %r1, %r2, %r3, %r4;",
        "\tadd.s64 \t%rd3, %rd1, %rd2;",
        "\tsqrt.rn.f64 %fd1, %fd2;",
        "\trcp.rn.f64 %fd1, %fd2;",
        "\tcvt.rn.f64.s32 %fd1, %r1;",
        ".visible .entry play(",
        "$L__BB0_1:",
    ],
)
def test_what_does_not_is_not(line):
    assert find(line + "\n") == CLEAN
