"""Values of a level file in error messages."""

from __future__ import annotations

from nclone_env.errors import shortened

__all__ = ["shortened"]
