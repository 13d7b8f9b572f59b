"""Rules on the keys of indexes, from the sample, metrics and counts: A9 and I1."""

from collections.abc import Iterable

from keyhop.report.advice.money import MONTH_SECONDS, money, of_index, writing
from keyhop.report.facts import Absent, Facts, IndexFacts, IndexSample, MetricFacts, SampleFacts
from keyhop.report.findings import Advice, Evidence, Severity
from keyhop.report.rules.indexes import indexes_of
from keyhop.report.rules.limits import HALF, HOUR, KB, KEY_WRITES
from keyhop.report.rules.rule import Said, clear, found, missing, unknown
from keyhop.report.rules.seen import how_bad, throttled, throttles_of, told
from keyhop.report.rules.shares import evidence, interval, more
from keyhop.wording import counted

TOP_SHARE = 0.20
SERIOUS_SHARE = 0.50
TINY_INDEX = 100
"""In an index with fewer items, one key easily has a fifth of them."""
SMALL_INDEX = 1000
QUIET_WRITES = 50.0
"""The units a second that an index key serves without harm in its busiest minute."""
SPARSE = 0.40
COUNTS_SECONDS = 6 * HOUR
"""The maximum age of the counts of items."""
UNITS_OF_INDEX = 250.0


def constant_index_key(facts: Facts) -> Iterable[Said]:
    """Apply A9: an index key with too large a share of the index.

    The sample counts items, and the metrics count throttles; either is enough.
    """
    indexes = [index for index in indexes_of(facts) if index.partition != facts.table.partition]
    if not indexes:
        return [clear("No GSI has a partition key of its own.")]
    return [_constant(facts, index) for index in indexes]


def _constant(facts: Facts, index: IndexFacts) -> Said:
    name, metrics = index.name, facts.metrics
    sampled = sample_of(facts, name)
    top = sampled.top_share if sampled is not None else None
    signals: list[Evidence] = []
    if sampled is not None and top is not None:
        what = "share of the index's items in its largest key"
        signals.append(evidence("sample", what, top, TOP_SHARE, where=sampled.top_key))
    severities: list[Severity] = []
    reasons: list[str] = []
    is_tiny = False
    if sampled is not None and top is not None and top.against(TOP_SHARE) == "above":
        severities.append(_constant_severity(facts, index, sampled, top.low))
        reasons.append(f"one key holds {interval(top)} of the index's items")
        is_tiny = severities == ["info"]
    if isinstance(metrics, MetricFacts):
        throttles = throttles_of(metrics, ["write"], ["key range"], name)
        if throttles.events and (top is None or top.against(TOP_SHARE) != "below"):
            signals.append(throttled(facts, metrics, throttles, f"hot key ranges of {name}"))
            severities.append(how_bad(facts, throttles, "high"))
            reasons.append(f"writes found its key range too hot {told(facts, throttles)}")
    if is_tiny and len(severities) == 1:
        count = Evidence("control plane", f"items of {name}", index.items, threshold=TINY_INDEX)
        summary = f"{name} has {counted(index.items, 'item')}: too few for a key of it to be hot."
        return clear(summary, count, *signals, target=name)
    if severities:
        worst = min(severities, key=["high", "medium", "low", "info"].index)
        summary = f"{name}: {'; '.join(reasons)}."
        return found(worst, summary, *signals, advice=_bucketed(facts, index), target=name)
    if top is not None and top.against(TOP_SHARE) == "below":
        summary = f"The largest key of {name} holds {interval(top)} of its items."
        return clear(summary, *signals, target=name)
    if isinstance(facts.sample, Absent):
        return missing(facts.sample, "sample", UNITS_OF_INDEX, target=name)
    summary = f"How the items of {name} are spread over its keys is open."
    return unknown(summary, more(facts.sample, UNITS_OF_INDEX), *signals, target=name)


