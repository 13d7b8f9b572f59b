"""Rules on indexes: A7, A9 and I1 to I4."""

from itertools import combinations

from keyhop.dynamodb.units import MOST_INDEX_KEY_ATTRIBUTES
from keyhop.report.advice import (
    MONTH_SECONDS,
    money,
    of_index,
    storing,
    wasted,
    writing,
)
from keyhop.report.facts import (
    TABLE,
    Facts,
    IndexFacts,
    IndexSample,
    MetricFacts,
    SampleFacts,
)
from keyhop.report.findings import SEVERITIES, Advice, Evidence, Finding, Severity
from keyhop.report.rules.rule import (
    DAY,
    HALF,
    HOUR,
    KB,
    KEY_WRITES,
    NO_GSI,
    clear,
    counted_long_enough,
    each_index,
    evidence,
    found,
    how_bad,
    in_words,
    indexes_of,
    interval,
    matters,
    more,
    needed,
    percent,
    rule,
    throttled,
    throttles_of,
    too_young,
    unknown,
    with_other_key,
)
from keyhop.wording import counted

MOST_INDEXES = 6
"""A table could have five GSIs until 2018, which was enough for most applications."""
UNREAD_DAYS = 30
SELDOM_READ = 0.10
"""The ratio of an index's read units to its write units."""
AMPLIFIED = 1.5
TOP_SHARE = 0.20
SERIOUS_SHARE = 0.50
TINY_INDEX = 100
"""In an index with fewer items, one key easily has a fifth of them."""
SMALL_INDEX = 1000
QUIET_WRITES = 50.0
"""The units a second that an index key serves without harm in its busiest minute."""
SPARSE = 0.40
CONSTANT = 0.95
"""The least share of the items that have the only key of an index."""
COUNTS_SECONDS = 6 * HOUR
"""The maximum age of the counts of items."""
JOINED = 0.9
"""The share of an index's items from which on a key counts as joined of other attributes."""
UNITS_OF_INDEX = 250.0


@rule("A7", "an index for each access pattern")
def index_per_pattern(facts: Facts) -> list[Finding]:
    """Apply A7 to the table: many GSIs, or two where one is enough; and to each GSI."""
    return each_index(
        facts, lambda index: _unread(facts, index), with_table=lambda: _too_many(indexes_of(facts))
    )


def _too_many(indexes: list[IndexFacts]) -> Finding:
    count = Evidence("control plane", "GSIs", len(indexes), threshold=MOST_INDEXES)
    alike = [pair for pair in combinations(indexes, 2) if _one_would_do(*pair)]
    if len(indexes) >= MOST_INDEXES or alike:
        reasons = [f"the table has {len(indexes)} GSIs"] if len(indexes) >= MOST_INDEXES else []
        reasons += [f"the GSIs {a.name} and {b.name} have the same keys" for a, b in alike]
        summary = f"{'; '.join(reasons)}."
        return found("low", summary[0].upper() + summary[1:], count, advice=_OVERLOAD)
    summary = f"The table has {counted(len(indexes), 'GSI')}; no two GSIs have the same keys."
    return clear(summary if indexes else NO_GSI, count)


_OVERLOAD = Advice(
    ("P7", "P12"),
    (
        "Let several kinds of items share an index: each kind writes the values that it is looked "
        "up by into GSI1PK and GSI1SK.",
        "If the keys of one index are the beginning of the keys of another, keep only the longer "
        "one.",
    ),
)


def _one_would_do(first: IndexFacts, second: IndexFacts) -> bool:
    """Return whether one index can replace the other.

    They have the same partition key. Their sort keys are the same, or one begins with all of the
    other, or the other has none, and both hold as many items.
    """
    if first.partition != second.partition:
        return False
    if first.sort == second.sort:
        return True
    shorter, longer = sorted((first.sort, second.sort), key=len)
    return longer[: len(shorter)] == shorter and first.items == second.items > 0


