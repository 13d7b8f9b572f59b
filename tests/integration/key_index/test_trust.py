"""Runs by the fleet, where the index is not to be believed, or is no more when it was read."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from keyhop.errors import BudgetSpent, CannotStart, InvalidInput
from keyhop.jobs.lifecycle import Planned

from testing.databases import Database
from testing.key_index_tables import delete_index
from testing.marks import prove
from tests.integration.key_index.machines import Machines


def takes_key_index_away(machines: Machines, database: Database, table: str) -> None:
    machines.machine.places = {}


def turns_the_stream_off(machines: Machines, database: Database, table: str) -> None:
    off = {"StreamEnabled": False}
    database.client.update_table(TableName=table, StreamSpecification=off)


def turns_the_stream_off_and_on(machines: Machines, database: Database, table: str) -> None:
    turns_the_stream_off(machines, database, table)
    on = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    database.client.update_table(TableName=table, StreamSpecification=on)


def disables_the_mapping(machines: Machines, database: Database, table: str) -> None:
    (uuid,) = machines.lambdas.mappings
    machines.lambdas.update_event_source_mapping(uuid, Enabled=False)


def disables_it_for_a_while(machines: Machines, database: Database, table: str) -> None:
    (uuid,) = machines.lambdas.mappings
    for is_on in (False, True):
        machines.lambdas.update_event_source_mapping(uuid, Enabled=is_on)


def deletes_the_mapping(machines: Machines, database: Database, table: str) -> None:
    machines.lambdas.mappings.clear()


def breaks_the_keeper(machines: Machines, database: Database, table: str) -> None:
    (mapping,) = machines.lambdas.mappings.values()
    mapping["LastProcessingResult"] = "PROBLEM: Function call failed"


def holds_the_keeper_up(machines: Machines, database: Database, table: str) -> None:
    machines.elsewhere.age = 300.0


def fills_the_failure_queue(machines: Machines, database: Database, table: str) -> None:
    machines.elsewhere.messages = 2


def moves_the_sentinels(machines: Machines, database: Database, table: str) -> None:
    machines.machine.places = {table: "#other"}


def removes_sentinels_for_a_while(machines: Machines, database: Database, table: str) -> None:
    """A removal that is stopped, and a verification that repairs what it has done."""
    given = {"table": table, "graceSeconds": 0}
    execution = machines.machine.execution()
    machines.running.add(execution.id)
    state: dict[str, Any] = {"next": "wait"}
    while state["next"] == "wait":
        state = machines.step("remove", "prepare", {"table": table}, execution, {})
    machines.machine.start(state["walk"], walk=True)
    machines.running.remove(execution.id)
    machines.start("verify", given)
    machines.start("verify", given)


def deletes_the_index(machines: Machines, database: Database, table: str) -> None:
    delete_index(database, table)


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (takes_key_index_away, "not among those with keyIndex"),
        prove(turns_the_stream_off, "stream is off"),
        prove(turns_the_stream_off_and_on, "another stream"),
        (disables_the_mapping, "mapping is Disabled"),
        prove(disables_it_for_a_while, "mapping was changed"),
        prove(deletes_the_mapping, "no keeper follows"),
        prove(breaks_the_keeper, "PROBLEM: Function call failed"),
        prove(holds_the_keeper_up, "300 seconds behind"),
        prove(fills_the_failure_queue, "2 messages wait"),
        (moves_the_sentinels, "another sort key"),
    ],
)
def test_auto_reads_no_index_that_nobody_can_be_seen_to_keep(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
    happens: Callable[[Machines, Database, str], None],
    reason: str,
) -> None:
    dynamodb.collections(table_name, [2] * 10)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    assert machines.machine.start({"table": table_name})["method"] == "index"
    happens(machines, dynamodb, table_name)
    new = {"pk": {"S": "written since"}, "sk": {"S": "x"}}
    dynamodb.client.put_item(TableName=table_name, Item=new)
    read = machines.machine.start({"table": table_name})
    assert (read["method"], read["keys"]) == ("skip", 11)
    assert reason in machines.machine.runs.open_run(read["run"])[1].reason
    with pytest.raises(CannotStart, match=reason):
        machines.machine.start({"table": table_name, "method": "index"})


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        prove(disables_the_mapping, "mapping is Disabled"),
        (removes_sentinels_for_a_while, "built or removed while it was read"),
        (deletes_the_index, "The key index could not be read: "),
    ],
)
def test_a_run_that_loses_its_belief_finds_the_keys_without_the_index(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
    happens: Callable[[Machines, Database, str], None],
    reason: str,
) -> None:
    expected = dynamodb.collections(table_name, [2] * 40)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    scan, is_first = machines.machine.scan, [True]

    def spoiled(*arguments: Any, **named: Any) -> Any:
        if is_first.pop() if is_first else False:
            happens(machines, dynamodb, table_name)
        return scan(*arguments, **named)

    alone = machines.machine.start({"table": table_name, "method": "skip"})
    machines.machine.scan = spoiled
    read = machines.machine.start({"table": table_name, "segments": 4, "maxReadUnits": 500})
    assert (read["method"], read["keys"]) == ("skip", 40)
    keys = Counter(key["pk"]["S"] for key in machines.machine.keys(read["run"]))
    assert keys == Counter(expected)
    assert read["run"].endswith("-anew")
    assert reason in machines.machine.runs.open_run(read["run"])[1].reason
    assert read["read_units"] > alone["read_units"]
    first = read["run"].removesuffix("-anew")
    assert machines.machine.runs.journal(first).manifest() is None


def test_an_index_that_is_gone_at_the_first_look_is_not_read(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is deleted after the evidence was looked at, and before its first page."""
    expected = dynamodb.collections(table_name, [2] * 40)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    is_first = [True]

    def deleted_first(*arguments: Any, **named: Any) -> None:
        if is_first.pop() if is_first else False:
            delete_index(dynamodb, table_name)
        look(*arguments, **named)

    look = Planned.look
    monkeypatch.setattr(Planned, "look", deleted_first)
    read = machines.machine.start({"table": table_name, "segments": 4})
    assert (read["method"], read["keys"]) == ("skip", 40)
    keys = Counter(key["pk"]["S"] for key in machines.machine.keys(read["run"]))
    assert keys == Counter(expected)
    reason = machines.machine.runs.open_run(read["run"])[1].reason
    assert "The key index could not be read: " in reason


