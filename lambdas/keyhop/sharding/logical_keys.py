"""Which physical keys stand for which logical ones, for a list of keys.

By suffix, or by the shard metadata: then only the shards that it knows are folded. The metadata is
read once all physical keys are known. A key's `readable` may have been lowered meanwhile, by a
drain that ended after its last shards were read: so where the metadata has changed since the run
began, the most shards that its history knows count.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection, explained
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.values import Key, TypedValue, digest
from keyhop.errors import CannotStart
from keyhop.sharding.key.names import Names
from keyhop.sharding.key.shards import SETTLE_SECONDS, Shards
from keyhop.sharding.store.metadata import Metadata
from keyhop.sharding.store.requests import Requests

CLOCK_MARGIN_SECONDS = 60.0
"""How far the clocks of writers may be off."""

Fold = Callable[[Sequence[Key]], Sequence[Key]]
"""From physical keys to the keys to be listed, in the same order."""


def fold_of(
    connection: Connection, space: KeySpace, options: Mapping[str, Any], began: str
) -> Fold:
    """The fold of a run that began at that moment. Raises CannotStart if there can be none.

    options: `separator`, and `metadata`, the table that knows the shards, None for all suffixes.
    Reads the metadata; with an empty moment it only checks whether that could be done.
    """
    parse = Names(space.partition[0].type, options["separator"]).parsed
    name = space.partition[0].name
    table = options["metadata"]
    if table is None:
        return _fold(name, lambda value: _logical(parse(value), None))
    if not began:
        check_is_metadata(connection, table, space)
        return _fold(name, lambda value: value)
    known = KnownShards()
    began_at = datetime.fromisoformat(began).timestamp()
    known.learn(_metadata(connection, space, table), began_at)
    return _fold(name, lambda value: _logical(parse(value), known))


def _fold(name: str, logical: Callable[[TypedValue], TypedValue | None]) -> Fold:
    def one(key: Key) -> Key:
        found = logical(key[name])
        return key if found is None else {name: found}

    return lambda keys: [one(key) for key in keys]


def _logical(
    parsed: tuple[TypedValue, int] | None, known: "KnownShards | None"
) -> TypedValue | None:
    """The logical key of a physical one; None for a key that stands for itself."""
    if parsed is None or (known is not None and parsed[1] > known.most(parsed[0])):
        return None
    return parsed[0]


def _metadata(
    connection: Connection, space: KeySpace, table: str
) -> Iterable[tuple[TypedValue, Shards]]:
    metadata = Metadata(Requests(connection.client), table, space.partition[0], SETTLE_SECONDS)
    try:
        for logical, shards, _ in metadata.all():
            yield logical, shards
    except (BotoCoreError, ClientError) as error:
        raise explained(error, connection.endpoint, table) from error


def check_is_metadata(connection: Connection, table: str, space: KeySpace) -> None:
    """Raises CannotStart if this cannot be the shard-metadata table of a table with such keys."""
    if look_up(connection, table).space != KeySpace(space.partition):
        key = space.partition[0]
        raise CannotStart(
            f"--metadata {table} is not the shard-metadata table of this table: its key would be "
            f"{key.name} ({key.type}), without a sort key."
        )


class KnownShards:
    """How many shards logical keys have had, at most, in bounded memory (as in jobs/dedup.py)."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("CREATE TABLE known (digest BLOB PRIMARY KEY, most INT) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def learn(self, metadata: Iterable[tuple[TypedValue, Shards]], began: float) -> None:
        """Take the metadata in; began: epoch second at which the keys began to be read."""
        rows = ((digest(logical), most_shards(shards, began)) for logical, shards in metadata)
        self._db.executemany("INSERT OR REPLACE INTO known VALUES (?, ?)", rows)

    def most(self, logical: TypedValue) -> int:
        """The most shards that it can have had; 0 if it is none."""
        found = self._db.execute("SELECT most FROM known WHERE digest = ?", (digest(logical),))
        row = found.fetchone()
        return 0 if row is None else int(row[0])


def most_shards(shards: Shards, began: float) -> int:
    """The most shards that a key can have had at any time since `began`."""
    if shards.last_updated < began - CLOCK_MARGIN_SECONDS:
        return shards.readable
    return max(shards.readable, *(count for _, count in shards.history), 0)
