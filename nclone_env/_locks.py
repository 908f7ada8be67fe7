"""Locks on files between processes: held until they are released, and at the latest until the process ends.

They are those of ``flock`` where there is ``fcntl``, of ``LockFileEx`` on Windows. On file systems without locks every
lock is free.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt

_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # file systems of some clusters


def lock_descriptor(descriptor: int) -> bool:
    """Lock an open file; return whether no other process, or descriptor of this one, has locked it.

    Raises:
        OSError: if its file system fails; not if it has no locks.
    """
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return True
        if isinstance(error, BlockingIOError) or (fcntl is None and isinstance(error, PermissionError)):
            return False
        raise
    return True


class FileLock:
    """A file that this process has locked; :meth:`release` removes it.

    Args:
        path: the file; it is created.

    Raises:
        BlockingIOError: if another process has locked it.
        OSError: if it cannot be created.
    """

    def __init__(self, path: Path):
        self._path = path
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                if not lock_descriptor(descriptor):
                    raise BlockingIOError(errno.EAGAIN, "another process has locked it", str(path))
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), path.stat()):
                        self._descriptor = descriptor
                        return
            except OSError:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its last owner removed the file in between

    def release(self, remove: bool = True) -> None:
        """End the lock.

        Args:
            remove: whether to remove the file; on Windows this is only possible after the lock has ended.
        """
        if remove and fcntl is not None:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        if remove and fcntl is None:
            with suppress(OSError):  # another process has it open by now
                self._path.unlink(missing_ok=True)
