"""Machines with different clocks: durations are measured, and times are not compared."""

from dataclasses import dataclass
from typing import Any

import pytest
from keyhop.clock import Clock
from keyhop.sharding.manage import TooEarly, add_shards
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.single import BEGIN, Place


@dataclass
class ClockAhead:
    """A clock whose time of day is ahead by so many seconds."""

    clock: Clock
    seconds: float

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def time(self) -> float:
        return self.clock.time() + self.seconds

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)


def with_clock(place: Place, seconds: float, **settings: Any) -> ShardedTable:
    table = place.table(**settings)
    table.requests.clock = ClockAhead(place.clock, seconds)
    return table


@pytest.mark.parametrize("seconds", [120.0, 7200.0, -120.0])
def test_a_writer_with_a_wrong_clock_hides_no_item(place: Place, seconds: float) -> None:
    """The second shard of the key was announced just now, and the reader has older metadata."""
    logs: dict[str, Any] = {"placement": "random", "append_only": True}
    reader, writer = place.table(**logs), with_clock(place, seconds, **logs)
    place.register("/f", 1)
    assert list(reader.query("/f", consistent=True)) == []
    place.register(
        "/f",
        2,
        phase={"S": "announced"},
        writable={"N": "1"},
        readable={"N": "2"},
        last_updated={"N": str(int(BEGIN))},
    )
    for n in range(16):
        writer.put_item(Item={"path": "/f", "at": f"{n:02}"})
        ats = [item["at"] for item in reader.query("/f", consistent=True)]
        assert ats == [f"{m:02}" for m in range(n + 1)]
        place.clock.sleep(0.5)
    assert place.shards("/f").phase != "announced", "the phase must end"


@pytest.mark.parametrize("seconds", [120.0, 7200.0, -120.0])
def test_a_new_process_waits_for_the_length_of_a_step(place: Place, seconds: float) -> None:
    writer = with_clock(place, seconds)
    place.register("/f", 2)  # a key that is new need not be watched
    with pytest.raises(TooEarly) as early:
        add_shards(writer, "/f")
    assert early.value.seconds == 5.0
    place.clock.sleep(early.value.seconds)
    assert add_shards(writer, "/f").shards.phase == "announced"
