"""ForEachKey on the laptop cloud: items for all keys, killed, resumed, undone; keys handed on."""

import json
import os
import signal
from collections import Counter
from typing import Any

import pytest
from keyhop.public.deployment import Run

from testing.databases import keyhop
from testing.executions import Executions
from tests.e2e.conftest import LONGEST_SECONDS, Deployed, create_function
from tests.e2e.processes import busy_worker
from tests.infra.recorded import ON_KEYS

TABLE = "Each"
ITEM = {"sk": "#feature", "plan": "free"}
ON_EACH_BATCH = """
FAILS = {name for name in ("k7", "k13")}

def handler(event, context):
    return {"failed": [key for key in event["keys"] if key in FAILS]}
"""


@pytest.fixture(scope="module")
def keys(deployed: Deployed) -> set[str]:
    """Of the table."""
    return set(deployed.database.collections(TABLE, [1, 4, 2] * 200))


@pytest.fixture
def machine(deployed: Deployed) -> Executions:
    return deployed.machine("ForEachKey")


def done(machine: Executions, name: str, **given: Any) -> Any:
    started = machine.start({"table": TABLE, **given}, name)
    ended = machine.follow(started, LONGEST_SECONDS)
    assert ended.status == "SUCCEEDED", ended
    return ended.output


def features(deployed: Deployed) -> Counter[str]:
    """The collections that have the feature's item."""
    return Counter(
        item["pk"]["S"]
        for page in deployed.database.client.get_paginator("scan").paginate(TableName=TABLE)
        for item in page["Items"]
        if item["sk"] == {"S": "#feature"}
    )


@pytest.mark.usefixtures("at_the_cloud")
def test_an_item_is_put_for_each_key_updated_and_deleted(
    deployed: Deployed, machine: Executions, keys: set[str]
) -> None:
    told = done(machine, "each-plan", put=ITEM, dryRun=True)
    assert 0.8 * len(keys) < told["each"]["keys"] < 1.2 * len(keys)
    result = done(machine, "each-put", put=ITEM)
    assert result["outcomes"] == {"put": len(keys)}
    assert features(deployed) == Counter(keys)
    listed = keyhop("runs", "list", "--table", TABLE)
    assert {"each-put", "each-plan"} <= {line.split()[0] for line in listed.lines[1:]}
    shown = keyhop("runs", "show", "each-put")
    assert (shown.status, shown.lines[0].split(", ")[0]) == (0, f"each-put: ForEachKey of {TABLE}")
    assert str(len(keys)) in shown.out.decode()
    again = done(machine, "each-again", put=ITEM, guard="transaction", keys="each-put-keys")
    assert again["outcomes"] == {"there": len(keys)}
    item = {"sk": "#feature"}
    values = {":p": "gold"}
    updated = done(
        machine,
        "each-update",
        **{"update": "SET #p = :p", "names": {"#p": "plan"}, "values": values, "item": item},
        keys="each-put-keys",
    )
    assert updated["outcomes"] == {"updated": len(keys)}
    gone = done(machine, "each-delete", delete=True, item=item, keys="each-put-keys")
    assert gone["outcomes"] == {"deleted": len(keys)}
    assert not features(deployed)


def test_killed_it_is_gone_on_with_and_undone(
    deployed: Deployed, machine: Executions, keys: set[str]
) -> None:
    """At a rate that takes a while; the deployed function is killed in the middle of it.

    The item has no ${run}. So an item that was put without a commit is taken for a user's, and
    stays when the run is undone.
    """
    given = {"put": ITEM, "keys": "each-put-keys", "maxWriteRate": 100}
    started = machine.start({"table": TABLE, **given}, "each-killed")
    worker = busy_worker("Keyhop-EachKey")
    os.kill(worker, signal.SIGKILL)
    ended: Run = machine.follow(started, LONGEST_SECONDS)
    if ended.status != "SUCCEEDED":
        assert '"resume": "each-killed"' in str(ended.cause)
        assert '"undo": "each-killed"' in str(ended.cause)
        result = done(machine, "each-resumed", resume="each-killed")
    else:
        result = ended.output
    assert result["outcomes"] == {"put": len(keys)}
    assert features(deployed) == Counter(keys)
    deployed.database.client.put_item(
        TableName=TABLE,
        Item={"pk": {"S": min(keys)}, "sk": {"S": "#feature"}, "plan": {"S": "paid"}},
    )
    undone = done(machine, "each-undone", undo="each-killed")
    left = features(deployed)
    assert left[min(keys)] == 1
    assert left.total() < len(keys) / 2
    assert undone["outcomes"] == {"changed": left.total(), "deleted": len(keys) - left.total()}


def test_keys_are_handed_to_a_function_and_those_that_fail_are_told(
    deployed: Deployed, machine: Executions, keys: set[str]
) -> None:
    create_function(deployed.cloud, ON_KEYS.rpartition(":")[2], ON_EACH_BATCH)
    result = done(machine, "each-invoke", invoke=ON_KEYS, batch=50, keys="each-put-keys")
    failing = keys & {"k7", "k13"}
    assert result["outcomes"] == {"sent": len(keys) - len(failing), "failed": len(failing)}
    rows = {row["pk"]["S"]: row for row in machine.keys("each-invoke") if "error" in row}
    assert set(rows) == failing
    assert json.dumps(rows).count("3 tries") == len(failing)


def test_what_the_deployment_may_not_do_is_refused_with_the_setting(machine: Executions) -> None:
    started = machine.start({"table": TABLE, "put": {"sk": "x", "isAdmin": True}}, "each-refused")
    ended = machine.follow(started, LONGEST_SECONDS)
    assert (ended.status, ended.error) == ("FAILED", "CannotStart")
    assert "isAdmin" in str(ended.cause)
