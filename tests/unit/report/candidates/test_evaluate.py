"""Tests of the facts of a candidate key: reads by kind, the migration, and costs."""

from dataclasses import replace

import pytest
from keyhop.report.candidates import candidate, evaluated, kind_of, reads_by_kind
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    Absent,
    CandidateFacts,
    CandidateSample,
    Facts,
    IndexFacts,
    MetricFacts,
    RequestFacts,
    RequestShape,
    SampleFacts,
)

from tests.unit.report.rules.world import facts

TEXT = "PK=DEVICE#{deviceId}#{ts:day}#{hash(id)%4}"
NOT_READ = Absent("not asked for")


def shape(
    operation: str, *names: str, calls: int = 1, filters: tuple[str, ...] = ()
) -> RequestShape:
    return RequestShape(operation, "", names, filters, calls, 0, 0, 0.0, 0)


@pytest.mark.parametrize(
    ("text", "request_shape", "kind"),
    [
        ("PK={deviceId}", shape("Query", "deviceId"), "single"),
        ("PK={deviceId}", shape("Query", "city"), "scatter"),
        ("PK={deviceId}", shape("Scan"), "scatter"),
        ("PK={deviceId}", shape("Query", "city", filters=("deviceId",)), "single"),
        ("PK={deviceId}#{hash(id)%4}", shape("Query", "deviceId"), "several"),
        ("PK={deviceId}#{hash(id)%4}", shape("Query", "deviceId", "id"), "single"),
        ("PK={deviceId}#{ts:day}", shape("Query", "deviceId", "ts"), "several"),
        ("PK={deviceId}#{ts:day}", shape("GetItem", "deviceId", "ts"), "single"),
        ("PK={deviceId}#{ts:day}", shape("Query", "deviceId"), "scatter"),
        ("PK={where.city}", shape("Query", "where"), "single"),
    ],
)
def test_a_read_needs_one_key_several_or_all(text: str, request_shape: RequestShape, kind: str):
    assert kind_of(candidate(text), request_shape) == kind


def test_reads_are_shares_of_the_calls_that_read():
    shapes = [shape("Query", "a", calls=3), shape("Scan", calls=1), shape("PutItem", calls=90)]
    assert reads_by_kind(candidate("PK={a}"), shapes) == {
        "single": 0.75,
        "several": 0.0,
        "scatter": 0.25,
    }
    assert reads_by_kind(candidate("PK={a}"), shapes[2:]) == {}


def about(value: float) -> Estimate:
    return Estimate(value, value * 0.9, value * 1.1, 400, "m")


def facts_of(*shapes: RequestShape) -> Facts:
    index = IndexFacts("byCity", "GSI", ("city",), (), "ALL", items=500, bytes=500 * 1_500)
    candidate_sample = CandidateSample(
        TEXT, about(0.5), about(0.01), about(200.0), Estimate.at_least(90, 400, "m"), 2.0
    )
    return facts(
        {"sort": None, "items": 1_000, "bytes": 2_000_000, "indexes": (index,)},
        metrics=MetricFacts(0.0, 730 * 3600.0, {("read", ""): 8e6, ("write", ""): 4e6}),
        sample=SampleFacts(1.0, 400, 60, candidates=(candidate_sample,)),
        requests=RequestFacts(60.0, 10, 1.0, shapes) if shapes else NOT_READ,
    )


def evaluate(table_facts: Facts) -> CandidateFacts:
    (result,) = evaluated([candidate(TEXT)], [None], table_facts)
    return result


def test_a_migration_writes_each_item_and_index_entry_once():
    written = 1_000 * 0.5 * 2 + 500 * 2
    expected = written * 0.625e-6 + 2_000_000 / 4096 / 2 * 0.125e-6
    assert evaluate(facts_of()).migration == pytest.approx(expected)


def test_a_migration_has_the_mean_size_of_the_table_if_the_sample_missed_the_large_items():
    table_facts = facts_of()
    table = replace(table_facts.table, bytes=20_480_000, indexes=())
    written, read = 1_000 * 0.5 * 20, 20_480_000 / 4096 / 2
    expected = written * 0.625e-6 + read * 0.125e-6
    assert evaluate(replace(table_facts, table=table)).migration == pytest.approx(expected)


def test_reads_of_several_keys_multiply_the_monthly_cost():
    today, advised = 8 * 0.125 + 4 * 0.625, 4 * 8 * 0.125 + 4 * 0.625
    result = evaluate(facts_of(shape("GetItem", "deviceId", "ts", calls=9)))
    assert result.reads == {"single": 0.0, "several": 1.0, "scatter": 0.0}
    assert (result.today, result.advised) == (pytest.approx(today), pytest.approx(advised))


@pytest.mark.parametrize("shapes", [(), (shape("Scan"),)])
def test_the_cost_of_unknown_and_scattered_reads_is_unknown(shapes: tuple[RequestShape, ...]):
    result = evaluate(facts_of(*shapes))
    assert (result.today, result.advised) == (pytest.approx(3.5), None)


def test_a_candidate_without_a_sample_has_no_facts():
    table_facts = facts_of()
    assert evaluated([candidate(TEXT)], [None], replace(table_facts, sample=NOT_READ)) == ()
    assert evaluated([candidate("PK={other}")], [None], table_facts) == ()
