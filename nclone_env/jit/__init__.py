"""The only door to Numba: decorators for kernels, building blocks for them, and the code cache.

``decorators`` makes kernels, with the building blocks of ``scratch``; ``dispatcher`` chooses between Numba's
compilation and the faster one of ``inner``, which compiles for ``target``; ``cache`` keeps compiled code in ``folder``
under the digests of ``sources``; ``shipped`` is the code that wheels bring.
"""

from nclone_env.jit.decorators import called_kernel, kernel, numeric_kernel, specialised
from nclone_env.jit.folder import cache_folder, cache_root, distrust, make_private
from nclone_env.jit.scratch import copy_bytes, each, local_f64, next_number, stream_bytes
from nclone_env.jit.sources import compiler_digest, module_digest

__all__ = [
    "cache_folder",
    "cache_root",
    "called_kernel",
    "compiler_digest",
    "copy_bytes",
    "distrust",
    "each",
    "kernel",
    "local_f64",
    "make_private",
    "module_digest",
    "next_number",
    "numeric_kernel",
    "specialised",
    "stream_bytes",
]
