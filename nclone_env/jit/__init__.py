"""The only door to Numba: the ``kernel`` decorator, unrolled loops, stack scratch, byte copies, and the code cache."""

from nclone_env.jit.decorators import (
    cache_folder,
    cache_root,
    called_kernel,
    copy_bytes,
    each,
    kernel,
    local_f64,
    source_digest,
    specialised,
)

__all__ = [
    "cache_folder",
    "cache_root",
    "called_kernel",
    "copy_bytes",
    "each",
    "kernel",
    "local_f64",
    "source_digest",
    "specialised",
]
