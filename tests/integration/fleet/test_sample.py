"""A sample of a table's data by several workers, and the second look at its largest collections."""

from functools import partial

import pytest
from keyhop.errors import TooExpensive
from keyhop.jobs.fleet import CONNECTIONS
from keyhop.report.facts import SampleFacts
from keyhop.report.facts_json import from_json
from keyhop.report.sampling import look_again
from keyhop.report.task import SAMPLE, ReportTask

from testing.databases import BY_DAY, Database
from tests.integration.conftest import Scans
from tests.integration.fleet.conftest import units
from tests.machine import Machine

SIZES = [3_000, *([5, 10, 20] * 300)]
FEW = [600, *([1, 2, 4] * 200)]


def fill(database: Database, table: str, sizes: list[int]) -> None:
    database.create(table, **BY_DAY)
    database.fill(
        table,
        (
            {
                "pk": {"S": f"USER#{number}"},
                "sk": {"S": f"{at:06}"},
                "day": {"S": f"{number}-{at}"},
                "data": {"S": "x" * 100},
            }
            for number, size in enumerate(sizes)
            for at in range(size)
        ),
    )


def test_several_workers_sample_within_one_budget(
    machine: Machine, strict: Database, table_name: str, charged: Scans
) -> None:
    fill(strict, table_name, SIZES)
    machine.name = "SampleKeys"
    machine.own = {"report": partial(ReportTask, segments_per_worker=20)}
    result = machine.start({"table": table_name, "maxReadUnits": 200}, "sample")
    journal, plan = machine.runs.open_run("sample")
    assert plan.groups > 2
    manifest = journal.manifest()
    assert manifest is not None
    facts = from_json(SampleFacts, manifest[SAMPLE])
    assert result["read_units"] == facts.rru <= 200 + 1
    assert facts.keys is not None
    assert 0.8 * facts.keys.low <= len(SIZES) <= 1.2 * facts.keys.high
    connection = machine.deployment.connect(table_name, CONNECTIONS)
    again = look_again(connection, journal)
    assert again.biased == ("GSI by-day",)
    largest = again.top[0]
    assert 0.7 * largest.items.low <= SIZES[0] <= 1.3 * largest.items.high
    assert units(charged) <= again.rru <= 200 + 1


def test_the_place_of_the_largest_key_is_found_if_units_remain(
    machine: Machine, strict: Database, table_name: str
) -> None:
    fill(strict, table_name, FEW)
    machine.name = "SampleKeys"
    machine.start({"table": table_name, "maxReadUnits": 200}, "sample")
    journal, _ = machine.runs.open_run("sample")
    connection = machine.deployment.connect(table_name, CONNECTIONS)
    largest = look_again(connection, journal).top[0]
    assert (largest.items.value, largest.items.level) == (600, 1.0)
    assert largest.place is not None


def test_a_look_at_all_keys_is_refused_if_it_may_cost_too_much(
    machine: Machine, strict: Database, table_name: str, charged: Scans
) -> None:
    strict.collections(table_name, [2] * 400)
    machine.name = "SampleKeys"
    machine.max_cost = 1e-7
    with pytest.raises(TooExpensive):
        machine.start({"table": table_name, "exhaustive": True})
    assert units(charged) < 100
    machine.max_cost = 1.0
    machine.start({"table": table_name, "exhaustive": True})
