"""What the records of a stream come to: traffic by key, and what it says of the keys. Pure.

Memory is bounded: of at most KEPT keys there are counts; when there are more, the half with least
write units is forgotten, so a key that is told of later has at least what is said of it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

from keyhop.dynamodb.values import Key, TypedValue, canonical
from keyhop.report.estimate import Estimate
from keyhop.report.facts import KeyTraffic, Shown, StreamFacts
from keyhop.report.sources.changes import Transitions, changed, counted, write_units
from keyhop.report.sources.key_order import is_today, number_of, order_of
from keyhop.report.statistics.order import kendall, spearman
from keyhop.report.statistics.shares import share_of

Record = Mapping[str, Any]

KEPT = 100_000
SAMPLED = 1_000
"""Keys whose order in time is looked at."""
SHOWN = 100
"""Keys that are told of."""
MAPPED = 64
"""Of these, whose hash place is asked for: they are on the key map."""
PLACED = 128
"""Keys whose place is asked for, to see whether time and place go together: a correlation is known
to 0.2 then.
"""
GROWING = 20
SHORT_SECONDS = 30.0
MINUTE, DAY = 60, 86_400
PLACES = 256
MOMENTS = 100
"""So many different ones show how finely a stream tells them."""


def moment_of(record: Record) -> float:
    """When it was written, epoch seconds, by the second."""
    moment = record["dynamodb"]["ApproximateCreationDateTime"]
    return float(moment.timestamp() if isinstance(moment, datetime) else moment)


@dataclass(frozen=True, slots=True)
class Seen:
    """How a stream was looked at. seconds: that are covered."""

    began: float
    seconds: float
    view: str
    splits: int


@dataclass(slots=True)
class _Key:
    """What one partition key has had. newest: inserts at a sort key greater than all before."""

    value: TypedValue
    records: int = 0
    inserts: int = 0
    removes: int = 0
    units: float = 0.0
    peak: float = 0.0
    second: float = 0.0
    in_second: float = 0.0
    greatest: Any = None
    newest: int = 0
    minutes: dict[int, float] = field(default_factory=dict)

    def take(self, at: float, units: float) -> None:
        self.records += 1
        self.units += units
        minute = int(at // MINUTE * MINUTE)
        self.minutes[minute] = self.minutes.get(minute, 0.0) + units
        if at > self.second:
            self.second, self.in_second = at, 0.0
        if at == self.second:
            self.in_second += units
            self.peak = max(self.peak, self.in_second)

    def insert(self, sort: Any) -> None:
        self.inserts += 1
        if sort is not None and (self.greatest is None or sort > self.greatest):
            self.newest += self.greatest is not None
            self.greatest = sort


@dataclass(frozen=True, slots=True)
class _New:
    """A key that was inserted for the first time in the look. number: of its record."""

    at: float
    number: int
    value: TypedValue


@dataclass(slots=True)
class Traffic:
    """Takes the records of a table's stream, in about their order. partition, sort: names."""

    partition: str
    sort: str | None
    kept: int = KEPT
    records: int = 0
    inserts: int = 0
    dated: int = 0
    _keys: dict[Any, _Key] = field(default_factory=dict)
    _moments: set[float] = field(default_factory=set)
    _hashes: set[int] = field(default_factory=set)
    _shards: Counter[str] = field(default_factory=Counter)
    _items: Counter[int] = field(default_factory=Counter)
    _counts: Counter[tuple[int, str]] = field(default_factory=Counter)
    _transitions: Transitions = field(default_factory=Transitions)
    _sample: list["_New"] = field(default_factory=list)
    _fresh: int = 0
    _chance: Random = field(default_factory=lambda: Random(0))

    def take(self, record: Record, shard: str = "") -> None:
        """One record; nothing of it is kept but its key."""
        told = record["dynamodb"]
        value = told["Keys"][self.partition]
        at = moment_of(record)
        if len(self._moments) < MOMENTS:
            self._moments.add(at)
        key = canonical(value)
        self.records += 1
        self._shards[shard] += 1
        one = self._keys.get(key)
        if one is None:
            one = self._keys[key] = _Key(value)
            self._hashes.add(hash(key))
        one.take(at, write_units(record))
        if record["eventName"] == "INSERT":
            self._insert(one, told, at)
        elif record["eventName"] == "REMOVE":
            one.removes += 1
        self._take_item(key, told)
        if len(self._keys) > self.kept:
            self._forget()

    def _insert(self, one: _Key, told: Mapping[str, Any], at: float) -> None:
        self.inserts += 1
        self.dated += is_today(one.value, at)
        one.insert(order_of(told["Keys"][self.sort]) if self.sort else None)
        if one.records > 1:
            return
        self._fresh += 1  # of keys that are new here, an even sample
        new = _New(at, self.records, one.value)
        if len(self._sample) < SAMPLED:
            self._sample.append(new)
        elif (chosen := self._chance.randrange(self._fresh)) < SAMPLED:
            self._sample[chosen] = new

    def _take_item(self, key: Any, told: Mapping[str, Any]) -> None:
        item = hash((key, canonical(told["Keys"][self.sort]) if self.sort else None))
        self._items[item] += 1
        old, new = told.get("OldImage"), told.get("NewImage")
        if old and new:
            names = changed(old, new)
            self._transitions.take(old, new, names)
            if (name := counted(old, new, names)) is not None:
                self._counts[item, name] += 1

    @property
    def _resolution(self) -> float:
        """Seconds that the stream tells apart: DynamoDB tells seconds, DynamoDB Local minutes."""
        by_minute = len(self._moments) > 1 and all(at % MINUTE == 0 for at in self._moments)
        return MINUTE if by_minute else 1.0

    def _forget(self) -> None:
        """The half of the keys, and of the items, that had least."""
        order = sorted(self._keys.items(), key=lambda pair: -pair[1].units)
        self._keys = dict(order[: self.kept // 2])
        if len(self._items) > self.kept:
            self._items = Counter(dict(self._items.most_common(self.kept // 2)))
        if len(self._counts) > self.kept:
            self._counts = Counter(dict(self._counts.most_common(self.kept // 2)))

    def facts(
        self,
        seen: Seen,
        show: Callable[[Key], Shown],
        place: Callable[[Key], float | None] | None = None,
    ) -> StreamFacts:
        """All of it. place: see stream.look; the busiest keys are asked for first."""
        busiest = self._busiest()
        asked = place or (lambda key: None)
        places = {id(one): asked(self._key(one.value)) for one in busiest[:MAPPED]}
        counter, attribute = self._counter(seen.view)
        return StreamFacts(
            began=seen.began,
            seconds=seen.seconds,
            records=self.records,
            inserts=self.inserts,
            view=seen.view,
            keys=len(self._hashes),
            traffic=tuple(
                KeyTraffic(
                    show(self._key(one.value)),
                    one.records,
                    one.inserts,
                    one.units,
                    one.peak / self._resolution,
                    one.newest,
                    places.get(id(one)),
                )
                for one in busiest
            ),
            shards=dict(self._shards),
            split_shards=seen.splits,
            date_share=share_of(self.dated, self.inserts, "inserts in the stream"),
            tau=self._tau(),
            hash_rho=self._rho(place) if place else None,
            counter=counter,
            counter_attribute=attribute,
            busiest_item=self._busiest_item(),
            reversals=self._transitions.reversals(),
            growth=self._growth(seen.seconds, show),
            heat=_heat([(one, places.get(id(one))) for one in busiest]),
        )

    def _key(self, value: TypedValue) -> Key:
        return {self.partition: value}

    def _busiest(self) -> list[_Key]:
        """Those with most units, and with most in a second."""
        most = sorted(self._keys.values(), key=lambda one: -one.units)[:SHOWN]
        peaks = sorted(self._keys.values(), key=lambda one: -one.peak)[: SHOWN // 5]
        return most + [one for one in peaks if all(one is not other for other in most)]

    def _counter(self, view: str) -> tuple[Estimate | None, str]:
        """None without both images: then it cannot be seen whether a number changed."""
        if "NEW_AND_OLD" not in view or not self.records:
            return None, ""
        most = self._counts.most_common(1)
        (_, attribute), count = most[0] if most else ((0, ""), 0)
        return share_of(count, self.records, "records of one item"), attribute

    def _busiest_item(self) -> Estimate | None:
        most = self._items.most_common(1)
        return share_of(most[0][1], self.records, "records of one item") if most else None

    def _tau(self) -> Estimate | None:
        """Of keys that end in a number, if most do."""
        numbers = [(new, number_of(new.value)) for new in self._sample]
        pairs = [(new, float(number)) for new, number in numbers if number is not None]
        if 2 * len(pairs) < len(self._sample):
            return None
        times = _times([new for new, _ in pairs])
        return kendall(times, [number for _, number in pairs])

    def _rho(self, place: Callable[[Key], float | None]) -> Estimate | None:
        chosen = sorted(self._sample, key=lambda new: new.number)
        step = max(1, len(chosen) // PLACED)
        asked = [(new, place(self._key(new.value))) for new in chosen[::step][:PLACED]]
        pairs = [(new, found) for new, found in asked if found is not None]
        return spearman(_times([new for new, _ in pairs]), [found for _, found in pairs])

    def _growth(self, seconds: float, show: Callable[[Key], Shown]) -> dict[Shown, float]:
        """Of the keys with most inserts."""
        most = sorted(self._keys.values(), key=lambda one: -one.inserts)[:GROWING]
        days = seconds / DAY
        return {
            show(self._key(one.value)): (one.inserts - one.removes) / days
            for one in most
            if one.inserts and days
        }


def _times(new: Sequence[_New]) -> list[float]:
    """Their order in time. By the second, as the stream tells it; of a look that is too short for
    that by the order of records, which over several shards is a rough one.
    """
    if not new or max(one.at for one in new) - min(one.at for one in new) < SHORT_SECONDS:
        return [float(one.number) for one in new]
    return [one.at for one in new]


def _heat(placed: list[tuple[_Key, float | None]]) -> tuple[tuple[float, int, float], ...]:
    """Write units by minute and place, of keys whose place is known."""
    found: Counter[tuple[int, int]] = Counter()
    for one, place in placed:
        if place is not None:
            for minute, units in one.minutes.items():
                found[minute, int(place * PLACES)] += units  # type: ignore[assignment]
    return tuple((float(minute), place, units) for (minute, place), units in sorted(found.items()))
