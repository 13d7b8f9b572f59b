"""What people and schedules do about a table's shards: look, add, propose to shrink."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.io.items import typed, untyped
from keyhop.sharding.key.policy import Shrinking, shrunk_count
from keyhop.sharding.key.shards import Phase, Shards
from keyhop.sharding.store.metadata import KeyMetadata
from keyhop.sharding.table import ShardedTable


@dataclass(frozen=True, slots=True)
class KeyShards:
    """A logical key, its metadata, and write units by epoch hour as writers have reported them.

    would_do: the shard count that would do, None: the present one; reason: why.
    """

    key: Any
    shards: Shards
    traffic: Mapping[int, float]
    would_do: int | None = None
    reason: str = ""

    @classmethod
    def judged(
        cls,
        key: TypedValue,
        shards: Shards,
        traffic: Mapping[int, float],
        policy: Shrinking,
        now: float,
    ) -> "KeyShards":
        """With the count that would do by a policy."""
        fewer = shrunk_count(policy, shards, traffic, now)
        count, reason = (fewer.number, fewer.reason) if fewer else (None, "")
        return cls(untyped(key), shards, traffic, count, reason)


class TooEarly(Exception):
    """The metadata must be seen unchanged for some more `seconds` first."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"wait {seconds:g} s")
        self.seconds = seconds


def list_keys(table: ShardedTable, shrinking: Shrinking | None = None) -> Iterator[KeyShards]:
    """All keys of a table; reads all of its metadata, a Scan."""
    policy = shrinking or Shrinking()
    now = table.requests.clock.time()
    for key, shards, traffic in table.metadata.all():
        yield KeyShards.judged(key, shards, traffic, policy, now)


def proposals(table: ShardedTable, shrinking: Shrinking | None = None) -> Iterator[KeyShards]:
    """The keys for which fewer shards would do; tidies the metadata up besides.

    Old reports of traffic are forgotten; the count of all keys' shards, which the total maximum
    goes by, is set to what it is.
    """
    added = 0
    for one in list_keys(table, shrinking):
        added += one.shards.number - 1
        table.metadata.traffic.prune(typed(one.key), one.traffic)
        if one.would_do is not None:
            yield one
    if table.policy.most_in_all is not None:
        table.metadata.recount(added)


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
    number = shards.number + count
    if number > table.policy.most:
        raise CannotStart(
            f"The key has {shards.number} shards, and {table.policy.most} are the most allowed."
        )
    left = shards.settle - table.metadata.known_for(known)
    if left > 0 or shards.phase is not Phase.STEADY:
        raise TooEarly(max(left, 0.1))
    grown = table.metadata.grow(logical, known, number, table.policy.most_in_all)
    if grown is None:
        raise CannotStart(
            f"All keys together have the most shards allowed, {table.policy.most_in_all} beyond "
            "their first."
        )
    return grown
