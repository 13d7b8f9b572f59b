"""What a stream says of one candidate key: its heat, replayed, and its order in time. Pure.

A record's image is turned into the key that it would have; of that a number is kept, by second. A
stream tells seconds, so those of one second are taken as one burst.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keyhop.report.candidates.template import Candidate
from keyhop.report.estimate import Estimate
from keyhop.report.statistics.order import kendall
from keyhop.report.statistics.replay import Replay, Write, replay

MOST_PLACES = 400_000
"""Of keys and seconds, of all candidates together."""
ORDERED = 500
"""Inserts whose order is looked at."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """heat: None if no record has had an image from which the key can be made."""

    heat: Replay | None
    monotonicity: Estimate | None


@dataclass(slots=True)
class Listener:
    """Of one candidate. places: how many it may keep. writes: (second, key) to count and units."""

    candidate: Candidate
    places: int = MOST_PLACES
    writes: dict[tuple[float, int], list[float]] = field(default_factory=dict)
    inserts: list[tuple[float, str]] = field(default_factory=list)
    seen: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def take(self, record: Mapping[str, Any], at: float, units: float) -> None:
        """One record, its second, and the write units that it cost."""
        told = record["dynamodb"]
        item = told.get("NewImage") or told.get("OldImage") or told.get("Keys", {})
        key = self.candidate.of(item)
        if key is None:
            return
        place = at, hash(key)
        if place not in self.writes and len(self.writes) >= self.places:
            return
        counted = self.writes.setdefault(place, [0, 0.0])
        counted[0] += 1
        counted[1] += units
        if record["eventName"] == "INSERT":
            self._sample(at, key)

    def _sample(self, at: float, key: str) -> None:
        """A reservoir: each insert has the same chance."""
        self.seen += 1
        if len(self.inserts) < ORDERED:
            self.inserts.append((at, key))
        elif (place := self.chance.randrange(self.seen)) < ORDERED:
            self.inserts[place] = at, key

    def facts(self) -> Streamed:
        """What was heard; the keys are forgotten."""
        writes = [
            Write(at, key, units / count)
            for (at, key), (count, units) in self.writes.items()
            for _ in range(int(count))
        ]
        ranks = {key: rank for rank, key in enumerate(sorted({key for _, key in self.inserts}))}
        times = [at for at, _ in self.inserts]
        told = Streamed(replay(writes), kendall(times, [ranks[key] for _, key in self.inserts]))
        self.writes, self.inserts = {}, []
        return told


def listening(
    listeners: Sequence[Listener],
    moment_of: Callable[[Mapping[str, Any]], float],
    units_of: Callable[[Mapping[str, Any]], float],
) -> Callable[[Mapping[str, Any]], None]:
    """What a stream's reader calls with each record."""

    def listen(record: Mapping[str, Any]) -> None:
        at, units = moment_of(record), units_of(record)
        if units:
            for one in listeners:
                one.take(record, at, units)

    return listen
