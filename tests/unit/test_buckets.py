"""Check buckets of time: names, ends, changes of granularity, hints."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some
from keyhop.errors import CannotStart
from keyhop.sharding.key.buckets import (
    LENGTHS,
    Calendar,
    beginning_of,
    hint,
    latest_of,
    moment_of,
)

MIXED = Calendar.of("month").changed(date(2026, 12, 1), "day").changed(date(2026, 12, 3), "hour")


@pytest.mark.parametrize(
    ("bucket", "name"), [("month", "2026-11"), ("day", "2026-11-21"), ("hour", "2026-11-21T09")]
)
def test_a_bucket_has_a_name_and_a_beginning(bucket: str, name: str) -> None:
    assert Calendar.of(bucket).bucket_of(datetime(2026, 11, 21, 9, 30)) == name
    assert beginning_of(name) <= datetime(2026, 11, 21, 9, 30)


@pytest.mark.parametrize("name", ["", "2026", "2026-13", "2026-11-31", "2026-11-21 25", "x" * 10])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"name|month|day|hour|isoformat"):
        beginning_of(name)


def test_months_have_their_calendar_length() -> None:
    months = [*Calendar.of("month").between(datetime(2027, 11, 30), datetime(2028, 3, 1))]
    assert months == ["2027-11", "2027-12", "2028-01", "2028-02", "2028-03"]
    days = [*Calendar.of("day").between(datetime(2028, 2, 27), datetime(2028, 3, 1))]
    assert days == ["2028-02-27", "2028-02-28", "2028-02-29", "2028-03-01"]


def test_a_granularity_that_changes() -> None:
    names = [*MIXED.between(datetime(2026, 10, 31), datetime(2026, 12, 3, 1))]
    assert names == [
        *("2026-10", "2026-11", "2026-12-01", "2026-12-02"),
        *("2026-12-03T00", "2026-12-03T01"),
    ]
    descending = MIXED.between(datetime(2026, 10, 31), datetime(2026, 12, 3, 1), descending=True)
    assert [*descending] == names[::-1]


@given(
    some.datetimes(datetime(2026, 10, 1), datetime(2027, 1, 10)),
    some.timedeltas(timedelta(0), timedelta(days=40)),
    some.sampled_from([MIXED, *map(Calendar.of, LENGTHS)]),
)
def test_the_buckets_of_an_interval_contain_each_of_its_moments(low, length, calendar) -> None:
    high = low + length
    names = [*calendar.between(low, high)]
    hours = {low, high} | {low + n * timedelta(hours=1) for n in range(int(length.days) * 24 + 24)}
    expected = sorted({calendar.bucket_of(at) for at in hours if low <= at <= high})
    assert [*dict.fromkeys(names)] == names
    assert set(expected) == set(names)
    starts = [beginning_of(name) for name in names]
    assert starts == sorted(starts)
    assert names == [*calendar.between(low, high, descending=True)][::-1]


@pytest.mark.parametrize(
    ("calendar", "moment", "before"),
    [
        (Calendar.of("month"), datetime(2027, 1, 31), "2026-12"),
        (Calendar.of("day"), datetime(2028, 3, 1, 9), "2028-02-29"),
        (Calendar.of("hour"), datetime(2027, 1, 1, 0, 30), "2026-12-31T23"),
        (MIXED, datetime(2026, 12, 1, 9), "2026-11"),
        (Calendar.of("month"), datetime(1, 1, 20), None),
    ],
)
def test_the_bucket_before(calendar: Calendar, moment: datetime, before: str | None) -> None:
    assert calendar.before(moment) == before


def test_the_ends_of_all_times() -> None:
    last = [*Calendar.of("hour").between(datetime(9999, 12, 31, 22), datetime.max)]
    assert last == ["9999-12-31T22", "9999-12-31T23"]
    first = [*Calendar.of("hour").between(datetime.min, datetime(1, 1, 1, 1), descending=True)]
    assert first == ["0001-01-01T01", "0001-01-01T00"]


def test_no_bucket_is_in_a_reversed_interval() -> None:
    assert [*Calendar.of("day").between(datetime(2026, 2, 2), datetime(2026, 2, 1))] == []


@pytest.mark.parametrize("calendar", [MIXED, Calendar.of("hour")], ids=["mixed", "hour"])
def test_the_text_of_a_calendar_is_parsed(calendar: Calendar) -> None:
    assert Calendar.parse(calendar.text) == calendar
    assert MIXED.text == "month 2026-12-01:day 2026-12-03:hour"


@pytest.mark.parametrize("text", ["", "week", "month 2026-12-01:week", "month yesterday:day"])
def test_an_invalid_text_of_a_calendar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"unpack|version|isoformat"):
        Calendar.parse(text)


@pytest.mark.parametrize(
    ("since", "bucket"),
    [
        (date(2026, 12, 2), "day"),  # not later than the last change
        (date(2026, 12, 10), "hour"),  # no change
        (date(2026, 12, 10), "month"),  # within a month
    ],
)
def test_invalid_changes_are_refused(since: date, bucket: str) -> None:
    with pytest.raises(CannotStart):
        MIXED.changed(since, bucket)


@pytest.mark.parametrize(
    ("value", "unit", "moment"),
    [
        ("2026-11-21T09:30:00Z#ana", "s", datetime(2026, 11, 21, 9)),
        ("2026-11-21 09:30:00.123456", "s", datetime(2026, 11, 21, 9)),
        ("2026-11-21T09:30:00+00:00", "s", datetime(2026, 11, 21, 9)),
        ("2026-11-21 09:30:00.123456+00", "s", datetime(2026, 11, 21, 9)),
        ("2026-11-21T09-30", "s", datetime(2026, 11, 21, 9)),  # no offset, but minutes
        ("2026-11-21T09:30:00-12ab34cd-7", "s", datetime(2026, 11, 21, 9)),
        ("2026-11-21T09:30:00-12-7", "s", datetime(2026, 11, 21, 9)),
        ("2026-11-21-order-7", "s", datetime(2026, 11, 21)),
        ("2026-11", "s", datetime(2026, 11, 1)),
        (1_800_000_000, "s", datetime(2027, 1, 15, 8)),
        (Decimal("1800000000.9"), "s", datetime(2027, 1, 15, 8)),
        (1_800_000_000_999, "ms", datetime(2027, 1, 15, 8)),
        (-1, "s", datetime(1969, 12, 31, 23, 59, 59)),
        (-1, "ms", datetime(1969, 12, 31, 23, 59, 59)),
    ],
)
def test_times_are_parsed(value, unit, moment) -> None:
    assert moment_of(value, unit) == moment


@pytest.mark.parametrize(
    ("value", "unit", "granularity", "message"),
    [
        ("yesterday", "s", None, "not a time"),
        ("2026-13-01", "s", None, "calendar"),
        ("2026-02-30", "s", None, "calendar"),
        ("2026-11-21T09:30:00+01:00", "s", None, "UTC"),
        ("2026-11-21T09-0800", "s", None, "UTC"),
        ("2026-11-21 09:30:00-05", "s", None, "UTC"),
        ("2026-11-21T09:30:00.123+01#ana", "s", None, "UTC"),
        ("2026-11-21", "s", "hour", "contain its hour"),
        ("2026", "s", "month", "contain its month"),
        ("20261121T093000Z", "s", "month", "contain its month"),
        (10**30, "s", None, "since 1970"),
        (1_800_000_000_000, "s", None, "since 1970"),
        (True, "s", None, "not a time"),
        (1.5, "s", None, "not a time"),
        (b"2026", "s", None, "not a time"),
        (None, "s", None, "not a time"),
        (Decimal("NaN"), "s", None, "since 1970"),
    ],
)
def test_an_invalid_time_is_refused(value, unit, granularity, message) -> None:
    with pytest.raises(CannotStart, match=message):
        moment_of(value, unit, granularity)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-11-21T09", datetime(2026, 11, 21, 9)),
        ("2026-11-21T09~", datetime(2026, 11, 21, 9, 59, 59, 999999)),
        ("2026-11-21~", datetime(2026, 11, 21, 23, 59, 59, 999999)),
        ("2026-02~", datetime(2026, 2, 28, 23, 59, 59, 999999)),
        ("2026~", datetime(2026, 12, 31, 23, 59, 59, 999999)),
        ("2028~", datetime(2028, 12, 31, 23, 59, 59, 999999)),
        ("9999~", datetime.max),
        (1_800_000_000, datetime(2027, 1, 15, 8)),
    ],
)
def test_the_latest_time_that_is_not_greater_than_a_value(value, moment) -> None:
    """Each text that is not greater than "2026-11-21~" is in that day or before it."""
    assert latest_of(value, "s") == moment


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"bucket": "day"}, None),
        ({"bucket": "day", "size": 1e6}, None),
        ({"bucket": "day", "size": 5_000}, "a month would have 146 KB, and be read by one request"),
        ({"bucket": "hour", "size": 5_000}, "a day would have 117 KB"),
        ({"bucket": "month", "size": 5_000}, None),
        ({"bucket": "month", "size": 60e9}, "a bucket for each day would have 2 GB"),
        ({"bucket": "hour", "size": 60e9}, None),
        ({"bucket": "day", "busiest": 4_000}, "Finer buckets do not help"),
        ({"bucket": "day", "busiest": 4_000, "shards": 8}, None),
        ({"bucket": "day", "busiest": 900}, None),
    ],
)
def test_hints(arguments, says) -> None:
    text = hint(**arguments)
    assert (text is None) if says is None else (says in text)