def test_a_run_whose_index_is_gone_is_resumed_without_it(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    expected = dynamodb.collections(table_name, [2] * 40)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    machines.machine.plan({"table": table_name}, machines.machine.execution("begun"))
    delete_index(dynamodb, table_name)
    read = machines.machine.start({"table": table_name, "resume": "begun"})
    assert read["method"] == "skip"
    keys = Counter(key["pk"]["S"] for key in machines.machine.keys(read["run"]))
    assert keys == Counter(expected)


@pytest.mark.prove
def test_an_index_that_was_disbelieved_has_spent_what_it_has_read(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    dynamodb.collections(table_name, [2] * 40)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    scan = machines.machine.scan

    def spoiled(*arguments: Any, **named: Any) -> Any:
        disables_the_mapping(machines, dynamodb, table_name)
        return scan(*arguments, **named)

    machines.machine.scan = spoiled
    with pytest.raises(BudgetSpent, match=r"none of maxReadUnits remain|does not pay|first look"):
        machines.machine.start({"table": table_name, "segments": 4, "maxReadUnits": 3})


@pytest.mark.prove
def test_an_index_is_read_anyway_if_that_is_asked_for(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    dynamodb.collections(table_name, [2] * 10)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    disables_the_mapping(machines, dynamodb, table_name)
    read = machines.machine.start(
        {"table": table_name, "method": "index", "accept": ["stale-index"]}
    )
    assert (read["method"], read["keys"]) == ("index", 10)
    assert "mapping is Disabled" in read["doubt"]
    with pytest.raises(InvalidInput, match="accept stale-index is for method index"):
        machines.machine.start({"table": table_name, "accept": ["stale-index"]})
