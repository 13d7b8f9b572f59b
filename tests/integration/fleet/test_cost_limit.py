"""maxCost: a run whose estimate's upper end is over it is refused before it is begun."""

import json
from dataclasses import replace

import pytest
from keyhop.errors import TooExpensive

from tests.integration.fleet.conftest import SIZES, Fleet, Scans, units

DEAR = '{"reads": 1000000, "writes": 1000000}'
"""A dollar for a unit: so a table of a few hundred keys costs as much as one of a billion."""


@pytest.fixture
def dear(machine: Fleet) -> Fleet:
    machine.collections(SIZES * 2, filling=800)
    machine.deployment = replace(machine.deployment, prices=DEAR)
    machine.max_cost = 10.0
    return machine


def test_a_run_over_the_limit_is_refused_and_says_what_to_start(dear: Fleet) -> None:
    given = {"table": dear.table, "maxConcurrency": 2}
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
def test_a_limit_in_the_input_is_above_the_deployments(dear: Fleet) -> None:
    dear.max_cost = 1e9
    with pytest.raises(TooExpensive, match=r"maxCost is \$20, as its input says"):
        dear.run(maxCost=20)


def test_read_units_that_pay_for_less_are_a_limit_too(dear: Fleet) -> None:
    dear.max_cost = 400.0
    state = dear.plan({"table": dear.table, "maxReadUnits": 300}, dear.execution())
    assert state["readUnitsLimit"] == 300


def test_a_cheap_run_reads_no_more_than_without_a_limit(machine: Fleet, charged: Scans) -> None:
    machine.collections(SIZES)
    machine.max_cost = 10.0
    with_limit = machine.run("limited", segments=8)
    read = units(charged)
    del charged[:]
    machine.max_cost = float("inf")
    machine.run("unlimited", segments=8)
    assert read == pytest.approx(units(charged), abs=3), "a sample was read"
    assert with_limit["keys"] == len(SIZES)


@pytest.mark.prove
def test_of_a_run_that_goes_on_only_the_rest_counts(dear: Fleet) -> None:
    dear.max_cost = 1e9
    given = {"table": dear.table, "segments": 64}
    whole = dear.start(given, "whole")["cost"]["dynamodb"]
    state = dear.plan(given, dear.execution("half"))
    items = json.loads(dear.object(state["groups"]["key"]))
    dear.child(state, items[0])
    assert len(items) == 2
    dear.max_cost = 0.8 * whole
    with pytest.raises(TooExpensive):
        dear.start(given, "all of it")
    assert dear.run("rest", resume="half")["keys"] == 2 * len(SIZES)
