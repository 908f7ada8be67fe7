"""Each program of pages still fits the kernels that it calls: it is typed, as parts are, not compiled."""

import numba
import pytest
from numba import config

from nclone_env.gallery.web.programs import exports
from nclone_env.jit.dispatcher import IS_PLAIN

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT) or IS_PLAIN, reason="needs the fast way to compile")
PROGRAMS = exports()


def typed(kernel, given) -> None:
    kernel.inner.compile(tuple(map(numba.typeof, given)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_fit_the_kernels(name):
    typed(*PROGRAMS[name])


def test_a_missing_argument_is_noticed():
    kernel, (_, *rest) = PROGRAMS["play"]
    with pytest.raises((numba.TypingError, TypeError)):
        typed(kernel, rest)
