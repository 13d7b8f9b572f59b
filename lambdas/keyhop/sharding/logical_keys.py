"""Maps physical keys to logical keys, for a list of keys.

The mapping uses suffixes alone, or also the shard metadata, so that only known shards are mapped.
The metadata is read once, after all physical keys. By then a drain that ended after its last shards
were read may have lowered a key's `readable`. So if the metadata has changed since the run started,
the largest count in its history is used.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import explained
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.values import Key, TypedValue, distinct_bytes
from keyhop.errors import CannotStart
from keyhop.sharding.key.schema import Names
from keyhop.sharding.key.shards import Shards
from keyhop.sharding.store.listing import all_keys
from keyhop.sharding.store.requests import Requests

CLOCK_MARGIN_SECONDS = 60.0
"""The maximum difference between the clocks of a run and of writers."""
Fold = Callable[[Sequence[Key]], Sequence[Key]]
"""Maps physical keys to the keys to list, in the same order."""


def fold_of(
    connection: Connection, space: KeySpace, options: Mapping[str, Any], began: str
) -> Fold:
    """Return the mapping for a run that started at `began`, or raise CannotStart.

    The options are `separator`, and `metadata`, the shard-metadata table, or None to map all
    suffixes. If `began` is empty, this only checks that the table could be read.
    """
    attribute, table = space.partition[0], options["metadata"]
    parse = Names(attribute.type, options["separator"]).parsed
    known_shards: KnownShards | None = None
    if table is not None and not began:
        check_is_metadata(connection, table, space)
    elif table is not None:
        known_shards = KnownShards()
        try:
            known_shards.learn(
                all_keys(Requests(connection.client), table, attribute),
                datetime.fromisoformat(began).timestamp(),
            )
        except (BotoCoreError, ClientError) as error:
            raise explained(error, connection.endpoint, table) from error

    def logical(key: Key) -> Key:
        """Return the logical key; a key that is not a shard's is returned unchanged."""
        parsed = parse(key[attribute.name])
        if parsed is None or (
            known_shards is not None and parsed[1] > known_shards.shard_count(parsed[0])
        ):
            return key
        return {attribute.name: parsed[0]}

    return lambda keys: [logical(key) for key in keys]


def check_is_metadata(connection: Connection, table: str, space: KeySpace) -> None:
    """Raise CannotStart if this cannot be the shard-metadata table of a table with such keys."""
    if look_up(connection, table).space != KeySpace(space.partition):
        key = space.partition[0]
        raise CannotStart(
            f"metadata={table} is not the shard-metadata table of this table: its key would be "
            f"{key.name} ({key.type}), without a sort key."
        )


class KnownShards:
    """The maximum shard counts of logical keys, stored on disk (as in jobs/worker.py)."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("CREATE TABLE known (digest BLOB PRIMARY KEY, most INT) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def learn(self, keys: Iterable[tuple[TypedValue, Shards, Any]], began: float) -> None:
        """Store `all_keys`. began: the epoch second when reading physical keys started."""
        rows = ((_digest(logical), most_shards(shards, began)) for logical, shards, _ in keys)
        self._db.executemany("INSERT OR REPLACE INTO known VALUES (?, ?)", rows)

    def shard_count(self, logical: TypedValue) -> int:
        """Return the maximum shard count that a key can have had; 0 for an unknown key."""
        rows = self._db.execute("SELECT most FROM known WHERE digest = ?", (_digest(logical),))
        row = rows.fetchone()
        return 0 if row is None else int(row[0])


def _digest(logical: TypedValue) -> bytes:
    """Return 16 bytes; among ten billion keys, two have equal digests with a chance below 1e-18."""
    return hashlib.blake2b(distinct_bytes(logical), digest_size=16).digest()


def most_shards(shards: Shards, began: float) -> int:
    """Return the maximum shard count that a key can have had at any time since `began`."""
    if shards.last_updated < began - CLOCK_MARGIN_SECONDS:
        return shards.readable
    return max(shards.readable, *(count for _, count in shards.history), 0)
