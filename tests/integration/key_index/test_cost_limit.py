"""maxCost of builds, verifications and removals: writes count; refused before anything is done."""

import json
from dataclasses import replace

import pytest
from keyhop.errors import TooExpensive

from tests.integration.key_index.machines import Machines

DEAR = '{"reads": 1000000, "writes": 1000000}'
"""A dollar for a unit."""


def test_what_costs_more_is_refused_before_it_is_begun(machines: Machines) -> None:
    machines.collections([2, 1, 3] * 40)
    machine = machines.machine
    cheap = machine.deployment
    machine.deployment = replace(cheap, prices=DEAR)
    with pytest.raises(TooExpensive, match=r"up to \$\d+\.\d\d") as refused:
        machines.start("build", {"table": machines.table})
    assert machines.steps == []
    described = machines.described()
    assert "GlobalSecondaryIndexes" not in described
    told = str(refused.value)
    again = json.loads(told[told.index("{") :])
    assert again["maxCost"] >= 2 * 120, "writes do not count"
    assert machines.start("build", again)["build"]["put"] == 120
    machines.max_cost = 0.5
    given = {"table": machines.table, "scheduled": True}
    with pytest.raises(TooExpensive, match="as this deployment is set"):
        machines.start("verify", given)
    with pytest.raises(TooExpensive):
        machines.remove(maxCost=200)
    machine.deployment = cheap
    assert machines.start("verify", given)["verification"]["drift"] == 0


def test_a_scheduled_verification_of_a_table_without_an_index_is_skipped_for_nothing(
    machines: Machines,
) -> None:
    machines.collections([2, 1, 3])
    machines.max_cost = 0.0
    assert "skipped" in machines.start("verify", {"table": machines.table, "scheduled": True})
