"""All that is known of a candidate, together: reads by kind, the migration, money."""

from dataclasses import replace

import pytest
from keyhop.report.candidates import candidate, evaluated, kind_of, reads_by_kind
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    Absent,
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
NOT = Absent("not asked for")


def shape(
    operation: str, *names: str, calls: int = 1, filters: tuple[str, ...] = ()
) -> RequestShape:
    return RequestShape(operation, "", names, filters, calls, 0, 0, 0.0, 0)


@pytest.mark.parametrize(
    ("text", "asked", "kind"),
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
def test_a_read_needs_one_key_several_or_all(text: str, asked: RequestShape, kind: str):
    assert kind_of(candidate(text), asked) == kind


def test_reads_are_shares_of_the_calls_that_read():
    shapes = [shape("Query", "a", calls=3), shape("Scan", calls=1), shape("PutItem", calls=90)]
    assert reads_by_kind(candidate("PK={a}"), shapes) == {
        "single": 0.75,
        "several": 0.0,
        "scatter": 0.25,
    }
    assert reads_by_kind(candidate("PK={a}"), shapes[2:]) == {}


def of(value: float) -> Estimate:
    return Estimate(value, value * 0.9, value * 1.1, 400, "m")


def facts_of(*shapes: RequestShape) -> Facts:
    index = IndexFacts("byCity", "GSI", ("city",), (), "ALL", items=500, bytes=500 * 1_500)
    sampled = CandidateSample(
        TEXT, of(0.5), of(0.01), of(200.0), Estimate.at_least(90, 400, "m"), 2.0
    )
    return facts(
        {"sort": None, "items": 1_000, "bytes": 2_000_000, "indexes": (index,)},
        metrics=MetricFacts(0.0, 730 * 3600.0, {("read", ""): 8e6, ("write", ""): 4e6}),
        sample=SampleFacts(1.0, 400, 60, candidates=(sampled,)),
        requests=RequestFacts(60.0, 10, 1.0, shapes) if shapes else NOT,
    )


def test_a_migration_writes_each_item_once_and_its_indexes():
    (found,) = evaluated([candidate(TEXT)], [None], facts_of())
    written = 1_000 * 0.5 * 2 + 500 * 2
    assert found.migration == pytest.approx(written * 0.625e-6 + 2_000_000 / 4096 / 2 * 0.125e-6)


def test_a_migration_costs_what_the_mean_item_costs_if_the_sample_has_missed_the_large_ones():
    seen = facts_of()
    seen = replace(seen, table=replace(seen.table, bytes=20_480_000, indexes=()))
    (found,) = evaluated([candidate(TEXT)], [None], seen)
    written, read = 1_000 * 0.5 * 20, 20_480_000 / 4096 / 2
    assert found.migration == pytest.approx(written * 0.625e-6 + read * 0.125e-6)


def test_a_month_costs_what_it_does_and_reads_of_several_keys_as_many_times():
    today, advised = 8 * 0.125 + 4 * 0.625, 4 * 8 * 0.125 + 4 * 0.625
    (found,) = evaluated(
        [candidate(TEXT)], [None], facts_of(shape("GetItem", "deviceId", "ts", calls=9))
    )
    assert found.reads == {"single": 0.0, "several": 1.0, "scatter": 0.0}
    assert (found.today, found.advised) == (pytest.approx(today), pytest.approx(advised))


@pytest.mark.parametrize("shapes", [(), (shape("Scan"),)])
def test_what_reads_would_cost_is_not_said_where_they_are_not_known(
    shapes: tuple[RequestShape, ...],
):
    (found,) = evaluated([candidate(TEXT)], [None], facts_of(*shapes))
    assert (found.today, found.advised) == (pytest.approx(3.5), None)


def test_without_a_sample_nothing_is_said():
    seen = facts_of()
    assert evaluated([candidate(TEXT)], [None], replace(seen, sample=NOT)) == ()
    assert evaluated([candidate("PK={other}")], [None], seen) == ()
