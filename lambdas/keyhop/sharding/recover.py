"""Metadata that was lost, made anew from the physical keys of a table.

A table's keys tell how far each key's shards reach: the greatest number that a physical key of it
has. That they tell so of an ordinary key, too, which is called `/photo_3` by chance, is why gaps
are told: of a key that was spread, mostly each shard up to the last has something. The markers of a
counter's tokens have 256 physical keys, and no metadata.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock

from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.key.counting import TOKENS
from keyhop.sharding.key.names import MOST_SHARDS, Names
from keyhop.sharding.key.shards import GROWING_FROM, PASSING
from keyhop.sharding.logical_keys import KnownShards
from keyhop.sharding.manage import TooEarly
from keyhop.sharding.store.metadata import KeyMetadata
from keyhop.sharding.store.table_item import total_key
from keyhop.sharding.table import ShardedTable


@dataclass(frozen=True, slots=True)
class LostKey:
    """A key with items in shards that its metadata does not know.

    shards: the last that has items; seen: how many have some, the first left out; known: how many
    the metadata knows, 0 if there is none.
    """

    key: TypedValue
    shards: int
    seen: int
    known: int


class LostKeys:
    """Takes in all physical keys of a table, each once; remembers the lost ones, on disk."""

    def __init__(self, names: Names, known: KnownShards) -> None:
        """known: learnt before the physical keys are read, so no key is lost that is made since."""
        self._names = names
        self._known = known
        self._lock = Lock()
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("CREATE TABLE lost (key BLOB PRIMARY KEY, shards, seen) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def take(self, physical: Iterable[TypedValue]) -> None:
        parsed = map(self._names.parsed, physical)
        shards = [(_content(one[0]), one[1]) for one in parsed if one is not None and one[1] > 1]
        with self._lock:
            self._db.executemany(
                "INSERT INTO lost VALUES (?, ?, 1) ON CONFLICT (key) DO UPDATE SET "
                "shards = max(shards, excluded.shards), seen = seen + 1",
                shards,
            )

    def all(self) -> Iterator[LostKey]:
        for content, shards, seen in self._db.execute("SELECT * FROM lost"):
            type_ = self._names.type
            key: TypedValue = {type_: content if type_ == "B" else content.decode()}
            known = self._known.most(key)
            is_ours = content.endswith(TOKENS.encode()) or key == total_key(type_)
            if shards > known and not is_ours:
                yield LostKey(key, shards, seen, known)


def _content(key: TypedValue) -> bytes:
    (content,) = key.values()
    return content.encode() if isinstance(content, str) else bytes(content)


def has_gaps(table: ShardedTable, lost: LostKey) -> bool:
    """Whether a shard before the last has nothing; looks at the first one."""
    return lost.seen < lost.shards - 1 or not table.metadata.holds(lost.key, range(1, 2))


def look_at_all_shards(table: ShardedTable, key: TypedValue) -> LostKey | None:
    """A key by itself, without its metadata; None if it has nothing. MOST_SHARDS requests."""
    found = [n for n in range(1, MOST_SHARDS + 1) if table.metadata.holds(key, range(n, n + 1))]
    known = table.metadata.found(key)
    if not found:
        return None
    readable = 0 if known is None else known.shards.readable
    return LostKey(key, found[-1], len(found) - (found[0] == 1), readable)


def recover(table: ShardedTable, key: TypedValue, number: int) -> KeyMetadata:
    """Let readers read `number` shards of a key at once, and writers use them some time later.

    Metadata that is there is changed, if it knows of fewer. Raises TooEarly while it cannot be
    changed yet, CannotStart while it is drained, MetadataChanged if somebody else was quicker.
    """
    metadata = table.metadata
    known = metadata.found(key)
    if known is None:
        metadata.item.agree()
        new = metadata.as_new(1)
        if number > 1:
            new = new.recovered(number, table.requests.clock.time())
        known = metadata.create(key, new)
    if known.shards.readable >= number:
        return known
    if known.shards.phase in PASSING:
        known = table.writer.throttle_tracker.pass_on(key, known)
    left = metadata.unsettled(known)
    if left > 0:
        raise TooEarly(left)
    if known.shards.phase not in GROWING_FROM:
        raise CannotStart(
            f"A key is being changed ({known.shards.phase}), and has items in shards that this "
            "does not know of: recover it when that has ended."
        )
    after = known.shards.recovered(number, table.requests.clock.time())
    return metadata.change(key, known, after)
