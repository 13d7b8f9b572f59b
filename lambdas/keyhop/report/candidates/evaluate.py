"""What the table would be like under another key. Pure."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK, WRITE_UNIT_BYTES
from keyhop.report import advice
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
    """Return the evaluation of each candidate that the sample has read.

    Args:
        candidates: The candidate keys.
        streamed: What the stream shows of each candidate, in the same order.
        facts: All other facts.
    """
    if not isinstance(facts.sample, SampleFacts):
        return ()
    samples = {sample.template: sample for sample in facts.sample.candidates}
    return tuple(
        _evaluated(candidate, samples[candidate.text], stream, facts)
        for candidate, stream in zip(candidates, streamed, strict=True)
        if candidate.text in samples
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
        migration=_migration(sample, facts),
        today=today,
        advised=advised,
    )


def reads_by_kind(candidate: Candidate, shapes: Iterable[RequestShape]) -> dict[str, float]:
    """Return shares of the read calls by kind, empty without such calls."""
    counts = dict.fromkeys(KINDS, 0)
    for shape in shapes:
        if shape.operation in READS:
            counts[kind_of(candidate, shape)] += shape.calls
    calls = sum(counts.values())
    return {kind: count / calls for kind, count in counts.items()} if calls else {}


def kind_of(candidate: Candidate, shape: RequestShape) -> ReadKind:
    """Return how many keys a request needs, judged by the names of its attributes.

    A request with all attributes of the key needs one key. Without the attribute of a shard it
    needs all shards; with a range of a time it needs several buckets.
    """
    names = {*shape.conditions, *shape.filters}
    kinds = {_kind(field, names, shape.operation) for field in candidate.partition.fields}
    return max(kinds, key=KINDS.index, default="scatter")


def _kind(field: Field, names: set[str], operation: str) -> ReadKind:
    if field.attribute not in names and field.path not in names:
        return "several" if field.kind == "shard" else "scatter"
    return "several" if field.kind == "date" and operation not in EXACT else "single"


def _migration(sample: CandidateSample, facts: Facts) -> float:
    """Return the dollars of a migration on demand: one scan, and one put of each item.

    The new table has the same indexes. Large items can be missing in a sample, so an item needs at
    least the units of the mean item in DescribeTable. Functions and storage are not included.
    """
    table, prices = facts.table, advice.prices_of(facts)
    if not prices:
        return 0.0
    of_an_item = max(sample.write_units, (table.mean_item_bytes or 0) / WRITE_UNIT_BYTES)
    units = table.items * sample.coverage.value * of_an_item
    for index in table.indexes:
        if index.items:
            units += index.items * max(1, math.ceil(index.bytes / index.items / WRITE_UNIT_BYTES))
    return prices.dollars(table.bytes / BLOCK_BYTES * UNITS_PER_BLOCK, units)


def _monthly(
    candidate: Candidate, reads: dict[str, float], facts: Facts
) -> tuple[float | None, float | None]:
    """Return the dollars of a month's units, today and with the candidate.

    The latter is None where reads are not known, or where a read would need all keys.
    """
    metrics = facts.metrics
    if not isinstance(metrics, MetricFacts):
        return None, None
    used = {
        kind: sum(units for (used_kind, _), units in metrics.consumed.items() if used_kind == kind)
        for kind in ("read", "write")
    }
    reading = advice.reading(facts, used["read"], metrics.seconds)
    writing = advice.writing(facts, used["write"], metrics.seconds)
    today = advice.sum_of(reading, writing)
    if today is None or reading is None or writing is None or not reads or reads["scatter"]:
        return today, None
    shards = math.prod(field.shards for field in candidate.partition.fields)
    return today, writing + reading * (reads["single"] + reads["several"] * max(2, shards))
