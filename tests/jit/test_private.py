"""A Numba that has renamed a private part: the same results, with a line on stderr about what is slower now."""

import pytest
from numba import config

from ..processes import run_copy

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")

HIDE = '''
import builtins
import inspect
import sys
import warnings
import numba
import numba.core.caching, numba.core.codegen, numba.core.compiler, numba.core.cpu, numba.core.registry

numba.__version__ = "0.999"  # not tested, so tried
warnings.simplefilter("ignore")


def is_ours(depth):
    return sys._getframe(depth + 1).f_globals.get("__name__", "").startswith("nclone_env.jit")


def hide_import(module, name):
    """Let imports of a name fail in this package alone, as Numba itself would have been adapted."""
    real = builtins.__import__

    def replaced(asked, namespace=None, local=None, names=(), level=0):
        if (asked, name in (names or ())) == (module, True) and namespace["__name__"].startswith("nclone_env.jit"):
            raise ImportError(f"cannot import name {name!r} from {module!r}")
        return real(asked, namespace, local, names, level)

    builtins.__import__ = replaced


class Hidden:
    """An attribute of a class that this package does not find."""

    def __init__(self, owner, name):
        self.real, self.name = inspect.getattr_static(owner, name, None), name

    def __get__(self, instance, owner):
        if is_ours(1):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        if self.real is None:
            return instance.__dict__[self.name]
        return self.real.__get__(instance, owner)

    def __set__(self, instance, value):
        if is_ours(1):
            raise AttributeError(self.name)
        instance.__dict__[self.name] = value


def hide_option(name):
    """Let Numba refuse an option."""
    real = numba.core.options.TargetOptions.parse_as_flags.__func__

    def replaced(cls, flags, options):
        if name in options:
            raise KeyError(f"Unrecognized options: {name}")
        return real(cls, flags, options)

    numba.core.options.TargetOptions.parse_as_flags = classmethod(replaced)


def hide_address(module, function):
    """Let SciPy have no such function."""
    import numba.extending

    def missing(module, function):
        raise ValueError(f"No function {function!r} found in __pyx_capi__ of {module!r}")

    numba.extending.get_cython_function_address = missing
'''
USE = """
import numpy as np
from nclone_env import jit
from nclone_env.jit import address_of, call_at, copy_bytes, kernel, local_f64


@kernel
def part(values, index):
    return values[index] * 2.0


@kernel
def total(values, out):
    sums = local_f64(2)
    for index in range(len(values)):
        sums[1] += part(values, index)
    out[0] = sums[0] + sums[1]


@kernel
def by_address(address, values, out):
    call_at(address, (values, out))


values, out = np.arange(10.0), np.zeros(1)
total(values, out)
results = [out[0]]
by_address(address_of(total, values, out), 2.0 * values, out)
results.append(out[0])
from nclone_env.jit.products import add_multiply
product = np.ones((2, 2), np.float32)
add_multiply(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32), product)
print(*results, *product.ravel())
"""
SLOW = "kernels take twice as long to compile"
MISSING = {
    "hide_import('numba.core', 'cgutils')": "kernels run as plain Python",
    "hide_option('_nrt')": SLOW,
    "hide_address(None, None)": "matrix products are computed without BLAS",
    **{
        f"owner = numba.core.{owner}; owner.{name} = Hidden(owner, {name!r})": consequence
        for owner, name, consequence in (
            ("compiler.CompileResult", "_reduce", SLOW),
            ("dispatcher.Dispatcher", "_cache", SLOW),
            ("codegen.JITCodeLibrary", "get_pointer_to_function", "kernels contain others that they could call"),
        )
    },
}


def run(folder, hide: str, **variables: str) -> tuple[str, list[str]]:
    """Return what the kernels compute and what is said on stderr, without some part of Numba."""
    (folder / "use.py").write_text(HIDE + hide + USE)
    own = {"NCLONE_ENV_CACHE_DIR": str(folder), "NCLONE_ENV_QUIET": "0", **variables}
    printed, said = run_copy(folder / "use.py", **own)
    return printed, said.splitlines()


RESULTS = "90.0 180.0 4.0 4.0 4.0 4.0\n"


@pytest.mark.parametrize("hide", MISSING)
def test_a_numba_without_a_private_part(tmp_path, hide):
    printed, said = run(tmp_path, hide)
    assert printed == RESULTS
    assert MISSING[hide] in said[0]
    assert said[0].startswith("nclone_env: numba 0.999: ")
    assert len(said) == len({line.partition("(")[0] for line in said}) <= 2


def test_a_numba_with_all_of_them(tmp_path):
    """Negative control."""
    assert run(tmp_path, "") == (RESULTS, [])
    assert run(tmp_path, "", NCLONE_ENV_PLAIN_JIT="1") == (RESULTS, [])
