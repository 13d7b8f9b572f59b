"""Tests of a stream that is replayed with a candidate key, also against the partition model."""

import math
import random
from typing import Any

import pytest
from keyhop.report.candidates import BURST_SECONDS, RATE, Listener, Streamed, candidate, listening

from testing.marks import prove
from testing.partitions import Partitions


def record(at: float, item: dict[str, Any], event: str = "INSERT") -> dict[str, Any]:
    images = {"OldImage" if event == "REMOVE" else "NewImage": item}
    return {"eventName": event, "dynamodb": {"ApproximateCreationDateTime": at, **images}}


def replayed(text: str, records: list[dict[str, Any]], units: float = 1.0) -> Streamed:
    listener = Listener(candidate(text))
    listen = listening(
        [listener],
        lambda change: change["dynamodb"]["ApproximateCreationDateTime"],
        lambda change: units,
    )
    for change in records:
        listen(change)
    return listener.facts()


class Clock:
    """The clock of the partition model."""

    at = 0.0

    def monotonic(self) -> float:
        return self.at

    def time(self) -> float:
        return self.at


UNITS = 200
BODY = "x" * (UNITS * 1024 - 200)
LOADS = {
    "even": [(1 / 40, 40)],
    "one key, at four times its rate": [(0.4, 1), (0.6, 400)],
    "three keys": [(0.6, 3), (0.4, 400)],
    "all in one": [(1.0, 1)],
}
"""The shares of the writes, each with the number of keys that it is spread over."""


def load(shares: list[tuple[float, int]], burst: bool) -> list[tuple[float, str]]:
    """Return times and keys of writes for ten minutes, with 10,000 units a second on average.

    With a burst, all writes of a minute are in its first third.
    """
    chance = random.Random(6)
    writes = []
    for second in range(600):
        if burst and second % 60 >= 20:
            continue
        for _ in range((3 if burst else 1) * 10_000 // UNITS):
            group = chance.choices(range(len(shares)), [share for share, _ in shares])[0]
            key = f"{group}-{chance.randrange(shares[group][1])}"
            writes.append((second + chance.random(), key))
    return sorted(writes)


@pytest.mark.parametrize(
    ("shares", "burst"),
    [
        *(
            (shares, False) if name == "three keys" else prove(shares, False)
            for name, shares in LOADS.items()
        ),
        (LOADS["three keys"], True),
    ],
)
def test_the_throttled_share_is_within_five_points_of_the_partition_model(
    shares: list[tuple[float, int]], burst: bool
):
    """The stream has times in whole seconds, and the model has exact times."""
    writes = load(shares, burst)
    clock = Clock()
    model = Partitions("", rate=RATE, burst=RATE * BURST_SECONDS, clock=clock)
    model.schemas["T"] = ("pk", "arn")
    for clock.at, key in writes:
        model.judge("PutItem", {"TableName": "T", "Item": {"pk": {"S": key}, "body": {"S": BODY}}})
    refused, written = sum(model.refused.values()), sum(model.units.values())
    records = [record(math.floor(at), {"to": {"S": key}}) for at, key in writes]
    heat = replayed("PK=TO#{to}", records, units=UNITS).heat
    assert heat.throttled.value == pytest.approx(refused / (refused + written), abs=0.05)


def test_shards_reduce_the_heat_of_a_key():
    records = [
        record(second, {"to": {"S": "hot"}, "id": {"S": f"{second}-{at}"}})
        for second in range(30)
        for at in range(40)
    ]
    single = replayed("PK={to}", records, units=100).heat
    sharded = replayed("PK={to}#{hash(id)%8}", records, units=100).heat
    assert single.peak == 4_000
    assert sharded.peak < 1_500
    assert single.throttled.high > 0.5
    assert sharded.throttled.high < 0.1


def test_a_key_that_grows_with_time_is_monotonic():
    records = [
        record(at, {"ts": {"N": str(1_795_000_000 + at)}, "id": {"S": f"{hash((at, 1))}"}})
        for at in range(400)
    ]
    grows = replayed("PK=T#{ts:minute}", records).monotonicity
    mixed = replayed("PK={id}", records).monotonicity
    assert grows.low > 0.7
    assert -0.2 < mixed.value < 0.2


def test_deletions_count_by_their_old_image_and_records_without_images_by_their_key():
    records = [record(1, {"to": {"S": "a"}}, "REMOVE") for _ in range(3)]
    keys = {"eventName": "MODIFY", "dynamodb": {"Keys": {"to": {"S": "a"}}}}
    keys["dynamodb"]["ApproximateCreationDateTime"] = 1  # type: ignore[index]
    heat = replayed("PK={to}", [*records, keys]).heat
    assert heat.peak == 4


def test_records_without_the_attribute_give_no_facts():
    assert replayed("PK={other}", [record(1, {"to": {"S": "a"}})]) == Streamed(None, None)


def test_the_memory_of_a_listener_is_bounded_and_has_no_values():
    listener = Listener(candidate("PK={to}"), places=10)
    for at in range(2_000):
        listener.take(record(at, {"to": {"S": f"canary{at}"}}), at, 1.0)
    assert len(listener.writes) == 10
    assert len(listener.inserts) == 10
    assert listener.facts().heat is not None
    assert "canary" not in repr(listener)
