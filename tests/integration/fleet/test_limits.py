"""Limits on the read units of a whole fleet: per second and in total."""

import time
from collections import Counter

import pytest
from keyhop.errors import BudgetSpent, GaveUp, NoProgress, RunConflict
from keyhop.jobs import fleet
from keyhop.jobs.fleet import scan_segments
from keyhop.jobs.fleet_rate import SLOT_SECONDS

from testing.marks import prove
from testing.standin.server import StandIn
from tests.integration.fleet.conftest import SIZES, Fleet, Scans, names, units


def test_a_budget_of_units_holds_over_all_groups_and_leftovers_are_shared_out_again(
    machine: Fleet, charged: Scans
) -> None:
    """The groups differ in cost, so equal shares would be too small for the expensive ones."""
    expected = machine.collections([1] * 400, filling=3_500)
    fields = {"table": machine.table, "segments": 96, "maxConcurrency": 3}
    limit = 1.15 * machine.start(fields, name="whole")["read_units"]
    before = units(charged)
    capped = machine.start({**fields, "maxReadUnits": limit}, name="capped")
    assert names(machine, "capped") == Counter(expected)
    assert units(charged) - before <= limit
    assert capped["read_units"] <= limit


@pytest.mark.prove
def test_a_budget_that_is_too_small_ends_the_run_and_a_resume_with_more_finishes_it(
    machine: Fleet, charged: Scans
) -> None:
    expected = machine.collections([1] * 400, filling=3_500)
    fields = {"table": machine.table, "segments": 96, "maxConcurrency": 3}
    with pytest.raises(BudgetSpent, match="does not pay for the next pages"):
        machine.start({**fields, "maxReadUnits": 80}, name="run")
    assert units(charged) <= 80
    manifest = machine.progress("run")
    assert not manifest["finished"]
    assert 60 <= manifest["read_units"] <= 80
    before = units(charged)
    with pytest.raises(BudgetSpent):
        machine.run(resume="run", maxReadUnits=50)
    assert units(charged) - before <= 50
    machine.run(resume="run", maxReadUnits=5_000)
    assert names(machine, "run") == Counter(expected)


@pytest.mark.prove
def test_a_rate_holds_over_all_workers_together(machine: Fleet, charged: Scans) -> None:
    """The rate is measured as the service measures it: units of its answers, by its clock."""
    machine.collections([1] * 300, filling=3_000)
    rate = 60.0
    fields = {"table": machine.table, "segments": 96, "maxConcurrency": 3, "maxReadRate": rate}
    execution = machine.execution("run")
    state = machine.plan(fields, execution)
    charged.clear()
    began = time.monotonic()
    machine.go_on(state, execution)
    total = 0.0
    for moment, charge in charged:
        total += charge
        assert total <= rate * (moment - began) * 1.1 + 1.0
    assert total / rate <= charged[-1][0] - began


def test_the_rate_and_the_deployment_limit_the_number_of_workers(machine: Fleet) -> None:
    machine.collections(SIZES)
    fields = {"table": machine.table, "segments": 960, "maxConcurrency": 25}
    assert machine.plan(fields, machine.execution())["maxConcurrency"] == 25
    slow = {**fields, "maxReadRate": 40}
    assert machine.plan(slow, machine.execution())["maxConcurrency"] == 10
    machine.most_workers = 7
    assert machine.plan(fields, machine.execution())["maxConcurrency"] == 7
    assert machine.start({**fields, "dryRun": True})["workers"] <= 7


def test_a_plan_reads_a_sample_whatever_maxreadunits_is(machine: Fleet, charged: Scans) -> None:
    machine.collections([1] * 2_000, filling=3_000)
    machine.run(dryRun=True, maxReadUnits=1e9)
    assert units(charged) <= 60


