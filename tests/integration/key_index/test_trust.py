"""Runs of the fleet on an index that is not trusted, or whose trust ends during the read."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from keyhop.errors import BudgetSpent, CannotStart, InvalidInput
from keyhop.jobs.lifecycle import Planned

from testing.key_index_tables import STREAM, delete_index
from testing.marks import prove
from tests.integration.key_index.machines import Machines


def takes_key_index_away(machines: Machines) -> None:
    machines.machine.places = {}


def turns_the_stream_off(machines: Machines) -> None:
    machines.update(StreamSpecification={"StreamEnabled": False})


def turns_the_stream_off_and_on(machines: Machines) -> None:
    turns_the_stream_off(machines)
    machines.update(**STREAM)


def disables_the_mapping(machines: Machines) -> None:
    (uuid,) = machines.lambdas.mappings
    machines.lambdas.update_event_source_mapping(uuid, Enabled=False)


def disables_it_for_a_while(machines: Machines) -> None:
    (uuid,) = machines.lambdas.mappings
    for is_on in (False, True):
        machines.lambdas.update_event_source_mapping(uuid, Enabled=is_on)


def deletes_the_mapping(machines: Machines) -> None:
    machines.lambdas.mappings.clear()


def breaks_the_keeper(machines: Machines) -> None:
    (mapping,) = machines.lambdas.mappings.values()
    mapping["LastProcessingResult"] = "PROBLEM: Function call failed"


def holds_the_keeper_up(machines: Machines) -> None:
    machines.elsewhere.age = 300.0


def fills_the_failure_queue(machines: Machines) -> None:
    machines.elsewhere.messages = 2


def moves_the_sentinels(machines: Machines) -> None:
    machines.machine.places = {machines.table: "#other"}


def removes_sentinels_for_a_while(machines: Machines) -> None:
    """Stop a removal after it has deleted the sentinels, and repair the index."""
    execution = machines.machine.execution()
    machines.running.add(execution.id)
    state = machines.prepared_removal(execution)
    machines.machine.start(state["walk"], walk=True)
    machines.running.remove(execution.id)
    machines.verify()
    machines.verify()


def deletes_the_index(machines: Machines) -> None:
    delete_index(machines.database, machines.table)


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (takes_key_index_away, "not among those with keyIndex"),
        prove(turns_the_stream_off, "stream is off"),
        prove(turns_the_stream_off_and_on, "another stream"),
        prove(disables_the_mapping, "mapping is Disabled"),
        prove(disables_it_for_a_while, "mapping was changed"),
        prove(deletes_the_mapping, "no keeper follows"),
        prove(breaks_the_keeper, "PROBLEM: Function call failed"),
        prove(holds_the_keeper_up, "300 seconds behind"),
        prove(fills_the_failure_queue, "2 messages wait"),
        prove(moves_the_sentinels, "another sort key"),
    ],
)
def test_auto_does_not_read_an_index_without_evidence_of_its_keeper(
    machines: Machines, happens: Callable[[Machines], None], reason: str
) -> None:
    machines.built([2] * 10)
    assert machines.read()["method"] == "index"
    happens(machines)
    machines.put({"pk": {"S": "written since"}, "sk": {"S": "x"}})
    read = machines.read()
    assert (read["method"], read["keys"]) == ("skip", 11)
    assert reason in machines.reason(read)
    with pytest.raises(CannotStart, match=reason):
        machines.read(method="index")


@pytest.mark.prove
@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        prove(disables_the_mapping, "mapping is Disabled"),
        (removes_sentinels_for_a_while, "built or removed while it was read"),
        (deletes_the_index, "The key index could not be read: "),
    ],
)
def test_a_run_whose_index_loses_its_trust_finds_the_keys_without_it(
    machines: Machines, happens: Callable[[Machines], None], reason: str
) -> None:
    expected = machines.built([2] * 40)
    scan, is_first = machines.machine.scan, [True]

    def disturbed(*args: Any, **kwargs: Any) -> Any:
        if is_first.pop() if is_first else False:
            happens(machines)
        return scan(*args, **kwargs)

    by_skip = machines.read(method="skip")
    machines.machine.scan = disturbed
    read = machines.read(segments=4, maxReadUnits=500)
    assert (read["method"], read["keys"]) == ("skip", 40)
    assert machines.keys(read) == Counter(expected)
    assert read["run"].endswith("-anew")
    assert reason in machines.reason(read)
    assert read["read_units"] > by_skip["read_units"]
    first = read["run"].removesuffix("-anew")
    assert machines.machine.runs.journal(first).manifest() is None


def test_an_index_that_is_deleted_before_the_sample_is_not_read(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is deleted after the check of the evidence, and before its first page."""
    expected = machines.built([2] * 40)
    is_first = [True]

    def deleted_first(*args: Any, **kwargs: Any) -> None:
        if is_first.pop() if is_first else False:
            delete_index(machines.database, machines.table)
        look(*args, **kwargs)

    look = Planned.look
    monkeypatch.setattr(Planned, "look", deleted_first)
    read = machines.read(segments=4)
    assert (read["method"], read["keys"]) == ("skip", 40)
    assert machines.keys(read) == Counter(expected)
    assert "The key index could not be read: " in machines.reason(read)


@pytest.mark.prove
def test_a_run_whose_index_was_deleted_is_resumed_without_it(machines: Machines) -> None:
    expected = machines.built([2] * 40)
    machines.machine.plan({"table": machines.table}, machines.machine.execution("begun"))
    delete_index(machines.database, machines.table)
    read = machines.read(resume="begun")
    assert read["method"] == "skip"
    assert machines.keys(read) == Counter(expected)


@pytest.mark.prove
def test_the_units_of_an_index_that_lost_its_trust_count(machines: Machines) -> None:
    machines.built([2] * 40)
    scan = machines.machine.scan

    def disturbed(*args: Any, **kwargs: Any) -> Any:
        disables_the_mapping(machines)
        return scan(*args, **kwargs)

    machines.machine.scan = disturbed
    with pytest.raises(BudgetSpent, match=r"none of maxReadUnits remain|does not pay|first look"):
        machines.read(segments=4, maxReadUnits=3)


@pytest.mark.prove
def test_a_stale_index_is_read_on_request(machines: Machines) -> None:
    machines.built([2] * 10)
    disables_the_mapping(machines)
    read = machines.read(method="index", accept=["stale-index"])
    assert (read["method"], read["keys"]) == ("index", 10)
    assert "mapping is Disabled" in read["doubt"]
    with pytest.raises(InvalidInput, match="accept stale-index is for method index"):
        machines.read(accept=["stale-index"])
