"""Into which spans of time a growing collection is divided. Pure.

Buckets bound the size of a key and what a query reads; never a rate: all that is written now goes
into one bucket, however fine it is. Above 1,000 write units a second shards are added to them.
"""

from collections.abc import Mapping
from typing import Final

from keyhop.report.advice.shards import WRITE_UNITS, shards_for

DAY = 86_400
MOST_BYTES = 5_000_000_000
"""Of a bucket on a table with an LSI: half of what a collection may have there."""

UNITS: Final[Mapping[str, int]] = {"year": 365 * DAY, "month": 30 * DAY, "day": DAY, "hour": 3600}
"""The longest first, in seconds. CalendarTable divides by month, day or hour."""


def bucket(daily_bytes: float, has_lsi: bool, span: float | None) -> str:
    """The longest unit that holds at most MOST_BYTES (with an LSI) and lasts no longer than the
    usual query. daily_bytes: that the collection grows by, LSIs counted. span: seconds of time
    that a query usually asks for; None if not known. The hour, if nothing else will do.
    """
    for unit, seconds in UNITS.items():
        fits = not has_lsi or daily_bytes * seconds / DAY <= MOST_BYTES
        if fits and (span is None or seconds <= span):
            return unit
    return "hour"


def steps(unit: str, peak: float | None) -> tuple[str, ...]:
    """What to do, in sentences. peak: write units a second of the collection, if known."""
    told = [
        f"Divide the collection by {unit}, or by less if queries ask for less: KEY#"
        f"{EXAMPLES[unit]} holds what is of that {unit}."
    ]
    if peak is not None and peak > WRITE_UNITS:
        shards = shards_for(peak)
        told.append(
            f"Give each bucket {shards.least} shards too: no bucket, however short, takes more "
            f"than {WRITE_UNITS:,.0f} write units a second."
        )
    if unit != "year":
        told.append("CalendarTable writes and reads such keys (docs/sharding-patterns.md).")
    return tuple(told)


EXAMPLES: Final = {
    "year": "2026",
    "month": "2026-11",
    "day": "2026-11-22",
    "hour": "2026-11-22T09",
}
