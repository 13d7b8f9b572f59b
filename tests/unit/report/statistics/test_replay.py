"""Tests of a stream that is replayed through a token bucket for each key."""

import random

import pytest
from keyhop.report.candidates import Write, replay

from testing.partitions import Partitions


def test_writes_over_the_rate_of_a_key_are_throttled() -> None:
    heat = replay([Write(at, "hot", 100) for at in range(1_000)], rate=50, burst=1)
    assert heat.throttled.value == pytest.approx(0.5, abs=0.01)
    assert heat.peak == 100
    assert heat.keys == 1


def test_the_unused_capacity_of_five_minutes_carries_a_burst() -> None:
    heat = replay([Write(at, "hot", 2_000) for at in range(60)])
    assert heat.throttled.value == 0
    assert heat.throttled.high > 0.4


def test_writes_spread_over_four_keys_are_not_throttled() -> None:
    writes = [Write(at, at % 4, 500) for at in range(400) for _ in range(8)]
    assert replay(writes, burst=1).throttled.value > 0.7
    writes = [Write(at, number % 4, 500) for at in range(400) for number in range(8)]
    assert replay(writes, burst=1).throttled.high == 0
    assert replay([]) is None


def writes_of(spread: int, seed: int) -> list[Write]:
    """Return two minutes with a hot key at 60 of 100 writes a second, and a burst of the others."""
    chance = random.Random(seed)
    writes = []
    for second in range(120):
        for _ in range(150 if 60 <= second < 90 else 100):
            key = 0 if chance.random() < 0.6 else chance.randrange(1, 50)
            place = f"{key}#{chance.randrange(spread)}"
            writes.append(Write(second + chance.random(), place, chance.choice((1, 1, 2, 3))))
    return sorted(writes, key=lambda write: write.time)


class StreamClock:
    """A clock that shows the time of the record being replayed."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def model_refusals(writes: list[Write], rate: float, burst: float) -> float:
    """Return the share of the units that the partition model refuses at the times of the writes."""
    clock = StreamClock()
    model = Partitions(
        "", rate=rate, burst=rate * burst, clock=clock, schemas={"T": ("pk", "arn:aws:dynamodb:T")}
    )
    for write in writes:
        clock.now = write.time
        size = int(write.units) * 1024 - 64
        model.judge(
            "PutItem",
            {"TableName": "T", "Item": {"pk": {"S": str(write.key)}, "d": {"S": "x" * size}}},
        )
    refused, written = sum(model.refused.values()), sum(model.units.values())
    return refused / (refused + written)


@pytest.mark.parametrize(
    ("spread", "rate", "burst"), [(1, 40, 1), (1, 40, 5), (1, 80, 30), (2, 40, 1), (4, 40, 1)]
)
def test_the_partition_model_refuses_as_much(spread: int, rate: float, burst: float) -> None:
    """Check bar 6: within 5 points, although a stream has times in whole seconds."""
    writes = writes_of(spread, 1)
    stamped = [Write(int(write.time), write.key, write.units) for write in writes]
    throttled = replay(stamped, rate, burst).throttled
    assert throttled.value == pytest.approx(model_refusals(writes, rate, burst), abs=0.05)
