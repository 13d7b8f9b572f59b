"""The traffic of a stream by key, and what its records show about the keys.

Memory is bounded: there are counts of up to KEPT keys. With more keys, the half with the fewest
write units is forgotten, so a key that comes again has at least the reported traffic. No value is
kept but keys: compared values are forgotten, or kept as a hash.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from keyhop.dynamodb.units import WRITE_UNIT_BYTES
from keyhop.dynamodb.values import Key, TypedValue, canonical, same, size_of
from keyhop.report.estimate import Estimate
from keyhop.report.facts import KeyTraffic, Shown, StreamFacts
from keyhop.report.forms import dates_of
from keyhop.report.statistics.order import Reservoir, kendall, spearman
from keyhop.report.statistics.shares import share_of

Record = Mapping[str, Any]

KEPT = 100_000
SAMPLED = 1_000
"""The number of new keys, and of keys at their first write, whose order in time is examined."""
SHOWN = 100
"""The number of keys that are reported."""
MAPPED = 64
"""The number of these whose hash place is requested, for the key map."""
PLACED = 128
"""The number of keys whose place is requested for the correlation of time and place, which is known
to 0.2 then.
"""
GROWING = 20
SHORT_MOMENTS = 30
"""A look at fewer moments of the stream's resolution than this is short."""
SLICE = 50
"""With this many records, the busiest stream shard of a moment is not so by chance."""
MINUTE, DAY = 60, 86_400
PLACES = 256
MOMENTS = 100
"""This many different times show the resolution of a stream."""
JUMPY = 1.0
"""The ratio of the mean square of a number's steps to its variance (von Neumann's ratio). Near 0 it
counts, up or down; near 2 each value is independent of the one before, as those of a measurement.
"""
MOST_STATUSES = 20
"""The maximum number of values of a status: attributes with more have no transitions."""
MOST_ATTRIBUTES = 100
LONGEST_STATUS = 40
RARE = 0.25
"""A transition is rare up to this share of each transition that leads the opposite way."""
MOST_HELD = 10_000
"""With more keys the rare ones are forgotten: frequent keys come again."""
MOST = 5
ZONES = (timedelta(hours=-12), timedelta(), timedelta(hours=14))
_NUMBER = re.compile(r"([0-9]{1,18})$")
_NO_NUMBER = re.compile(
    r"(^|\D)(19|20)\d\d([-/.](0[1-9]|1[0-2])([-/.]\d\d)?|(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))"
    r"([T ].*)?$"
)
"""A date, with separators or of eight digits. It numbers days instead of ids."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d")
_TTL = ("Service", "dynamodb.amazonaws.com")


def moment_of(record: Record) -> float:
    """Return the time of a write in epoch seconds, to the second."""
    moment = record["dynamodb"]["ApproximateCreationDateTime"]
    return float(moment.timestamp() if isinstance(moment, datetime) else moment)


def write_units(record: Mapping[str, Any]) -> float:
    """Return the write units of a record, by the larger image in the view; at least 1.

    An item that TTL deleted costs nothing. A transaction costs twice, which is not visible.
    """
    user = record.get("userIdentity") or {}
    kind = user.get("Type") or user.get("type"), user.get("PrincipalId") or user.get("principalId")
    if record["eventName"] == "REMOVE" and kind == _TTL:
        return 0.0
    change = record["dynamodb"]
    largest = max(size_of(change.get(image) or {}) for image in ("NewImage", "OldImage"))
    return float(max(1, math.ceil(largest / WRITE_UNIT_BYTES)))


@dataclass(slots=True)
class _Key:
    """The traffic of a partition key.

    Attributes:
        newest: The inserts with a sort key greater than all of earlier seconds, or in the first
            second than all before. Ids of the same millisecond, or second, have no order.
    """

    value: TypedValue
    records: int = 0
    inserts: int = 0
    removes: int = 0
    units: float = 0.0
    peak: float = 0.0
    second: float = 0.0
    in_second: float = 0.0
    greatest: Any = None
    greatest_before: Any = None
    newest: int = 0
    minutes: dict[int, float] = field(default_factory=dict)

    def take(self, at: float, units: float) -> None:
        self.records += 1
        self.units += units
        minute = int(at // MINUTE * MINUTE)
        self.minutes[minute] = self.minutes.get(minute, 0.0) + units
        if at > self.second:
            self.second, self.in_second, self.greatest_before = at, 0.0, self.greatest
        if at == self.second:
            self.in_second += units
            self.peak = max(self.peak, self.in_second)

    def insert(self, sort: Any) -> None:
        self.inserts += 1
        if sort is None:
            return
        before = self.greatest if self.greatest_before is None else self.greatest_before
        self.newest += before is not None and sort > before
        self.greatest = sort if self.greatest is None else max(self.greatest, sort)


@dataclass(slots=True)
class _Number:
    """The values of one item's number in the order of its writes, by their sums."""

    writes: int = 0
    mean: float = 0.0
    squares: float = 0.0
    steps: float = 0.0

    def take(self, old: float, new: float) -> None:
        self.writes += 1
        step = new - self.mean
        self.mean += step / self.writes
        self.squares += step * (new - self.mean)
        self.steps += (new - old) ** 2

    @property
    def counts(self) -> bool:
        """Return whether it is a count rather than a measured value (see JUMPY)."""
        return self.steps <= JUMPY * self.squares


