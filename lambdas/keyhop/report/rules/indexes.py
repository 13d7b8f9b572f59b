"""Rules on indexes: A7, I2 and I3."""

from collections.abc import Iterable, Iterator

from keyhop.report.advice.money import money, of_index, storing, wasted, writing
from keyhop.report.facts import (
    TABLE,
    Absent,
    Facts,
    IndexFacts,
)
from keyhop.report.findings import Advice, Evidence, Severity
from keyhop.report.rules.limits import DAY, KB
from keyhop.report.rules.rule import Said, clear, found, missing, unknown
from keyhop.report.rules.seen import (
    counted_long_enough,
    too_young,
)
from keyhop.report.rules.shares import percent
from keyhop.wording import counted

NO_GSI = "The table has no GSI."
MOST_INDEXES = 10
UNREAD_DAYS = 30
SELDOM_READ = 0.10
"""The ratio of an index's read units to its write units."""
AMPLIFIED = 1.5


def indexes_of(facts: Facts) -> list[IndexFacts]:
    """Return the GSIs."""
    return [index for index in facts.table.indexes if index.kind == "GSI"]


def index_per_pattern(facts: Facts) -> Iterable[Said]:
    """Apply A7 to the table: many GSIs, or two where one is enough."""
    indexes = indexes_of(facts)
    count = Evidence("control plane", "GSIs", len(indexes), threshold=MOST_INDEXES)
    alike = [pair for pair in _pairs(indexes) if _one_would_do(*pair)]
    if len(indexes) >= MOST_INDEXES or alike:
        reasons = [f"{len(indexes)} GSIs"] if len(indexes) >= MOST_INDEXES else []
        reasons += [f"{first.name} and {second.name} have the same keys" for first, second in alike]
        summary = f"{'; '.join(reasons)}."
        yield found("low", summary[0].upper() + summary[1:], count, advice=_OVERLOAD)
    else:
        summary = f"{counted(len(indexes), 'GSI')}, each of other keys." if indexes else NO_GSI
        yield clear(summary, count)
    for index in indexes:
        yield _unread(facts, index)


_OVERLOAD = Advice(
    ("P7", "P12"),
    (
        "Let several kinds of items share an index: GSI1PK and GSI1SK hold what each is "
        "looked up by.",
        "Of two indexes where one's keys begin as the other's, keep the one with more keys.",
    ),
)


def _pairs(indexes: list[IndexFacts]) -> Iterator[tuple[IndexFacts, IndexFacts]]:
    for at, first in enumerate(indexes):
        yield from ((first, second) for second in indexes[at + 1 :])


def _one_would_do(first: IndexFacts, second: IndexFacts) -> bool:
    """Return whether one index can replace the other.

    They have the same partition key. Their sort keys are the same, or one has none and holds as
    many items as the other.
    """
    if first.partition != second.partition:
        return False
    if first.sort == second.sort:
        return True
    return None in (first.sort, second.sort) and first.items == second.items > 0


def _unread(facts: Facts, index: IndexFacts) -> Said:
    """Apply A7 to an index that nobody reads, although a rare job may need it."""
    metrics = facts.metrics
    if isinstance(metrics, Absent):
        return missing(metrics, "metrics", target=index.name)
    days = metrics.read_days.get(index.name)
    if days is None:
        why = "On how many days it was read is not known."
        return unknown(why, too_young(), target=index.name)
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
        return clear(f"It was read on {days} of {UNREAD_DAYS} days.", signal, target=index.name)
    cost = of_index(facts, index.name)
    age = (facts.at - facts.table.created) / DAY
    young = age < UNREAD_DAYS
    severity: Severity = "medium" if wasted(facts, cost) and not young else "low"
    summary = f"Nobody has read {index.name} in {UNREAD_DAYS} days"
    summary += f"; the table is {counted(round(age), 'day')} old." if young else "."
    advice = Advice(
        ("P12",),
        (
            "Confirm that no job needs it that runs once a month or less.",
            "Then delete it: each write of an item that it holds pays for it too.",
        ),
        cost=money(facts, cost, 0.0),
    )
    return found(severity, summary, signal, advice=advice, target=index.name)


def broad_projection(facts: Facts) -> Iterable[Said]:
    """Apply I2: an index of whole items that is written and hardly read."""
    indexes = indexes_of(facts)
    if not indexes:
        return [clear(NO_GSI)]
    return [_broad(facts, index) for index in indexes]


def _broad(facts: Facts, index: IndexFacts) -> Said:
    name, metrics = index.name, facts.metrics
    if index.projection != "ALL":
        return clear(f"{name} holds some attributes only.", target=name)
    if isinstance(metrics, Absent):
        return missing(metrics, "metrics", target=name)
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
        summary = f"{name} holds whole items; too little of its use was seen."
        return unknown(summary, too_young(), signal, target=name)
    mean = index.bytes / index.items
    sized = Evidence("control plane", f"bytes of an item in {name}", mean, threshold=KB)
    if read >= SELDOM_READ * written:
        return clear(f"{name} is read enough for what it holds.", signal, sized, target=name)
    if mean <= KB:
        summary = (
            f"Items in {name} have {counted(mean, 'byte')}: fewer attributes save no write units."
        )
        return clear(summary, signal, sized, target=name)
    cost = of_index(facts, name)
    lean = _lean(facts, index, written, metrics.seconds, mean)
    worth = cost is not None and lean is not None and wasted(facts, cost - lean)
    summary = f"{name} copies whole items of {mean / KB:,.1f} KB, and is hardly read."
    advice = Advice(
        ("P15",),
        (
            "Let the index hold its keys only, or what queries show; fetch the rest by BatchGet.",
            "A projection cannot be changed: make a second index, move the readers, delete this.",
        ),
        cost=money(facts, cost, lean),
    )
    severity: Severity = "medium" if worth else "low"
    return found(severity, summary, signal, sized, advice=advice, target=name)


def _lean(
    facts: Facts, index: IndexFacts, written: float, seconds: float, mean: float
) -> float | None:
    """Return the dollars a month if each entry had at most the KB of one write unit."""
    units = written / max(1.0, -(-mean // KB))
    storage, writes = storing(facts, index.items * min(mean, KB)), writing(facts, units, seconds)
    return None if storage is None or writes is None else storage + writes


def amplified_writes(facts: Facts) -> Iterable[Said]:
    """Apply I3: the table's writes cost more in its indexes."""
    indexes, metrics = indexes_of(facts), facts.metrics
    if not indexes:
        return [clear(NO_GSI)]
    if isinstance(metrics, Absent):
        return [missing(metrics, "metrics")]
    table = metrics.consumed.get(("write", TABLE), 0.0)
    written = sum(metrics.consumed.get(("write", index.name), 0.0) for index in indexes)
    if not table or not counted_long_enough(facts):
        return [unknown("Too few writes were counted.", too_young())]
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
        return [clear(f"Writes cost {percent(times)} more for the GSIs.", signal)]
    today = writing(facts, table + written, metrics.seconds)
    half = writing(facts, table + min(written, table), metrics.seconds)
    summary = f"GSIs take {times:.1f} times the write units of the table."
    advice = Advice(
        ("P15", "P3", "P7"),
        (
            "Keep attributes that change often out of index keys: such a change costs two writes.",
            "Project less, make indexes sparse, and delete those that nobody reads.",
        ),
        cost=money(facts, today, half),
    )
    return [found("low", summary, signal, advice=advice)]
