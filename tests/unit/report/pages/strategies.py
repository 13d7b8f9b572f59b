"""Hypothesis strategies of reports with any text and any figure, even those of no real source."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    Absent,
    CandidateFacts,
    Collection,
    Facts,
    IndexFacts,
    IndexSample,
    KeyTraffic,
    MetricFacts,
    SampleFacts,
    StreamFacts,
    Tag,
)
from keyhop.report.findings import Advice, Evidence, Finding, Money, Price, Report, Spent
from keyhop.report.pages.document import pictures

from testing.report_corpus.facts_cases import TABLE

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]></style><iframe src='//evil.example'>",
    "&amp;&lt;&#x3c;",
    "\x1b[2J\x1b]0;title\x07",
    "\u202egnp.exe",
    "\x00\ud800\uffff",
    "javascript:alert(1)",
    "a\nb\r\tc",
    "',);--",
    "x" * 300,
)
texts = st.sampled_from(HOSTILE) | st.text(max_size=20)
figures = st.floats() | st.integers(-3, 10**13).map(float) | st.floats(0, 1)
maybe = st.none() | figures
sums = st.floats(0, 1e13)
"""Figures that are counted, and therefore never infinite."""
counts = st.integers(0, 10**12)
shares = st.floats(0, 1)
estimates = st.builds(Estimate, figures, figures, figures, counts, texts, shares)


def some(strategy: Any, maximum: int = 3) -> Any:
    return st.lists(strategy, max_size=maximum).map(tuple)


def by(names: Any, strategy: Any, maximum: int = 3) -> Any:
    return st.dictionaries(names, strategy, max_size=maximum)


evidence = st.builds(
    Evidence,
    source=st.sampled_from(["sample", "metrics", "code"]),
    signal=texts,
    value=maybe,
    low=maybe,
    high=maybe,
    threshold=maybe,
    window=maybe,
    n=counts,
    where=texts,
)
advice = st.builds(
    Advice,
    patterns=some(texts),
    steps=some(texts),
    command=texts,
    cost=st.none() | st.builds(Money, maybe, maybe, maybe, texts),
)
findings = st.builds(
    Finding,
    id=st.sampled_from(["A1", "A6", "A10", "H7", "I1", "E2"]),
    title=texts,
    status=st.sampled_from(["found", "clear", "unknown"]),
    severity=st.sampled_from(["high", "medium", "low", "info"]),
    target=texts,
    summary=texts,
    evidence=some(evidence),
    advice=st.none() | advice,
    price=st.none() | st.builds(Price, figures, texts),
)
indexes = st.builds(
    IndexFacts,
    name=texts,
    kind=st.sampled_from(["GSI", "LSI"]),
    partition=st.lists(texts, min_size=1, max_size=2).map(tuple),
    sort=st.lists(texts, max_size=2).map(tuple),
    projection=st.sampled_from(["ALL", "KEYS_ONLY", "INCLUDE"]),
    items=counts,
    bytes=counts,
)
samples = st.builds(
    SampleFacts,
    rru=sums,
    items_read=counts,
    keys_read=counts,
    keys=st.none() | estimates,
    length=by(st.sampled_from([0.5, 0.9, 0.99]), estimates),
    beyond=by(figures, estimates),
    unseen=st.none() | estimates,
    seen_largest=maybe,
    top=some(
        st.builds(
            Collection,
            key=texts,
            items=estimates,
            bytes=st.none() | estimates,
            place=st.none() | shares,
            by=texts,
        )
    ),
    biased=some(texts),
    item_bytes=by(st.sampled_from([0.5, 0.9, 0.99]), estimates),
    large=st.none() | estimates,
    largest_item=maybe,
    coverage=by(texts, estimates),
    tags=some(st.builds(Tag, texts, estimates)),
    shapes=by(texts, estimates),
    indexes=by(texts, st.builds(IndexSample, counts, st.none() | estimates, texts)),
    gini=st.none() | estimates,
    lorenz=some(st.tuples(shares, shares)),
    all_keys=st.booleans(),
    all_items=st.booleans(),
)
streams = st.builds(
    StreamFacts,
    began=st.just(0.0),
    seconds=figures,
    records=counts,
    inserts=counts,
    view=texts,
    keys=counts,
    traffic=some(st.builds(KeyTraffic, texts, counts, counts, sums, sums)),
    heat=some(
        st.tuples(st.integers(0, 40_000).map(lambda n: 60.0 * n), st.integers(0, 255), shares), 20
    ),
)
metrics = st.builds(
    MetricFacts,
    began=st.just(0.0),
    ended=st.just(60.0),
    consumed=by(st.tuples(st.sampled_from(["read", "write"]), texts), figures),
    read_days=by(texts, st.none() | st.integers(0, 30)),
    minutes=some(st.tuples(figures, figures), 5),
)
candidates = st.builds(
    CandidateFacts,
    template=texts,
    coverage=estimates,
    largest=estimates,
    effective=estimates,
    distinct=estimates,
    monotonicity=st.none() | estimates,
    throttled=st.none() | estimates,
    peak=maybe,
    reads=by(st.sampled_from(["single", "several", "scatter"]), figures),
    migration=figures,
    today=maybe,
    advised=maybe,
)
absent = st.builds(Absent, texts, texts, figures)


@st.composite
def facts(draw: Any) -> Facts:
    table = replace(
        TABLE,
        name=draw(texts),
        partition=draw(texts),
        sort=draw(st.none() | texts),
        items=draw(counts),
        bytes=draw(counts),
        stream=None,
        stream_view=None,
        indexes=draw(some(indexes)),
        insights=None,
    )
    return Facts(
        at=0.0,
        table=table,
        metrics=draw(metrics | absent),
        insights=draw(absent),
        stream=draw(streams | absent),
        sample=draw(samples | absent),
        code=draw(absent),
        requests=draw(absent),
        candidates=draw(some(candidates, 2)),
    )


@st.composite
def reports(draw: Any) -> Report:
    source = draw(facts())
    table = source.table
    return Report(
        table={
            "name": table.name,
            "items": table.items,
            "bytes": table.bytes,
            "partition_key": table.partition,
            "sort_key": table.sort,
        },
        at=draw(figures),
        spent=draw(st.builds(Spent, figures, counts, figures, figures)),
        estimates={
            name: estimate.to_json()
            for name, estimate in draw(
                by(st.sampled_from(["keys", "gini", "x"]), estimates)
            ).items()
        },
        findings=draw(some(findings, 5)),
        pictures=pictures(source),
        sources=draw(by(texts, texts)),
        not_assessed=draw(some(texts)),
        show_keys="digest",
        options=draw(by(texts, texts)),
    )