@dataclass(frozen=True, slots=True)
class _First:
    """A key at its first record, with the number of that record."""

    at: float
    number: int
    value: TypedValue


@dataclass(slots=True)
class Transitions:
    """The transitions between short texts by attribute, as hashes."""

    _of: dict[str, Counter[tuple[int, int]] | None] = field(default_factory=dict)

    def take(self, old: Key, new: Key, names: Iterable[str]) -> None:
        """Add a change of an item, with the result of `changed`."""
        for name in names:
            before, after = old.get(name, {}).get("S"), new.get(name, {}).get("S")
            if before is None or after is None or is_moment(new, name):
                continue
            if name not in self._of and len(self._of) >= MOST_ATTRIBUTES:
                continue
            counts = self._of.setdefault(name, Counter())
            if counts is None:
                continue
            pair = hash(before), hash(after)
            is_new = pair not in counts
            counts[pair] += 1
            if is_new and not self._is_status(counts, before, after):
                self._of[name] = None

    def _is_status(self, counts: Counter[tuple[int, int]], before: str, after: str) -> bool:
        values = {value for pair in counts for value in pair}
        return len(values) <= MOST_STATUSES and max(len(before), len(after)) <= LONGEST_STATUS

    def reversals(self) -> dict[str, tuple[int, int]]:
        """Return by attribute the number of transitions, and of the rare ones that go back.

        A transition goes back if others lead the opposite way, in one step or in several.
        """
        return {
            name: (counts.total(), sum(_backwards(counts, pair) for pair in counts))
            for name, counts in self._of.items()
            if counts
        }


