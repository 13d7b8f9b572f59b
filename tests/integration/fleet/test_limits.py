"""Read units a second, and in all, over a whole fleet."""

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
    """Groups of very different cost: one share each would be too little for the dear ones."""
    expected = machine.collections([1] * 400, filling=3_500)
    given = {"table": machine.table, "segments": 96, "maxConcurrency": 3}
    whole = machine.start(given, name="whole")["read_units"]
    before = units(charged)
    told = machine.start({**given, "maxReadUnits": whole * 1.15}, name="capped")
    assert names(machine, "capped") == Counter(expected)
    assert units(charged) - before <= whole * 1.15
    assert told["read_units"] <= whole * 1.15


@pytest.mark.prove
def test_a_budget_that_is_too_small_ends_the_run_and_a_resume_with_more_finishes_it(
    machine: Fleet, charged: Scans
) -> None:
    expected = machine.collections([1] * 400, filling=3_500)
    given = {"table": machine.table, "segments": 96, "maxConcurrency": 3}
    with pytest.raises(BudgetSpent, match="does not pay for the next pages"):
        machine.start({**given, "maxReadUnits": 80}, name="run")
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


def test_a_rate_holds_over_all_workers_together(machine: Fleet, charged: Scans) -> None:
    """As the service would measure it: units of the answers that it sent, by its own clock."""
    machine.collections([1] * 300, filling=3_000)
    rate = 60.0
    given = {"table": machine.table, "segments": 96, "maxConcurrency": 3, "maxReadRate": rate}
    execution = machine.execution("run")
    state = machine.plan(given, execution)
    charged.clear()
    began = time.monotonic()
    machine.go_on(state, execution)
    total = 0.0
    for moment, charge in charged:
        total += charge
        assert total <= rate * (moment - began) * 1.1 + 1.0
    assert total / rate <= charged[-1][0] - began


def test_no_more_workers_are_asked_for_than_the_rate_or_the_deployment_can_serve(
    machine: Fleet,
) -> None:
    machine.collections(SIZES)
    given = {"table": machine.table, "segments": 960, "maxConcurrency": 25}
    assert machine.plan(given, machine.execution())["maxConcurrency"] == 25
    slow = {**given, "maxReadRate": 40}
    assert machine.plan(slow, machine.execution())["maxConcurrency"] == 10
    machine.most_workers = 7
    assert machine.plan(given, machine.execution())["maxConcurrency"] == 7
    assert machine.start({**given, "dryRun": True})["workers"] <= 7


def test_a_plan_reads_a_sample_however_much_a_run_may_read(machine: Fleet, charged: Scans) -> None:
    machine.collections([1] * 2_000, filling=3_000)
    machine.run(dryRun=True, maxReadUnits=1e9)
    assert units(charged) <= 60


@pytest.mark.prove
def test_a_share_that_pays_for_no_page_is_told(
    machine: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has raised the map's concurrency until nothing is left for each."""
    machine.collections([1] * 50, filling=300_000)
    given = {"table": machine.table, "segments": 32, "maxReadRate": 10}
    state = machine.plan(given, machine.execution())
    machine.levels.told = 1_000
    monkeypatch.setattr(fleet, "working_seconds", lambda remaining: 1.0)
    item = {"group": 0, "mayRead": None}
    with pytest.raises(NoProgress, match="raise maxReadRate, or lower the map's concurrency"):
        machine.child(state, item)


def test_a_rate_holds_while_step_functions_does_not_answer(
    machine: Fleet, charged: Scans, monkeypatch
) -> None:
    machine.collections(SIZES)
    given = {"table": machine.table, "segments": 32, "maxReadRate": 10}
    state = machine.plan(given, machine.execution())
    charged.clear()
    machine.levels.told = None
    monkeypatch.setattr(fleet, "working_seconds", lambda remaining: 0.3)
    item = {"group": 0, "mayRead": None}
    with pytest.raises(GaveUp, match="did not report how many workers"):
        machine.child(state, item)
    assert charged == []


def test_a_worker_that_must_wait_for_others_hands_back(
    machine: Fleet, charged: Scans, monkeypatch
) -> None:
    machine.collections(SIZES)
    state = machine.plan(
        {"table": machine.table, "segments": 32, "maxReadRate": 10}, machine.execution()
    )
    charged.clear()
    machine.levels.told = 8
    journal, _ = machine.runs.open_run(state["run"])
    levels = machine.levels_of(state["execution"], state["groups"]["map"], journal.store)
    for slot in range(-1, 3):  # the others have heard of two only
        levels.note(int(time.time() // SLOT_SECONDS) + slot, 2)
    monkeypatch.setattr(fleet, "working_seconds", lambda remaining: 0.3)
    selected = {
        "run": state["run"],
        "execution": state["execution"],
        "map": state["groups"]["map"],
        "maxReadRate": 10,
        "item": {"group": 0, "mayRead": None},
    }
    worked = scan_segments(selected, *machine.scan_arguments())
    assert worked == {"done": False, "keys": 0, "commits": 0}
    assert charged == []


@pytest.mark.prove
@pytest.mark.parametrize("described", [True, prove(False)])
def test_a_budget_holds_with_large_items_and_many_groups(
    machine: Fleet, stand_in: StandIn, charged: Scans, described: bool
) -> None:
    """Each group's first page may be one item of many blocks, which nobody has foreseen."""
    machine.collections([1] * 80, filling=300_000)
    if not described:
        stand_in.service.tables[machine.table].reported = (0, 0)
    given = {"table": machine.table, "segments": 1_600, "maxConcurrency": 4, "maxReadUnits": 900}
    with pytest.raises(BudgetSpent):
        machine.start(given, name="run")
    assert 600 <= units(charged) <= 940  # the last page may be larger than thought


def test_a_run_whose_first_look_cannot_be_paid_is_not_begun(machine: Fleet) -> None:
    machine.collections([5] * 2_000, filling=300)
    with pytest.raises(BudgetSpent, match="start again, under another name, with more"):
        machine.run("poor", maxReadUnits=2)
    with pytest.raises(RunConflict, match="There is no run 'poor'"):
        machine.run(resume="poor")


def test_a_first_look_does_not_outlast_the_function_under_a_low_rate(
    machine: Fleet, charged: Scans, monkeypatch
) -> None:
    """A table of few items is read to its end at once, but here each of them is huge."""
    monkeypatch.setattr(fleet, "LOOK_SECONDS", 0.2)
    expected = machine.collections([1] * 60, filling=300_000)
    state, execution = machine.begin(maxReadRate=1_000)
    assert units(charged) <= 300
    machine.go_on(state, execution)
    assert names(machine, "run") == Counter(expected)
