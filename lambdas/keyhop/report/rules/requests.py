"""Rules on requests, from CloudWatch, a sampler and code: A4, A5, A10, A11, A12, A14 and A17."""

import re
from collections.abc import Iterable
from dataclasses import replace

from keyhop.dynamodb.units import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK
from keyhop.report.advice import (
    money,
    reading,
    sum_of,
    wasted,
    writing,
)
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    TABLE,
    Absent,
    CodeFacts,
    CodeLine,
    Facts,
    MetricFacts,
    RequestFacts,
    RequestShape,
    SampleFacts,
    StreamFacts,
)
from keyhop.report.findings import Advice, Evidence, Finding, Money, Price, Severity
from keyhop.report.rules.rule import (
    DAY,
    FLAGS,
    HOUR,
    NO_GSI,
    clear,
    counted_long_enough,
    each_index,
    evidence,
    found,
    indexes_of,
    interval,
    missing,
    needed,
    percent,
    price_of,
    rule,
    share_of,
    too_young,
    unknown,
)
from keyhop.wording import counted, duration

RARE = 0.1
"""The share of an attribute's changes above which going back is intended."""
REVERSED = 0.005

BOTH_IMAGES = "NEW_AND_OLD_IMAGES"
KEPT = 0.90
WHOLE_PASSES = 1.5
"""The maximum number of full reads a day that count as an export."""
FULL_PAGE = 0.5
"""The share of a page's items below which a filter drops most of them."""
SCAN_SHARE = 0.10
"""The share of all read units below which Scans do not matter for the cost."""
SOME_SCANS = 0.01
"""The share of sampled reads below which Scans are occasional and manual."""
FEW_SCANS = 5
"""Fewer sampled Scans than this may be those of a person, or of a start-up."""
JOB_HOURS = 1 / 8
"""The share of all hours up to which Scans are those of a job, as three hours of a day."""
CALLS = 385
FOLLOWED = 0.01
TRANSACTIONAL = 0.90
ALONE = 0.30
"""The share of transactions of one item up to which a list of items is short now and then."""
FEW_WRITES = 60
CONSISTENT = 0.80
FEW_READS = 3
"""A program of fewer read calls shows no habit."""
GETS = 0.95
"""The share of GetItem among read calls above which read units are attributed to it."""
ONE_UNIT, HALF_UNIT = 0.95, 0.60
"""The read units of a GetItem of up to 4 KB: 1 if it is consistent, otherwise 0.5."""
READS = ("GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems")
TRANSACTIONS = ("TransactWriteItems", "TransactGetItems")
PLAIN_WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")

TESTS = re.compile(r"(^|/)(tests?|specs?)/|(^|/)(test_[^/]*|[^/]*_tests?|conftest)\.py$")
"""The paths of tests, whose requests are not those of the application."""
JOBS = re.compile(
    r"(^|/)(scripts?|tools?|bin|migrations?|maintenance)/"
    r"|(^|[/_])(export|backup|backfill|migrat\w*|dump|seed)(_[^/]*)?\.py$"
)
"""The paths of what people run now and then, where a Scan or a filter is in its place."""
EXPIRY = re.compile(
    r"(ttl|exp|expir(y|es?|ed|ation)|time_?to_?live|valid_?until)_?(at|on|time|date|ts|epoch)?",
    re.IGNORECASE,
)
"""The usual names of an attribute of time to live."""


def lines_of(facts: Facts, *kinds: str) -> tuple[CodeLine, ...]:
    """Return the lines of the user's code that name this table, or no table; none of its tests."""
    if not isinstance(facts.code, CodeFacts):
        return ()
    return tuple(
        line
        for line in facts.code.lines
        if line.kind in kinds
        and line.table in ("", facts.table.name)
        and not TESTS.search(line.file)
    )


def _in_requests(lines: tuple[CodeLine, ...]) -> tuple[CodeLine, ...]:
    """Return the lines that are not those of a script, a migration or an export."""
    return tuple(line for line in lines if not JOBS.search(line.file))


def at(lines: Iterable[CodeLine]) -> tuple[Evidence, ...]:
    """Return each line as evidence."""
    return tuple(
        Evidence("code", line.text, n=1, where=f"{line.file}:{line.line}") for line in lines
    )


def first_of(lines: tuple[CodeLine, ...]) -> str:
    """Name the first line and count the others, such as `orders.py:17 and 2 more`."""
    first = f"{lines[0].file}:{lines[0].line}"
    return first if len(lines) == 1 else f"{first} and {len(lines) - 1} more"