def _constant_severity(
    facts: Facts, index: IndexFacts, sampled: IndexSample, share: float
) -> Severity:
    items = max(index.items, sampled.items_read)
    if items < TINY_INDEX:
        return "info"
    if isinstance(facts.metrics, MetricFacts):
        peak = facts.metrics.peak.get(("write", index.name))
        if peak is not None and peak * share >= HALF * KEY_WRITES:
            return "medium"
        if peak is not None and peak * share < QUIET_WRITES:
            return "low"
    return "medium" if share >= SERIOUS_SHARE and items >= SMALL_INDEX else "low"


def sample_of(facts: Facts, index: str) -> IndexSample | None:
    """Return what the sample contains of an index."""
    return facts.sample.indexes.get(index) if isinstance(facts.sample, SampleFacts) else None


def _bucketed(facts: Facts, index: IndexFacts) -> Advice:
    steps = (
        f"Write {index.partition} with a bucket: PENDING#0 to PENDING#7, by a hash of the item's "
        "key; readers ask all buckets.",
        "Or keep only what is still to be done in the index, and take the attribute away when it "
        "is done: the index gets sparse.",
        "A hot index key refuses writes to the table itself, of any item that goes there.",
    )
    today = of_index(facts, index.name)
    cost = money(facts, today, today, _rebuilding(facts, index))
    return Advice(("P16", "P3"), steps, "", cost)


def _rebuilding(facts: Facts, index: IndexFacts) -> float | None:
    """Return the dollars of one rewrite of an index's attribute in all its items.

    It includes the writes of the table and of the index.
    """
    items = index.items
    each = max(1.0, -(-(facts.table.mean_item_bytes or 0.0) // KB))
    # A change of an index key deletes the old entry and writes a new one.
    entry = max(1.0, -(-(index.bytes / items) // KB)) if items else 1.0
    return writing(facts, items * (each + 2 * entry), MONTH_SECONDS) if items else None


def might_be_sparse(facts: Facts) -> Iterable[Said]:
    """Apply I1: a skewed index that nearly every item is in could be sparse.

    Its queries need the items of one status, but all items are paid for.
    """
    indexes, table = indexes_of(facts), facts.table
    if not indexes:
        return [clear("The table has no GSI.")]
    return [_sparse(facts, table.items, index) for index in indexes]


def _sparse(facts: Facts, items: int, index: IndexFacts) -> Said:
    name, sampled = index.name, sample_of(facts, index.name)
    signals: list[Evidence] = []
    full: bool | None = None
    if sampled is not None and sampled.sparse is not None:
        what = f"share of the table's items in {name}"
        signals.append(evidence("sample", what, sampled.sparse, SPARSE))
        full = {"above": True, "below": False}.get(sampled.sparse.against(SPARSE))
    elif items and index.items and facts.at - facts.table.created >= COUNTS_SECONDS:
        share = index.items / items
        what = f"items of {name} / items of the table, up to 6 h old"
        signals.append(Evidence("control plane", what, share, threshold=SPARSE, n=items))
        full = share > SPARSE
    if full is False:
        return clear(f"{name} holds few of the items: it is sparse.", *signals, target=name)
    top = sampled.top_share if sampled is not None else None
    if top is not None:
        what = "share of the index's items in its largest key"
        signals.append(evidence("sample", what, top, TOP_SHARE))
        if top.against(TOP_SHARE) == "below":
            return clear(f"The keys of {name} part its items well.", *signals, target=name)
        if full and top.against(TOP_SHARE) == "above":
            if sampled is not None and max(index.items, sampled.items_read) < TINY_INDEX:
                return clear(f"{name} has too few items to save any.", *signals, target=name)
            summary = f"{name} holds most items, and one key {interval(top)} of them."
            return found("low", summary, *signals, advice=_SPARSE, target=name)
    if isinstance(facts.sample, Absent):
        return missing(facts.sample, "sample", UNITS_OF_INDEX, target=name)
    summary = f"Whether {name} could be sparse is open."
    return unknown(summary, more(facts.sample, UNITS_OF_INDEX), *signals, target=name)


_SPARSE = Advice(
    ("P3",),
    (
        "If queries want the few items of one status, give only these the index's attribute, and "
        "remove it when they leave that status.",
    ),
)
