"""A run whose estimate may exceed maxCost is refused before it starts."""

import json
from dataclasses import replace

import pytest
from keyhop.errors import TooExpensive

from tests.integration.fleet.conftest import SIZES, Fleet, Scans, units

A_DOLLAR = '{"reads": 1000000, "writes": 1000000}'
"""Prices at which a unit costs a dollar, and a few hundred keys as much as a billion really do."""


@pytest.fixture
def expensive(machine: Fleet) -> Fleet:
    machine.collections(SIZES * 2, filling=800)
    machine.deployment = replace(machine.deployment, prices=A_DOLLAR)
    machine.max_cost = 10.0
    return machine


def test_a_run_over_the_limit_is_refused_with_an_input_that_is_accepted(expensive: Fleet) -> None:
    fields = {"table": expensive.table, "maxConcurrency": 2}
    with pytest.raises(TooExpensive, match=r"up to \$\d+\.\d\d, about \$\d+\.\d\d by a") as refused:
        expensive.start(fields, "refused")
    assert expensive.runs.journal("refused").plan() is None, "the run was started"
    message = str(refused.value)
    assert "maxCost is $10, as this deployment is set (keyhop.json)" in message
    advised = json.loads(message[message.index("{") :])
    assert advised == {**fields, "maxCost": advised["maxCost"]}
    output = expensive.start(advised, "again")
    assert output["keys"] == 2 * len(SIZES)
    # The plan's sample of up to 60 units is spent by then.
    assert output["cost"]["total"] <= advised["maxCost"] + 60


@pytest.mark.prove
def test_a_limit_in_the_input_overrides_the_deployments(expensive: Fleet) -> None:
    expensive.max_cost = 1e9
    with pytest.raises(TooExpensive, match=r"maxCost is \$20, as its input says"):
        expensive.run(maxCost=20)


def test_a_lower_limit_of_read_units_applies_too(expensive: Fleet) -> None:
    expensive.max_cost = 400.0
    state = expensive.plan({"table": expensive.table, "maxReadUnits": 300}, expensive.execution())
    assert state["readUnitsLimit"] == 300


def test_a_cheap_run_reads_no_more_than_without_a_limit(machine: Fleet, charged: Scans) -> None:
    machine.collections(SIZES)
    machine.max_cost = 10.0
    with_limit = machine.run("limited", segments=8)
    read = units(charged)
    del charged[:]
    machine.max_cost = float("inf")
    machine.run("unlimited", segments=8)
    assert read == pytest.approx(units(charged), abs=3), "the limit caused a sample to be read"
    assert with_limit["keys"] == len(SIZES)


@pytest.mark.prove
def test_the_limit_of_a_resumed_run_applies_to_the_rest(expensive: Fleet) -> None:
    expensive.max_cost = 1e9
    fields = {"table": expensive.table, "segments": 64}
    full_cost = expensive.start(fields, "whole")["cost"]["dynamodb"]
    state = expensive.plan(fields, expensive.execution("half"))
    items = json.loads(expensive.object(state["groups"]["key"]))
    expensive.child(state, items[0])
    assert len(items) == 2
    expensive.max_cost = 0.8 * full_cost
    with pytest.raises(TooExpensive):
        expensive.start(fields, "all of it")
    assert expensive.run("rest", resume="half")["keys"] == 2 * len(SIZES)