@pytest.mark.prove
def test_a_worker_whose_share_pays_for_no_page_fails(
    machine: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The map's concurrency was raised so far that each worker's share is too small."""
    machine.collections([1] * 50, filling=300_000)
    fields = {"table": machine.table, "segments": 32, "maxReadRate": 10}
    state = machine.plan(fields, machine.execution())
    machine.levels.max_concurrency = 1_000
    monkeypatch.setattr(fleet, "working_seconds", lambda remaining: 1.0)
    item = {"group": 0, "mayRead": None}
    with pytest.raises(NoProgress, match="raise maxReadRate, or lower the map's concurrency"):
        machine.child(state, item)


def test_a_rate_holds_while_step_functions_does_not_answer(
    machine: Fleet, charged: Scans, monkeypatch
) -> None:
    machine.collections(SIZES)
    fields = {"table": machine.table, "segments": 32, "maxReadRate": 10}
    state = machine.plan(fields, machine.execution())
    charged.clear()
    machine.levels.max_concurrency = None
    monkeypatch.setattr(fleet, "working_seconds", lambda remaining: 0.3)
    item = {"group": 0, "mayRead": None}
    with pytest.raises(GaveUp, match="did not report how many workers"):
        machine.child(state, item)
    assert charged == []


def test_a_worker_that_must_wait_for_others_returns(
    machine: Fleet, charged: Scans, monkeypatch
) -> None:
    machine.collections(SIZES)
    state = machine.plan(
        {"table": machine.table, "segments": 32, "maxReadRate": 10}, machine.execution()
    )
    charged.clear()
    machine.levels.max_concurrency = 8
    journal, _ = machine.runs.open_run(state["run"])
    levels = machine.levels_of(state["execution"], state["groups"]["map"], journal.store)
    for slot in range(-1, 3):  # the other workers noted a concurrency of two
        levels.note(int(time.time() // SLOT_SECONDS) + slot, 2)
    monkeypatch.setattr(fleet, "working_seconds", lambda remaining: 0.3)
    selected = {
        "run": state["run"],
        "execution": state["execution"],
        "map": state["groups"]["map"],
        "maxReadRate": 10,
        "item": {"group": 0, "mayRead": None},
    }
    checkpoint = scan_segments(selected, *machine.scan_arguments())
    assert checkpoint == {"done": False, "keys": 0, "commits": 0}
    assert charged == []


@pytest.mark.prove
@pytest.mark.parametrize("described", [True, prove(False)])
def test_a_budget_holds_with_large_items_and_many_groups(
    machine: Fleet, stand_in: StandIn, charged: Scans, described: bool
) -> None:
    """The first page of a group may be one item of many blocks, which no estimate foresees."""
    machine.collections([1] * 80, filling=300_000)
    if not described:
        stand_in.service.tables[machine.table].reported = (0, 0)
    fields = {"table": machine.table, "segments": 1_600, "maxConcurrency": 4, "maxReadUnits": 900}
    with pytest.raises(BudgetSpent):
        machine.start(fields, name="run")
    assert 600 <= units(charged) <= 940  # the last page may be larger than thought


def test_a_run_whose_budget_is_too_small_for_the_sample_does_not_start(machine: Fleet) -> None:
    machine.collections([5] * 2_000, filling=300)
    with pytest.raises(BudgetSpent, match="start again, under another name, with more"):
        machine.run("poor", maxReadUnits=2)
    with pytest.raises(RunConflict, match="There is no run 'poor'"):
        machine.run(resume="poor")


@pytest.mark.prove
def test_a_sample_ends_before_the_function_does_under_a_low_rate(
    machine: Fleet, charged: Scans, monkeypatch
) -> None:
    """The plan reads a small table completely, but not if its items are huge."""
    monkeypatch.setattr(fleet, "LOOK_SECONDS", 0.2)
    expected = machine.collections([1] * 60, filling=300_000)
    state, execution = machine.begin(maxReadRate=1_000)
    assert units(charged) <= 300
    machine.go_on(state, execution)
    assert names(machine, "run") == Counter(expected)