@rule("A11", "status changes without a condition")
def status_changes(facts: Facts) -> Finding:
    """Apply A11: a status is set without a condition.

    It is a suspicion, as only the owner knows which transitions are legal.
    """
    stream, lines = facts.stream, lines_of(facts, "status")
    signals: list[Evidence] = list(at(lines))
    rare: list[tuple[str, Estimate]] = []
    often: list[tuple[str, Estimate]] = []
    highest = 0.0
    if isinstance(stream, StreamFacts):
        for attribute, (transitions, back) in sorted(stream.reversals.items()):
            if not transitions:
                continue
            share = share_of(min(back, transitions), transitions, "records of the stream")
            highest = max(highest, share.high)
            what = f"changes of {attribute} that go back to an earlier value"
            signals.append(evidence("stream", what, share, REVERSED, window=stream.seconds))
            if back:
                (rare if share.value < RARE else often).append((attribute, share))
    if lines:
        summary = f"{first_of(lines)}: a status is set without a condition."
        return found("low", summary, *signals, advice=_CONDITION)
    if rare:
        attribute, share = rare[0]
        summary = (
            f"{interval(share)} of the changes of {attribute} go back to an earlier value: a late "
            "writer may have made them."
        )
        return found("low", summary, *signals, advice=_CONDITION)
    if often:
        attribute, share = often[0]
        summary = (
            f"{interval(share)} of the changes of {attribute} go back to an earlier value: so many "
            "seem to be intended."
        )
        return clear(summary, *signals)
    stream = needed(stream, "stream")
    if stream.view != BOTH_IMAGES:
        summary = (
            f"The stream contains {stream.view or 'no images'}: only old and new images show "
            "changes."
        )
        return unknown(summary, Price(0.0, f"a stream with {BOTH_IMAGES}"))
    if signals and highest < REVERSED:
        return clear("No status has gone back.", *signals)
    summary = "The stream shows too few changes of a status."
    return unknown(summary, Price(0.0, "--stream 1h"), *signals)


_CONDITION = Advice(
    ("P16",),
    (
        "Change a status only if it has the expected value: "
        'ConditionExpression="#status = :pending".',
        "If DynamoDB refuses the change, read the item again and decide what to do.",
    ),
)


@rule("A14", "leftovers of a batch are ignored")
def unprocessed(facts: Facts) -> Finding:
    """Apply A14: the leftovers of a batch are not sent again.

    A batch may be answered in part, and only code shows what happens to the rest.
    """
    lines = lines_of(facts, "unprocessed")
    if lines:
        summary = f"{first_of(lines)}: the unprocessed part of a batch is not read."
        return found("low", summary, *at(lines), advice=_AGAIN)
    code = needed(facts.code, "code")
    if handed_on := lines_of(facts, "batch_write"):
        summary = (
            f"{first_of(handed_on)}: the response of a batch is passed on. The code does not show "
            "whether its unprocessed part is read."
        )
        return unknown(summary, Price(0.0, "read these lines of code"), *at(handed_on))
    if not code.files or code.unreadable:
        return unknown("Some of the code could not be read.", Price(0.0, FLAGS["code"]))
    signal = Evidence("code", "files that were read", code.files, n=code.files)
    return clear("The code that was read checks the unprocessed part of each batch.", signal)


_AGAIN = Advice(
    (),
    (
        "Send UnprocessedItems and UnprocessedKeys again, with growing delays, or use boto3's "
        "batch_writer, which does this for writes.",
    ),
)


