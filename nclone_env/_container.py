"""What reading a damaged file of packed arrays raises: NumPy and PyTorch pass on the errors of their parsers."""

import pickle
import struct
import tokenize
import zipfile
import zlib

UNREADABLE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions of ``numpy.load`` and ``torch.load``, and of the ``zipfile`` below them."""
