"""How many shards a hot key wants, and the command. Pure.

One partition takes 1,000 write units a second [AWS documentation, "Designing partition keys"]; a
write is a unit for each KB of its item, in a transaction two. So N = ceil(peak / 1,000).
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
"""A second, of one partition."""

HEADROOM = 0.5
"""Of a shard's capacity that is kept free."""

INSIGHT_WRITES = 3
"""What Contributor Insights counts for a write unit, where a read unit is one."""


@dataclass(frozen=True, slots=True)
class Shards:
    """least: just enough for the peak. roomy: with HEADROOM kept free. peak: write units/s."""

    peak: float
    least: int
    roomy: int


def shards_for(peak: float, transactional: bool = False) -> Shards:
    """peak: write units a second, as of plain writes; in transactions each costs two."""
    units = peak * (2 if transactional else 1)
    return Shards(units, _at(units, WRITE_UNITS), _at(units, WRITE_UNITS * (1 - HEADROOM)))


def _at(units: float, each: float) -> int:
    return max(1, math.ceil(units / each))


def write_units(writes: float, item_bytes: float) -> float:
    """Of so many writes a second of items of this size."""
    return writes * max(1, math.ceil(item_bytes / 1024))


def transactional(facts: Facts) -> bool:
    """Whether most writes go through transactions, as far as metrics tell."""
    if not isinstance(facts.metrics, MetricFacts):
        return False
    calls = facts.metrics.calls
    plain = sum(calls.get(one, 0.0) for one in ("PutItem", "UpdateItem", "DeleteItem"))
    return calls.get("TransactWriteItems", 0.0) > plain + calls.get("BatchWriteItem", 0.0)


def hottest(stream: StreamFacts) -> KeyTraffic | None:
    """The key with the largest second."""
    return max(stream.traffic, key=lambda one: one.peak, default=None)


def peak_of(facts: Facts, key: Shown | None = None) -> float | None:
    """Write units a second that the hottest key (or this one) wants: the largest second that was
    seen, and the attempts that were throttled, where they are known. None: not known.
    """
    seen: list[float] = []
    if isinstance(facts.stream, StreamFacts):
        seen += [one.peak for one in facts.stream.traffic if key in (None, one.key)]
    throttled = 0.0
    if isinstance(facts.insights, InsightFacts):
        keys = facts.insights.accessed.get(TABLE, ())
        seen += [one.units / INSIGHT_WRITES / 60 for one in keys if key in (None, one.key)]
        # A throttled write took nothing, so it is in no key's units.
        refused = facts.insights.throttled.get(TABLE, ())
        throttled = max((one.units / 60 for one in refused if key in (None, one.key)), default=0.0)
    return max(seen) + throttled if seen else None


def steps(shards: Shards) -> tuple[str, ...]:
    """What to do, in sentences."""
    return (
        f"Spread the key over {counted(shards.least, 'shard')} at least; "
        f"{shards.roomy} keep half of each free ({shards.peak:,.0f} write units a second, "
        f"{WRITE_UNITS:,.0f} a shard).",
        "Let ShardedTable write and read it (docs/sharding.md): it adds shards when the service "
        "says that a key is hot.",
    )


def command(table: str, shards: Shards) -> str:
    """To paste once the table is used by ShardedTable, with the logical key for KEY."""
    adding = max(1, shards.roomy - 1)
    return f"keyhop shards add {table} KEY --count {adding} --metadata {table}-shards"
