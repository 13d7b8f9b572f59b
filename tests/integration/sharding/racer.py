"""The work of each process that races to add shards."""

import traceback
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.client import dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.sharding.key.shards import Phase
from keyhop.sharding.manage import TooEarly, add_shards
from keyhop.sharding.store.metadata import MetadataChanged
from keyhop.sharding.table import ShardedTable

from testing.virtual_time import JumpingClock

BARRIER_SECONDS = 60.0


@dataclass
class StartedTogether:
    """A client that waits for all other clients before it announces more shards."""

    client: Any
    barrier: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def call(self, operation: str, **parameters: Any) -> Any:
        phase = parameters.get("ExpressionAttributeValues", {}).get(":phase")
        if operation == "update_item" and phase == {"S": "announced"}:
            self.barrier.wait(BARRIER_SECONDS)
        return self.client.call(operation, **parameters)


@dataclass
class Outcome:
    """The outcome of one round.

    number: the shard count afterwards. reads_after: the reads of metadata after the race.
    """

    won: bool
    number: int
    lost: int
    reads_after: int
    refused_in_the_cooldown: bool


def race(
    url: str, name: str, key: str, rounds: int, now: float, barrier: Any, results: Any
) -> None:
    """Add a shard in each round, at the same moment as all other processes."""
    try:
        client = StartedTogether(dynamodb_client(Endpoint(url=url)), barrier)
        clock = JumpingClock(now)
        table = ShardedTable(
            name, metadata=f"{name}-shards", client=client, clock=clock, settle_seconds=2
        )
        results.put([_round(table, clock, key, barrier) for _ in range(rounds)])
    except BaseException:
        barrier.abort()
        results.put(traceback.format_exc())


def _round(table: ShardedTable, clock: JumpingClock, key: str, barrier: Any) -> Outcome:
    barrier.wait(BARRIER_SECONDS)
    lost_before = table.usage.counters["races_lost"]
    while True:
        try:
            reads = table.usage.counters["metadata_reads"] + 1  # one before the race
            record, won = add_shards(table, key), True
            break
        except TooEarly as early:
            clock.sleep(early.seconds)
        except MetadataChanged as error:
            record, won = error.current, False
            break
    reads = table.usage.counters["metadata_reads"] - reads
    refused = False
    try:
        add_shards(table, key)
    except TooEarly:
        refused = True
    outcome = Outcome(
        won,
        record.shards.number,
        table.usage.counters["races_lost"] - lost_before,
        reads,
        refused,
    )
    barrier.wait(BARRIER_SECONDS)
    while record.shards.phase is not Phase.STEADY:
        clock.sleep(1)
        record = table.metadata.of({"S": key}, fresh=True)
        record = table.writer.throttle_tracker.pass_on({"S": key}, record)
    return outcome
