"""What becomes of a table under another key: all that is known of a candidate, together. Pure."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.report.advice import money
from keyhop.report.candidates.sampled import WRITE_UNIT_BYTES
from keyhop.report.candidates.streamed import Streamed
from keyhop.report.candidates.template import Candidate, Field
from keyhop.report.facts import (
    CandidateFacts,
    CandidateSample,
    Facts,
    MetricFacts,
    RequestFacts,
    RequestShape,
    SampleFacts,
)

ReadKind = Literal["single", "several", "scatter"]
KINDS: tuple[ReadKind, ...] = ("single", "several", "scatter")

EXACT = frozenset({"GetItem", "BatchGetItem", "TransactGetItems"})
READS = frozenset({*EXACT, "Query", "Scan", "ExecuteStatement"})


def evaluated(
    candidates: Sequence[Candidate], streamed: Sequence[Streamed | None], facts: Facts
) -> tuple[CandidateFacts, ...]:
    """Of those of which the sample says something; facts: all others. streamed: in their order."""
    if not isinstance(facts.sample, SampleFacts):
        return ()
    samples = {one.template: one for one in facts.sample.candidates}
    return tuple(
        _evaluated(one, samples[one.text], heard, facts)
        for one, heard in zip(candidates, streamed, strict=True)
        if one.text in samples
    )


def _evaluated(
    candidate: Candidate,
    sample: CandidateSample,
    streamed: Streamed | None,
    facts: Facts,
) -> CandidateFacts:
    reads: dict[str, float] = {}
    if isinstance(facts.requests, RequestFacts):
        reads = reads_by_kind(candidate, facts.requests.shapes)
    heat = streamed.heat if streamed else None
    units = _migration_units(sample, facts)
    today, advised = _monthly(candidate, reads, facts)
    return CandidateFacts(
        template=candidate.text,
        coverage=sample.coverage,
        largest=sample.largest,
        effective=sample.effective,
        distinct=sample.distinct,
        monotonicity=streamed.monotonicity if streamed else None,
        throttled=heat.throttled if heat else None,
        peak=heat.peak if heat else None,
        reads=reads,
        migration_units=units,
        migration=_migration(units, facts),
        today=today,
        advised=advised,
    )


def reads_by_kind(candidate: Candidate, shapes: Iterable[RequestShape]) -> dict[str, float]:
    """Shares of the calls that read; none if there are no such calls."""
    counts = dict.fromkeys(KINDS, 0)
    for shape in shapes:
        if shape.operation in READS:
            counts[kind_of(candidate, shape)] += shape.calls
    calls = sum(counts.values())
    return {kind: count / calls for kind, count in counts.items()} if calls else {}


def kind_of(candidate: Candidate, shape: RequestShape) -> ReadKind:
    """By names alone: a request that says all attributes of the key needs one key. Without the
    one that a shard is made of, it needs all shards; with a range of a time, several buckets.
    """
    known = {*shape.conditions, *shape.filters}
    kinds = {_kind(one, known, shape.operation) for one in candidate.partition.fields}
    return max(kinds, key=KINDS.index, default="scatter")


def _kind(field: Field, known: set[str], operation: str) -> ReadKind:
    if field.attribute not in known and field.path not in known:
        return "several" if field.kind == "shard" else "scatter"
    return "several" if field.kind == "date" and operation not in EXACT else "single"


def _migration_units(sample: CandidateSample, facts: Facts) -> float:
    """Estimate the write units of putting each item once, into a table with the same indexes.

    Large items can be missing in a sample, so an item needs at least the units of the mean item
    that DescribeTable knows.
    """
    table = facts.table
    of_an_item = max(sample.write_units, (table.mean_item_bytes or 0) / WRITE_UNIT_BYTES)
    units = table.items * sample.coverage.value * of_an_item
    for index in table.indexes:
        if index.items:
            units += index.items * max(1, math.ceil(index.bytes / index.items / WRITE_UNIT_BYTES))
    return float(units)


def _migration(write_units: float, facts: Facts) -> float:
    """Dollars on demand, with one scan of the table; functions and storage are left out."""
    prices = money.prices_of(facts)
    reads = facts.table.bytes / BLOCK_BYTES * UNITS_PER_BLOCK
    return prices.dollars(reads, write_units) if prices else 0.0


def _monthly(
    candidate: Candidate, reads: dict[str, float], facts: Facts
) -> tuple[float | None, float | None]:
    """Dollars of the units of a month, today and with the candidate. The latter is not known where
    reads are not, or where one would need all keys.
    """
    metrics = facts.metrics
    if not isinstance(metrics, MetricFacts):
        return None, None
    used = {
        kind: sum(units for (one, _), units in metrics.consumed.items() if one == kind)
        for kind in ("read", "write")
    }
    reading = money.reading(facts, used["read"], metrics.seconds)
    writing = money.writing(facts, used["write"], metrics.seconds)
    today = money.sum_of(reading, writing)
    if today is None or reading is None or writing is None or not reads or reads["scatter"]:
        return today, None
    shards = math.prod(one.shards for one in candidate.partition.fields)
    return today, writing + reading * (reads["single"] + reads["several"] * max(2, shards))
