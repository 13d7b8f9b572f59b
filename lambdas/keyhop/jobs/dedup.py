"""A set of keys in bounded memory, for indexes whose segments may share keys.

SQLite keeps digests of the keys in a temporary file; its page cache is the bound. A digest has 128
bits: among ten billion keys the chance of any two alike is below 1e-18.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable

from keyhop.dynamodb.values import Key, to_json

CACHE_KIB = 32 * 1024


class KnownKeys:
    """Which keys have been met. Not for several threads at once."""

    def __init__(self) -> None:
        # An empty name is a private file that the system removes with the connection.
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("CREATE TABLE known (digest BLOB PRIMARY KEY) WITHOUT ROWID")
        # One transaction for all: nobody else sees the file, and nothing is ever taken back.
        self._db.execute("BEGIN")

    def new_among(self, keys: Iterable[Key]) -> list[Key]:
        """Those of `keys` that have not been met before; from now on they have."""
        return [key for key in keys if self._add(key)]

    def _add(self, key: Key) -> bool:
        text = json.dumps(to_json(key), sort_keys=True)
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        added = self._db.execute("INSERT OR IGNORE INTO known VALUES (?)", (digest,))
        return added.rowcount == 1

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
