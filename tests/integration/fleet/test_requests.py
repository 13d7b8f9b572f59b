"""Inputs of runs that are accepted, and inputs that are refused."""

from collections import Counter
from dataclasses import replace

import pytest
from keyhop.errors import BrokenPromise, CannotStart, InvalidInput, RunConflict, TableNotFound

from tests.integration.fleet.conftest import SIZES, Fleet, Scans, names, units


def test_nothing_is_read_for_an_invalid_input(machine: Fleet, charged: Scans) -> None:
    machine.collections([1] * 5)
    invalid_inputs = [
        ({"table": machine.table, "segmetns": 5}, InvalidInput),
        ({"table": "another-table"}, InvalidInput),
        ({"table": machine.table, "index": "none"}, CannotStart),
        ({"table": machine.table, "index": "none", "verifyShare": 0.5}, InvalidInput),
        ({"table": machine.table, "resume": "never-begun"}, RunConflict),
    ]
    for execution_input, error in invalid_inputs:
        with pytest.raises(error):
            machine.start(execution_input)
    machine.tables.append("missing")
    with pytest.raises(TableNotFound):
        machine.start({"table": "missing"})
    assert units(charged) == 0


def test_an_impossible_method_is_refused(machine: Fleet) -> None:
    machine.create(sort=None)
    with pytest.raises(CannotStart, match="Method skip cannot work here"):
        machine.run(method="skip")


def test_a_repeated_plan_finds_its_run_and_another_run_of_the_same_name_is_refused(
    machine: Fleet,
) -> None:
    expected = machine.collections(SIZES)
    execution = machine.execution("run")
    fields = {"table": machine.table, "segments": 64}
    first = machine.plan(fields, execution)
    assert machine.plan(fields, execution) == first
    reused_name = replace(execution, started="2027-03-01")  # possible after 90 days
    with pytest.raises(RunConflict, match="There is a run named 'run' already"):
        machine.plan(fields, reused_name)
    machine.go_on(first, execution)
    assert names(machine, "run") == Counter(expected)
    with pytest.raises(RunConflict, match="finished run"):
        machine.run(resume="run")


def test_a_resume_with_other_options_is_refused(machine: Fleet) -> None:
    machine.collections(SIZES)
    machine.begin(segments=64)
    for fields in ({"segments": 65}, {"fileFormat": "csv"}, {"method": "scan"}):
        with pytest.raises(RunConflict, match="was begun with"):
            machine.run(resume="run", **fields)


def test_a_table_that_is_replaced_during_the_run_is_detected(local: Fleet) -> None:
    local.collections(SIZES)
    state, execution = local.begin(segments=64)
    local.database.client.delete_table(TableName=local.table)
    local.collections([1])
    with pytest.raises(BrokenPromise, match="is not the table that the run was begun with"):
        local.go_on(state, execution)


def test_a_repeated_finish_returns_the_same_result(machine: Fleet) -> None:
    machine.collections(SIZES)
    state, execution = machine.begin(segments=64)
    machine.map(state)
    first, second = (machine.finish(state, execution) for _ in range(2))
    first["result"].pop("seconds"), second["result"].pop("seconds")
    assert first == second


def test_a_map_that_ends_with_unfinished_groups_fails_the_run(machine: Fleet) -> None:
    machine.collections(SIZES)
    machine.scan = lambda *arguments: {"done": True, "keys": 0, "commits": 0}
    with pytest.raises(BrokenPromise, match="4 of 4 groups are not finished"):
        machine.run(segments=128)
