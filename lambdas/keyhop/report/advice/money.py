"""What a finding costs today, and would cost: dollars a month, with the date of the prices. Pure.

On demand by the units that CloudWatch has counted, stretched to a month; provisioned by what is
provisioned, used or not. Tables of another class than Standard have other prices, which are not
known here: of them nothing is said.
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
"""Of prices; a limit's GB is 2**30 (rules/limits.py)."""

WORTH_DOLLARS = 1.0
"""A month: less is not called wasted money."""


def prices_of(facts: Facts) -> Prices | None:
    """None: not known."""
    if facts.table.table_class not in ("", "STANDARD"):
        return None
    return facts.prices or Prices.of(facts.table.region)


def monthly(units: float, seconds: float) -> float:
    """Units of a month, at the rate of so many in `seconds`."""
    return units * MONTH_SECONDS / seconds if seconds > 0 else 0.0


def reading(facts: Facts, units: float, seconds: float) -> float | None:
    """Dollars a month of so many read units in `seconds`. None: not known."""
    return _dollars(facts, monthly(units, seconds), 0.0)


def writing(facts: Facts, units: float, seconds: float) -> float | None:
    """Dollars a month of so many write units in `seconds`. None: not known."""
    return _dollars(facts, 0.0, monthly(units, seconds))


def _dollars(facts: Facts, reads: float, writes: float) -> float | None:
    prices = prices_of(facts)
    if prices is None:
        return None
    if facts.table.on_demand:
        return prices.dollars(reads, writes)
    # What is not used need not be provisioned: a unit a second, all the month.
    hours = MONTH_SECONDS / HOURS_OF_A_MONTH
    return (reads * DOLLARS_PER_READ_UNIT_HOUR + writes * DOLLARS_PER_WRITE_UNIT_HOUR) / hours


def storing(facts: Facts, byte_count: float) -> float | None:
    """Dollars a month."""
    return None if prices_of(facts) is None else byte_count / GB * DOLLARS_PER_GB_MONTH


def of_index(facts: Facts, name: str) -> float | None:
    """Dollars a month of an index: storage, and its writes as far as metrics know them."""
    index = facts.table.index(name)
    if index is None:
        return None
    parts = [storing(facts, index.bytes)]
    if isinstance(facts.metrics, MetricFacts) and index.kind == "GSI":
        written = facts.metrics.consumed.get(("write", name), 0.0)
        parts.append(writing(facts, written, facts.metrics.seconds))
    return sum_of(*parts)


def of_table(facts: Facts) -> float | None:
    """Dollars a month of table and indexes: storage and units. None without metrics.

    Provisioned, what is provisioned counts; indexes on demand are charged as the table is.
    """
    table, metrics = facts.table, facts.metrics
    held = storing(facts, table.bytes + sum(one.bytes for one in table.indexes))
    if table.throughput is not None:
        pairs = [table.throughput, *(one.throughput for one in table.indexes if one.throughput)]
        hourly = sum(
            reads * DOLLARS_PER_READ_UNIT_HOUR + writes * DOLLARS_PER_WRITE_UNIT_HOUR
            for reads, writes in pairs
        )
        return sum_of(held, hourly * HOURS_OF_A_MONTH)
    if not isinstance(metrics, MetricFacts):
        return None
    read = sum(units for (kind, _), units in metrics.consumed.items() if kind == "read")
    written = sum(units for (kind, _), units in metrics.consumed.items() if kind == "write")
    return sum_of(
        held, reading(facts, read, metrics.seconds), writing(facts, written, metrics.seconds)
    )


def sum_of(*parts: float | None) -> float | None:
    """None if any is not known."""
    known = [one for one in parts if one is not None]
    return sum(known) if len(known) == len(parts) else None


def wasted(facts: Facts, saved: float | None) -> bool:
    """Whether so many dollars a month are worth a sentence of their own."""
    return saved is not None and saved >= WORTH_DOLLARS


def money(
    facts: Facts, today: float | None, advised: float | None, one_off: float | None = 0.0
) -> Money | None:
    """None if nothing of it is known."""
    prices = prices_of(facts)
    if prices is None or (today is None and advised is None and not one_off):
        return None
    how = "on demand" if facts.table.on_demand else "provisioned"
    return Money(_cents(today), _cents(advised), _cents(one_off), f"{how}, {prices.whose}")


def _cents(dollars: float | None) -> float | None:
    """To four digits, so that nothing of a small table reads as free."""
    return None if dollars is None else float(f"{dollars:.4g}")


def rewriting(facts: Facts, byte_count: float, items: float) -> float | None:
    """Dollars, once: reading so much by Scan, and writing each item (a write unit per KB)."""
    if not items:
        return None
    each = max(1.0, -(-(byte_count / items) // 1024))
    return _dollars(facts, byte_count / BLOCK_BYTES * UNITS_PER_BLOCK, items * each)
