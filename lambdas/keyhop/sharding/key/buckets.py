"""Buckets of time in partition keys: "sensor-7#2026-11" holds a month of sensor-7. Pure.

All times are UTC. A time is ISO-8601 text that starts with its date (a sort key may continue after
it), or a number of seconds or milliseconds since 1970. The length of a bucket's name depends on its
period (2026-11, 2026-11-21, 2026-11-21T09), so no two buckets have the same name.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, cast

from keyhop.dynamodb.units import PARTITION_WRITE_UNITS
from keyhop.errors import CannotStart

Bucket = Literal["month", "day", "hour"]
Unit = Literal["s", "ms"]

LENGTHS: dict[Bucket, int] = {"month": 7, "day": 10, "hour": 13}
"""The lengths of buckets' names, which are prefixes of ISO-8601 texts."""
SEPARATOR = "#"
PAGE_BYTES = 1024.0**2
"""The maximum size of a Query's page (AWS documentation)."""
LARGE_BYTES = 10 * 1024.0**3
"""The size of a partition, and of an item collection in a table with local indexes."""

_FINER: dict[Bucket, tuple[Bucket, int]] = {"month": ("day", 30), "day": ("hour", 24)}
_COARSER: dict[Bucket, tuple[Bucket, int]] = {"hour": ("day", 24), "day": ("month", 30)}
"""The next coarser period, and the number of buckets that it combines."""
_TEXT = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d)(?::\d\d(?::\d\d(?:[.,]\d+)?)?)?"
    r"(Z|[+-]\d\d:?\d\d(?!\d)|(?<![T ]\d\d)[+-]\d\d(?![\w.:-]))?)?)?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Calendar:
    """The periods of buckets, each with the day from which it applies, ascending. Raises
    CannotStart if a change cuts a month, because two periods would then share a bucket.
    """

    changes: tuple[tuple[date, Bucket], ...]

    def __post_init__(self) -> None:
        for (earlier, before), (since, after) in zip(self.changes, self.changes[1:], strict=False):
            if since <= earlier or before == after:
                raise CannotStart(
                    f"From {since} on buckets cannot be of a {after}: the change before, to a "
                    f"{before}, is from {earlier} on."
                )
            if "month" in (before, after) and since.day != 1:
                raise CannotStart(
                    f"{since} is not the first of a month: from or to months buckets can change on "
                    "that day only."
                )

    @classmethod
    def of(cls, bucket: Bucket) -> "Calendar":
        """Return a calendar with one period for all times."""
        return cls(((date.min, bucket),))

    @classmethod
    def parse(cls, text: str) -> "Calendar":
        """Parse a calendar from `text`. Raise ValueError."""
        first, *rest = text.split()
        changes = [(date.min, first), *((date.fromisoformat(w[:10]), w[11:]) for w in rest)]
        if any(bucket not in LENGTHS for _, bucket in changes):
            raise ValueError("no bucket that this version knows")
        return cls(cast(Any, tuple(changes)))

    @property
    def text(self) -> str:
        """The calendar as it is stored in the metadata: "month 2027-01-01:day"."""
        (_, first), *rest = self.changes
        return " ".join((first, *(f"{since}:{bucket}" for since, bucket in rest)))

    def changed(self, since: date, bucket: Bucket) -> "Calendar":
        """Return a calendar with another period from a day on, which must be the last change."""
        return Calendar((*self.changes, (since, bucket)))

    def at(self, moment: datetime) -> Bucket:
        """Return the period that applies at a moment."""
        return next(b for since, b in reversed(self.changes) if since <= moment.date())

    def bucket_of(self, moment: datetime) -> str:
        """Return the name of a moment's bucket."""
        return moment.isoformat()[: LENGTHS[self.at(moment)]]

    def before(self, moment: datetime) -> str | None:
        """Return the name of the bucket before a moment's bucket; None if there is none."""
        beginning = self._floor(moment)
        if beginning == datetime.min:
            return None
        return self.bucket_of(beginning - timedelta.resolution)

    def between(self, low: datetime, high: datetime, descending: bool = False) -> Iterator[str]:
        """Yield the names of the buckets that hold the times from low to high."""
        moment = self._floor(high if descending else low)
        while self._floor(low) <= moment <= high:
            yield self.bucket_of(moment)
            try:
                after = self._next(moment)
                moment = self._floor(moment - timedelta.resolution) if descending else after
            except OverflowError:  # the first or last year that Python supports
                return

    def _floor(self, moment: datetime) -> datetime:
        bucket = self.at(moment)
        moment = moment.replace(minute=0, second=0, microsecond=0)
        if bucket != "hour":
            moment = moment.replace(hour=0)
        return moment.replace(day=1) if bucket == "month" else moment

    def _next(self, moment: datetime) -> datetime:
        """Return the start of the next bucket."""
        bucket = self.at(moment)
        if bucket == "month":
            return (moment + timedelta(days=31)).replace(day=1)
        return moment + (timedelta(days=1) if bucket == "day" else timedelta(hours=1))


