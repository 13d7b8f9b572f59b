"""Which physical keys stand for which logical ones, for a list of keys.

By suffix, or by the shard metadata: then only the shards that it knows are folded. The metadata is
read once all physical keys are known. A key's `readable` may have been lowered meanwhile, by a
drain that ended after its last shards were read: so where the metadata has changed since the run
began, the most shards that its history knows count.
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
from keyhop.sharding.key.names import Names
from keyhop.sharding.key.shards import Shards
from keyhop.sharding.store.listing import all_keys
from keyhop.sharding.store.requests import Requests

CLOCK_MARGIN_SECONDS = 60.0
"""How far the clocks of a run and of writers may differ."""
Fold = Callable[[Sequence[Key]], Sequence[Key]]
"""From physical keys to the keys to be listed, in the same order."""


def fold_of(
    connection: Connection, space: KeySpace, options: Mapping[str, Any], began: str
) -> Fold:
    """The fold of a run that began at that moment. Raises CannotStart if there can be none.

    options: `separator`, and `metadata`, the table that knows the shards, None for all suffixes.
    Reads the metadata; with an empty moment it only checks whether that could be done.
    """
    attribute, table = space.partition[0], options["metadata"]
    parse = Names(attribute.type, options["separator"]).parsed
    known: KnownShards | None = None
    if table is not None and not began:
        check_is_metadata(connection, table, space)
    elif table is not None:
        known = KnownShards()
        try:
            known.learn(
                all_keys(Requests(connection.client), table, attribute),
                datetime.fromisoformat(began).timestamp(),
            )
        except (BotoCoreError, ClientError) as error:
            raise explained(error, connection.endpoint, table) from error

    def logical(key: Key) -> Key:
        """A key that is no shard's stands for itself."""
        parsed = parse(key[attribute.name])
        if parsed is None or (known is not None and parsed[1] > known.most(parsed[0])):
            return key
        return {attribute.name: parsed[0]}

    return lambda keys: [logical(key) for key in keys]


def check_is_metadata(connection: Connection, table: str, space: KeySpace) -> None:
    """Raises CannotStart if this cannot be the shard-metadata table of a table with such keys."""
    if look_up(connection, table).space != KeySpace(space.partition):
        key = space.partition[0]
        raise CannotStart(
            f"--metadata {table} is not the shard-metadata table of this table: its key would be "
            f"{key.name} ({key.type}), without a sort key."
        )


class KnownShards:
    """How many shards logical keys have had, at most, in bounded memory (as in jobs/worker.py)."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("CREATE TABLE known (digest BLOB PRIMARY KEY, most INT) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def learn(self, keys: Iterable[tuple[TypedValue, Shards, Any]], began: float) -> None:
        """Take `all_keys` in; began: epoch second at which the physical keys began to be read."""
        rows = ((_digest(logical), most_shards(shards, began)) for logical, shards, _ in keys)
        self._db.executemany("INSERT OR REPLACE INTO known VALUES (?, ?)", rows)

    def most(self, logical: TypedValue) -> int:
        """The most shards that it can have had; 0 if it is none."""
        found = self._db.execute("SELECT most FROM known WHERE digest = ?", (_digest(logical),))
        row = found.fetchone()
        return 0 if row is None else int(row[0])


def _digest(logical: TypedValue) -> bytes:
    """16 bytes: among ten billion keys the chance of any two alike is below 1e-18."""
    return hashlib.blake2b(distinct_bytes(logical), digest_size=16).digest()


def most_shards(shards: Shards, began: float) -> int:
    """The most shards that a key can have had at any time since `began`."""
    if shards.last_updated < began - CLOCK_MARGIN_SECONDS:
        return shards.readable
    return max(shards.readable, *(count for _, count in shards.history), 0)
