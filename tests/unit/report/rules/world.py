"""Facts of a table for tests of rules. A test names only the fields that matter to it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    Absent,
    Cause,
    CodeFacts,
    Facts,
    IndexFacts,
    IndexSample,
    InsightFacts,
    MetricFacts,
    RequestFacts,
    SampleFacts,
    StreamFacts,
    Throttles,
)
from keyhop.report.findings import Finding
from keyhop.report.rules.judge import RULES

from testing.report_corpus.facts_cases import DAY, NOW, TABLE

GB = 2**30
TABLE_OF_ORDERS = replace(
    TABLE, items=1_000_000, bytes=1_000_000_000, stream=None, stream_view=None, insights=None
)
NOT_READ = Absent("nothing was said")
SAMPLE = SampleFacts(
    rru=300, items_read=3000, keys_read=400, unrepresented=Estimate(0.0, 0.0, 0.01, 400, "test")
)
STREAM = StreamFacts(NOW - 900, 900, 10_000, 5_000, "NEW_AND_OLD_IMAGES", 500)
METRICS = MetricFacts(NOW - 14 * DAY, NOW)
THROTTLES = {
    (way, cause, target): Throttles(0, None)
    for way in ("read", "write")
    for cause in get_args(Cause)
    for target in ("", "by-status")
}
"""Metrics that report no throttles of the table or its index."""
INSIGHTS = InsightFacts(NOW - DAY, NOW)
CODE = CodeFacts(files=12)
REQUESTS = RequestFacts(3600, 10_000, 1.0)
SOURCES: Mapping[str, Any] = {
    "metrics": METRICS,
    "insights": INSIGHTS,
    "stream": STREAM,
    "sample": SAMPLE,
    "code": CODE,
    "requests": REQUESTS,
}


def gsi(name: str = "by-status", **fields: Any) -> IndexFacts:
    """Return a GSI with as many items as the table."""
    index = IndexFacts(name, "GSI", ("status",), (), "KEYS_ONLY", 1_000_000, 100_000_000)
    return replace(index, **fields)


def lsi(name: str = "by-date", **fields: Any) -> IndexFacts:
    """Return an LSI that is as large as the table."""
    index = IndexFacts(name, "LSI", ("pk",), ("date",), "ALL", 1_000_000, 1_000_000_000)
    return replace(index, **fields)


def facts(table: Mapping[str, Any] | None = None, **fields: Any) -> Facts:
    """Return facts of Orders with these fields. A dict replaces fields of the default source."""
    values = dict.fromkeys(SOURCES, NOT_READ)
    for name, value in fields.items():
        is_changed = name in SOURCES and isinstance(value, dict)
        values[name] = replace(SOURCES[name], **value) if is_changed else value
    return Facts(at=NOW, table=replace(TABLE_OF_ORDERS, **(table or {})), **values)


def share(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    """Return an estimate, which is exact unless the ends of its interval are given."""
    return Estimate(
        value, value if low is None else low, value if high is None else high, 400, "test"
    )


def finding_of(rule_id: str, table_facts: Facts, target: str = "") -> Finding:
    """Return the only finding of a rule about a target."""
    (rule,) = [rule for rule in RULES if rule.id == rule_id]
    findings = rule(table_facts)
    matches = [finding for finding in findings if finding.target == target]
    assert len(matches) == 1, (rule_id, target, findings)
    return matches[0]


def sampled(name: str, **fields: Any) -> dict[str, IndexSample]:
    """Return the sample of one index by its name."""
    return {name: IndexSample(3000, **fields)}
