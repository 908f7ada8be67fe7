"""The only door to Numba: decorators for kernels, building blocks for them, and the code cache.

``decorators`` makes kernels, with the building blocks of ``scratch``; ``dispatcher`` chooses between Numba's
compilation and the faster one of ``inner``, which compiles for ``target``; both let calls set the floating-point mode,
``exact``; ``cache`` keeps compiled code in ``folder`` under the digests of ``sources``, and reads the code that wheels
bring. ``retarget`` compiles for other machines.
"""

from nclone_env.jit.decorators import address_of as address_of
from nclone_env.jit.decorators import called_kernel as called_kernel
from nclone_env.jit.decorators import kernel as kernel
from nclone_env.jit.decorators import numeric_kernel as numeric_kernel
from nclone_env.jit.decorators import specialised as specialised
from nclone_env.jit.decorators import specialised_at_first as specialised_at_first
from nclone_env.jit.dispatcher import plain_dispatcher as plain_dispatcher
from nclone_env.jit.folder import cache_folder as cache_folder
from nclone_env.jit.notice import NotCompiledError as NotCompiledError
from nclone_env.jit.notice import only_compiled as only_compiled
from nclone_env.jit.scratch import BLENDED as BLENDED
from nclone_env.jit.scratch import blend_bytes as blend_bytes
from nclone_env.jit.scratch import call_at as call_at
from nclone_env.jit.scratch import copy_bytes as copy_bytes
from nclone_env.jit.scratch import each as each
from nclone_env.jit.scratch import local_f64 as local_f64
from nclone_env.jit.scratch import next_number as next_number
from nclone_env.jit.scratch import read_number as read_number
from nclone_env.jit.scratch import stream_bytes as stream_bytes
from nclone_env.jit.sources import current_digest as current_digest
from nclone_env.jit.sources import module_digest as module_digest
