"""Kernels on NVIDIA GPUs: compiled by the LLVM of Numba (``ptx``), launched through the driver alone (``driver``)."""

from nclone_env.jit.cuda.driver import DriverError as DriverError
from nclone_env.jit.cuda.driver import Entry as Entry
from nclone_env.jit.cuda.ptx import block_of as block_of
from nclone_env.jit.cuda.ptx import compile_ptx as compile_ptx
from nclone_env.jit.cuda.ptx import kept_ptx as kept_ptx
