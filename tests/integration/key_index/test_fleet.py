"""The key index by the fleet: the steps of the state machines, walked in this process."""

import json
import time
from collections import Counter
from typing import Any

import pytest
from keyhop.checks import STARTED_BY
from keyhop.errors import CannotStart, IndexBusy, IndexNotFound, InvalidInput
from keyhop.key_index.request import Order
from keyhop.key_index.sentinel import MARKER
from keyhop.streams import event_source as attach

from testing.keepers import KEEPER
from tests.integration.key_index.machines import BUCKET, Machines


def test_build_read_verify_remove(machines: Machines) -> None:
    expected = machines.collections([1, 6, 1, 25, 2] * 20)
    before = machines.in_order()
    sentinel = machines.sentinel
    built = machines.build(maxWriteRate=10_000)
    assert (built["build"]["put"], built["build"]["collections"]) == (100, 100)
    assert (built["verification"]["drift"], built["verification"]["collections"]) == (0, 100)
    assert machines.drift() == (set(), set())
    (mapping,) = machines.lambdas.mappings.values()
    stream = machines.described()["LatestStreamArn"]
    assert mapping["EventSourceArn"] == stream
    place = {"Pattern": attach.modified_at(sentinel.sort.name, sentinel.place)}
    filters = [*attach.SETTINGS["FilterCriteria"]["Filters"], place]
    assert mapping["FilterCriteria"] == {"Filters": filters}

    for method in ("index", "auto"):
        read = machines.read(method=method)
        assert read["method"] == "index"
        assert machines.keys(read) == Counter(expected)
    several = machines.read(method="index", segments=70)
    assert machines.keys(several) == Counter(expected)

    names = sorted(expected)
    machines.delete_sentinels(*names[:3])
    machines.put_sentinels("nobody")
    looked = machines.verify(repair=False)["verification"]
    assert (looked["missing"], looked["surplus"], looked["repaired"]) == (3, 1, 0)
    skipped = machines.read()
    assert skipped["method"] == "skip"
    assert "found drift" in machines.reason(skipped)
    mended = machines.verify()
    assert mended["verification"]["repaired"] == 4
    report = json.loads(machines.machine.object(mended["report"].partition(f"{BUCKET}/")[2]))
    assert {key["pk"]["S"] for key in report["examples"]["missing"]} == set(names[:3])
    assert "examples" not in mended["verification"]
    assert machines.verify()["verification"]["drift"] == 0
    assert machines.drifts == [0, 4, 4, 0]

    removed = machines.remove()
    assert removed == {
        "table": machines.table,
        "index": None,
        "sentinels": 0,
        "elsewhere": 0,
        "stream": None,
        "mappings": 0,
        "as_before": True,
        "refused": None,
    }
    assert machines.lambdas.mappings == {}
    assert machines.in_order() == before


@pytest.mark.prove
def test_a_build_can_be_repeated_and_removed_twice(machines: Machines) -> None:
    machines.built([2] * 40)
    again = machines.build()
    assert (again["build"]["put"], again["build"]["write_units"]) == (0, 0)
    assert len(machines.lambdas.mappings) == 1
    machines.remove()
    assert "it has no key index" in machines.remove()["skipped"]


@pytest.mark.prove
def test_an_index_that_is_being_removed_is_not_read(machines: Machines) -> None:
    """Not from the removal's first step on, whether or not it ever comes to its end."""
    expected = machines.built([2] * 40)
    assert machines.read()["method"] == "index"
    execution = machines.machine.execution()
    machines.step("remove", "prepare", {"table": machines.table}, execution, {})
    assert machines.read()["method"] == "skip"
    machines.machine.start(machines.prepared_removal(execution)["walk"], walk=True)
    read = machines.read()
    assert (read["method"], read["keys"]) == ("skip", len(set(expected)))
    with pytest.raises(CannotStart, match="its remove, begun"):
        machines.read(method="index")
    # It was stopped here; whoever comes next waits for its walkers, and puts all in order.
    assert machines.verify()["verification"]["repaired"] == 40
    assert machines.verify()["verification"]["drift"] == 0
    assert machines.read()["method"] == "index"


def test_builds_verifications_and_removals_exclude_each_other(machines: Machines) -> None:
    machines.built([2] * 20)
    execution = machines.machine.execution()
    machines.running.add(execution.id)
    machines.step("remove", "prepare", {"table": machines.table}, execution, {})
    for start in (machines.build, machines.verify):
        with pytest.raises(IndexBusy, match=f"remove by {execution.id}"):
            start()
    assert "remove by" in machines.verify(scheduled=True)["skipped"]
    state = machines.prepared_removal(execution)
    # A walker of somebody who had the lease once writes nothing more.
    sentinel = machines.sentinel
    first = next(item for item in machines.items() if sentinel.is_one(item))
    machines.delete({n: first[n] for n in ("pk", "sk")})
    stale = {**state["walk"], "walk": {**state["walk"]["walk"], "kind": "build"}, "lease": "e"}
    with pytest.raises(IndexBusy, match="somebody else's"):
        machines.machine.start(stale, walk=True)
    removed = machines.run("remove", {"table": machines.table}, execution)
    assert removed["as_before"]
    assert not any(MARKER in item for item in machines.items())


