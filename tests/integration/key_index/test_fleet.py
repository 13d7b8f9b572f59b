"""The key index by the fleet: the steps of the state machines, walked in this process."""

import json
import time
from collections import Counter
from typing import Any

import pytest
from keyhop.checks import STARTED_BY
from keyhop.errors import CannotStart, IndexBusy, IndexNotFound, InvalidInput
from keyhop.key_index.request import Order
from keyhop.key_index.sentinel import MARKER, Sentinel
from keyhop.streams import event_source as attach

from testing.databases import Database
from testing.keepers import KEEPER
from testing.key_index_tables import drift, scanned, table_of
from tests.integration.key_index.machines import BUCKET, Machines


def test_build_read_verify_remove(dynamodb: Database, table_name: str, machines: Machines) -> None:
    expected = dynamodb.collections(table_name, [1, 6, 1, 25, 2] * 20)
    before = sorted(map(repr, scanned(dynamodb, table_name)))
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    given = {"table": table_name, "graceSeconds": 0, "maxWriteRate": 10_000}
    built = machines.start("build", given)
    assert (built["build"]["put"], built["build"]["collections"]) == (100, 100)
    assert (built["verification"]["drift"], built["verification"]["collections"]) == (0, 100)
    assert drift(dynamodb, table_name, sentinel) == (set(), set())
    (mapping,) = machines.lambdas.mappings.values()
    stream = dynamodb.client.describe_table(TableName=table_name)["Table"]["LatestStreamArn"]
    assert mapping["EventSourceArn"] == stream
    place = {"Pattern": attach.modified_at(sentinel.sort.name, sentinel.place)}
    filters = [*attach.SETTINGS["FilterCriteria"]["Filters"], place]
    assert mapping["FilterCriteria"] == {"Filters": filters}

    for method in ("index", "auto"):
        read = machines.machine.start({"table": table_name, "method": method})
        assert read["method"] == "index"
        keys = Counter(key["pk"]["S"] for key in machines.machine.keys(read["run"]))
        assert keys == Counter(expected)
    several = machines.machine.start({"table": table_name, "method": "index", "segments": 70})
    keys = Counter(key["pk"]["S"] for key in machines.machine.keys(several["run"]))
    assert keys == Counter(expected)

    names = sorted(expected)
    for name in names[:3]:
        key = sentinel.key_of({"pk": {"S": name}})
        dynamodb.client.delete_item(TableName=table_name, Key=key)
    alone = sentinel.item_of({"pk": {"S": "nobody"}})
    dynamodb.client.put_item(TableName=table_name, Item=alone)
    looked = machines.start("verify", {**given, "repair": False})["verification"]
    assert (looked["missing"], looked["surplus"], looked["repaired"]) == (3, 1, 0)
    skipped = machines.machine.start({"table": table_name})
    assert skipped["method"] == "skip"
    assert "found drift" in machines.machine.runs.open_run(skipped["run"])[1].reason
    mended = machines.start("verify", given)
    assert mended["verification"]["repaired"] == 4
    report = json.loads(machines.machine.object(mended["report"].partition(f"{BUCKET}/")[2]))
    assert {key["pk"]["S"] for key in report["examples"]["missing"]} == set(names[:3])
    assert "examples" not in mended["verification"]
    assert machines.start("verify", given)["verification"]["drift"] == 0
    assert machines.drifts == [0, 4, 4, 0]

    removed = machines.start("remove", {"table": table_name})
    assert removed == {
        "table": table_name,
        "index": None,
        "sentinels": 0,
        "elsewhere": 0,
        "stream": None,
        "mappings": 0,
        "as_before": True,
        "refused": None,
    }
    assert machines.lambdas.mappings == {}
    assert sorted(map(repr, scanned(dynamodb, table_name))) == before


