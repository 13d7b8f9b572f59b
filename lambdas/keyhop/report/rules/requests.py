"""Rules on requests that cost twice as much: A10, A12 and A17.

They read requests, metrics and the sample.
"""

from collections.abc import Iterable

from keyhop.dynamodb.units import BLOCK_BYTES
from keyhop.report.advice.money import money, reading, wasted, writing
from keyhop.report.facts import (
    TABLE,
    Absent,
    Facts,
    MetricFacts,
    RequestFacts,
    RequestShape,
    SampleFacts,
)
from keyhop.report.findings import Advice, Evidence, Money, Price, Severity
from keyhop.report.rules.code import at, lines_of
from keyhop.report.rules.rule import FLAGS, Said, clear, found, missing, unknown
from keyhop.report.rules.seen import counted_long_enough, too_young
from keyhop.report.rules.shares import evidence, interval, percent, share_of
from keyhop.wording import counted

CALLS = 385
FOLLOWED = 0.01
TRANSACTIONAL = 0.90
FEW_WRITES = 60
CONSISTENT = 0.80
GETS = 0.95
"""The share of GetItem among read calls above which read units are attributed to it."""
ONE_UNIT, HALF_UNIT = 0.95, 0.60
"""The read units of a GetItem of up to 4 KB: 1 if it is consistent, otherwise 0.5."""

READS = ("GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems")
PLAIN_WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")


def units_of(shape: RequestShape, requests: RequestFacts) -> float:
    """Return the units of all calls of a shape.

    They include the calls that were not sampled, and those whose response had no capacity.
    """
    metered = shape.metered or shape.calls
    return shape.units * shape.calls / metered / (requests.sampled or 1.0)


def read_after_write(facts: Facts) -> Iterable[Said]:
    """Apply A10: a read of an index after a write, which only requests show."""
    requests = facts.requests
    gsis = [index.name for index in facts.table.indexes if index.kind == "GSI"]
    if not gsis:
        return [clear("The table has no GSI.")]
    if isinstance(requests, Absent):
        return [missing(requests, "requests")]
    return [_followed(requests, name) for name in gsis]


def _followed(requests: RequestFacts, name: str) -> Said:
    hits, reads = requests.followed.get(name, (0, 0))
    if not reads:
        why = f"No read of {name} was seen."
        return unknown(why, Price(0.0, FLAGS["requests"]), target=name)
    share = share_of(min(hits, reads), reads, "reads of the index")
    what = f"reads of {name} within a second of a write of the same item"
    signal = evidence("requests", what, share, FOLLOWED, window=requests.seconds)
    side = share.against(FOLLOWED)
    if side == "above":
        summary = f"{interval(share)} of the reads of {name} follow a write of the same item."
        return found("low", summary, signal, advice=_FROM_TABLE, target=name)
    if side == "below":
        summary = f"{interval(share)} of the reads of {name} follow a write of the same item."
        return clear(summary, signal, target=name)
    summary = "Too few reads of it were seen."
    return unknown(summary, Price(0.0, FLAGS["requests"]), signal, target=name)


_FROM_TABLE = Advice(
    (),
    (
        "Read the item from the table by its key, with ConsistentRead: an index is behind, mostly "
        "by milliseconds, without a promise.",
        "Or use what the write itself returns (ReturnValues).",
    ),
)


def transactions(facts: Facts) -> Iterable[Said]:
    """Apply A12: transactions for one item, or for nearly all writes."""
    metrics, requests = facts.metrics, facts.requests
    if isinstance(requests, RequestFacts):
        shapes = [shape for shape in requests.shapes if shape.one_item_transactions]
        if shapes:
            return [_one_item(facts, requests, shapes)]
    if isinstance(metrics, Absent):
        return [missing(metrics, "metrics")]
    transaction_calls = metrics.calls.get("TransactWriteItems", 0.0)
    writes = transaction_calls + sum(
        metrics.calls.get(operation, 0.0) for operation in PLAIN_WRITES
    )
    if writes < FEW_WRITES or not counted_long_enough(facts):
        return [unknown("Too few writes were counted.", too_young())]
    share = transaction_calls / writes
    signal = Evidence(
        "metrics",
        "write calls that are transactions",
        share,
        share,
        share,
        TRANSACTIONAL,
        metrics.seconds,
        round(writes),
    )
    if share <= TRANSACTIONAL:
        return [clear(f"{percent(share)} of the write calls are transactions.", signal)]
    summary = f"{percent(share)} of the write calls are transactions, which cost twice as much."
    units = metrics.consumed.get(("write", TABLE), 0.0)
    cost = writing(facts, units, metrics.seconds)
    half = None if cost is None else cost / 2
    return [found("low", summary, signal, advice=_plain(money(facts, cost, half)))]