@pytest.mark.prove
def test_an_item_of_a_user_with_the_marker_is_no_obstacle(machines: Machines) -> None:
    """It was written after the build; it is in the index, and stays when that goes."""
    machines.built([2] * 20)
    marked = {"pk": {"S": "k"}, "sk": {"S": "x"}, MARKER: {"N": "5"}}
    machines.put(marked)
    removed = machines.remove()
    assert (removed["elsewhere"], removed["as_before"]) == (1, False)
    items = machines.items()
    assert marked in items
    assert len(items) == 41


@pytest.mark.prove
def test_a_slow_walk_keeps_to_the_time_of_its_function(machines: Machines) -> None:
    """600 sentinels at 100 write units a second: no invocation lasts longer than it may."""
    machines.collections([1] * 600)
    machines.machine.remaining = seconds = 9.0
    lasted: list[float] = []
    scan = machines.machine.scan

    def timed(*arguments: Any, **named: Any) -> Any:
        began = time.monotonic()
        try:
            return scan(*arguments, **named)
        finally:
            lasted.append(time.monotonic() - began)

    machines.machine.scan = timed
    built = machines.build(maxWriteRate=100, maxConcurrency=1)
    assert (built["build"]["put"], built["verification"]["drift"]) == (600, 0)
    assert max(lasted) < seconds
    assert len(lasted) > 2


@pytest.mark.prove
def test_a_stream_that_was_turned_off_and_on_is_followed_again(machines: Machines) -> None:
    machines.built([2] * 10)
    machines.update(StreamSpecification={"StreamEnabled": False})
    with pytest.raises(CannotStart, match="stream of table"):
        machines.verify()
    on = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    machines.update(StreamSpecification=on)
    machines.verify()
    (mapping,) = machines.lambdas.mappings.values()
    told = machines.described()
    assert mapping["EventSourceArn"] == told["LatestStreamArn"]


@pytest.mark.prove
def test_a_stream_that_somebody_else_uses_stays_on(machines: Machines) -> None:
    machines.built([2] * 10)
    told = machines.described()
    other = {"FunctionArn": KEEPER.replace("KeepIndex", "Archive"), "State": "Enabled"}
    foreign = {"UUID": "theirs", "EventSourceArn": "arn:aws:sqs:elsewhere", **other}
    machines.lambdas.mappings["theirs"] = foreign
    removed = machines.remove()
    assert removed["stream"] == told["LatestStreamArn"]
    assert not removed["as_before"]
    assert list(machines.lambdas.mappings) == ["theirs"]


@pytest.mark.prove
def test_our_stream_stays_on_for_readers_that_lambda_does_not_know(machines: Machines) -> None:
    """Pipes and KCL: no service lists the readers of a stream."""
    machines.built([2] * 10)
    ours = machines.described()["LatestStreamArn"]
    removed = machines.remove(keepStream=True)
    assert (removed["index"], removed["stream"]) == (None, ours)
    assert not removed["as_before"]
    machines.build()
    removed = machines.remove()
    assert (removed["stream"], removed["as_before"]) == (ours, True), "it is no more ours"


def test_a_plan_writes_nothing(machines: Machines) -> None:
    machines.collections([2] * 50)
    planned = machines.build(dryRun=True)
    assert planned["write_units"] == 100
    told = machines.described()
    assert not told.get("GlobalSecondaryIndexes")
    assert not told.get("StreamSpecification")
    assert machines.lambdas.mappings == {}


def test_a_table_without_key_index_is_refused(machines: Machines) -> None:
    machines.collections([2] * 5)
    machines.machine.places = {}
    walk = {"kind": "build", "repair": True, "grace_seconds": 10.0, "max_write_rate": None}
    with pytest.raises(InvalidInput, match="keyIndex"):
        machines.build()
    with pytest.raises(InvalidInput, match="keyIndex"):
        machines.machine.start({"table": machines.table, "walk": walk, STARTED_BY: "e"}, walk=True)


def test_a_verification_without_an_index_is_refused(machines: Machines) -> None:
    machines.collections([2] * 5)
    with pytest.raises(IndexNotFound, match="no key index"):
        machines.verify()


@pytest.mark.parametrize(
    ("action", "given", "told"),
    [
        ("build", [], "JSON object"),
        ("build", {}, "table is missing"),
        ("build", {"table": "T", "dryrun": True}, "did you mean dryRun"),
        ("verify", {"table": "T", "repair": "no"}, "repair must be true or false"),
        ("verify", {"table": "T", "graceSeconds": -1}, "graceSeconds must be a number from 0"),
        ("remove", {"table": "T", "repair": True}, "unknown: 'repair'"),
        ("build", {"table": "T", "maxWriteRate": True}, "maxWriteRate must be a number"),
    ],
)
def test_a_wrong_input_is_told(action: str, given: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        Order.parse(action, given)
