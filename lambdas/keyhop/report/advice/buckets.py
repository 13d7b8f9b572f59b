"""The spans of time into which a growing collection is divided. Pure.

Buckets limit the size of a key and what a query reads, but not a rate: all current writes go into
one bucket, however short it is. Above 1,000 write units a second shards are added to buckets.
"""

from collections.abc import Mapping
from typing import Final

from keyhop.report.advice.shards import WRITE_UNITS, shards_for

DAY = 86_400
MOST_BYTES = 5_000_000_000
"""The maximum of a bucket in a table with an LSI: half the limit of a collection."""

UNITS: Final[Mapping[str, int]] = {"year": 365 * DAY, "month": 30 * DAY, "day": DAY, "hour": 3600}
"""Seconds of each unit, the longest first. CalendarTable divides by month, day or hour."""


def bucket(daily_bytes: float, has_lsi: bool, span: float | None) -> str:
    """Return the longest unit of time that suits a collection, or the hour if none does.

    It holds at most MOST_BYTES if there is an LSI, and lasts no longer than the usual query.

    Args:
        daily_bytes: The bytes by which the collection grows a day, LSIs included.
        has_lsi: Whether the table has an LSI.
        span: The seconds of time that a query usually reads; None if not known.
    """
    for unit, seconds in UNITS.items():
        fits = not has_lsi or daily_bytes * seconds / DAY <= MOST_BYTES
        if fits and (span is None or seconds <= span):
            return unit
    return "hour"


def steps(unit: str, peak: float | None) -> tuple[str, ...]:
    """Return the steps of dividing a collection, in sentences.

    Args:
        unit: The unit of time.
        peak: The write units a second of the collection; None if not known.
    """
    sentences = [
        f"Divide the collection by {unit}, or by less if queries ask for less: KEY#"
        f"{EXAMPLES[unit]} holds what is of that {unit}."
    ]
    if peak is not None and peak > WRITE_UNITS:
        shards = shards_for(peak)
        sentences.append(
            f"Give each bucket {shards.least} shards too: no bucket, however short, takes more "
            f"than {WRITE_UNITS:,.0f} write units a second."
        )
    if unit != "year":
        sentences.append("CalendarTable writes and reads such keys (docs/sharding-patterns.md).")
    return tuple(sentences)


EXAMPLES: Final = {
    "year": "2026",
    "month": "2026-11",
    "day": "2026-11-22",
    "hour": "2026-11-22T09",
}
