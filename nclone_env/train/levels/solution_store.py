"""Results of searches, kept on disk by level: runs on any selection of levels share them.

They are rows of an SQLite database, ``solutions.sqlite`` beside the compiled levels: at most 200,000, without the
oldest. If no file can be kept there, they stay in the memory of the process. A damaged database is removed.
"""

import hashlib
import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from nclone_env.level import kept_folder

_MOST = 200_000
_WAIT = 60.0  # seconds for other processes that write


class SolutionStore:
    """The inputs that a search found on each level, none if it found no solution.

    Args:
        name: everything that results depend on besides the level.
    """

    def __init__(self, name: str):
        self._name, self._rows = name, _opened()

    def read(self, digests: Iterable[str]) -> dict[str, np.ndarray]:
        """Return the inputs of those levels that were searched, (T,) uint8 by digest."""
        found = {}
        for digest in digests:
            row = self._rows.execute("SELECT inputs FROM solutions WHERE key = ?", (self._key(digest),)).fetchone()
            with suppress(zlib.error):  # damaged
                if row is not None:
                    found[digest] = np.frombuffer(zlib.decompress(row[0]), np.uint8)
        return found

    def write(self, digest: str, inputs: np.ndarray) -> None:
        """Keep the inputs that were found on a level."""
        row = (self._key(digest), zlib.compress(inputs.tobytes()))
        with suppress(sqlite3.Error):  # the disk is full, or others write for a minute
            self._rows.execute("INSERT OR REPLACE INTO solutions VALUES (?, ?)", row)

    def close(self) -> None:
        """Close the database."""
        self._rows.close()

    def _key(self, digest: str) -> bytes:
        return hashlib.sha256(f"{self._name} {digest}".encode()).digest()


def _opened() -> sqlite3.Connection:
    """Return a connection to the database, a new one if it is damaged, or one in memory if no file can be kept."""
    folder = kept_folder()
    if folder is not None:
        path = folder / "solutions.sqlite"
        for _ in range(2):
            try:
                return _prepared(str(path))
            except sqlite3.OperationalError:  # it cannot be written, or not be locked
                break
            except sqlite3.DatabaseError:
                with suppress(OSError):
                    path.unlink()
    return _prepared(":memory:")


def _prepared(place: str) -> sqlite3.Connection:
    rows = sqlite3.connect(place, timeout=_WAIT, isolation_level=None)
    try:
        rows.execute("PRAGMA synchronous = OFF")  # a crash of the machine costs the database, not a millisecond a row
        if rows.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("damaged")
        rows.execute("CREATE TABLE IF NOT EXISTS solutions (key BLOB PRIMARY KEY, inputs BLOB NOT NULL)")
        rows.execute("DELETE FROM solutions WHERE rowid <= (SELECT max(rowid) FROM solutions) - ?", (_MOST,))
    except sqlite3.Error:
        rows.close()
        raise
    return rows