@dataclass(slots=True)
class Traffic:
    """Collects the records of a table's stream, in approximate order."""

    partition: str
    sort: str | None
    key_limit: int = KEPT
    records: int = 0
    inserts: int = 0
    dated: int = 0
    _keys: dict[Any, _Key] = field(default_factory=dict)
    _moments: set[float] = field(default_factory=set)
    _seconds: Counter[float] = field(default_factory=Counter)
    _turns: dict[float, Counter[str]] = field(default_factory=dict)
    _hashes: set[int] = field(default_factory=set)
    _shards: Counter[str] = field(default_factory=Counter)
    _counts: dict[tuple[int, str], list[_Number]] = field(default_factory=dict)
    _transitions: Transitions = field(default_factory=Transitions)
    _inserted: Reservoir[_First] = field(default_factory=lambda: Reservoir(SAMPLED))
    _written: Reservoir[_First] = field(default_factory=lambda: Reservoir(SAMPLED))

    def take(self, record: Record, shard: str = "") -> None:
        """Add a record, of which only the key is kept."""
        change = record["dynamodb"]
        value = change["Keys"][self.partition]
        at = moment_of(record)
        if len(self._moments) < MOMENTS:
            self._moments.add(at)
        key = canonical(value)
        self.records += 1
        self._shards[shard] += 1
        self._turns.setdefault(at, Counter())[shard] += 1
        traffic = self._keys.get(key)
        if traffic is None:
            traffic = self._keys[key] = _Key(value)
            self._hashes.add(hash(key))
        units = write_units(record)
        traffic.take(at, units)
        self._seconds[at] += units  # type: ignore[assignment]
        if traffic.records == 1:
            self._written.offer(_First(at, self.records, value))
        if record["eventName"] == "INSERT":
            self._insert(traffic, change, at)
        elif record["eventName"] == "REMOVE":
            traffic.removes += 1
        self._take_item(key, change)
        if len(self._keys) > self.key_limit:
            self._forget()

    def _insert(self, traffic: _Key, change: Mapping[str, Any], at: float) -> None:
        self.inserts += 1
        self.dated += is_today(traffic.value, at)
        traffic.insert(order_of(change["Keys"][self.sort]) if self.sort else None)
        if traffic.records == 1:
            self._inserted.offer(_First(at, self.records, traffic.value))

    def _take_item(self, key: Any, change: Mapping[str, Any]) -> None:
        item = hash((key, canonical(change["Keys"][self.sort]) if self.sort else None))
        old, new = change.get("OldImage"), change.get("NewImage")
        if old and new:
            names = changed(old, new)
            self._transitions.take(old, new, names)
            if numbers := counted(old, new, names):
                series = self._counts.setdefault(
                    (item, ", ".join(numbers)), [_Number() for _ in numbers]
                )
                for number, name in zip(series, numbers, strict=True):
                    number.take(float(old[name]["N"]), float(new[name]["N"]))

    @property
    def _resolution(self) -> float:
        """Return the resolution in seconds: 1 in DynamoDB, 60 in DynamoDB Local."""
        by_minute = len(self._moments) > 1 and all(at % MINUTE == 0 for at in self._moments)
        return MINUTE if by_minute else 1.0

    def _forget(self) -> None:
        """Forget the half of the keys, and of the counters, with the least traffic."""
        order = sorted(self._keys.items(), key=lambda pair: -pair[1].units)
        self._keys = dict(order[: self.key_limit // 2])
        if len(self._counts) > self.key_limit:
            busiest = sorted(self._counts.items(), key=lambda pair: -pair[1][0].writes)
            self._counts = dict(busiest[: self.key_limit // 2])

    def facts(
        self,
        began: float,
        seconds: float,
        view: str,
        show: Callable[[Key], Shown],
        place: Callable[[Key], float | None] | None = None,
        split_shards: int = 0,
    ) -> StreamFacts:
        """Return the facts of a stream.

        Args:
            began: The beginning of the window in epoch seconds.
            seconds: The covered time.
            view: The view type of the stream.
            show: Writes a key.
            place: Finds the hash place of a key. The busiest keys are placed first.
            split_shards: The number of shards whose parent has another child as well.
        """
        busiest = self._busiest()
        place_of = place or (lambda key: None)
        places = {id(traffic): place_of(self._key(traffic.value)) for traffic in busiest[:MAPPED]}
        counter, attribute = self._counter(view)
        return StreamFacts(
            began=began,
            seconds=seconds,
            records=self.records,
            inserts=self.inserts,
            view=view,
            keys=len(self._hashes),
            traffic=tuple(
                KeyTraffic(
                    show(self._key(traffic.value)),
                    traffic.records,
                    traffic.inserts,
                    traffic.units,
                    traffic.peak / self._resolution,
                    traffic.newest,
                    places.get(id(traffic)),
                )
                for traffic in busiest
            ),
            shards=dict(self._shards),
            split_shards=split_shards,
            date_share=share_of(self.dated, self.inserts, "inserts in the stream"),
            tau=self._tau(),
            hash_rho=self._rho(place) if place else None,
            in_turn=self._in_turn(),
            counter=counter,
            counter_attribute=attribute,
            reversals=self._transitions.reversals(),
            growth=self._growth(seconds, show),
            heat=_heat([(traffic, places.get(id(traffic))) for traffic in busiest]),
            peak=max(self._seconds.values(), default=0) / self._resolution,
        )

    def _key(self, value: TypedValue) -> Key:
        return {self.partition: value}

    def _busiest(self) -> list[_Key]:
        """Return the keys with the most units, and with the most in a second."""
        busiest = sorted(self._keys.values(), key=lambda traffic: -traffic.units)[:SHOWN]
        peaks = sorted(self._keys.values(), key=lambda traffic: -traffic.peak)[: SHOWN // 5]
        return busiest + [
            traffic for traffic in peaks if all(traffic is not chosen for chosen in busiest)
        ]

    def _counter(self, view: str) -> tuple[Estimate | None, str]:
        """Return the share of records that only change counts of one item, and their names.

        The result is None without both images, which show whether a number changed.
        """
        if "NEW_AND_OLD" not in view or not self.records:
            return None, ""
        counters = [
            (numbers[0].writes, names)
            for (_, names), numbers in self._counts.items()
            if any(number.counts for number in numbers)
        ]
        writes, names = max(counters, default=(0, ""))
        return share_of(writes, self.records, "records of one item"), names

    def _tau(self) -> Estimate | None:
        """Return the correlation of number and time, if most keys end in a number."""
        inserted = self._inserted
        numbers = [(new, number_of(new.value)) for new in inserted]
        pairs = [(new, float(number)) for new, number in numbers if number is not None]
        if 2 * len(pairs) < len(inserted):
            return None
        times = self._times([new for new, _ in pairs])
        return kendall(times, [number for _, number in pairs])

    def _rho(self, place: Callable[[Key], float | None]) -> Estimate | None:
        """Return the correlation of hash place and time of each key's first write.

        A backfill changes items, and a purge deletes them: neither inserts any.
        """
        chosen = sorted(self._written, key=lambda first: first.number)
        step = max(1, len(chosen) // PLACED)
        places = [(first, place(self._key(first.value))) for first in chosen[::step][:PLACED]]
        pairs = [(first, at) for first, at in places if at is not None]
        return spearman(self._times([first for first, _ in pairs]), [at for _, at in pairs])

    def _times(self, firsts: Sequence[_First]) -> list[float]:
        """Return the order of keys in time: by moment, or in a short look by the order of records.

        That order is approximate if there are several shards.
        """
        moments = [first.at for first in firsts]
        if not moments or max(moments) - min(moments) < SHORT_MOMENTS * self._resolution:
            return [float(first.number) for first in firsts]
        return moments

    def _in_turn(self) -> float | None:
        """Return how far stream shards are written one after the other, from 0 to 1.

        It is how much better the moment of a write predicts its shard than a guess of the busiest
        one (Goodman and Kruskal's lambda). A moment has at least SLICE records, as far as possible.
        """
        slices = [Counter[str]()]
        for _, counts in sorted(self._turns.items()):
            if slices[-1].total() >= SLICE:
                slices.append(Counter())
            slices[-1] += counts
        remaining = self.records - max(self._shards.values(), default=0)
        right = sum(max(counts.values(), default=0) for counts in slices)
        return 1 - (self.records - right) / remaining if remaining else None

    def _growth(self, seconds: float, show: Callable[[Key], Shown]) -> dict[Shown, float]:
        """Return the items a day by which the keys with the most inserts grow."""
        growing = sorted(self._keys.values(), key=lambda traffic: -traffic.inserts)[:GROWING]
        days = seconds / DAY
        return {
            show(self._key(traffic.value)): (traffic.inserts - traffic.removes) / days
            for traffic in growing
            if traffic.inserts and days
        }


def _heat(placed: list[tuple[_Key, float | None]]) -> tuple[tuple[float, int, float], ...]:
    """Return the write units by minute and place, for keys with a known place."""
    heat: Counter[tuple[int, int]] = Counter()
    for traffic, place in placed:
        if place is not None:
            for minute, units in traffic.minutes.items():
                heat[minute, int(place * PLACES)] += units  # type: ignore[assignment]
    return tuple((float(minute), place, units) for (minute, place), units in sorted(heat.items()))


def changed(old: Key, new: Key) -> list[str]:
    """Return the names of the attributes that differ."""
    return [
        name
        for name in old.keys() | new.keys()
        if name not in old or name not in new or not same(old[name], new[name])
    ]


def counted(old: Key, new: Key, names: Iterable[str]) -> list[str]:
    """Return the numbers that changed, if only they and times changed, as in a write of a counter.

    A counter may have several, as a count and a sum. `names` is the result of `changed`.
    """
    changes = [name for name in names if not (is_moment(new, name) or is_moment(old, name))]
    are_numbers = all("N" in item.get(name, {}) for name in changes for item in (old, new))
    return sorted(changes) if are_numbers else []


def is_moment(item: Key, name: str) -> bool:
    """Return whether it looks like a date, or an epoch time in seconds or milliseconds."""
    value = item.get(name, {})
    if "S" in value:
        return bool(_MOMENT.match(value["S"]))
    if "N" not in value:
        return False
    number = float(value["N"])
    return 1e9 <= number < 2.2e9 or 1e12 <= number < 2.2e12


def _backwards(counts: Counter[tuple[int, int]], pair: tuple[int, int]) -> int:
    """Return the number of a transition, if it is rare and goes back; otherwise 0."""
    frequent = [transition for transition, count in counts.items() if counts[pair] <= RARE * count]
    reached, before = {pair[1]}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {after for start, after in frequent if start in reached}
    return counts[pair] if pair[0] in reached else 0


def order_of(value: TypedValue) -> Any:
    """Return a value that compares as DynamoDB compares sort keys: texts by UTF-8 bytes."""
    type_, content = canonical(value)
    if type_ == "N":
        return Decimal(str(content))
    return content.encode() if isinstance(content, str) else content


def number_of(value: TypedValue) -> int | None:
    """Return the number that a key is, or ends with; None for a date."""
    ((type_, content),) = value.items()
    if type_ == "B" or _NO_NUMBER.search(content) or dates_of(value):
        return None
    match = _NUMBER.search(content)
    return int(match[1]) if match else None


def is_today(value: TypedValue, at: float) -> bool:
    """Return whether a key, after a type tag, is the date of a moment somewhere on earth.

    A date is a year, month, week, quarter, day or hour.
    """
    now = datetime.fromtimestamp(at, UTC)
    return any(_is_of(date, now + zone) for date in dates_of(value) for zone in ZONES)


def _is_of(date: Mapping[str, int], moment: datetime) -> bool:
    week = moment.isocalendar()
    parts = {
        "year": week.year if "week" in date else moment.year,
        "quarter": (moment.month + 2) // 3,
        "month": moment.month,
        "week": week.week,
        "day": moment.day,
    }
    return all(parts[name] == number for name, number in date.items())


@dataclass(slots=True)
class Busiest:
    """The keys with the most records of a stream, kept in memory only, to be read in the table.

    Attributes:
        partition: The name of the partition key's attribute.
    """

    partition: str
    _counts: Counter[tuple[str, Any]] = field(default_factory=Counter)

    def take(self, record: Mapping[str, Any]) -> None:
        """Add a record of the stream."""
        ((type_, value),) = record["dynamodb"]["Keys"][self.partition].items()
        self._counts[type_, value] += 1
        if len(self._counts) > MOST_HELD:
            self._counts = Counter(dict(self._counts.most_common(MOST_HELD // 2)))

    def keys(self) -> list[Key]:
        """Return the keys with more than one record, the busiest first."""
        return [
            {self.partition: {type_: value}}
            for (type_, value), count in self._counts.most_common(MOST)
            if count > 1
        ]
