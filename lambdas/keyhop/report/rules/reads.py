"""Rules on items that are read and dropped, from metrics, requests and code: A4 and A5."""

from collections.abc import Iterable

from keyhop.dynamodb.units import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK
from keyhop.report.advice.money import money, reading, wasted
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    TABLE,
    Absent,
    CodeLine,
    Facts,
    MetricFacts,
    RequestFacts,
    RequestShape,
)
from keyhop.report.findings import Advice, Evidence, Price, Severity
from keyhop.report.rules.code import at, first_of, lines_of
from keyhop.report.rules.limits import DAY
from keyhop.report.rules.requests import units_of
from keyhop.report.rules.rule import FLAGS, Said, clear, found, missing, price_of, unknown
from keyhop.report.rules.seen import counted_long_enough, too_young
from keyhop.report.rules.shares import evidence, interval, share_of
from keyhop.wording import counted, duration

KEPT = 0.90
CALLS = 385
WHOLE_PASSES = 1.5
"""The maximum number of full reads a day that count as an export."""
FULL_PAGE = 0.5
"""The share of a page's items below which a filter drops most of them."""
SCAN_SHARE = 0.10
"""The share of all read units below which Scans do not matter for the cost."""
SOME_SCANS = 0.01
"""The share of sampled reads below which Scans are occasional and manual."""


def scans(facts: Facts) -> Iterable[Said]:
    """Apply A4: Scans, unless they read the whole table about once a day as an export does."""
    metrics, lines = facts.metrics, lines_of(facts, "scan")
    watched = _watched_scans(facts)
    if watched is not None and watched.against(SOME_SCANS) == "above":
        summary = f"{interval(watched)} of the reads that were watched are Scans."
        signal = evidence("requests", "Scans among the reads", watched, SOME_SCANS)
        return [found("low", summary, signal, *at(lines), advice=_QUERY)]
    if isinstance(metrics, Absent):
        if lines:
            return [found("low", f"{first_of(lines)}: Scan.", *at(lines), advice=_QUERY)]
        return [missing(metrics, "metrics")]
    calls = metrics.calls.get("Scan")
    if calls is None:
        return [unknown("Scan calls were not counted.", Price(0.0, FLAGS["metrics"]), *at(lines))]
    signal = Evidence(
        "metrics", "Scan calls, ours taken off", calls, calls, calls, 1.0, metrics.seconds
    )
    if calls < 1:
        return [_no_scans(facts, metrics, lines, signal)]
    if _is_export(facts, metrics, calls):
        summary = f"{calls:,.0f} Scan calls that read all of it now and then, as an export does."
        return [found("info", summary, signal, *at(lines))]
    units = calls * _units_of_page(facts)
    cost = reading(facts, units, metrics.seconds)
    all_units = metrics.consumed.get(("read", TABLE), 0.0)
    much = all_units > 0 and units >= SCAN_SHARE * all_units
    severity: Severity = "medium" if much and wasted(facts, cost) else "low"
    summary = f"{calls:,.0f} Scan calls in {duration(metrics.seconds)}, not ours."
    advice = Advice(_QUERY.patterns, _QUERY.steps, cost=money(facts, cost, None))
    return [found(severity, summary, signal, *at(lines), advice=advice)]


def _watched_scans(facts: Facts) -> Estimate | None:
    """Return the share of Scans among the reads of the request sampler."""
    if not isinstance(facts.requests, RequestFacts):
        return None
    reads = [
        shape for shape in facts.requests.shapes if shape.operation in ("GetItem", "Query", "Scan")
    ]
    calls = sum(shape.calls for shape in reads)
    hits = sum(shape.calls for shape in reads if shape.operation == "Scan")
    return share_of(hits, calls, "read requests") if calls else None


def _no_scans(
    facts: Facts, metrics: MetricFacts, lines: tuple[CodeLine, ...], signal: Evidence
) -> Said:
    if not counted_long_enough(facts):
        return unknown("Less than a day was counted.", too_young(), signal, *at(lines))
    if metrics.calls.get("ExecuteStatement"):
        summary = "No Scan was called; statements of PartiQL may have scanned."
        return unknown(summary, Price(0.0, FLAGS["code"]), signal, *at(lines))
    if lines:
        summary = f"{first_of(lines)}: Scan; none was called in this time."
        return found("info", summary, signal, *at(lines), advice=_QUERY)
    return clear(f"Nobody has scanned in {duration(metrics.seconds)}.", signal)


_QUERY = Advice(
    ("P12", "P15"),
    (
        "Give the question a key: a sort key that it can query, or a lean GSI.",
        "For all items now and then, export to S3: it takes none of the table's capacity.",
        "For the keys alone: keyhop keys.",
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


def filters(facts: Facts) -> Iterable[Said]:
    """Apply A5: a filter drops many of the items that were read.

    Only a filter makes Count less than ScannedCount; the end of a page does not.
    """
    requests, lines = facts.requests, lines_of(facts, "filter")
    if isinstance(requests, Absent):
        price = price_of(requests, "requests")
        if lines:
            summary = f"{first_of(lines)}: a filter; how much it drops is not known."
            return [unknown(summary, price, *at(lines))]
        return [missing(requests, "requests")]
    shapes = [
        shape for shape in requests.shapes if shape.operation in ("Query", "Scan") and shape.scanned
    ]
    filtered = [shape for shape in shapes if shape.filters]
    bad = [shape for shape in filtered if _kept(shape).high < KEPT]
    if bad:
        return [_dropping(facts, requests, bad, lines)]
    calls = sum(shape.calls for shape in shapes)
    open_ = [shape for shape in filtered if _kept(shape).low < KEPT]
    signals = [_kept_evidence(shape, requests) for shape in filtered]
    if open_ or calls < CALLS:
        summary = (
            f"{counted(calls, 'query or scan', 'queries and scans')} "
            f"{'was' if calls == 1 else 'were'} seen: too few to tell."
        )
        return [unknown(summary, Price(0.0, FLAGS["requests"]), *signals, *at(lines))]
    return [clear("No filter drops more than a tenth of what is read.", *signals)]


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
) -> Said:
    units = sum(units_of(shape, requests) for shape in bad)
    dropped = sum(units_of(shape, requests) * (1 - shape.count / shape.scanned) for shape in bad)
    cost = reading(facts, units, requests.seconds)
    saved = reading(facts, dropped, requests.seconds)
    advised = cost - saved if cost is not None and saved is not None else None
    largest = max(bad, key=lambda shape: shape.units)
    summary = f"{_named(largest)} keeps {interval(_kept(largest))} of what it reads"
    summary += f"; {len(bad) - 1} more such." if len(bad) > 1 else "."
    advice = Advice(
        ("P14", "P3"),
        (
            f"Put {', '.join(largest.filters)} into a sort key, so that the query asks for it.",
            "Or give it an index whose key it is: a filter is applied after the read is paid for.",
        ),
        cost=money(facts, cost, advised),
    )
    severity: Severity = "medium" if wasted(facts, saved) else "low"
    signals = [_kept_evidence(shape, requests) for shape in bad]
    return found(severity, summary, *signals, *at(lines), advice=advice)
