"""Samples of a table by several workers, and second looks at its largest collections."""

from functools import partial

import pytest
from keyhop.errors import TooExpensive
from keyhop.jobs.fleet import CONNECTIONS
from keyhop.report.facts import SampleFacts
from keyhop.report.facts_json import from_json
from keyhop.report.sampling import look_again
from keyhop.report.task import SAMPLE, ReportTask

from testing.databases import BY_DAY
from tests.integration.conftest import Scans
from tests.integration.fleet.conftest import Fleet, units

SIZES = [3_000, *([5, 10, 20] * 300)]
FEW = [600, *([1, 2, 4] * 200)]


def fill(machine: Fleet, sizes: list[int]) -> None:
    machine.create(**BY_DAY)
    machine.fill(
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


@pytest.mark.prove
def test_several_workers_sample_within_one_budget(machine: Fleet, charged: Scans) -> None:
    fill(machine, SIZES)
    machine.name = "SampleKeys"
    machine.own = {"report": partial(ReportTask, segments_per_worker=20)}
    result = machine.run("sample", maxReadUnits=200)
    journal, plan = machine.runs.open_run("sample")
    assert plan.groups > 2
    manifest = journal.manifest()
    assert manifest is not None
    facts = from_json(SampleFacts, manifest[SAMPLE])
    assert result["read_units"] == facts.rru <= 200 + 1
    assert facts.keys is not None
    assert 0.8 * facts.keys.low <= len(SIZES) <= 1.2 * facts.keys.high
    connection = machine.deployment.connect(machine.table, CONNECTIONS)
    second_look = look_again(connection, journal)
    assert second_look.biased == ("GSI by-day",)
    largest = second_look.top[0]
    assert 0.7 * largest.items.low <= SIZES[0] <= 1.3 * largest.items.high
    assert units(charged) <= second_look.rru <= 200 + 1


@pytest.mark.prove
def test_the_place_of_the_largest_key_is_found_if_units_remain(machine: Fleet) -> None:
    fill(machine, FEW)
    machine.name = "SampleKeys"
    machine.run("sample", maxReadUnits=200)
    journal, _ = machine.runs.open_run("sample")
    connection = machine.deployment.connect(machine.table, CONNECTIONS)
    largest = look_again(connection, journal).top[0]
    assert (largest.items.value, largest.items.level) == (600, 1.0)
    assert largest.place is not None


def test_a_look_at_all_keys_is_refused_if_it_may_cost_too_much(
    machine: Fleet, charged: Scans
) -> None:
    machine.collections([2] * 400)
    machine.name = "SampleKeys"
    machine.max_cost = 1e-7
    with pytest.raises(TooExpensive):
        machine.run(exhaustive=True)
    assert units(charged) < 100
    machine.max_cost = 1.0
    machine.run(exhaustive=True)