def _unread(facts: Facts, index: IndexFacts) -> Finding:
    """Apply A7 to an index that nobody reads, although a rare job may need it."""
    metrics = facts.metrics
    metrics = needed(metrics, "metrics")
    days = metrics.read_days.get(index.name)
    if days is None:
        why = "The number of days on which it was read is not known."
        return unknown(why, too_young())
    signal = Evidence(
        "metrics",
        f"days with reads of {index.name}, of {UNREAD_DAYS}",
        days,
        days,
        days,
        threshold=1,
        window=UNREAD_DAYS * DAY,
    )
    if days:
        return clear(f"It was read on {days} of {UNREAD_DAYS} days.", signal)
    if not any(metrics.consumed.get(("read", target)) for target in (TABLE, *metrics.read_days)):
        summary = "Neither the table nor any of its indexes was read."
        return unknown(summary, too_young(), signal)
    cost = of_index(facts, index.name)
    age = (facts.at - facts.table.created) / DAY
    young = age < UNREAD_DAYS
    severity: Severity = "medium" if wasted(facts, cost) and not young else "low"
    summary = f"Nobody has read {index.name} in {UNREAD_DAYS} days"
    summary += f"; the table is {counted(round(age), 'day')} old." if young else "."
    advice = Advice(
        ("P12",),
        (
            "Check that it is not needed by a job that runs once a month or less.",
            "Then delete it: each write of an item in it pays for the index too.",
        ),
        cost=money(facts, cost, 0.0),
    )
    return found(severity, summary, signal, advice=advice)


@rule("I2", "an index copies whole items")
def broad_projection(facts: Facts) -> list[Finding]:
    """Apply I2: an index of whole items that is written and hardly read."""
    return each_index(facts, lambda index: _broad(facts, index))


def _broad(facts: Facts, index: IndexFacts) -> Finding:
    name, metrics = index.name, facts.metrics
    if index.projection != "ALL":
        return clear(f"{name} holds only some attributes.")
    metrics = needed(metrics, "metrics")
    written = metrics.consumed.get(("write", name), 0.0)
    read = metrics.consumed.get(("read", name), 0.0)
    signal = Evidence(
        "metrics",
        f"read units of {name} for each write unit",
        read / written if written else None,
        threshold=SELDOM_READ,
        window=metrics.seconds,
    )
    if not counted_long_enough(facts) or not written or not index.items or not index.bytes:
        summary = f"{name} holds whole items, but too few reads and writes of it were counted."
        return unknown(summary, too_young(), signal)
    mean = index.bytes / index.items
    sized = Evidence("control plane", f"bytes of an item in {name}", mean, threshold=KB)
    if read >= SELDOM_READ * written:
        return clear(f"{name} holds whole items, and is read often enough.", signal, sized)
    if mean <= KB:
        summary = (
            f"Items in {name} have {counted(mean, 'byte')}: fewer attributes would not save write "
            "units."
        )
        return clear(summary, signal, sized)
    cost = of_index(facts, name)
    lean = _lean(facts, index, written, metrics.seconds, mean)
    worth = cost is not None and lean is not None and wasted(facts, cost - lean)
    summary = f"{name} copies whole items of {mean / KB:,.1f} KB, but is rarely read."
    advice = Advice(
        ("P15",),
        (
            "Project only the keys, or the attributes that queries return, and read the others "
            "with BatchGetItem.",
            "A projection cannot be changed: make a second index, move the readers to it, and "
            "delete this one.",
        ),
        cost=money(facts, cost, lean),
    )
    severity: Severity = "medium" if worth else "low"
    return found(severity, summary, signal, sized, advice=advice)


