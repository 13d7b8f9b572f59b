"""Machines whose clocks do not agree: durations are measured, and moments are not compared."""

from dataclasses import dataclass
from typing import Any

import pytest
from keyhop.clock import Clock
from keyhop.sharding.manage import TooEarly, add_shards
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.single import BEGIN, Place


@dataclass
class Ahead:
    """A clock that tells another time of day. seconds: by how much."""

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
    table.requests.clock = Ahead(place.clock, seconds)
    return table


@pytest.mark.parametrize("seconds", [120.0, 7200.0, -120.0])
def test_a_writer_whose_clock_is_wrong_hides_nothing(place: Place, seconds: float) -> None:
    """The key has been announced to have two shards a moment ago, and a reader does not know."""
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
        found = [item["at"] for item in reader.query("/f", consistent=True)]
        assert found == [f"{m:02}" for m in range(n + 1)]
        place.clock.sleep(0.5)
    assert place.shards("/f").phase != "announced", "it goes on after a while"


@pytest.mark.parametrize("seconds", [120.0, 7200.0, -120.0])
def test_who_comes_first_watches_for_as_long_as_a_step_lasts(place: Place, seconds: float) -> None:
    writer = with_clock(place, seconds)
    place.register("/f", 2)  # a key that is new need not be watched
    with pytest.raises(TooEarly) as early:
        add_shards(writer, "/f")
    assert early.value.seconds == 5.0
    place.clock.sleep(early.value.seconds)
    assert add_shards(writer, "/f").shards.phase == "announced"
