"""Where the package keeps files between processes: ``NCLONE_ENV_CACHE_DIR``, else ``nclone_env`` in the user's cache.

What is in its folders is executed, or read by compiled code without checks. So they are created for their owner alone,
and used only if no others than this user and root can put files there. What others put there before, or could write to,
is not used either: each file has to belong to this user or root, too.
"""

import os
import stat
from pathlib import Path

from nclone_env._files import expanded, variable
from nclone_env.errors import PATH, ConfigError, is_path, shortened

_OPEN = "can be written by others (chmod go-w)"
_NO_OTHERS = ~(stat.S_IWGRP | stat.S_IWOTH)


def cache_root() -> Path:
    """Return the folder of everything this package keeps between processes; it need not exist."""
    root, caches = variable("NCLONE_ENV_CACHE_DIR"), variable("XDG_CACHE_HOME")
    if root:
        if not is_path(root):
            raise ConfigError(f"NCLONE_ENV_CACHE_DIR: expected {PATH}, got {shortened(root)}")
        return expanded(root).absolute()  # the program may change the working directory
    try:
        return expanded(caches or Path.home() / ".cache").absolute() / "nclone_env"
    except RuntimeError:  # no HOME, and a user without an entry in passwd, as in containers
        user = os.getuid() if hasattr(os, "getuid") else "user"
        return Path(os.environ.get("TMPDIR") or os.environ.get("TEMP") or "/tmp") / f"nclone_env-{user}"


def make_private(folder: Path) -> None:
    """Create a folder in the cache that only this user can enter, and the cache if necessary."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def distrust(folder: Path) -> str:
    """Return why others than this user and root may have put files into a folder of the cache, empty if they cannot."""
    for path in (folder, folder.parent):
        try:
            status = path.stat()
        except OSError as error:
            return f"{path}: {error.strerror}"
        doubt = _doubt(status)
        if doubt and not (path == folder.parent and status.st_mode & stat.S_ISVTX and doubt == _OPEN):
            return f"{path}: {doubt}"
    return ""


def is_trusted(path: Path) -> bool:
    """Return whether a file or folder in the cache belongs to this user or root, and no others can write to it."""
    try:
        return not _doubt(path.stat())
    except OSError:
        return False


def close_to_others(path: Path) -> None:
    """Forbid others to write to a new file or folder of the cache, whatever the process allows for new files."""
    path.chmod(path.stat().st_mode & _NO_OTHERS)


def _doubt(status: os.stat_result) -> str:
    """Return why others than this user and root may have written to a file or folder, empty if they cannot."""
    if not hasattr(os, "geteuid"):
        return ""  # on Windows, folders in the home folder are private
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to user {status.st_uid}"
    return _OPEN if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""
