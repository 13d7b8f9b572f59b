"""What a stream shows of one candidate key: its heat, replayed, and its order in time. Pure.

From each record's image the key that the item would have is made. Its hash is kept with the second
of the record. Records of one second count as one burst, as a stream has no finer times.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.units import PARTITION_WRITE_UNITS
from keyhop.report.candidates.template import Candidate
from keyhop.report.estimate import Estimate
from keyhop.report.statistics.order import kendall

MOST_PLACES = 400_000
"""The maximum number of pairs of key and second, for all candidates together."""
ORDERED = 500
"""The number of inserts whose order is examined."""
RATE = float(PARTITION_WRITE_UNITS)
"""The write units that one partition accepts in a second."""
BURST_SECONDS = 300.0
"""A partition saves the unused write units of this many seconds."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The throttles of a replayed stream.

    Attributes:
        throttled: The share of the write units.
        peak: The write units of the busiest second of a key.
        keys: The number of throttled keys.
    """

    throttled: Estimate
    peak: float
    keys: int


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


@dataclass(frozen=True, slots=True)
class Write:
    """A write: its time in epoch seconds, its key, and the write units that it costs."""

    time: float
    key: Hashable
    units: float


def replay(
    writes: Sequence[Write], rate: float = RATE, burst: float = BURST_SECONDS
) -> Replay | None:
    """Return the throttles that these writes would meet; None without writes.

    Each key has a bucket of tokens, as a partition that holds this key alone: `rate` write units a
    second, and up to `burst` seconds of unused ones. Splits of partitions are ignored. The value
    and the low end assume a partition that was at rest before, with a full bucket; the high end
    assumes one that had saved the units of a second.
    """
    if not writes:
        return None
    order = sorted(writes, key=lambda write: write.time)
    total = sum(write.units for write in order)
    rested, keys = _refused(order, rate, burst * rate, burst * rate)
    busy, _ = _refused(order, rate, burst * rate, rate)
    share = rested / total
    estimate = Estimate(
        share, share, max(share, busy / total), len(order), "stream replayed per key"
    )
    return Replay(estimate, _peak(order), keys)


def _refused(order: Iterable[Write], rate: float, burst: float, saved: float) -> tuple[float, int]:
    buckets: dict[Hashable, tuple[float, float]] = {}
    refused = 0.0
    keys: set[Hashable] = set()
    for write in order:
        tokens, at = buckets.get(write.key, (saved, write.time))
        tokens = min(burst, tokens + (write.time - at) * rate)
        if tokens + 1e-9 >= min(write.units, burst):
            tokens -= write.units
        else:
            refused += write.units
            keys.add(write.key)
        buckets[write.key] = (tokens, write.time)
    return refused, len(keys)


def _peak(order: Iterable[Write]) -> float:
    seconds: defaultdict[tuple[Hashable, int], float] = defaultdict(float)
    for write in order:
        seconds[write.key, int(write.time)] += write.units
    return max(seconds.values())