def _one_item(facts: Facts, requests: RequestFacts, shapes: list[RequestShape]) -> Said:
    alone = sum(shape.one_item_transactions for shape in shapes)
    share = share_of(alone, max(alone, requests.calls), "requests seen")
    units = sum(
        units_of(shape, requests) * shape.one_item_transactions / shape.calls for shape in shapes
    )
    cost = writing(facts, units, requests.seconds)
    half = None if cost is None else cost / 2
    signal = evidence(
        "requests", "requests that are transactions of one item", share, window=requests.seconds
    )
    severity: Severity = "medium" if wasted(facts, half) else "low"
    summary = (
        f"{counted(alone, 'transaction')} of one item {'was' if alone == 1 else 'were'} "
        f"seen: each costs twice as much."
    )
    return found(severity, summary, signal, advice=_plain(money(facts, cost, half)))


def _plain(cost: Money | None) -> Advice:
    return Advice(
        ("P2",),
        (
            "Write one item by a plain request with a condition: it is as atomic, for half of it.",
            "Keep transactions where several items have to change together.",
        ),
        cost=cost,
    )


def consistent_reads(facts: Facts) -> Iterable[Said]:
    """Apply A17: consistent reads everywhere.

    The report cannot see whether they are intended, only what they cost.
    """
    requests, metrics = facts.requests, facts.metrics
    if isinstance(requests, RequestFacts):
        shapes = [shape for shape in requests.shapes if shape.operation in READS]
        calls = sum(shape.calls for shape in shapes)
        if calls:
            share = share_of(sum(shape.consistent for shape in shapes), calls, "read requests")
            signal = evidence(
                "requests", "consistent reads", share, CONSISTENT, window=requests.seconds
            )
            units = sum(
                units_of(shape, requests) * shape.consistent / shape.calls for shape in shapes
            )
            side = share.against(CONSISTENT)
            if side == "above":
                cost = reading(facts, units, requests.seconds)
                return [_eventual(facts, f"{interval(share)} of the reads", cost, signal)]
            if side == "below":
                return [clear(f"{interval(share)} of the reads are consistent.", signal)]
    if isinstance(metrics, Absent):
        lines = at(lines_of(facts, "consistent"))
        if isinstance(requests, Absent) and not lines:
            return [missing(requests, "requests")]
        return [_open(*lines)]
    return [_by_units(facts, metrics)]


def _by_units(facts: Facts, metrics: MetricFacts) -> Said:
    """Judge by the read units of a GetItem.

    This works only where nothing else is read, and items fit into one block.
    """
    gets = metrics.calls.get("GetItem", 0.0)
    reads = sum(metrics.calls.get(operation, 0.0) for operation in READS)
    units = metrics.consumed.get(("read", TABLE), 0.0)
    if reads < CALLS or gets < GETS * reads or not _of_one_block(facts) or not units:
        return _open(*at(lines_of(facts, "consistent")))
    each = units / gets
    what = "read units for each GetItem, where items have 4 KB at most"
    signal = Evidence("metrics", what, each, each, each, ONE_UNIT, metrics.seconds, round(gets))
    if ONE_UNIT <= each <= 2 - ONE_UNIT:
        cost = reading(facts, units, metrics.seconds)
        return _eventual(facts, "By their cost all reads", cost, signal)
    if each <= HALF_UNIT and counted_long_enough(facts):
        return clear("By their cost most reads are eventually consistent.", signal)
    return _open(signal)


def _of_one_block(facts: Facts) -> bool:
    sample = facts.sample
    if not isinstance(sample, SampleFacts):
        return False
    p99 = sample.item_bytes.get(0.99)
    return p99 is not None and p99.high <= BLOCK_BYTES


def _open(*signals: Evidence) -> Said:
    why = "How many reads are consistent does not show in the counts."
    return unknown(why, Price(0.0, FLAGS["requests"]), *signals)


def _eventual(facts: Facts, what: str, cost: float | None, signal: Evidence) -> Said:
    half = None if cost is None else cost / 2
    advice = Advice(
        (),
        (
            "Leave ConsistentRead out where an answer that is a moment old will do: it costs half.",
            "Keep it where a write has to be seen by the next read.",
        ),
        cost=money(facts, cost, half),
    )
    severity: Severity = "medium" if wasted(facts, half) else "low"
    return found(severity, f"{what} are consistent, at twice the price.", signal, advice=advice)
