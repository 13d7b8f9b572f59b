"""Clients that fail on purpose, and keys in each phase of a change."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keyhop.sharding.key.placement import place_of
from keyhop.sharding.key.shards import Phase, Shards, to_item
from keyhop.sharding.table import ShardedTable

from testing.virtual_time import VirtualClock
from tests.integration.sharding.tables import Setup


class Crash(BaseException):
    """The process has died."""


@dataclass
class DyingClient:
    """A client whose process dies before, or after, its `at`-th request."""

    client: Any
    at: int
    after: bool
    requests: int = 0

    def call(self, operation: str, **parameters: Any) -> Any:
        if operation == "describe_table":
            return self.client.call(operation, **parameters)
        self.requests += 1
        if self.requests > self.at or (self.requests == self.at and not self.after):
            raise Crash
        answer = self.client.call(operation, **parameters)
        if self.requests == self.at:
            raise Crash
        return answer


@dataclass
class SlowClient:
    """A client whose requests and responses take time."""

    client: Any
    clock: VirtualClock
    chance: random.Random
    usual: float = 0.02
    longest: float = 0.4
    requests: int = 0

    def call(self, operation: str, **parameters: Any) -> Any:
        if operation == "describe_table":
            return self.client.call(operation, **parameters)
        self.requests += 1
        self.clock.sleep(self._delay())
        try:
            return self.client.call(operation, **parameters)
        finally:
            self.clock.sleep(self._delay())

    def _delay(self) -> float:
        slow = self.chance.random() < 0.03
        return self.chance.uniform(0, self.longest if slow else self.usual)


CALCULATED = {"placement": "calculated"}
PHASES: dict[str, tuple[int, Callable[[Shards], Shards]]] = {
    "one": (1, lambda shards: shards),
    "announced": (1, lambda shards: shards.grown(3, NOW)),
    "opened": (1, lambda shards: shards.grown(3, NOW).advanced(NOW)),
    "grown": (1, lambda shards: shards.grown(3, NOW).advanced(NOW).advanced(NOW)),
    "closing": (3, lambda shards: shards.shrunk(1, NOW)),
    "fenced": (3, lambda shards: shards.shrunk(1, NOW).advanced(NOW)),
    "moving": (3, lambda shards: shards.shrunk(1, NOW).advanced(NOW).advanced(NOW)),
    "halted": (3, lambda shards: shards.shrunk(1, NOW).advanced(NOW).advanced(NOW).reopened(NOW)),
}
"""The shard count by which items were placed, and the changes of the shards since then."""
NOW = 1_700_000_000.0


@dataclass
class PreparedKey:
    """A key in some phase, with items of a writer that did not fail. versions: by sort key."""

    setup: Setup
    key: str
    versions: dict[str, int] = field(default_factory=dict)

    def user(self, client: Any = None) -> ShardedTable:
        """Return a table of another process. One with a failing client is never closed."""
        table = self.setup.table(client, patience=5.0, settle_seconds=2.0, **CALCULATED)
        if client is not None:
            self.setup.tables.remove(table)
        return table


def prepare(setup: Setup, key: str, phase: str, sorts: Sequence[str]) -> PreparedKey:
    """Write the items and the metadata of a key in this phase."""
    count, change = PHASES[phase]
    agreed = setup.tables[0].metadata.agreed
    shards = change(Shards.registered(NOW, 2.0, agreed, count))
    now = int(setup.clock.time())
    history = tuple((now - 5000 + n, number) for n, (_, number) in enumerate(shards.history))
    last = now - 1000 if shards.phase is not Phase.STEADY else history[-1][0]
    shards = replace(shards, history=history, last_updated=last)
    client = setup.database.client
    item = {"path": {"S": key}, **to_item(shards)}
    client.put_item(TableName=setup.metadata, Item=item)
    for sort in sorts:
        shard = place_of({"S": key}, {"S": sort}, "jump")(count)
        place = {"path": {"S": f"{key}_{shard}"}, "at": {"S": sort}}
        client.put_item(TableName=setup.name, Item={**place, "version": {"N": "0"}})
    return PreparedKey(setup, key, dict.fromkeys(sorts, 0))