def _lean(
    facts: Facts, index: IndexFacts, written: float, seconds: float, mean: float
) -> float | None:
    """Return the dollars a month if each entry had at most the KB of one write unit."""
    units = written / max(1.0, -(-mean // KB))
    storage, writes = storing(facts, index.items * min(mean, KB)), writing(facts, units, seconds)
    return None if storage is None or writes is None else storage + writes


@rule("I3", "writes cost more in indexes than in the table")
def amplified_writes(facts: Facts) -> Finding:
    """Apply I3: the table's writes cost more in its indexes."""
    indexes, metrics = indexes_of(facts), facts.metrics
    if not indexes:
        return clear(NO_GSI)
    metrics = needed(metrics, "metrics")
    table = metrics.consumed.get(("write", TABLE), 0.0)
    written = sum(metrics.consumed.get(("write", index.name), 0.0) for index in indexes)
    if not table or not counted_long_enough(facts):
        return unknown("Too few writes were counted.", too_young())
    times = written / table
    signal = Evidence(
        "metrics",
        "write units of all GSIs / those of the table",
        times,
        times,
        times,
        threshold=AMPLIFIED,
        window=metrics.seconds,
    )
    if times < AMPLIFIED:
        return clear(f"The GSIs add {percent(times)} to the write units of the table.", signal)
    today = writing(facts, table + written, metrics.seconds)
    half = writing(facts, table + min(written, table), metrics.seconds)
    summary = f"GSIs take {times:.1f} times the write units of the table."
    advice = Advice(
        ("P15", "P3", "P7"),
        (
            "Keep attributes that change often out of index keys: such a change costs two writes.",
            "Project fewer attributes, make indexes sparse, and delete the ones that are not read.",
        ),
        cost=money(facts, today, half),
    )
    return found("low", summary, signal, advice=advice)


@rule("A9", "constant key of an index")
def constant_index_key(facts: Facts) -> list[Finding]:
    """Apply A9: an index key with too large a share of the index.

    Without a sample, throttled writes show a hot key (H1), which need not hold many items.
    """
    none = "No GSI has a partition key without the table's."
    return each_index(facts, lambda index: _constant(facts, index), with_other_key(facts), none)


def _constant(facts: Facts, index: IndexFacts) -> Finding:
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
        if matters(facts, throttles) and top is not None and top.against(TOP_SHARE) != "below":
            signals.append(throttled(facts, metrics, throttles, f"hot key ranges of {name}"))
            severities.append(how_bad(facts, throttles, "high"))
            reasons.append(f"a key range of it was throttled {in_words(facts, throttles)}")
    if is_tiny and len(severities) == 1:
        count = Evidence("control plane", f"items of {name}", index.items, threshold=TINY_INDEX)
        summary = f"{name} has {counted(index.items, 'item')}: too few to make a key hot."
        return clear(summary, count, *signals)
    if severities:
        worst = min(severities, key=SEVERITIES.index)
        summary = f"{name}: {'; '.join(reasons)}."
        return found(worst, summary, *signals, advice=_bucketed(facts, index))
    if top is not None and top.against(TOP_SHARE) == "below":
        summary = f"The largest key of {name} holds {interval(top)} of its items."
        return clear(summary, *signals)
    sample = needed(facts.sample, "sample", UNITS_OF_INDEX)
    summary = f"It is not known how the items of {name} are spread over its keys."
    return unknown(summary, more(sample, UNITS_OF_INDEX), *signals)


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
        f"Spread each key over buckets, 0 to 7 by a hash of the item's key. A new index has the "
        f"bucket as one more attribute of its partition key, beside {' and '.join(index.partition)}"
        f"{_OR_COMPOSED if len(index.partition) == 1 else ''}. Readers query all buckets.",
        "Or keep only the items that still need work in the index: remove the attribute from an "
        "item that is done, so that the index becomes sparse.",
        "While an index key is hot, writes to the table itself of items with this key are refused.",
    )
    today = of_index(facts, index.name)
    cost = money(facts, today, today, _rebuilding(facts, index))
    return Advice(("P16", "P3"), steps, "", cost)


_OR_COMPOSED = ", or one attribute holds both: PENDING#0 to PENDING#7"


def _rebuilding(facts: Facts, index: IndexFacts) -> float | None:
    """Return the dollars of one rewrite of an index's attribute in all its items.

    It includes the writes of the table and of the index.
    """
    items = index.items
    each = max(1.0, -(-(facts.table.mean_item_bytes or 0.0) // KB))
    # A change of an index key deletes the old entry and writes a new one.
    entry = max(1.0, -(-(index.bytes / items) // KB)) if items else 1.0
    return writing(facts, items * (each + 2 * entry), MONTH_SECONDS) if items else None


@rule("I1", "an index that could be sparse")
def might_be_sparse(facts: Facts) -> list[Finding]:
    """Apply I1: a skewed index that nearly every item is in could be sparse.

    Its queries need the items of one status, but all items are paid for.
    """
    return each_index(facts, lambda index: _sparse(facts, facts.table.items, index))


def _sparse(facts: Facts, items: int, index: IndexFacts) -> Finding:
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
        return clear(f"{name} holds few of the items, so it is sparse already.", *signals)
    top = sampled.top_share if sampled is not None else None
    if isinstance(facts.sample, SampleFacts) and {*index.partition} <= {*facts.sample.kind_names}:
        return clear(f"The key of {name} is the kind of an item, not a status.", *signals)
    if top is not None:
        what = "share of the index's items in its largest key"
        signals.append(evidence("sample", what, top, 1 - SPARSE))
        if top.value == 1 and top.low >= CONSTANT:
            summary = f"All items of {name} have the same key, which serves to list them all."
            return clear(summary, *signals)
        if top.against(1 - SPARSE) == "below":
            return clear(f"Without its largest key, {name} would still be large.", *signals)
        if full and top.against(1 - SPARSE) == "above":
            if sampled is not None and max(index.items, sampled.items_read) < TINY_INDEX:
                return clear(f"{name} has too few items for a saving to matter.", *signals)
            summary = (
                f"{name} holds most of the table's items, and {interval(top)} of these have the "
                "same key."
            )
            return found("low", summary, *signals, advice=_SPARSE)
    sample = needed(facts.sample, "sample", UNITS_OF_INDEX)
    summary = f"It is not known whether {name} could be sparse."
    return unknown(summary, more(sample, UNITS_OF_INDEX), *signals)


_SPARSE = Advice(
    ("P3",),
    (
        "If queries need only the few items of one status, write the index's attribute into these "
        "items only, and remove it when they leave that status.",
    ),
)


@rule("I4", "an index key that joins other attributes")
def composed_index_key(facts: Facts) -> list[Finding]:
    """Apply I4: a key attribute of a GSI that only joins other attributes, such as STATUS#DATE.

    A GSI can have up to four attributes in its partition key and four in its sort key, so the
    joined text costs writes, storage and code for nothing.
    """
    return each_index(facts, lambda index: _composed(facts, index))


def _composed(facts: Facts, index: IndexFacts) -> Finding:
    sample = needed(facts.sample, "sample", UNITS_OF_INDEX)
    sampled = sample.indexes.get(index.name)
    if sampled is None or "" not in sampled.composed:
        summary = f"The sample has no item of {index.name}."
        return unknown(summary, more(sample, UNITS_OF_INDEX))
    signals: list[Evidence] = []
    reasons: list[str] = []
    keys = [name for name in (*index.partition, *index.sort) if name in sampled.composed]
    for name in keys or [""]:
        names, share = sampled.composed[name]
        what = f"{name} joins {' and '.join(names)}" if name else "key joins other attributes"
        signals.append(
            evidence("sample", f"share of the index's items whose {what}", share, JOINED)
        )
        if share.against(JOINED) == "above":
            reasons.append(f"{name} only joins {' and '.join(names)}")
    if reasons:
        summary = f"{index.name}: {'; '.join(reasons)}."
        return found("low", summary, *signals, advice=_separate(index, sampled))
    if all(sampled.composed[name][1].against(JOINED) == "below" for name in keys or [""]):
        return clear(f"The keys of {index.name} do not only join other attributes.", *signals)
    summary = f"It is not known whether the keys of {index.name} only join other attributes."
    return unknown(summary, more(sample, UNITS_OF_INDEX), *signals)


def _separate(index: IndexFacts, sampled: IndexSample) -> Advice:
    def parts(keys: tuple[str, ...]) -> list[str]:
        names = (sampled.composed.get(key, ((key,), None))[0] for key in keys)
        return [*dict.fromkeys(name for each in names for name in each)]

    partition, sort = parts(index.partition), parts(index.sort)
    sort = [name for name in sort if name not in partition]
    keys = f"the partition key {' and '.join(partition)}"
    keys += f" and the sort key {' and '.join(sort)}" if sort else ""
    is_possible = max(len(partition), len(sort)) <= MOST_INDEX_KEY_ATTRIBUTES
    steps = (
        f"Make a second index with {keys}: a GSI takes up to four attributes in each part."
        if is_possible
        else "Make a second index with up to four of these attributes in each part of its key.",
        "A query names all attributes of the partition key, and those of the sort key from left "
        "to right. Numbers sort as numbers, without padding.",
        "Move the readers to it, delete this index, and stop writing the joined attribute.",
    )
    return Advice(("P12", "P15"), steps)
