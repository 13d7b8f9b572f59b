"""A stream replayed under a candidate key, held to the partition model; and its order in time."""

import math
import random
from typing import Any

import pytest
from keyhop.report.candidates import BURST_SECONDS, RATE, Listener, Streamed, candidate, listening

from testing.marks import prove
from testing.partitions import Partitions


def record(at: float, item: dict[str, Any], event: str = "INSERT", **more: Any) -> dict[str, Any]:
    images = {"OldImage" if event == "REMOVE" else "NewImage": item}
    return {"eventName": event, "dynamodb": {"ApproximateCreationDateTime": at, **images}, **more}


def heard(text: str, records: list[dict[str, Any]], units: float = 1.0) -> Streamed:
    listener = Listener(candidate(text))
    listen = listening(
        [listener], lambda one: one["dynamodb"]["ApproximateCreationDateTime"], lambda one: units
    )
    for one in records:
        listen(one)
    return listener.facts()


class Clock:
    """Of the partition model."""

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
"""Shares of the writes, and over how many keys each is spread."""


def load(shares: list[tuple[float, int]], burst: bool) -> list[tuple[float, str]]:
    """Times and keys of ten minutes, 10,000 units a second. burst: in a third of each minute."""
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
def test_the_throttled_share_is_that_of_the_partition_model(
    shares: list[tuple[float, int]], burst: bool
):
    """Within five points. The stream tells whole seconds; the model sees the moment."""
    writes = load(shares, burst)
    clock = Clock()
    model = Partitions("", rate=RATE, burst=RATE * BURST_SECONDS, clock=clock)
    model.schemas["T"] = ("pk", "arn")
    for clock.at, key in writes:
        model.judge("PutItem", {"TableName": "T", "Item": {"pk": {"S": key}, "body": {"S": BODY}}})
    refused, let = sum(model.refused.values()), sum(model.units.values())
    records = [record(math.floor(at), {"to": {"S": key}}) for at, key in writes]
    told = heard("PK=TO#{to}", records, units=UNITS).heat
    assert told.throttled.value == pytest.approx(refused / (refused + let), abs=0.05)


def test_a_shard_takes_the_heat_from_a_key():
    records = [
        record(second, {"to": {"S": "hot"}, "id": {"S": f"{second}-{at}"}})
        for second in range(30)
        for at in range(40)
    ]
    one = heard("PK={to}", records, units=100).heat
    four = heard("PK={to}#{hash(id)%8}", records, units=100).heat
    assert one.peak == 4_000
    assert four.peak < 1_500
    assert one.throttled.high > 0.5
    assert four.throttled.high < 0.1


def test_a_key_that_grows_with_time_is_told():
    records = [
        record(at, {"ts": {"N": str(1_795_000_000 + at)}, "id": {"S": f"{hash((at, 1))}"}})
        for at in range(400)
    ]
    grows = heard("PK=T#{ts:minute}", records).monotonicity
    mixed = heard("PK={id}", records).monotonicity
    assert grows.low > 0.7
    assert -0.2 < mixed.value < 0.2


def test_deletes_count_by_what_was_there_and_keys_alone_may_suffice():
    records = [record(1, {"to": {"S": "a"}}, "REMOVE") for _ in range(3)]
    keys = {"eventName": "MODIFY", "dynamodb": {"Keys": {"to": {"S": "a"}}}}
    keys["dynamodb"]["ApproximateCreationDateTime"] = 1  # type: ignore[index]
    heat = heard("PK={to}", [*records, keys]).heat
    assert heat.peak == 4


def test_without_images_nothing_is_said():
    told = heard("PK={other}", [record(1, {"to": {"S": "a"}})])
    assert told == Streamed(None, None)


def test_what_it_keeps_is_bounded_and_forgotten():
    listener = Listener(candidate("PK={to}"), places=10)
    for at in range(2_000):
        listener.take(record(at, {"to": {"S": f"canary{at}"}}), at, 1.0)
    assert len(listener.writes) == 10
    assert len(listener.inserts) == 10
    assert listener.facts().heat is not None
    assert "canary" not in repr(listener)
