"""The number of shards that a hot key needs, and the command for it. Pure.

One partition takes 1,000 write units a second [AWS documentation, "Designing partition keys"]. A
write takes one unit for each KB of its item, in a transaction two. So N = ceil(peak / 1,000).
"""

import math
from dataclasses import dataclass

from keyhop.report.facts import (
    TABLE,
    Facts,
    InsightFacts,
    KeyTraffic,
    MetricFacts,
    Shown,
    StreamFacts,
)
from keyhop.wording import counted

WRITE_UNITS = 1000.0
READ_UNITS = 3000.0
"""The units a second that one partition serves."""

HEADROOM = 0.5
"""The part of a shard's capacity that is kept free."""

INSIGHT_WRITES = 3
"""What Contributor Insights counts for a write unit; it counts 1 for a read unit."""


@dataclass(frozen=True, slots=True)
class Shards:
    """Numbers of shards for a load.

    Attributes:
        peak: The write units a second.
        least: The number that is just enough for the peak.
        roomy: The number with HEADROOM kept free.
    """

    peak: float
    least: int
    roomy: int


def shards_for(peak: float, transactional: bool = False) -> Shards:
    """Return the numbers of shards for a peak.

    Args:
        peak: The write units a second, as of plain writes.
        transactional: Whether the writes are in transactions, where each costs twice as much.
    """
    units = peak * (2 if transactional else 1)
    return Shards(units, _at(units, WRITE_UNITS), _at(units, WRITE_UNITS * (1 - HEADROOM)))


def _at(units: float, each: float) -> int:
    return max(1, math.ceil(units / each))


def write_units(writes: float, item_bytes: float) -> float:
    """Return the write units of `writes` items of a size."""
    return writes * max(1, math.ceil(item_bytes / 1024))


def transactional(facts: Facts) -> bool:
    """Return whether metrics show that most writes are in transactions."""
    if not isinstance(facts.metrics, MetricFacts):
        return False
    calls = facts.metrics.calls
    plain = sum(calls.get(operation, 0.0) for operation in ("PutItem", "UpdateItem", "DeleteItem"))
    return calls.get("TransactWriteItems", 0.0) > plain + calls.get("BatchWriteItem", 0.0)


def hottest(stream: StreamFacts) -> KeyTraffic | None:
    """Return the key with the busiest second."""
    return max(stream.traffic, key=lambda traffic: traffic.peak, default=None)


def peak_of(facts: Facts, key: Shown | None = None) -> float | None:
    """Return the write units a second that a key needs; None if not known.

    It is the busiest second of the key, plus the attempts that were throttled, if they were
    counted.

    Args:
        facts: The facts of the report.
        key: The key; None for the hottest one.
    """
    peaks: list[float] = []
    if isinstance(facts.stream, StreamFacts):
        peaks += [traffic.peak for traffic in facts.stream.traffic if key in (None, traffic.key)]
    throttled = 0.0
    if isinstance(facts.insights, InsightFacts):
        keys = facts.insights.accessed.get(TABLE, ())
        peaks += [
            traffic.units / INSIGHT_WRITES / 60 for traffic in keys if key in (None, traffic.key)
        ]
        # A throttled write took nothing, so it is in no key's units.
        refused = facts.insights.throttled.get(TABLE, ())
        throttled = max(
            (traffic.units / 60 for traffic in refused if key in (None, traffic.key)), default=0.0
        )
    return max(peaks) + throttled if peaks else None


def steps(shards: Shards) -> tuple[str, ...]:
    """Return the steps of spreading a key over shards, in sentences."""
    return (
        f"Spread the key over {counted(shards.least, 'shard')} at least; "
        f"{shards.roomy} keep half of each free ({shards.peak:,.0f} write units a second, "
        f"{WRITE_UNITS:,.0f} a shard).",
        "Let ShardedTable write and read it (docs/sharding.md): it adds shards when the service "
        "says that a key is hot.",
    )


def command(table: str, shards: Shards) -> str:
    """Return the command to run once ShardedTable uses the table, with the key for KEY."""
    adding = max(1, shards.roomy - 1)
    return f"keyhop shards add {table} KEY --count {adding} --metadata {table}-shards"
