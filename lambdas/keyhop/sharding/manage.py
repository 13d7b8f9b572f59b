"""What people and schedules do about a table's shards: look, add, propose to shrink."""

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
    """A logical key, its metadata, and write units by epoch minute as writers have reported them.

    traffic: None if what is in its place cannot be read.
    would_do: the shard count that would do, None: the present one; reason: why.
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
        """With the count that would do."""
        count, reason = fewer_shards(shards, traffic, now) or (None, "")
        return cls(untyped(key), shards, traffic, count, reason)


class TooEarly(Exception):
    """The metadata must be seen unchanged for some more `seconds` first."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"wait {seconds:g} s")
        self.seconds = seconds


def list_keys(table: ShardedTable) -> Iterator[KeyShards]:
    """All keys of a table; reads all of its metadata, a Scan."""
    now = table.requests.clock.time()
    metadata = table.metadata
    keys = all_keys(table.requests, metadata.table, table.schema.partition)
    for key, shards, traffic in keys:
        yield KeyShards.judged(key, shards, traffic, now)


def proposals(table: ShardedTable) -> Iterator[KeyShards]:
    """The keys for which fewer shards would do; tidies the metadata up besides.

    Old reports of traffic are forgotten; the count of all keys' shards is set to what it is.
    """
    is_counted = table.policy.most_in_all is not None
    seen, held = table.metadata.item.counted() if is_counted else None, 0
    for one in list_keys(table):
        held += one.shards.readable - 1
        table.metadata.traffic.prune(typed(one.key), one.traffic or {})
        if one.would_do is not None:
            yield one
    if is_counted:
        table.metadata.item.recount(seen, held)


@dataclass(frozen=True, slots=True)
class ShardLook:
    """The first page of a shard, of 1 MB at most. size: bytes. whole: it is all there is."""

    items: int
    size: float
    whole: bool


def look_at_shard(table: ShardedTable, key: TypedValue, shard: int) -> ShardLook:
    """What one of a key's shards holds, as far as its first page tells."""
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
    """Add shards to a key; a new key is registered. One attempt, without waiting.

    Raises TooEarly while the metadata is too new or is being changed, CannotStart at the maximum
    of the table's policy, and metadata.Lost if somebody else was quicker.
    """
    if count < 1:
        raise CannotStart(f"{count} shards cannot be added; drain a key to take some away.")
    logical = typed(key)
    known = table.metadata.of(logical, register=True, fresh=True)
    known = table.writer.throttle_tracker.pass_on(logical, known)
    shards = known.shards
    if shards.number + count > table.policy.most:
        raise CannotStart(
            f"The key has {counted(shards.number, 'shard')}, and {table.policy.most:,} are "
            f"the most allowed."
        )
    left = table.metadata.unsettled(known)
    if left > 0 or shards.phase is not Phase.STEADY:
        raise TooEarly(max(left, 0.1))
    grown = table.metadata.grow(logical, known, shards.number + count)
    if grown is None:
        raise CannotStart(
            f"All keys together have the most shards allowed, {table.policy.most_in_all} beyond "
            "their first."
        )
    return grown