@rule("A4", "Scan in production")
def scans(facts: Facts) -> Finding:
    """Apply A4: Scans, unless they are those of an export or another job."""
    metrics = facts.metrics
    lines = _in_requests(lines_of(facts, "scan"))
    watched = _watched_scans(facts)
    if watched is not None and watched.against(SOME_SCANS) == "above":
        summary = f"{interval(watched)} of the recorded reads are Scans."
        signal = evidence("requests", "Scans among the reads", watched, SOME_SCANS)
        return found("low", summary, signal, *at(lines), advice=_QUERY)
    if isinstance(metrics, Absent):
        if lines:
            summary = f"{first_of(lines)}: the code calls Scan."
            return found("low", summary, *at(lines), advice=_QUERY)
        return missing(metrics, "metrics")
    calls = metrics.calls.get("Scan")
    if calls is None:
        summary = "CloudWatch did not count Scan calls."
        return unknown(summary, Price(0.0, FLAGS["metrics"]), *at(lines))
    signal = Evidence(
        "metrics", "Scan calls, without Keyhop's", calls, calls, calls, 1.0, metrics.seconds
    )
    if calls < 1:
        return _no_scans(facts, metrics, lines, signal)
    if _is_export(facts, metrics, calls):
        summary = (
            f"{calls:,.0f} Scan calls read the whole table about once a day or less, as an export "
            "does."
        )
        return clear(summary, signal)
    hours = metrics.hours.get("Scan", 0)
    if 0 < hours <= JOB_HOURS * metrics.seconds / HOUR and counted_long_enough(facts):
        summary = (
            f"Scan was called in only {counted(hours, 'hour')} of {duration(metrics.seconds)}, "
            "which looks like a job."
        )
        return clear(summary, signal)
    units = calls * _units_of_page(facts)
    cost = reading(facts, units, metrics.seconds)
    all_units = metrics.consumed.get(("read", TABLE), 0.0)
    much = all_units > 0 and units >= SCAN_SHARE * all_units
    severity: Severity = "medium" if much and wasted(facts, cost) else "low"
    times, seconds = counted(calls, "time"), duration(metrics.seconds)
    summary = f"Scan was called {times} in {seconds}, not by Keyhop."
    advice = Advice(_QUERY.patterns, _QUERY.steps, cost=money(facts, cost, None))
    return found(severity, summary, signal, *at(lines), advice=advice)


def _watched_scans(facts: Facts) -> Estimate | None:
    """Return the share of Scans among the reads of the request sampler; None for few Scans."""
    if not isinstance(facts.requests, RequestFacts):
        return None
    reads = [
        shape for shape in facts.requests.shapes if shape.operation in ("GetItem", "Query", "Scan")
    ]
    calls = sum(shape.calls for shape in reads)
    hits = sum(shape.calls for shape in reads if shape.operation == "Scan")
    return share_of(hits, calls, "read requests") if hits >= FEW_SCANS else None


def _no_scans(
    facts: Facts, metrics: MetricFacts, lines: tuple[CodeLine, ...], signal: Evidence
) -> Finding:
    if not counted_long_enough(facts):
        return unknown("CloudWatch has counted less than a day.", too_young(), signal, *at(lines))
    if metrics.calls.get("ExecuteStatement"):
        summary = "Scan was not called, but statements of PartiQL may have scanned the table."
        return unknown(summary, Price(0.0, FLAGS["code"]), signal, *at(lines))
    if lines:
        summary = f"{first_of(lines)}: the code calls Scan, but no call was counted in this time."
        return found("info", summary, signal, *at(lines), advice=_QUERY)
    return clear(f"Scan was not called in {duration(metrics.seconds)}.", signal)


_QUERY = Advice(
    ("P12", "P15"),
    (
        "Add a key that answers the query: a sort key, or a GSI with few attributes.",
        "To read all items now and then, export the table to S3: this uses none of its capacity.",
        "To read only the keys, use keyhop keys.",
    ),
)


def _units_of_page(facts: Facts) -> float:
    """Return the maximum read units of a Scan call: a page, or a small table."""
    size = min(PAGE_BYTES, facts.table.bytes) if facts.table.bytes else BLOCK_BYTES
    return max(1.0, size / BLOCK_BYTES) * UNITS_PER_BLOCK


def _is_export(facts: Facts, metrics: MetricFacts, calls: float) -> bool:
    """Return whether Scans look like an export.

    They return full pages, and read the whole table about once a day or less.
    """
    table, returned = facts.table, metrics.returned.get("Scan")
    if returned is None or not table.items or table.mean_item_bytes is None:
        return False
    page = min(table.items, PAGE_BYTES / table.mean_item_bytes)
    passes = returned / table.items / max(1.0, metrics.seconds / DAY)
    return returned >= FULL_PAGE * page * calls and passes <= WHOLE_PASSES


