"""An LSI or a GSI. Pure.

An LSI only if consistent reads on it are seen and no collection comes near 10 GB in three years;
else a GSI, which bounds no collection and lets the service split it.
"""

from keyhop.report.advice.money import MONTH_SECONDS, money, of_table, writing
from keyhop.report.facts import Facts, IndexFacts, RequestFacts, SampleFacts, StreamFacts
from keyhop.report.findings import Advice

YEARS = 3
COLLECTION_BYTES = 10 * 2**30


def local(facts: Facts) -> tuple[IndexFacts, ...]:
    """The LSIs."""
    return tuple(one for one in facts.table.indexes if one.kind == "LSI")


def with_local(facts: Facts) -> float:
    """By how much a collection grows by its LSIs: 1 + their bytes / the table's."""
    held = sum(one.bytes for one in local(facts))
    return 1 + held / facts.table.bytes if facts.table.bytes else 1.0


def read_consistently(facts: Facts, index: str) -> bool | None:
    """Whether consistent reads of it are seen; None without a request sampler."""
    if not isinstance(facts.requests, RequestFacts):
        return None
    return any(shape.index == index and shape.consistent for shape in facts.requests.shapes)


def most_bytes(facts: Facts, years: float = 0.0) -> float | None:
    """What no collection exceeds now, or after so many years at the growth that the stream shows.
    LSIs counted. None: not known.
    """
    most = float(facts.table.bytes) * with_local(facts) if facts.table.bytes else None
    sample = facts.sample
    largest = largest_bytes(facts)
    if isinstance(sample, SampleFacts) and largest is not None and sample.all_items:
        most = min(largest[2], most) if most else largest[2]
    if not years:
        return most
    if most is None or not isinstance(facts.stream, StreamFacts):
        return None
    daily = max(facts.stream.growth.values(), default=0.0)
    return most + daily * 365 * years * (facts.table.mean_item_bytes or 0.0) * with_local(facts)


def largest_bytes(facts: Facts) -> tuple[float, float, float] | None:
    """Value, low and high of the largest collection that is known, LSIs counted."""
    sample = facts.sample
    if not isinstance(sample, SampleFacts):
        return None
    sizes = [one.bytes for one in sample.top if one.bytes is not None]
    if not sizes:
        return None
    largest = max(sizes, key=lambda one: one.value).scaled(with_local(facts))
    return largest.value, largest.low, largest.high


def stays_small(facts: Facts) -> bool:
    """Whether no collection reaches the limit of a table with LSIs in three years."""
    most = most_bytes(facts, YEARS)
    return most is not None and most < COLLECTION_BYTES


def instead_of_local(facts: Facts) -> Advice:
    """How to be without LSIs."""
    names = ", ".join(one.name for one in local(facts))
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
    """Dollars of filling GSIs in place of the LSIs, once."""
    units = sum(
        one.items * max(1.0, -(-(one.bytes / one.items) // 1024))
        for one in local(facts)
        if one.items
    )
    return writing(facts, units, MONTH_SECONDS)