@pytest.mark.prove
def test_a_build_can_be_repeated_and_removed_twice(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    dynamodb.collections(table_name, [2] * 40)
    given = {"table": table_name, "graceSeconds": 0}
    machines.start("build", given)
    again = machines.start("build", given)
    assert (again["build"]["put"], again["build"]["write_units"]) == (0, 0)
    assert len(machines.lambdas.mappings) == 1
    machines.start("remove", {"table": table_name})
    assert "it has no key index" in machines.start("remove", {"table": table_name})["skipped"]


@pytest.mark.prove
def test_an_index_that_is_being_removed_is_not_read(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    """Not from the removal's first step on, whether or not it ever comes to its end."""
    expected = dynamodb.collections(table_name, [2] * 40)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    given = {"table": table_name}
    assert machines.machine.start(given)["method"] == "index"
    execution = machines.machine.execution()
    state = machines.step("remove", "prepare", given, execution, {})
    assert machines.machine.start(given)["method"] == "skip"
    while state["next"] == "wait":
        state = machines.step("remove", "prepare", given, execution, {})
    machines.machine.start(state["walk"], walk=True)
    read = machines.machine.start(given)
    assert (read["method"], read["keys"]) == ("skip", len(set(expected)))
    with pytest.raises(CannotStart, match="its remove, begun"):
        machines.machine.start({**given, "method": "index"})
    # It was stopped here; whoever comes next waits for its walkers, and puts all in order.
    assert machines.start("verify", given)["verification"]["repaired"] == 40
    assert machines.start("verify", given)["verification"]["drift"] == 0
    assert machines.machine.start(given)["method"] == "index"


def test_builds_verifications_and_removals_exclude_each_other(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    dynamodb.collections(table_name, [2] * 20)
    given = {"table": table_name, "graceSeconds": 0}
    machines.start("build", given)
    execution = machines.machine.execution()
    machines.running.add(execution.id)
    state = machines.step("remove", "prepare", {"table": table_name}, execution, {})
    for action in ("build", "verify"):
        with pytest.raises(IndexBusy, match=f"remove by {execution.id}"):
            machines.start(action, given)
    scheduled = machines.start("verify", {**given, "scheduled": True})
    assert "remove by" in scheduled["skipped"]
    while state["next"] == "wait":
        state = machines.step("remove", "prepare", {"table": table_name}, execution, {})
    # A walker of somebody who had the lease once writes nothing more.
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    first = next(item for item in scanned(dynamodb, table_name) if sentinel.is_one(item))
    dynamodb.client.delete_item(TableName=table_name, Key={n: first[n] for n in ("pk", "sk")})
    stale = {**state["walk"], "walk": {**state["walk"]["walk"], "kind": "build"}, "lease": "e"}
    with pytest.raises(IndexBusy, match="somebody else's"):
        machines.machine.start(stale, walk=True)
    removed = machines.run("remove", {"table": table_name}, execution)
    assert removed["as_before"]
    assert not any(MARKER in item for item in scanned(dynamodb, table_name))


@pytest.mark.prove
def test_an_item_of_a_user_with_the_marker_is_no_obstacle(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    """It was written after the build; it is in the index, and stays when that goes."""
    dynamodb.collections(table_name, [2] * 20)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    marked = {"pk": {"S": "k"}, "sk": {"S": "x"}, MARKER: {"N": "5"}}
    dynamodb.client.put_item(TableName=table_name, Item=marked)
    removed = machines.start("remove", {"table": table_name})
    assert (removed["elsewhere"], removed["as_before"]) == (1, False)
    items = list(scanned(dynamodb, table_name))
    assert marked in items
    assert len(items) == 41


@pytest.mark.prove
def test_a_slow_walk_keeps_to_the_time_of_its_function(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    """600 sentinels at 100 write units a second: no invocation lasts longer than it may."""
    dynamodb.collections(table_name, [1] * 600)
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
    given = {"table": table_name, "graceSeconds": 0, "maxWriteRate": 100, "maxConcurrency": 1}
    built = machines.start("build", given)
    assert (built["build"]["put"], built["verification"]["drift"]) == (600, 0)
    assert max(lasted) < seconds
    assert len(lasted) > 2


@pytest.mark.prove
def test_a_stream_that_was_turned_off_and_on_is_followed_again(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    dynamodb.collections(table_name, [2] * 10)
    given = {"table": table_name, "graceSeconds": 0}
    machines.start("build", given)

    def stream(**settings: Any) -> None:
        dynamodb.client.update_table(TableName=table_name, StreamSpecification=settings)

    stream(StreamEnabled=False)
    with pytest.raises(CannotStart, match="stream of table"):
        machines.start("verify", given)
    stream(StreamEnabled=True, StreamViewType="NEW_IMAGE")
    machines.start("verify", given)
    (mapping,) = machines.lambdas.mappings.values()
    told = dynamodb.client.describe_table(TableName=table_name)["Table"]
    assert mapping["EventSourceArn"] == told["LatestStreamArn"]


@pytest.mark.prove
def test_a_stream_that_somebody_else_uses_stays_on(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    dynamodb.collections(table_name, [2] * 10)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    told = dynamodb.client.describe_table(TableName=table_name)["Table"]
    other = {"FunctionArn": KEEPER.replace("KeepIndex", "Archive"), "State": "Enabled"}
    foreign = {"UUID": "theirs", "EventSourceArn": "arn:aws:sqs:elsewhere", **other}
    machines.lambdas.mappings["theirs"] = foreign
    removed = machines.start("remove", {"table": table_name})
    assert removed["stream"] == told["LatestStreamArn"]
    assert not removed["as_before"]
    assert list(machines.lambdas.mappings) == ["theirs"]


@pytest.mark.prove
def test_our_stream_stays_on_for_readers_that_lambda_does_not_know(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    """Pipes and KCL: no service lists the readers of a stream."""
    dynamodb.collections(table_name, [2] * 10)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    ours = dynamodb.client.describe_table(TableName=table_name)["Table"]["LatestStreamArn"]
    removed = machines.start("remove", {"table": table_name, "keepStream": True})
    assert (removed["index"], removed["stream"]) == (None, ours)
    assert not removed["as_before"]
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    removed = machines.start("remove", {"table": table_name})
    assert (removed["stream"], removed["as_before"]) == (ours, True), "it is no more ours"


def test_a_plan_writes_nothing(dynamodb: Database, table_name: str, machines: Machines) -> None:
    dynamodb.collections(table_name, [2] * 50)
    planned = machines.start("build", {"table": table_name, "dryRun": True})
    assert planned["write_units"] == 100
    told = dynamodb.client.describe_table(TableName=table_name)["Table"]
    assert not told.get("GlobalSecondaryIndexes")
    assert not told.get("StreamSpecification")
    assert machines.lambdas.mappings == {}


def test_a_table_without_key_index_is_refused(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    dynamodb.collections(table_name, [2] * 5)
    machines.machine.places = {}
    walk = {"kind": "build", "repair": True, "grace_seconds": 10.0, "max_write_rate": None}
    with pytest.raises(InvalidInput, match="keyIndex"):
        machines.start("build", {"table": table_name})
    with pytest.raises(InvalidInput, match="keyIndex"):
        machines.machine.start({"table": table_name, "walk": walk, STARTED_BY: "e"}, walk=True)


def test_a_verification_without_an_index_is_refused(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    dynamodb.collections(table_name, [2] * 5)
    with pytest.raises(IndexNotFound, match="no key index"):
        machines.start("verify", {"table": table_name})


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