@rule("A5", "a filter drops what was read")
def filters(facts: Facts) -> Finding:
    """Apply A5: a filter drops many of the items that were read.

    Only a filter makes Count less than ScannedCount; the end of a page does not. Code shows a
    filter that chooses few of many, but not one that leaves out a few of many.
    """
    requests = facts.requests
    lines = _in_requests(_without_expiry(facts, lines_of(facts, "filter")))
    if isinstance(requests, Absent):
        if lines:
            named = lines[0].attribute or "an attribute that is not a key"
            summary = (
                f"{first_of(lines)}: a filter on {named}. The items that it drops are read and "
                "paid for."
            )
            return found("low", summary, *at(lines), advice=_by_key(named))
        if exclusions := _without_expiry(facts, lines_of(facts, "exclusion")):
            summary = f"{first_of(exclusions)}: a filter. It is not known how much it drops."
            return unknown(summary, price_of(requests, "requests"), *at(exclusions))
        return missing(requests, "requests")
    shapes = [
        shape for shape in requests.shapes if shape.operation in ("Query", "Scan") and shape.scanned
    ]
    filtered = [shape for shape in shapes if shape.filters]
    bad = [shape for shape in filtered if _kept(shape).high < KEPT]
    if bad:
        return _dropping(facts, requests, bad, lines)
    calls = sum(shape.calls for shape in shapes)
    open_ = [shape for shape in filtered if _kept(shape).low < KEPT]
    signals = [_kept_evidence(shape, requests) for shape in filtered]
    if open_ or calls < CALLS:
        summary = (
            f"{counted(calls, 'query or scan', 'queries and scans')} "
            f"{'was' if calls == 1 else 'were'} recorded, which is too few."
        )
        return unknown(summary, Price(0.0, FLAGS["requests"]), *signals, *at(lines))
    return clear("No filter drops more than a tenth of the items that it reads.", *signals)


def _without_expiry(facts: Facts, lines: tuple[CodeLine, ...]) -> tuple[CodeLine, ...]:
    """Return the lines without those that only leave out expired items, as AWS advises."""

    def is_expiry(name: str) -> bool:
        return name == facts.table.ttl or EXPIRY.fullmatch(name.lstrip("#")) is not None

    return tuple(
        line
        for line in lines
        if not line.attribute or not all(map(is_expiry, line.attribute.split(",")))
    )


def _by_key(names: str) -> Advice:
    return Advice(
        ("P14", "P3"),
        (
            f"Put {names} into a sort key, so that the query can select by it.",
            "Or make an index with it as the key: DynamoDB filters only after the read, which you "
            "pay for.",
        ),
    )


def _kept(shape: RequestShape) -> Estimate:
    share = shape.count / shape.scanned
    return share_of(share * shape.calls, shape.calls, "calls of one shape")


def _kept_evidence(shape: RequestShape, requests: RequestFacts) -> Evidence:
    what = f"Count / ScannedCount of {_named(shape)}"
    share_kept = _kept(shape)
    return evidence("requests", what, share_kept, KEPT, window=requests.seconds, where=shape.index)


def _named(shape: RequestShape) -> str:
    """Describe a shape, such as `Query of by-day by customer, filter status`."""
    index = f" of {shape.index}" if shape.index else ""
    by = f" by {', '.join(shape.conditions)}" if shape.conditions else ""
    filtered = f", filter {', '.join(shape.filters)}" if shape.filters else ""
    return f"{shape.operation}{index}{by}{filtered}"


def _dropping(
    facts: Facts, requests: RequestFacts, bad: list[RequestShape], lines: tuple[CodeLine, ...]
) -> Finding:
    units = sum(units_of(shape, requests) for shape in bad)
    dropped = sum(units_of(shape, requests) * (1 - shape.count / shape.scanned) for shape in bad)
    cost = reading(facts, units, requests.seconds)
    saved = reading(facts, dropped, requests.seconds)
    advised = cost - saved if cost is not None and saved is not None else None
    largest = max(bad, key=lambda shape: shape.units)
    summary = f"{_named(largest)}, returns {interval(_kept(largest))} of the items that it reads"
    summary += f"; other such requests: {len(bad) - 1}." if len(bad) > 1 else "."
    advice = replace(_by_key(", ".join(largest.filters)), cost=money(facts, cost, advised))
    severity: Severity = "medium" if wasted(facts, saved) else "low"
    signals = [_kept_evidence(shape, requests) for shape in bad]
    return found(severity, summary, *signals, *at(lines), advice=advice)


def units_of(shape: RequestShape, requests: RequestFacts) -> float:
    """Return the units of all calls of a shape.

    They include the calls that were not sampled, and those whose response had no capacity.
    """
    metered = shape.metered or shape.calls
    return shape.units * shape.calls / metered / (requests.sampled or 1.0)


