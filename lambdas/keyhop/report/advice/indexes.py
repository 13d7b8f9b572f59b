"""The choice between an LSI and a GSI. Pure.

An LSI suits only if consistent reads of it are made and no collection comes near 10 GB in three
years. Otherwise a GSI is better: it limits no collection and lets the service split it.
"""

from keyhop.report.advice.money import MONTH_SECONDS, money, of_table, writing
from keyhop.report.facts import Facts, IndexFacts, RequestFacts, SampleFacts, StreamFacts
from keyhop.report.findings import Advice

YEARS = 3
COLLECTION_BYTES = 10 * 2**30


def local(facts: Facts) -> tuple[IndexFacts, ...]:
    """Return the LSIs."""
    return tuple(index for index in facts.table.indexes if index.kind == "LSI")


def with_local(facts: Facts) -> float:
    """Return the factor by which LSIs enlarge a collection: 1 + their bytes / the table's."""
    local_bytes = sum(index.bytes for index in local(facts))
    return 1 + local_bytes / facts.table.bytes if facts.table.bytes else 1.0


def read_consistently(facts: Facts, index: str) -> bool | None:
    """Return whether consistent reads of an index are made.

    None without a request sampler.
    """
    if not isinstance(facts.requests, RequestFacts):
        return None
    return any(shape.index == index and shape.consistent for shape in facts.requests.shapes)


def most_bytes(facts: Facts, years: float = 0.0) -> float | None:
    """Return the maximum size of a collection, LSIs included, or None if it is not known.

    Args:
        facts: The facts of the report.
        years: The years of growth to add, at the rate that the stream shows; 0 for the size today.
    """
    highest = float(facts.table.bytes) * with_local(facts) if facts.table.bytes else None
    sample = facts.sample
    largest = largest_bytes(facts)
    if isinstance(sample, SampleFacts) and largest is not None and sample.all_items:
        highest = min(largest[2], highest) if highest else largest[2]
    if not years:
        return highest
    if highest is None or not isinstance(facts.stream, StreamFacts):
        return None
    daily = max(facts.stream.growth.values(), default=0.0)
    return highest + daily * 365 * years * (facts.table.mean_item_bytes or 0.0) * with_local(facts)


def largest_bytes(facts: Facts) -> tuple[float, float, float] | None:
    """Return value, low and high of the largest known collection, LSIs included."""
    sample = facts.sample
    if not isinstance(sample, SampleFacts):
        return None
    sizes = [collection.bytes for collection in sample.top if collection.bytes is not None]
    if not sizes:
        return None
    largest = max(sizes, key=lambda size: size.value).scaled(with_local(facts))
    return largest.value, largest.low, largest.high


def stays_small(facts: Facts) -> bool:
    """Return whether no collection reaches the limit of LSIs in three years."""
    highest = most_bytes(facts, YEARS)
    return highest is not None and highest < COLLECTION_BYTES


def instead_of_local(facts: Facts) -> Advice:
    """Advise how to replace the LSIs."""
    names = ", ".join(index.name for index in local(facts))
    table = facts.table.name
    steps = (
        f"Make a GSI of the same keys for each of {names}, and read that one.",
        "An LSI cannot be deleted. A restore of a backup with LocalSecondaryIndexOverride=[] makes "
        "a table without LSIs and under the same keys.",
        f"Keep an LSI only where consistent reads on it are needed and no collection of {table} "
        f"reaches 10 GB in {YEARS} years.",
    )
    today = of_table(facts)
    return Advice(("P15", "P10"), steps, "", money(facts, today, today, _building(facts)))


def _building(facts: Facts) -> float | None:
    """Return the dollars of filling GSIs once in place of the LSIs."""
    units = sum(
        index.items * max(1.0, -(-(index.bytes / index.items) // 1024))
        for index in local(facts)
        if index.items
    )
    return writing(facts, units, MONTH_SECONDS)
