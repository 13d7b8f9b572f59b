"""What a run is asked for, and what is refused."""

from collections import Counter
from dataclasses import replace

import pytest
from keyhop.errors import (
    BrokenPromise,
    CannotStart,
    InvalidInput,
    RunConflict,
    TableNotFound,
)

from tests.integration.fleet.conftest import SIZES, Fleet, Scans, names, units


def test_nothing_is_read_for_an_input_that_is_wrong(machine: Fleet, charged: Scans) -> None:
    machine.collections([1] * 5)
    wrong = [
        ({"table": machine.table, "segmetns": 5}, InvalidInput),
        ({"table": "another-table"}, InvalidInput),
        ({"table": machine.table, "index": "none"}, CannotStart),
        ({"table": machine.table, "index": "none", "verifyShare": 0.5}, InvalidInput),
        ({"table": machine.table, "resume": "never-begun"}, RunConflict),
    ]
    for given, error in wrong:
        with pytest.raises(error):
            machine.start(given)
    machine.tables.append("missing")
    with pytest.raises(TableNotFound):
        machine.start({"table": "missing"})
    assert units(charged) == 0


def test_a_method_that_cannot_work_is_told(machine: Fleet) -> None:
    machine.create(sort=None)
    with pytest.raises(CannotStart, match="Method skip cannot work here"):
        machine.run(method="skip")


def test_planning_again_finds_its_own_run_and_a_second_run_of_the_name_is_refused(
    machine: Fleet,
) -> None:
    expected = machine.collections(SIZES)
    execution = machine.execution("run")
    given = {"table": machine.table, "segments": 64}
    first = machine.plan(given, execution)
    assert machine.plan(given, execution) == first
    again_after_90_days = replace(execution, started="2027-03-01")
    with pytest.raises(RunConflict, match="There is a run named 'run' already"):
        machine.plan(given, again_after_90_days)
    machine.go_on(first, execution)
    assert names(machine, "run") == Counter(expected)
    with pytest.raises(RunConflict, match="finished run"):
        machine.run(resume="run")


def test_a_resume_with_other_wishes_is_refused(machine: Fleet) -> None:
    machine.collections(SIZES)
    machine.plan({"table": machine.table, "segments": 64}, machine.execution("run"))
    for wish in ({"segments": 65}, {"fileFormat": "csv"}, {"method": "scan"}):
        with pytest.raises(RunConflict, match="was begun with"):
            machine.run(resume="run", **wish)


def test_a_table_that_is_replaced_during_the_run_is_noticed(local: Fleet) -> None:
    local.collections(SIZES)
    state, execution = local.begin(segments=64)
    local.database.client.delete_table(TableName=local.table)
    local.collections([1])
    with pytest.raises(BrokenPromise, match="is not the table that the run was begun with"):
        local.go_on(state, execution)


def test_a_finish_that_runs_twice_says_the_same(machine: Fleet) -> None:
    machine.collections(SIZES)
    state, execution = machine.begin(segments=64)
    machine.map(state)
    first, second = (machine.finish(state, execution) for _ in range(2))
    first["result"].pop("seconds"), second["result"].pop("seconds")
    assert first == second


def test_a_map_that_ends_with_a_group_unfinished_is_told(machine: Fleet) -> None:
    machine.collections(SIZES)
    machine.scan = lambda *arguments: {"done": True, "keys": 0, "commits": 0}
    with pytest.raises(BrokenPromise, match="4 of 4 groups are not finished"):
        machine.run(segments=128)