@rule("A10", "read after write by an index")
def read_after_write(facts: Facts) -> Finding | list[Finding]:
    """Apply A10: a read of an index after a write, which only requests show."""
    if not indexes_of(facts):
        return clear(NO_GSI)
    requests = needed(facts.requests, "requests")
    return each_index(facts, lambda index: _followed(requests, index.name))


def _followed(requests: RequestFacts, name: str) -> Finding:
    hits, reads = requests.followed.get(name, (0, 0))
    if not reads:
        why = f"No read of {name} was recorded."
        return unknown(why, Price(0.0, FLAGS["requests"]))
    share = share_of(min(hits, reads), reads, "reads of the index")
    what = f"reads of {name} within a second of a write of the same item"
    signal = evidence("requests", what, share, FOLLOWED, window=requests.seconds)
    side = share.against(FOLLOWED)
    if side == "above":
        summary = f"{interval(share)} of the reads of {name} follow a write of the same item."
        return found("low", summary, signal, advice=_FROM_TABLE)
    if side == "below":
        summary = f"{interval(share)} of the reads of {name} follow a write of the same item."
        return clear(summary, signal)
    summary = f"Too few reads of {name} were recorded."
    return unknown(summary, Price(0.0, FLAGS["requests"]), signal)


_FROM_TABLE = Advice(
    (),
    (
        "Read the item from the table by its key, with ConsistentRead: an index is usually "
        "milliseconds behind the table, but DynamoDB gives no guarantee.",
        "Or use the values that the write itself returns (ReturnValues).",
    ),
)


@rule("A12", "transactions for all")
def transactions(facts: Facts) -> Finding:
    """Apply A12: transactions for one item, or for nearly all writes."""
    requests = facts.requests
    if isinstance(requests, RequestFacts):
        shapes = [shape for shape in requests.shapes if shape.operation in TRANSACTIONS]
        if calls := sum(shape.calls for shape in shapes):
            alone = sum(shape.one_item_transactions for shape in shapes)
            one_item = share_of(alone, calls, "transactions")
            if one_item.against(ALONE) == "above":
                return _one_item(facts, requests, shapes, one_item)
    if lines := lines_of(facts, "transaction"):
        summary = f"{first_of(lines)}: a transaction with one item, which costs twice as much."
        return found("low", summary, *at(lines), advice=_plain(None))
    if isinstance(facts.metrics, Absent) and (finding := _nearly_all(facts, requests)):
        return finding
    metrics = needed(facts.metrics, "metrics")
    transaction_calls = metrics.calls.get("TransactWriteItems", 0.0)
    writes = transaction_calls + sum(
        metrics.calls.get(operation, 0.0) for operation in PLAIN_WRITES
    )
    if writes < FEW_WRITES or not counted_long_enough(facts):
        return unknown("Too few writes were counted.", too_young())
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
        return clear(f"{percent(share)} of the write calls are transactions.", signal)
    summary = f"{percent(share)} of the write calls are transactions, which cost twice as much."
    units = metrics.consumed.get(("write", TABLE), 0.0)
    cost = writing(facts, units, metrics.seconds)
    half = None if cost is None else cost / 2
    return found("low", summary, signal, advice=_plain(money(facts, cost, half)))


def _nearly_all(facts: Facts, requests: RequestFacts | Absent) -> Finding | None:
    """Report that nearly all recorded writes are transactions; None for too few of them."""
    if isinstance(requests, Absent):
        return None
    writes = {
        shape: units_of(shape, requests)
        for shape in requests.shapes
        if shape.operation in ("TransactWriteItems", *PLAIN_WRITES)
    }
    calls = sum(shape.calls for shape in writes)
    hits = sum(shape.calls for shape in writes if shape.operation == "TransactWriteItems")
    if calls < FEW_WRITES:
        return None
    share = share_of(hits, calls, "write requests")
    if share.against(TRANSACTIONAL) != "above":
        return None
    what = "write calls that are transactions"
    signal = evidence("requests", what, share, TRANSACTIONAL, window=requests.seconds)
    summary = f"{interval(share)} of the writes are transactions, which cost twice as much."
    cost = writing(facts, sum(writes.values()), requests.seconds)
    half = None if cost is None else cost / 2
    return found("low", summary, signal, advice=_plain(money(facts, cost, half)))


