"""Kernels as PTX, compiled without a GPU: every operation rounds once, and blocks have the slots that entries read."""

import numpy as np
import pytest

from nclone_env.jit import kernel
from nclone_env.jit.cache import CodeFiles
from nclone_env.jit.cuda import block_of, compile_ptx, kept_ptx
from nclone_env.jit.cuda.ptx import unaligned_fields
from profiling.checks.ptx import Findings, find, slots_of

CLEAN = Findings(fused=0, unrounded=0, approximate=0, external=0)
PACKED = np.dtype([("a", "u1"), ("b", "f8")])
SPAN = np.dtype([("first", "i4"), ("size", "i4")])


@kernel
def scaled(arrays, factors, index):
    """Write a x + b, a root and a quotient."""
    values, out = arrays
    value = values[index] * factors[0] + factors[1]
    out[index, 0] = value
    out[index, 1] = np.sqrt(abs(value)) / factors[0] + np.floor(value)


@kernel
def summed(records, index):
    """Write the sum of fields of a record into one of them."""
    records[index]["size"] += records[index]["first"]


ARGUMENTS = ((np.zeros(3), np.zeros((3, 2))), np.zeros(2))


def test_every_operation_rounds_once_and_the_control_is_found():
    plain = compile_ptx({"scaled": (scaled, ARGUMENTS)})
    assert find(plain) == CLEAN
    for opcode in ("mul.rn.f64", "add.rn.f64", "div.rn.f64", "sqrt.rn.f64", "cvt.rmi.f64.f64"):
        assert opcode in plain
    assert find(compile_ptx({"scaled": (scaled, ARGUMENTS)}, fuse=True)).fused > 0


def test_one_module_has_many_programs():
    text = compile_ptx({"scaled": (scaled, ARGUMENTS), "summed": (summed, (np.zeros(2, SPAN),))})
    assert ".target sm_70" in text
    assert slots_of(text) == {"scaled": 7 + 9 + 7, "summed": 7}
    assert "call" not in text


class Array:
    """An array somewhere."""

    def __init__(self, address, shape, itemsize=8):
        self.address, self.shape, self.itemsize = address, shape, itemsize


def test_a_block_has_a_slot_for_every_number_of_an_array():
    flat, square, empty = Array(4096, (3,)), Array(8192, (3, 2)), Array(64, (0, 5), 4)
    block, places = block_of(((flat, square), None, empty))
    assert block.tolist() == [
        *(0, 0, 3, 8, 4096, 3, 8),
        *(0, 0, 6, 8, 8192, 3, 2, 16, 8),
        0,
        *(0, 0, 0, 4, 0, 0, 5, 20, 4),
    ]
    assert {array: block[place] for array, place in places.items()} == {flat: 4096, square: 8192, empty: 0}
    assert len(block_of(((flat, square), flat))[0]) == slots_of(compile_ptx({"s": (scaled, ARGUMENTS)}))["s"]


def test_fields_that_are_not_aligned_are_refused_and_others_read_whole():
    assert unaligned_fields(PACKED) == ["b"]
    assert unaligned_fields(SPAN) == unaligned_fields(np.dtype([("of", SPAN), ("n", "i4")])) == []
    with pytest.raises(RuntimeError, match=r"expected aligned fields, got \['b'\]"):
        compile_ptx({"summed": (summed, (np.zeros(2, PACKED),))})
    text = compile_ptx({"summed": (summed, (np.zeros(2, SPAN),))})
    assert "ld.global.b32" in text
    assert "b8 " not in text.split(".entry")[1].split("\n{")[1]


def test_code_is_kept_for_the_next_process(monkeypatch, tmp_path):
    monkeypatch.setattr(CodeFiles.__init__, "__defaults__", (lambda: tmp_path,))
    first = kept_ptx("scaled", scaled, ARGUMENTS)
    (path,) = tmp_path.iterdir()
    monkeypatch.setattr("nclone_env.jit.cuda.ptx.compile_ptx", lambda *_: "other")
    assert kept_ptx("scaled", scaled, ARGUMENTS) == first
    assert kept_ptx("scaled", scaled, (ARGUMENTS[0], np.zeros(2, np.float32))) == "other"
    path.write_bytes(b"damaged")
    assert kept_ptx("scaled", scaled, ARGUMENTS) == "other"


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
        (".extern .func (.param .b64 r) sin(.param .b64 x);", "external"),
    ],
)
def test_each_finding_is_found(line, field):
    assert getattr(find(line + "\n"), field) == 1
    assert find("\tadd.rn.f64 \t%fd3, %fd1, %fd2;\n\tmad.lo.s64 \t%rd1, %rd2, 8, %rd3;\n") == CLEAN
