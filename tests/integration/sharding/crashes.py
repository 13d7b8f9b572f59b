"""Clients that fail on purpose, and keys in every phase of a change."""

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
    """The process is gone."""


@dataclass
class Mortal:
    """A client whose process dies before, or after, its `at`-th request."""

    client: Any
    at: int
    after: bool
    seen: int = 0

    def call(self, operation: str, **parameters: Any) -> Any:
        if operation == "describe_table":
            return self.client.call(operation, **parameters)
        self.seen += 1
        if self.seen > self.at or (self.seen == self.at and not self.after):
            raise Crash
        answer = self.client.call(operation, **parameters)
        if self.seen == self.at:
            raise Crash
        return answer


@dataclass
class Far:
    """A client whose requests take time on their way, there and back."""

    client: Any
    clock: VirtualClock
    chance: random.Random
    usual: float = 0.02
    longest: float = 0.4
    seen: int = 0

    def call(self, operation: str, **parameters: Any) -> Any:
        if operation == "describe_table":
            return self.client.call(operation, **parameters)
        self.seen += 1
        self.clock.sleep(self._way())
        try:
            return self.client.call(operation, **parameters)
        finally:
            self.clock.sleep(self._way())

    def _way(self) -> float:
        slow = self.chance.random() < 0.03
        return self.chance.uniform(0, self.longest if slow else self.usual)


CALCULATED = {"placement": "calculated"}
PHASES: dict[str, tuple[int, Callable[[Shards], Shards]]] = {
    "one": (1, lambda one: one),
    "announced": (1, lambda one: one.grown(3, NOW)),
    "opened": (1, lambda one: one.grown(3, NOW).advanced(NOW)),
    "grown": (1, lambda one: one.grown(3, NOW).advanced(NOW).advanced(NOW)),
    "closing": (3, lambda three: three.shrunk(1, NOW)),
    "fenced": (3, lambda three: three.shrunk(1, NOW).advanced(NOW)),
    "moving": (3, lambda three: three.shrunk(1, NOW).advanced(NOW).advanced(NOW)),
    "halted": (3, lambda three: three.shrunk(1, NOW).advanced(NOW).advanced(NOW).reopened(NOW)),
}
"""The count by which items were placed, and what has become of the shards since."""
NOW = 1_700_000_000.0


@dataclass
class Prepared:
    """A key in some phase, with items that a healthy writer has left. versions: by sort key."""

    setup: Setup
    key: str
    versions: dict[str, int] = field(default_factory=dict)

    def user(self, client: Any = None) -> ShardedTable:
        """Another user of the table; one with a Mortal client is never closed."""
        table = self.setup.table(client, patience=5.0, settle_seconds=2.0, **CALCULATED)
        if client is not None:
            self.setup.made.remove(table)
        return table


def prepared(setup: Setup, key: str, phase: str, sorts: Sequence[str]) -> Prepared:
    """Items and metadata as they lie in the tables."""
    count, change = PHASES[phase]
    agreed = setup.made[0].metadata.agreed
    shards = change(Shards.registered(NOW, 2.0, agreed, count))
    now = int(setup.clock.time())
    history = tuple((now - 5000 + n, each) for n, (_, each) in enumerate(shards.history))
    last = now - 1000 if shards.phase is not Phase.STEADY else history[-1][0]
    shards = replace(shards, history=history, last_updated=last)
    client = setup.database.client
    item = {"path": {"S": key}, **to_item(shards)}
    client.put_item(TableName=setup.metadata, Item=item)
    for sort in sorts:
        shard = place_of({"S": key}, {"S": sort}, "jump")(count)
        place = {"path": {"S": f"{key}_{shard}"}, "at": {"S": sort}}
        client.put_item(TableName=setup.name, Item={**place, "version": {"N": "0"}})
    return Prepared(setup, key, dict.fromkeys(sorts, 0))