def _one_item(
    facts: Facts, requests: RequestFacts, shapes: list[RequestShape], share: Estimate
) -> Finding:
    alone, units = dict.fromkeys(TRANSACTIONS, 0), dict.fromkeys(TRANSACTIONS, 0.0)
    for shape in shapes:
        alone[shape.operation] += shape.one_item_transactions
        units_each = units_of(shape, requests) / shape.calls
        units[shape.operation] += units_each * shape.one_item_transactions
    cost = sum_of(
        reading(facts, units["TransactGetItems"], requests.seconds),
        writing(facts, units["TransactWriteItems"], requests.seconds),
    )
    half = None if cost is None else cost / 2
    signal = evidence(
        "requests", "transactions that have one item", share, ALONE, window=requests.seconds
    )
    severity: Severity = "medium" if wasted(facts, half) else "low"
    how_many = counted(sum(alone.values()), "transaction")
    summary = f"{how_many} had only one item: each costs twice as much."
    steps = [step for operation, step in _INSTEAD.items() if alone[operation]]
    return found(severity, summary, signal, advice=_plain(money(facts, cost, half), *steps))


_INSTEAD = {
    "TransactWriteItems": "Write one item with a plain conditional request: it is as atomic, at "
    "half the price.",
    "TransactGetItems": "Read one item with GetItem and ConsistentRead: it is as consistent, at "
    "half the price.",
}


def _plain(cost: Money | None, *instead: str) -> Advice:
    """Advise plain requests; `instead` are those of _INSTEAD, by default that for writes."""
    steps = instead or (_INSTEAD["TransactWriteItems"],)
    return Advice(
        ("P2",), (*steps, "Keep transactions where several items must change together."), cost=cost
    )


@rule("A17", "consistent reads everywhere")
def consistent_reads(facts: Facts) -> Finding:
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
                return _eventual(facts, f"{interval(share)} of the reads", cost, signal)
            if side == "below":
                return clear(f"{interval(share)} of the reads are consistent.", signal)
    lines = lines_of(facts, "consistent")
    judged = None if isinstance(metrics, Absent) else _by_units(facts, metrics)
    if judged is not None and judged.status != "unknown":
        return judged
    if isinstance(facts.code, CodeFacts) and isinstance(requests, Absent):
        calls = facts.code.reads
        if calls >= FEW_READS and len(lines) >= CONSISTENT * calls:
            what = f"{first_of(lines)}: {len(lines)} of the {calls} read calls in the code"
            return _eventual(facts, what, None, *at(lines))
    if judged is not None:
        return judged
    if isinstance(requests, Absent) and not lines:
        return missing(requests, "requests")
    return _open(*at(lines))


def _by_units(facts: Facts, metrics: MetricFacts) -> Finding:
    """Judge by the read units of a GetItem.

    This works only where nothing else is read, and items fit into one block.
    """
    gets = metrics.calls.get("GetItem", 0.0)
    reads = sum(metrics.calls.get(operation, 0.0) for operation in READS)
    units = metrics.consumed.get(("read", TABLE), 0.0)
    if reads < CALLS or gets < GETS * reads or not _of_one_block(facts) or not units:
        return _open(*at(lines_of(facts, "consistent")))
    each = units / gets
    what = "read units for each GetItem of an item of at most 4 KB"
    signal = Evidence("metrics", what, each, each, each, ONE_UNIT, metrics.seconds, round(gets))
    if ONE_UNIT <= each <= 2 - ONE_UNIT:
        cost = reading(facts, units, metrics.seconds)
        return _eventual(facts, "Judging by their cost, all reads", cost, signal)
    if each <= HALF_UNIT and counted_long_enough(facts):
        return clear("Judging by their cost, most reads are eventually consistent.", signal)
    return _open(signal)


def _of_one_block(facts: Facts) -> bool:
    sample = facts.sample
    if not isinstance(sample, SampleFacts):
        return False
    p99 = sample.item_bytes.get(0.99)
    return p99 is not None and p99.high <= BLOCK_BYTES


def _open(*signals: Evidence) -> Finding:
    why = "The counts do not show how many reads are consistent."
    return unknown(why, Price(0.0, FLAGS["requests"]), *signals)


def _eventual(facts: Facts, what: str, cost: float | None, *signals: Evidence) -> Finding:
    half = None if cost is None else cost / 2
    advice = Advice(
        (),
        (
            "Omit ConsistentRead where slightly old data is good enough: the read then costs half.",
            "Keep it where the next read must see a write.",
        ),
        cost=money(facts, cost, half),
    )
    severity: Severity = "medium" if wasted(facts, half) else "low"
    return found(severity, f"{what} are consistent, at twice the price.", *signals, advice=advice)
