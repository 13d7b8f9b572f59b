"""Readings of sensors in daily buckets: python sensor_log.py TABLE (sensor S, at S, ...)."""

import sys
from datetime import UTC, datetime, timedelta
from itertools import islice

from keyhop.sharding.calendar_table import CalendarTable
from keyhop.sharding.table import ShardedTable


def log(table: ShardedTable, now: datetime) -> list[str]:
    """Write four days of readings, read the newest and two pages, and change to hourly buckets."""
    readings = CalendarTable(table, bucket="day")
    times = [now - timedelta(hours=4 * n) for n in range(24)]
    readings.batch_write(
        {"sensor": "7", "at": at.isoformat(), "celsius": n % 9} for n, at in enumerate(times)
    )
    between = ((now - timedelta(days=30)).isoformat(), now.isoformat())
    newest = readings.query("7", between=between, descending=True, limit=3)
    lines = [f"{reading['at']} {reading['celsius']}" for reading in newest]
    page = readings.query_page("7", between=between, limit=10)
    rest = readings.query_page("7", between=between, limit=100, page_token=page.token)
    lines.append(f"{len(page.items)} and {len(rest.items)} readings")
    in_a_week = (now + timedelta(days=7)).date()
    readings.change_bucket("hour", since=in_a_week)
    lines.append(f"an hour each from {in_a_week} on")
    buckets = readings.calendar().between(*_days_around(in_a_week.isoformat()))
    lines += islice(buckets, 3)
    lines.append(str(readings.hint("7", times[8].isoformat())))
    return lines


def _days_around(day: str) -> tuple[datetime, datetime]:
    begin = datetime.fromisoformat(day)
    return begin - timedelta(days=1), begin + timedelta(days=1)


if __name__ == "__main__":
    name = sys.argv[1]
    now = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
    print(*log(ShardedTable(name, metadata=f"{name}-shards"), now), sep="\n")
