"""What a finding costs today, and would cost: dollars a month, with the date of the prices. Pure.

On demand, the units that CloudWatch has counted are stretched to a month. Provisioned units cost
the same whether they are used or not. Tables of another class than Standard have other prices,
which are missing here, so they get no costs.
"""

from keyhop.dynamodb.units import (
    BLOCK_BYTES,
    DOLLARS_PER_GB_MONTH,
    DOLLARS_PER_READ_UNIT_HOUR,
    DOLLARS_PER_WRITE_UNIT_HOUR,
    HOURS_OF_A_MONTH,
    UNITS_PER_BLOCK,
    Prices,
)
from keyhop.report.facts import Facts, MetricFacts
from keyhop.report.findings import Money

MONTH_SECONDS = HOURS_OF_A_MONTH * 3600
GB = 1_000_000_000
"""The GB in prices; the GB in limits is 2**30 (rules/rule.py)."""

WORTH_DOLLARS = 1.0
"""The dollars a month above which money counts as wasted."""


def prices_of(facts: Facts) -> Prices | None:
    """Return the prices of a table, or None if they are not known."""
    if facts.table.table_class not in ("", "STANDARD"):
        return None
    return facts.prices or Prices.of(facts.table.region)


def monthly(units: float, seconds: float) -> float:
    """Return the units of a month, at the rate of `units` in `seconds`."""
    return units * MONTH_SECONDS / seconds if seconds > 0 else 0.0


def reading(facts: Facts, units: float, seconds: float) -> float | None:
    """Return the dollars a month of read units in `seconds`, or None if not known."""
    return _dollars(facts, monthly(units, seconds), 0.0)


def writing(facts: Facts, units: float, seconds: float) -> float | None:
    """Return the dollars a month of write units in `seconds`, or None if not known."""
    return _dollars(facts, 0.0, monthly(units, seconds))


def _dollars(facts: Facts, reads: float, writes: float) -> float | None:
    prices = prices_of(facts)
    if prices is None:
        return None
    if facts.table.on_demand:
        return prices.dollars(reads, writes)
    # Unused units need not be provisioned: a unit a second, during the whole month.
    hours = MONTH_SECONDS / HOURS_OF_A_MONTH
    return (reads * DOLLARS_PER_READ_UNIT_HOUR + writes * DOLLARS_PER_WRITE_UNIT_HOUR) / hours


def storing(facts: Facts, byte_count: float) -> float | None:
    """Return the dollars a month of storing bytes, or None if prices are not known."""
    return None if prices_of(facts) is None else byte_count / GB * DOLLARS_PER_GB_MONTH


def of_index(facts: Facts, name: str) -> float | None:
    """Return the dollars a month of an index.

    They include storage, and the writes that metrics count.
    """
    index = facts.table.index(name)
    if index is None:
        return None
    parts = [storing(facts, index.bytes)]
    if isinstance(facts.metrics, MetricFacts) and index.kind == "GSI":
        written = facts.metrics.consumed.get(("write", name), 0.0)
        parts.append(writing(facts, written, facts.metrics.seconds))
    return sum_of(*parts)


def of_table(facts: Facts) -> float | None:
    """Return the dollars a month of a table and its indexes, or None without metrics.

    They include storage and units. In provisioned mode the provisioned units count. Indexes on
    demand are charged as the table is.
    """
    table, metrics = facts.table, facts.metrics
    storage = storing(facts, table.bytes + sum(index.bytes for index in table.indexes))
    if table.throughput is not None:
        pairs = [
            table.throughput,
            *(index.throughput for index in table.indexes if index.throughput),
        ]
        hourly = sum(
            reads * DOLLARS_PER_READ_UNIT_HOUR + writes * DOLLARS_PER_WRITE_UNIT_HOUR
            for reads, writes in pairs
        )
        return sum_of(storage, hourly * HOURS_OF_A_MONTH)
    if not isinstance(metrics, MetricFacts):
        return None
    read = sum(units for (kind, _), units in metrics.consumed.items() if kind == "read")
    written = sum(units for (kind, _), units in metrics.consumed.items() if kind == "write")
    return sum_of(
        storage, reading(facts, read, metrics.seconds), writing(facts, written, metrics.seconds)
    )


def sum_of(*parts: float | None) -> float | None:
    """Return the sum, or None if a part is not known."""
    amounts = [part for part in parts if part is not None]
    return sum(amounts) if len(amounts) == len(parts) else None


def wasted(facts: Facts, saved: float | None) -> bool:
    """Return whether a saving in dollars a month is worth a sentence."""
    return saved is not None and saved >= WORTH_DOLLARS


def money(
    facts: Facts, today: float | None, advised: float | None, one_off: float | None = 0.0
) -> Money | None:
    """Return costs for the report, or None if none is known."""
    prices = prices_of(facts)
    if prices is None or (today is None and advised is None and not one_off):
        return None
    how = "on demand" if facts.table.on_demand else "provisioned"
    return Money(_cents(today), _cents(advised), _cents(one_off), f"{how}, {prices.whose}")


def _cents(dollars: float | None) -> float | None:
    """Round to four digits, so that no cost of a small table reads as free."""
    return None if dollars is None else float(f"{dollars:.4g}")


def rewriting(facts: Facts, byte_count: float, items: float) -> float | None:
    """Return the dollars of reading a table once by Scan and writing each item.

    A write takes one write unit per KB.
    """
    if not items:
        return None
    each = max(1.0, -(-(byte_count / items) // 1024))
    return _dollars(facts, byte_count / BLOCK_BYTES * UNITS_PER_BLOCK, items * each)
