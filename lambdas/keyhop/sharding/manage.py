"""Management of a table's shards: list keys, add shards, propose fewer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.requester import units_of
from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.io.items import typed, untyped
from keyhop.sharding.key.policy import fewer_shards
from keyhop.sharding.key.shards import Phase, Shards
from keyhop.sharding.store.listing import all_keys
from keyhop.sharding.store.metadata import KeyMetadata
from keyhop.sharding.table import ShardedTable
from keyhop.wording import counted


@dataclass(frozen=True, slots=True)
class KeyShards:
    """A logical key, its metadata, and its write units by epoch minute as writers reported them
    (None if unreadable), with a proposed shard count (None: the present one) and the reason.
    """

    key: Any
    shards: Shards
    traffic: Mapping[int, float] | None
    would_do: int | None = None
    reason: str = ""

    @classmethod
    def judged(
        cls, key: TypedValue, shards: Shards, traffic: Mapping[int, float] | None, now: float
    ) -> "KeyShards":
        """Return a key with its proposed shard count."""
        count, reason = fewer_shards(shards, traffic, now) or (None, "")
        return cls(untyped(key), shards, traffic, count, reason)


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


@dataclass(frozen=True, slots=True)
class ShardLook:
    """The first page of a shard, up to 1 MB. size: in bytes. whole: whether it is the only page."""

    items: int
    size: float
    whole: bool


def look_at_shard(table: ShardedTable, key: TypedValue, shard: int) -> ShardLook:
    """Read the first page of one of a key's shards, and return its size."""
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
    return ShardLook(answer["Count"], size, "LastEvaluatedKey" not in answer)


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
    if shards.number + count > table.policy.most:
        raise CannotStart(
            f"The key has {counted(shards.number, 'shard')}, and {table.policy.most:,} are "
            f"the most allowed."
        )
    wait = table.metadata.unsettled(record)
    if wait > 0 or shards.phase is not Phase.STEADY:
        raise TooEarly(max(wait, 0.1))
    grown = table.metadata.grow(logical, record, shards.number + count)
    if grown is None:
        raise CannotStart(
            f"All keys together have the most shards allowed, {table.policy.most_in_all} beyond "
            "their first."
        )
    return grown
