"""The state machines of the key index, whose steps run in this process."""

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


@pytest.mark.prove
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
    assert machines.keys(machines.read(method="index", segments=70)) == Counter(expected)

    names = sorted(expected)
    machines.delete_sentinels(*names[:3])
    machines.put_sentinels("nobody")
    unrepaired = machines.verify(repair=False)["verification"]
    counts = [unrepaired[name] for name in ("missing", "surplus", "repaired")]
    assert counts == [3, 1, 0]
    skipped = machines.read()
    assert skipped["method"] == "skip"
    assert "found drift" in machines.reason(skipped)
    repaired = machines.verify()
    assert repaired["verification"]["repaired"] == 4
    report = json.loads(machines.machine.object(repaired["report"].partition(f"{BUCKET}/")[2]))
    assert {key["pk"]["S"] for key in report["examples"]["missing"]} == set(names[:3])
    assert "examples" not in repaired["verification"]
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
    build = machines.build()["build"]
    assert (build["put"], build["write_units"]) == (0, 0)
    assert len(machines.lambdas.mappings) == 1
    machines.remove()
    assert "it has no key index" in machines.remove()["skipped"]


@pytest.mark.prove
def test_an_index_that_is_being_removed_is_not_read(machines: Machines) -> None:
    """The index is not read after the first step of the removal, even if the removal never ends."""
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
    # The removal was stopped here. The next action waits for its walkers, and repairs the index.
    assert machines.verify()["verification"]["repaired"] == 40
    assert machines.verify()["verification"]["drift"] == 0
    assert machines.read()["method"] == "index"


@pytest.mark.prove
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
    # A walker of a former holder of the lease writes nothing more.
    first = next(filter(machines.sentinel.is_one, machines.items()))
    machines.delete({n: first[n] for n in ("pk", "sk")})
    stale = {**state["walk"], "walk": {**state["walk"]["walk"], "kind": "build"}, "lease": "e"}
    with pytest.raises(IndexBusy, match="somebody else's"):
        machines.machine.start(stale, walk=True)
    removed = machines.run("remove", {"table": machines.table}, execution)
    assert removed["as_before"]
    assert not any(MARKER in item for item in machines.items())


@pytest.mark.prove
def test_a_removal_keeps_a_users_item_with_the_marker(machines: Machines) -> None:
    """The item was written after the build, and so it is in the index."""
    machines.built([2] * 20)
    marked = {"pk": {"S": "k"}, "sk": {"S": "x"}, MARKER: {"N": "5"}}
    machines.put(marked)
    removed = machines.remove()
    assert (removed["elsewhere"], removed["as_before"]) == (1, False)
    items = machines.items()
    assert marked in items
    assert len(items) == 41


@pytest.mark.prove
def test_a_slow_walk_does_not_exceed_the_time_of_its_function(machines: Machines) -> None:
    """The walk puts 600 sentinels at 100 write units a second."""
    machines.collections([1] * 600)
    machines.machine.remaining = seconds = 9.0
    durations: list[float] = []
    scan = machines.machine.scan

    def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.monotonic()
        try:
            return scan(*args, **kwargs)
        finally:
            durations.append(time.monotonic() - began)

    machines.machine.scan = timed
    built = machines.build(maxWriteRate=100, maxConcurrency=1)
    assert (built["build"]["put"], built["verification"]["drift"]) == (600, 0)
    assert max(durations) < seconds
    assert len(durations) > 2


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
    assert mapping["EventSourceArn"] == machines.described()["LatestStreamArn"]


@pytest.mark.prove
def test_a_stream_with_another_consumer_stays_on(machines: Machines) -> None:
    machines.built([2] * 10)
    stream = machines.described()["LatestStreamArn"]
    machines.lambdas.mappings["theirs"] = {
        "UUID": "theirs",
        "EventSourceArn": "arn:aws:sqs:elsewhere",
        "FunctionArn": KEEPER.replace("KeepIndex", "Archive"),
        "State": "Enabled",
    }
    removed = machines.remove()
    assert removed["stream"] == stream
    assert not removed["as_before"]
    assert list(machines.lambdas.mappings) == ["theirs"]


@pytest.mark.prove
def test_a_removal_keeps_the_stream_on_request(machines: Machines) -> None:
    """Pipes or KCL may read the stream, and no service lists the readers of a stream."""
    machines.built([2] * 10)
    stream = machines.described()["LatestStreamArn"]
    removed = machines.remove(keepStream=True)
    assert (removed["index"], removed["stream"]) == (None, stream)
    assert not removed["as_before"]
    machines.build()
    removed = machines.remove()
    assert (removed["stream"], removed["as_before"]) == (stream, True), "it is the user's now"


def test_a_plan_writes_nothing(machines: Machines) -> None:
    machines.collections([2] * 50)
    planned = machines.build(dryRun=True)
    assert planned["write_units"] == 100
    description = machines.described()
    assert not description.get("GlobalSecondaryIndexes")
    assert not description.get("StreamSpecification")
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
    ("action", "order", "message"),
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
def test_an_invalid_input_is_refused(action: str, order: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Order.parse(action, order)