def beginning_of(name: str) -> datetime:
    """Return the start of a bucket. Raise ValueError if the name is not a bucket's."""
    if len(name) not in LENGTHS.values():
        raise ValueError("no name of a bucket")
    return datetime.fromisoformat(name if len(name) > LENGTHS["month"] else f"{name}-01")


def moment_of(value: Any, unit: Unit, needed: Bucket | None = None) -> datetime:
    """Return the time of a value in UTC; raise CannotStart if it does not identify the period."""
    return _moment(value, unit, needed)[0]


def latest_of(value: Any, unit: Unit) -> datetime:
    """Return the latest time that starts with a value, as texts may continue after their time."""
    moment, parts, is_whole = _moment(value, unit, None)
    if is_whole:
        return moment
    try:
        return _following(moment, parts) - timedelta.resolution
    except OverflowError:
        return datetime.max


def _moment(value: Any, unit: Unit, needed: Bucket | None) -> tuple[datetime, int, bool]:
    """Return the time of a value, the number of its parts, and whether the value ends there."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        scale = 1_000 if unit == "ms" else 1
        try:
            return _EPOCH + timedelta(seconds=math.floor(Decimal(value) / scale)), 0, True
        except (ArithmeticError, ValueError):
            raise CannotStart(
                f"{value} is not a time in {unit} since 1970: time_unit says what it is."
            ) from None
    match = _TEXT.match(value) if isinstance(value, str) else None
    if match is None:
        raise CannotStart(
            f"{value!r} is not a time: it must be a text that begins with one "
            "(2026-11-21T09:00:00Z), or a whole number since 1970."
        )
    *parts, zone = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    if zone is not None and zone.strip("Z+-:0"):
        raise CannotStart(f"{value!r} is not in UTC: texts of several time zones have no order.")
    if needed is not None and len(numbers) < {"month": 2, "day": 3, "hour": 4}[needed]:
        raise CannotStart(f"{value!r} does not contain its {needed}, so its bucket is unknown.")
    try:
        moment = datetime(*cast(Any, [*numbers, 1, 1][: max(3, len(numbers))]))
    except ValueError:
        raise CannotStart(f"{value!r} is not a time of the calendar.") from None
    return moment, len(numbers), match.end() == len(value)


def _following(moment: datetime, parts: int) -> datetime:
    """Return the end of the period that a time's first `parts` identify. Raise OverflowError."""
    if parts == 1:
        return (moment + timedelta(days=366)).replace(month=1, day=1)
    if parts == 2:
        return (moment + timedelta(days=31)).replace(day=1)
    return moment + (timedelta(days=1) if parts == 3 else timedelta(hours=1))


def hint(
    bucket: Bucket, size: float | None = None, busiest: float | None = None, shards: int = 1
) -> str | None:
    """Return a reason for another period, or for more shards; or None. `size` is the bytes of a
    complete bucket, and `busiest` its mean write units a second in the busiest minute.
    """
    if busiest is not None and busiest > PARTITION_WRITE_UNITS and busiest / shards > 500:
        return (
            f"{busiest:.0f} write units a second are more than {shards} shards should take. Finer "
            "buckets do not help, because all current writes go to one of them. More shards help, "
            "and are added automatically; start_shards gives them to a new bucket from the start."
        )
    if size is not None and size > LARGE_BYTES and bucket in _FINER:
        finer, count = _FINER[bucket]
        return (
            f"A {bucket} has {_size(size)}, more than a partition: a bucket for each {finer} would "
            f"have {_size(size / count)}."
        )
    if size is not None and bucket in _COARSER:
        coarser, count = _COARSER[bucket]
        if size * count <= PAGE_BYTES:
            return (
                f"A {bucket} has {_size(size)}: a {coarser} would have {_size(size * count)}, and "
                f"be read by one request instead of {count}."
            )
    return None


def _size(size: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.0f} GB"
