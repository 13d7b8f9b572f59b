"""maxCost of builds, verifications and removals includes writes, and is checked before a start."""

import json
from dataclasses import replace

import pytest
from keyhop.errors import TooExpensive

from tests.integration.key_index.machines import Machines

A_DOLLAR = '{"reads": 1000000, "writes": 1000000}'
"""Prices at which a unit costs a dollar."""


def test_an_action_that_costs_too_much_is_refused_before_it_starts(machines: Machines) -> None:
    machines.collections([2, 1, 3] * 40)
    machine = machines.machine
    cheap = machine.deployment
    machine.deployment = replace(cheap, prices=A_DOLLAR)
    with pytest.raises(TooExpensive, match=r"up to \$\d+\.\d\d") as refused:
        machines.start("build", {"table": machines.table})
    assert machines.steps == []
    assert "GlobalSecondaryIndexes" not in machines.described()
    message = str(refused.value)
    advised = json.loads(message[message.index("{") :])
    assert advised["maxCost"] >= 2 * 120, "writes do not count"
    assert machines.start("build", advised)["build"]["put"] == 120
    machines.max_cost = 0.5
    fields = {"table": machines.table, "scheduled": True}
    with pytest.raises(TooExpensive, match="as this deployment is set"):
        machines.start("verify", fields)
    with pytest.raises(TooExpensive):
        machines.remove(maxCost=200)
    machine.deployment = cheap
    assert machines.start("verify", fields)["verification"]["drift"] == 0


def test_a_scheduled_verification_of_a_table_without_an_index_is_skipped(
    machines: Machines,
) -> None:
    machines.collections([2, 1, 3])
    machines.max_cost = 0.0
    assert "skipped" in machines.start("verify", {"table": machines.table, "scheduled": True})
