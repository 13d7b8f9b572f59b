"""Recovery of lost shard metadata from the physical keys of a table.

The shard count of a key is the greatest number in its physical keys. An ordinary key may have a
name like `/photo_3` by chance. Therefore gaps are reported: a key that was really spread has items
in nearly all shards up to the last. The markers of a counter's tokens have 256 physical keys and no
metadata.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from keyhop.dynamodb.values import Key, TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.io.items import typed
from keyhop.sharding.key.counting import TOKENS
from keyhop.sharding.key.schema import Schema
from keyhop.sharding.key.shards import GROWING_FROM, MOST_SHARDS, PASSING, SETTLE_SECONDS
from keyhop.sharding.key.texts import shards_text, shown, typed_json
from keyhop.sharding.logical_keys import KnownShards
from keyhop.sharding.manage import TooEarly
from keyhop.sharding.store.metadata import KeyMetadata
from keyhop.sharding.store.table_item import total_key
from keyhop.sharding.table import ShardedTable


@dataclass(frozen=True, slots=True)
class LostKey:
    """A key with items in shards that its metadata does not have. `repr` does not show the key.

    Attributes:
        key: A str or bytes.
        shards: The last shard with items.
        found_shards: How many of the shards after the first have items.
        known: The shards that the metadata has; 0 if there is none.
        has_gaps: Whether one of the shards before the last is empty, as of an ordinary key whose
            name ends in a number.
        recovered: Whether the metadata was recovered.
        error: Why that was not possible.
    """

    key: Any = field(repr=False)
    shards: int
    found_shards: int
    known: int
    has_gaps: bool = False
    recovered: bool = False
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as `keyhop shards recover --format typed-json` prints it."""
        names = ("shards", "known", "recovered", "error")
        return {"key": typed_json(self.key), **{name: getattr(self, name) for name in names}}

    def to_text(self) -> str:
        """Return for a person what became of the key."""
        key, shards = shown(self.key), shards_text(self.shards)
        if self.error is not None:
            return f"{key}: not recovered: {self.error}"
        if self.recovered:
            return f"{key}: readers read {shards} now; writers use them after {SETTLE_SECONDS:g} s."
        return f"{key}: would have {shards}."


class LostKeys:
    """Collects all physical keys of a table, each once, and stores the lost ones on disk."""

    def __init__(self, schema: Schema, known_shards: KnownShards) -> None:
        """Initialize; read `known_shards` before the physical keys, or new keys count as lost."""
        self._partition = schema.partition.name
        self._names = schema.names
        self._known = known_shards
        self._lock = Lock()
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("CREATE TABLE lost (key BLOB PRIMARY KEY, shards, seen) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Take physical keys, as the output of a run."""
        parsed = (self._names.parsed(key[self._partition]) for key in keys)
        shards = [
            (_content(pair[0]), pair[1]) for pair in parsed if pair is not None and pair[1] > 1
        ]
        with self._lock:
            self._db.executemany(
                "INSERT INTO lost VALUES (?, ?, 1) ON CONFLICT (key) DO UPDATE SET "
                "shards = max(shards, excluded.shards), seen = seen + 1",
                shards,
            )
        return len(keys)

    def close(self) -> tuple[()]:
        """Return the parts that were written: there are none."""
        return ()

    def all(self) -> Iterator[LostKey]:
        for content, shards, used in self._db.execute("SELECT * FROM lost"):
            type_ = self._names.type
            key = content if type_ == "B" else content.decode()
            known_count = self._known.shard_count({type_: key})
            is_ours = content.endswith(TOKENS.encode()) or {type_: key} == total_key(type_)
            if shards > known_count and not is_ours:
                yield LostKey(key, shards, used, known_count)


def _content(key: TypedValue) -> bytes:
    (content,) = key.values()
    return content.encode() if isinstance(content, str) else bytes(content)


def has_gaps(table: ShardedTable, lost: LostKey) -> bool:
    """Return whether a shard before the last is empty; this reads the first shard."""
    holds = table.metadata.holds
    return lost.found_shards < lost.shards - 1 or not holds(typed(lost.key), range(1, 2))


def look_at_all_shards(table: ShardedTable, key: str | bytes) -> LostKey | None:
    """Return a key's shards with items, if any, by MOST_SHARDS requests without its metadata."""
    logical = typed(key)
    used = [n for n in range(1, MOST_SHARDS + 1) if table.metadata.holds(logical, range(n, n + 1))]
    record = table.metadata.find(logical)
    if not used:
        return None
    readable = 0 if record is None else record.shards.readable
    return LostKey(key, used[-1], len(used) - (used[0] == 1), readable)


def recover(table: ShardedTable, key: TypedValue, number: int) -> KeyMetadata:
    """Let readers use `number` shards of a key now, and writers some time later, unless it has
    more. Raises TooEarly while it cannot be changed yet, CannotStart during a drain, and
    MetadataChanged if another process has changed it first.
    """
    metadata = table.metadata
    record = metadata.find(key)
    if record is None:
        metadata.item.agree()
        new = metadata.as_new(1)
        if number > 1:
            new = new.recovered(number, table.requests.clock.time())
        record = metadata.create(key, new)
    if record.shards.readable >= number:
        return record
    if record.shards.phase in PASSING:
        record = table.writer.throttle_tracker.pass_on(key, record)
    wait = metadata.unsettled(record)
    if wait > 0:
        raise TooEarly(wait)
    if record.shards.phase not in GROWING_FROM:
        raise CannotStart(
            f"A key is being changed ({record.shards.phase}), and has items in shards that the "
            "change does not know: recover the key when the change has ended."
        )
    after = record.shards.recovered(number, table.requests.clock.time())
    return metadata.change(key, record, after)
