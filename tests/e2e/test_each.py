"""Run ForEachKey on the laptop cloud: put and delete items, kill, resume, undo, and invoke."""

import json
import os
import signal
from collections import Counter
from typing import Any

import pytest

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
    """The keys of the table."""
    return set(deployed.database.collections(TABLE, [1, 4, 2] * 200))


@pytest.fixture
def machine(deployed: Deployed) -> Executions:
    return deployed.machine("ForEachKey")


def complete(deployed: Deployed, name: str, **action: Any) -> Any:
    return deployed.complete({"table": TABLE, **action}, name, "ForEachKey").output


def features(deployed: Deployed) -> Counter[str]:
    """Count the feature's items of each collection."""
    return Counter(
        item["pk"]["S"]
        for page in deployed.database.client.get_paginator("scan").paginate(TableName=TABLE)
        for item in page["Items"]
        if item["sk"] == {"S": "#feature"}
    )


@pytest.mark.usefixtures("at_the_cloud")
def test_an_item_is_put_for_each_key_updated_and_deleted(
    deployed: Deployed, keys: set[str]
) -> None:
    plan = complete(deployed, "each-plan", put=ITEM, dryRun=True)
    assert 0.8 * len(keys) < plan["each"]["keys"] < 1.2 * len(keys)
    output = complete(deployed, "each-put", put=ITEM)
    assert output["outcomes"] == {"put": len(keys)}
    assert features(deployed) == Counter(keys)
    rows = keyhop("runs", "list", "--table", TABLE).lines[1:]
    assert {"each-put", "each-plan"} <= {row.split()[0] for row in rows}
    shown_run = keyhop("runs", "show", "each-put")
    assert shown_run.status == 0
    assert shown_run.lines[0].split(", ")[0] == f"each-put: ForEachKey of {TABLE}"
    assert str(len(keys)) in shown_run.out.decode()
    options: Any = {"guard": "transaction", "keys": "each-put-keys"}
    output = complete(deployed, "each-again", put=ITEM, **options)
    assert output["outcomes"] == {"there": len(keys)}
    options = {"item": {"sk": "#feature"}, "keys": "each-put-keys"}
    update: Any = {"update": "SET #p = :p", "names": {"#p": "plan"}, "values": {":p": "gold"}}
    output = complete(deployed, "each-update", **update, **options)
    assert output["outcomes"] == {"updated": len(keys)}
    output = complete(deployed, "each-delete", delete=True, **options)
    assert output["outcomes"] == {"deleted": len(keys)}
    assert not features(deployed)


def test_a_killed_run_is_resumed_and_undone(
    deployed: Deployed, machine: Executions, keys: set[str]
) -> None:
    """Kill the deployed function in the middle of a slow run.

    The item has no ${run}. So an item that was put without a commit is taken for a user's, and
    remains when the run is undone.
    """
    values = {"table": TABLE, "put": ITEM, "keys": "each-put-keys", "maxWriteRate": 100}
    execution = machine.start(values, "each-killed")
    os.kill(busy_worker("Keyhop-EachKey"), signal.SIGKILL)
    run = machine.follow(execution, LONGEST_SECONDS)
    output: Any = run.output
    if run.status != "SUCCEEDED":
        assert '"resume": "each-killed"' in str(run.cause)
        assert '"undo": "each-killed"' in str(run.cause)
        output = complete(deployed, "each-resumed", resume="each-killed")
    assert output["outcomes"] == {"put": len(keys)}
    assert features(deployed) == Counter(keys)
    deployed.database.client.put_item(
        TableName=TABLE,
        Item={"pk": {"S": min(keys)}, "sk": {"S": "#feature"}, "plan": {"S": "paid"}},
    )
    output = complete(deployed, "each-undone", undo="each-killed")
    remaining = features(deployed)
    count = remaining.total()
    assert remaining[min(keys)] == 1
    assert count < len(keys) / 2
    assert output["outcomes"] == {"changed": count, "deleted": len(keys) - count}


def test_keys_are_passed_to_a_function_and_failed_keys_are_reported(
    deployed: Deployed, machine: Executions, keys: set[str]
) -> None:
    create_function(deployed.cloud, ON_KEYS.rpartition(":")[2], ON_EACH_BATCH)
    options: Any = {"batch": 50, "keys": "each-put-keys"}
    output = complete(deployed, "each-invoke", invoke=ON_KEYS, **options)
    failing = keys & {"k7", "k13"}
    assert output["outcomes"] == {"sent": len(keys) - len(failing), "failed": len(failing)}
    rows = {row["pk"]["S"]: row for row in machine.keys("each-invoke") if "error" in row}
    assert set(rows) == failing
    assert json.dumps(rows).count("3 tries") == len(failing)


def test_an_attribute_outside_the_settings_is_refused(deployed: Deployed) -> None:
    values = {"table": TABLE, "put": {"sk": "x", "isAdmin": True}}
    run = deployed.run(values, "each-refused", "ForEachKey")
    assert (run.status, run.error) == ("FAILED", "CannotStart")
    assert "isAdmin" in str(run.cause)
