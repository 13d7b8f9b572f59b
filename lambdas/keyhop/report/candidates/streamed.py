"""What a stream shows of one candidate key: its heat, replayed, and its order in time. Pure.

From each record's image the key that the item would have is made. Its hash is kept with the second
of the record. Records of one second count as one burst, as a stream has no finer times.
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
"""The maximum number of pairs of key and second, for all candidates together."""
ORDERED = 500
"""The number of inserts whose order is examined."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """The heat and the order of one candidate key in a stream.

    Attributes:
        heat: The replay; None if no record had an image from which the key can be made.
        monotonicity: The correlation of keys with time; None if not known.
    """

    heat: Replay | None
    monotonicity: Estimate | None


@dataclass(slots=True)
class Listener:
    """Collects what a stream shows of one candidate key.

    Attributes:
        candidate: The candidate key.
        places: The maximum number of entries in `writes`.
        writes: Count and write units by second and hash of the key.
        inserts: A sample of the inserts: second and key.
    """

    candidate: Candidate
    places: int = MOST_PLACES
    writes: dict[tuple[float, int], list[float]] = field(default_factory=dict)
    inserts: list[tuple[float, str]] = field(default_factory=list)
    seen: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def take(self, record: Mapping[str, Any], at: float, units: float) -> None:
        """Add one record, with its second and the write units that it cost."""
        change = record["dynamodb"]
        item = change.get("NewImage") or change.get("OldImage") or change.get("Keys", {})
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
        """Add an insert to a reservoir, where each insert has the same chance."""
        self.seen += 1
        if len(self.inserts) < ORDERED:
            self.inserts.append((at, key))
        elif (place := self.chance.randrange(self.seen)) < ORDERED:
            self.inserts[place] = at, key

    def facts(self) -> Streamed:
        """Return what the stream shows, and forget the keys."""
        writes = [
            Write(at, key, units / count)
            for (at, key), (count, units) in self.writes.items()
            for _ in range(int(count))
        ]
        ranks = {key: rank for rank, key in enumerate(sorted({key for _, key in self.inserts}))}
        times = [at for at, _ in self.inserts]
        streamed = Streamed(replay(writes), kendall(times, [ranks[key] for _, key in self.inserts]))
        self.writes, self.inserts = {}, []
        return streamed


def listening(
    listeners: Sequence[Listener],
    moment_of: Callable[[Mapping[str, Any]], float],
    units_of: Callable[[Mapping[str, Any]], float],
) -> Callable[[Mapping[str, Any]], None]:
    """Return the function that a stream's reader calls with each record."""

    def listen(record: Mapping[str, Any]) -> None:
        at, units = moment_of(record), units_of(record)
        if units:
            for listener in listeners:
                listener.take(record, at, units)

    return listen
