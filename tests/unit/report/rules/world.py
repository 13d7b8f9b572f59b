"""Facts for rules: a table and its sources, of which a test says only what it is about."""

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
NOTHING = Absent("nothing was said")
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
"""No throttles of the table and of its index."""
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


def gsi(name: str = "by-status", **other: Any) -> IndexFacts:
    """A GSI with as many items as the table."""
    index = IndexFacts(name, "GSI", ("status",), (), "KEYS_ONLY", 1_000_000, 100_000_000)
    return replace(index, **other)


def lsi(name: str = "by-date", **other: Any) -> IndexFacts:
    """An LSI that is as large as the table."""
    index = IndexFacts(name, "LSI", ("pk",), ("date",), "ALL", 1_000_000, 1_000_000_000)
    return replace(index, **other)


def facts(table: Mapping[str, Any] | None = None, **sources: Any) -> Facts:
    """Facts of Orders: fields of its own, and sources; a dict changes the source that there is."""
    seen = dict.fromkeys(SOURCES, NOTHING)
    other = {}
    for name, given in sources.items():
        if name in SOURCES:
            seen[name] = replace(SOURCES[name], **given) if isinstance(given, dict) else given
        else:
            other[name] = given
    return Facts(at=NOW, table=replace(TABLE_OF_ORDERS, **(table or {})), **seen, **other)


def share(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    """An estimate; without ends an exact one."""
    return Estimate(
        value, value if low is None else low, value if high is None else high, 400, "test"
    )


def says(id_: str, of: Facts, target: str = "") -> Finding:
    """What one rule says of one target."""
    (rule,) = [rule for rule in RULES if rule.id == id_]
    found = [finding for finding in rule(of) if finding.target == target]
    assert len(found) == 1, (id_, target, rule(of))
    return found[0]


def sampled(name: str, **fields: Any) -> dict[str, IndexSample]:
    """The sample of one index."""
    return {name: IndexSample(3000, **fields)}
