"""maxCost: a run whose estimate's upper end is over it is refused before it is begun."""

import json
from dataclasses import replace

import pytest
from keyhop.errors import TooExpensive

from testing.databases import Database
from tests.integration.fleet.conftest import SIZES, Scans, units
from tests.machine import Machine

DEAR = '{"reads": 1000000, "writes": 1000000}'
"""A dollar for a unit: so a table of a few hundred keys costs as much as one of a billion."""


@pytest.fixture
def dear(machine: Machine, strict: Database) -> Machine:
    strict.collections(machine.tables[0], SIZES * 2, filling=800)
    machine.deployment = replace(machine.deployment, prices=DEAR)
    machine.max_cost = 10.0
    return machine


def test_a_run_over_the_limit_is_refused_and_says_what_to_start(dear: Machine) -> None:
    given = {"table": dear.tables[0], "maxConcurrency": 2}
    with pytest.raises(TooExpensive, match=r"up to \$\d+\.\d\d, about \$\d+\.\d\d by a") as refused:
        dear.start(given, "refused")
    assert dear.runs.journal("refused").plan() is None, "a run was begun"
    told = str(refused.value)
    assert "maxCost is $10, as this deployment is set (keyhop.json)" in told
    again = json.loads(told[told.index("{") :])
    assert again == {**given, "maxCost": again["maxCost"]}
    output = dear.start(again, "again")
    assert output["keys"] == 2 * len(SIZES)
    # What is read to plan, 60 units at most, is spent by then, and weighs on tables this small.
    assert output["cost"]["total"] <= again["maxCost"] + 60


@pytest.mark.prove
def test_a_limit_in_the_input_is_above_the_deployments(dear: Machine) -> None:
    dear.max_cost = 1e9
    with pytest.raises(TooExpensive, match=r"maxCost is \$20, as its input says"):
        dear.start({"table": dear.tables[0], "maxCost": 20})


def test_read_units_that_pay_for_less_are_a_limit_too(dear: Machine) -> None:
    dear.max_cost = 400.0
    state = dear.plan({"table": dear.tables[0], "maxReadUnits": 300}, dear.execution())
    assert state["readUnitsLimit"] == 300


def test_a_cheap_run_reads_no_more_than_without_a_limit(
    machine: Machine, strict: Database, charged: Scans
) -> None:
    strict.collections(machine.tables[0], SIZES)
    machine.max_cost = 10.0
    with_limit = machine.start({"table": machine.tables[0], "segments": 8}, "limited")
    read = units(charged)
    del charged[:]
    machine.max_cost = float("inf")
    machine.start({"table": machine.tables[0], "segments": 8}, "unlimited")
    assert read == pytest.approx(units(charged), abs=3), "a sample was read"
    assert with_limit["keys"] == len(SIZES)


@pytest.mark.prove
def test_of_a_run_that_goes_on_only_the_rest_counts(dear: Machine) -> None:
    dear.max_cost = 1e9
    given = {"table": dear.tables[0], "segments": 64}
    whole = dear.start(given, "whole")["cost"]["dynamodb"]
    state = dear.plan(given, dear.execution("half"))
    items = json.loads(dear.object(state["groups"]["key"]))
    dear.child(state, items[0])
    assert len(items) == 2
    dear.max_cost = 0.8 * whole
    with pytest.raises(TooExpensive):
        dear.start(given, "all of it")
    assert dear.start({"table": dear.tables[0], "resume": "half"}, "rest")["keys"] == 2 * len(SIZES)
