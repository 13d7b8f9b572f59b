"""32 writers on one key at five times a partition's budget: the shards become as many as needed."""

import math
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from keyhop.sharding.key.policy import Policy

from testing.databases import Database
from tests.integration.sharding.tables import KEY, Setup, sharded

# In `make test`, test_audit_log.py shows the same at a sixth of the rates.
pytestmark = [pytest.mark.prove, pytest.mark.timeout(600)]

WRITERS = 32
BUDGET = 20.0
OFFERED = 5 * BUDGET
NEEDED = math.ceil(OFFERED / BUDGET)
SECONDS = 60.0
QUIET_SECONDS = 8
COOLDOWN = 3.0
SETTLE = 2.0


def writer(setup: Setup, number: int, done: list[str], **settings: Any) -> Callable[[], None]:
    """Puts items of its own at its share of the offered load; done: those acknowledged."""
    clock, chance = setup.clock, random.Random(number)
    policy = Policy(cooldown=COOLDOWN, window=5.0)
    table = setup.table(policy=policy, settle_seconds=SETTLE, patience=60, **settings)
    pause = WRITERS / OFFERED
    ends = clock.time() + SECONDS

    def write() -> None:
        clock.sleep(chance.uniform(0, pause))
        item = 0
        while clock.time() < ends:
            at = f"{number:02}-{item:05}"
            table.put_item(Item={"path": KEY, "at": at, "item": item})
            done.append(at)
            item += 1
            clock.sleep(pause * chance.uniform(0.5, 1.5))

    return write


@pytest.mark.parametrize(
    "settings",
    [
        {"placement": "random", "append_only": True},
        {"placement": "calculated"},
    ],
    ids=["random-append-only", "calculated"],
)
def test_a_hot_key_gets_the_shards_that_it_needs(
    dynamodb: Database, table_name: str, settings: dict[str, Any]
) -> None:
    with sharded(dynamodb, table_name, rate=BUDGET, burst=2 * BUDGET) as setup:
        began, done = setup.clock.time(), list[str]()
        setup.clock.run([writer(setup, number, done, **settings) for number in range(WRITERS)])
        shards = setup.shards()
        told = [(at - int(began), count) for at, count in shards.history]
        print(told, dict(setup.model.requests), dict(setup.tally()))

        assert NEEDED <= shards.number <= NEEDED + 2, told
        assert len(told) > 1
        assert all(then - at >= COOLDOWN for (at, _), (then, _) in pairwise(told)), told
        assert setup.tally()["shards_added"] == shards.number - 1

        refused = setup.model.by_second(setup.name, refused=True)
        written = setup.model.by_second(setup.name)
        ends = int(began + SECONDS)
        last = range(ends - QUIET_SECONDS, ends)
        assert sum(refused[second] for second in last) == 0, dict(refused)
        assert sum(written[second] for second in last) >= 0.8 * OFFERED * QUIET_SECONDS

        reader = setup.table(**settings)
        read = [item["at"] for item in reader.query(KEY, consistent=True)]
        assert read == sorted(done)
        copies = setup.copies()
        assert copies.keys() == set(done)
        assert all(len(shards) == 1 for shards in copies.values())
