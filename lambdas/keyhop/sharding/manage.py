"""Management of a table's shards: list keys, add shards, propose fewer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.requester import units_of
from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.io.items import typed
from keyhop.sharding.key.policy import fewer_shards
from keyhop.sharding.key.shards import Phase, Shards
from keyhop.sharding.key.texts import (
    BAR,
    ago,
    escaped,
    history_chart,
    moment,
    phase_text,
    shard_range,
    shards_text,
    shown,
    traffic_text,
    typed_json,
)
from keyhop.sharding.store.listing import all_keys
from keyhop.sharding.store.metadata import KeyMetadata
from keyhop.sharding.table import ShardedTable


@dataclass(frozen=True, slots=True)
class KeyShards:
    """A logical key and its shards. `repr` does not show the key.

    Attributes:
        key: A str or bytes.
        shards: The metadata: `number`, `writable`, `readable`, `phase`, `history`, `placement`.
        traffic: The write units by epoch minute as writers reported them; None if unreadable.
        would_do: The number of shards that would suffice; None for the present one.
        reason: Why that number suffices.
        read_at: When the metadata was read, in seconds since 1970.
    """

    key: Any = field(repr=False)
    shards: Shards
    traffic: Mapping[int, float] | None
    would_do: int | None = None
    reason: str = ""
    read_at: float = 0.0

    @classmethod
    def judged(
        cls, key: TypedValue, shards: Shards, traffic: Mapping[int, float] | None, now: float
    ) -> "KeyShards":
        """Return a key with its proposed shard count."""
        count, reason = fewer_shards(shards, traffic, now) or (None, "")
        (content,) = key.values()
        python_key = content if isinstance(content, str) else bytes(content)
        return cls(python_key, shards, traffic, count, reason, now)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as `keyhop shards show --format typed-json` prints it."""
        shards = self.shards
        return {
            "key": typed_json(self.key),
            "shards": shards.number,
            "writable": shards.writable,
            "readable": shards.readable,
            "phase": shards.phase.value,
            "last_updated": shards.last_updated,
            "history": [{"at": at, "shards": count} for at, count in shards.history],
            "settle_seconds": shards.settle,
            "placement": shards.placement,
            "traffic": None
            if self.traffic is None
            else {str(minute): units for minute, units in sorted(self.traffic.items())},
            "would_do": self.would_do,
            "reason": self.reason,
        }

    def to_text(self, bar: str = BAR) -> str:
        """Return all of it for a person, with the history as a chart of bars of this character."""
        shards, now = self.shards, self.read_at
        placement = escaped(shards.placement) if shards.placement else "not agreed upon yet"
        facts = {
            "writable": f"{shard_range(1, shards.writable)}: where new items go",
            "readable": f"{shard_range(1, shards.readable)}: where readers look; others hold "
            "nothing",
            "phase": f"{shards.phase}: {phase_text(shards)}",
            "changed": f"{moment(shards.last_updated)} UTC, {ago(shards.last_updated, now)}",
            "settles": f"{shards.settle:g} s for each step of a change",
            "placement": placement,
            "traffic": traffic_text(self.traffic),
        }
        if self.would_do is not None:
            facts["would do"] = f"{shards_text(self.would_do)}: {self.reason}"
        lines = [
            f"{shown(self.key)}: {shards_text(shards.number)}",
            *(f"  {name:10} {value}" for name, value in facts.items()),
            "",
            "  shards over time (UTC; the 20 latest changes are kept)",
            *(f"    {line}" for line in history_chart(shards, now, bar)),
        ]
        return "\n".join(line.rstrip() for line in lines)


class TooEarly(Exception):
    """The metadata must remain unchanged for another `seconds` before it can be changed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"wait {seconds:g} s")
        self.seconds = seconds


def list_keys(table: ShardedTable) -> Iterator[KeyShards]:
    """Yield all keys of a table; this scans its metadata."""
    now = table.requests.clock.time()
    metadata = table.metadata
    keys = all_keys(table.requests, metadata.table, table.schema.partition)
    for key, shards, traffic in keys:
        yield KeyShards.judged(key, shards, traffic, now)


def proposals(table: ShardedTable) -> Iterator[KeyShards]:
    """Yield the keys that need fewer shards, and clean up the metadata: delete old traffic reports,
    and correct the stored total of all shards.
    """
    is_counted = table.policy.most_in_all is not None
    total_before, total = table.metadata.item.counted() if is_counted else None, 0
    for key_shards in list_keys(table):
        total += key_shards.shards.readable - 1
        table.metadata.traffic.prune(typed(key_shards.key), key_shards.traffic or {})
        if key_shards.would_do is not None:
            yield key_shards
    if is_counted:
        table.metadata.item.recount(total_before, total)


def look_at_shard(table: ShardedTable, key: TypedValue, shard: int) -> tuple[int, float, bool]:
    """Read the first page, up to 1 MB, of one of a key's shards. Return its number of items, its
    size in bytes, and whether it is the only page.
    """
    schema = table.schema
    answer = table.requests.call(
        "query",
        TableName=schema.table,
        Select="COUNT",
        KeyConditionExpression="#p = :p",
        ExpressionAttributeNames={"#p": schema.partition.name},
        ExpressionAttributeValues={":p": schema.names.physical(key, shard)},
    )
    size = units_of(answer) / UNITS_PER_BLOCK * BLOCK_BYTES
    return answer["Count"], size, "LastEvaluatedKey" not in answer


def check_maximum(number: int, count: int, maximum: int) -> None:
    """Raise CannotStart if a key with `number` shards cannot get `count` more."""
    if number + count > maximum:
        raise CannotStart(f"The key has {shards_text(number)}, and {maximum:,} are the maximum.")


def add_shards(table: ShardedTable, key: Any, count: int = 1) -> KeyMetadata:
    """Add shards to a key; register a new key. This is one attempt, without waiting.

    Raises TooEarly while the metadata is too new or is being changed, CannotStart at the maximum of
    the table's policy, and MetadataChanged if another process has changed the metadata first.
    """
    if count < 1:
        raise CannotStart(f"{count} shards cannot be added; drain a key to take some away.")
    logical = typed(key)
    record = table.metadata.of(logical, register=True, fresh=True)
    record = table.writer.throttle_tracker.pass_on(logical, record)
    shards = record.shards
    check_maximum(shards.number, count, table.policy.most)
    wait = table.metadata.unsettled(record)
    if wait > 0 or shards.phase is not Phase.STEADY:
        raise TooEarly(max(wait, 0.1))
    grown = table.metadata.grow(logical, record, shards.number + count)
    if grown is None:
        raise CannotStart(
            "All keys together have reached the maximum number of shards, "
            f"{table.policy.most_in_all} beyond their first."
        )
    return grown
