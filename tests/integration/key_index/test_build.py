"""What a build looks at before it adds anything, what it leaves alone, and what comes of drift."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.errors import CannotStart, InvalidInput
from keyhop.key_index.keeper import Collections, keep
from keyhop.key_index.provisioned import Scaling
from keyhop.key_index.request import Order
from keyhop.key_index.sentinel import INDEX, LEAST_SORT_KEY, MARKER, Sentinel

from testing.databases import Database
from testing.key_index_tables import STREAM, Stream, collections_of, scanned, table_of
from testing.marks import prove
from tests.integration.key_index.machines import Machines

QUICK = {"graceSeconds": 0, "maxWriteRate": 10_000}


def item(key: str, sort: str, **more: Any) -> dict[str, Any]:
    return {"pk": {"S": key}, "sk": {"S": sort}, **more}


def filled(database: Database, table: str, *items: dict[str, Any], keys: int = 130) -> None:
    """More collections than a sample shows, and the items at the end of it all."""
    database.collections(table, [1, 4] * (keys // 2))
    for each in items:
        database.client.put_item(TableName=table, Item=each)


def description(database: Database, table: str) -> dict[str, Any]:
    told: dict[str, Any] = database.client.describe_table(TableName=table)["Table"]
    return told


@pytest.mark.parametrize(
    ("mine", "told"),
    [
        (item("zz", "!keyhop", x={"S": "mine"}), "1 collection has an item of yours with"),
        prove(
            item("zz", "!keyhop", **{MARKER: {"N": "5"}}), "1 collection has an item of yours with"
        ),
        prove(item("zz", "later", **{MARKER: {"S": "mine"}}), "an attribute 'keyhop'"),
        (item("zz", "later", **{MARKER: {"N": "5"}}), "an attribute 'keyhop'"),
    ],
)
def test_a_build_looks_at_every_collection_before_it_adds_anything(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
    monkeypatch: pytest.MonkeyPatch,
    mine: dict[str, Any],
    told: str,
) -> None:
    monkeypatch.setattr("keyhop.key_index.index.SAMPLE_ITEMS", 1)
    filled(dynamodb, table_name, mine)
    before = sorted(map(repr, scanned(dynamodb, table_name)))
    with pytest.raises(CannotStart, match=told) as refused:
        machines.start("build", {"table": table_name, **QUICK})
    assert "verification.json" in str(refused.value), "where they are named"
    assert sorted(map(repr, scanned(dynamodb, table_name))) == before
    table = description(dynamodb, table_name)
    assert "GlobalSecondaryIndexes" not in table
    assert not table.get("StreamSpecification", {}).get("StreamEnabled")
    assert machines.machine.indexes.registry(table_of(dynamodb, table_name)).entry().lease is None


def test_a_place_behind_a_page_of_items_that_sort_before_it_is_read(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
) -> None:
    dynamodb.create(table_name)
    many = [item("k", f" {number:04}", x={"S": "x" * 3000}) for number in range(400)]
    dynamodb.fill(table_name, many)
    dynamodb.client.put_item(TableName=table_name, Item=item("k", "!keyhop"))
    with pytest.raises(CannotStart, match="1 collection has an item of yours with"):
        machines.start("build", {"table": table_name, **QUICK})


def test_what_only_looks_like_a_sentinel_is_not_deleted(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
) -> None:
    """An item of the user, alone in its collection, with another number as its marker."""
    filled(dynamodb, table_name, keys=20)
    machines.start("build", {"table": table_name, **QUICK})
    mine = item("zz", "!keyhop", data={"S": "mine"}, **{MARKER: {"N": "5"}})
    dynamodb.client.put_item(TableName=table_name, Item=mine)
    verification = machines.start("verify", {"table": table_name, **QUICK})["verification"]
    assert (verification["occupied"], verification["surplus"], verification["remaining"]) == (
        1,
        0,
        1,
    )
    assert mine in list(scanned(dynamodb, table_name))
    read = machines.machine.start({"table": table_name})
    assert read["method"] == "skip", "a collection that cannot be in the index is drift"
    assert machines.start("remove", {"table": table_name})["sentinels"] == 0
    assert mine in list(scanned(dynamodb, table_name))


def test_a_delete_demands_the_markers_value(dynamodb: Database, table_name: str) -> None:
    dynamodb.create(table_name)
    collections = collections_of(dynamodb, table_name)
    mine = item("k", "!keyhop", **{MARKER: {"N": "5"}})
    dynamodb.client.put_item(TableName=table_name, Item=mine)
    collections.delete({"pk": {"S": "k"}})
    assert list(scanned(dynamodb, table_name)) == [mine]
    dynamodb.client.put_item(TableName=table_name, Item={**mine, MARKER: {"N": "1"}})
    collections.delete({"pk": {"S": "k"}})
    assert list(scanned(dynamodb, table_name)) == []


@pytest.mark.prove
def test_drift_that_is_repaired_and_right_when_it_is_looked_at_again_is_believed(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
) -> None:
    filled(dynamodb, table_name, keys=20)
    machines.start("build", {"table": table_name, **QUICK})
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    dynamodb.client.put_item(TableName=table_name, Item=sentinel.item_of({"pk": {"S": "nobody"}}))
    looked = machines.start("verify", {"table": table_name, **QUICK, "repair": False})[
        "verification"
    ]
    assert (looked["drift"], looked["remaining"]) == (1, 1)
    assert machines.machine.start({"table": table_name})["method"] == "skip"
    given = {"table": table_name, **QUICK, "graceSeconds": 1}
    machines.steps.clear()
    repaired = machines.start("verify", given)["verification"]
    assert (repaired["drift"], repaired["remaining"]) == (1, 0)
    assert machines.steps[-2:] == ["wait", "end"], "the keeper gets its time"
    assert machines.machine.start({"table": table_name})["method"] == "index"


@pytest.mark.prove
def test_more_drift_than_is_looked_at_again_remains(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("keyhop.key_index.task.MOST_NAMED", 3)
    filled(dynamodb, table_name, keys=20)
    machines.start("build", {"table": table_name, **QUICK})
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    for number in range(4):
        alone = sentinel.item_of({"pk": {"S": f"nobody {number}"}})
        dynamodb.client.put_item(TableName=table_name, Item=alone)
    verification = machines.start("verify", {"table": table_name, **QUICK})["verification"]
    assert (verification["drift"], verification["repaired"], verification["remaining"]) == (4, 4, 4)


@pytest.mark.prove
def test_a_plan_counts_every_index_that_a_sentinel_enters(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
) -> None:
    inverted = {
        "IndexName": "inverted",
        "KeySchema": [
            {"AttributeName": "sk", "KeyType": "HASH"},
            {"AttributeName": "pk", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "ALL"},
    }
    other = {
        "IndexName": "by-day",
        "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    dynamodb.create(
        table_name,
        AttributeDefinitions=[{"AttributeName": "day", "AttributeType": "S"}],
        GlobalSecondaryIndexes=[inverted, other],
    )
    dynamodb.fill(table_name, [item(f"k{number}", "a") for number in range(10)])
    plan = machines.start("build", {"table": table_name, "dryRun": True})
    assert plan["write_units"] == 30
    assert (plan["enters"], plan["hot"]) == (["inverted"], ["inverted"])
    built = machines.start("build", {"table": table_name, **QUICK})["build"]
    assert built["put"] == 10


def test_an_index_of_another_shape_is_hopped_past(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
) -> None:
    anothers = {
        "IndexName": INDEX,
        "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    dynamodb.create(
        table_name,
        AttributeDefinitions=[{"AttributeName": "day", "AttributeType": "S"}],
        GlobalSecondaryIndexes=[anothers],
    )
    dynamodb.fill(table_name, [item(f"k{number}", "a") for number in range(3)])
    read = machines.machine.start({"table": table_name})
    assert read["method"] == "skip"
    assert "another shape" in machines.machine.runs.open_run(read["run"])[1].reason
    with pytest.raises(CannotStart, match="another shape"):
        machines.machine.start({"table": table_name, "method": "index"})


@pytest.mark.parametrize(
    ("type_", "place"),
    [("N", "1_000"), ("N", " 5"), ("N", "1" * 46), ("N", "1e-131"), ("N", "٣"), ("S", "\ud800")],
)
def test_a_bad_sort_key_for_sentinels_is_refused(
    dynamodb: Database, table_name: str, type_: str, place: str
) -> None:
    dynamodb.create(table_name, ("pk", "S"), ("sk", type_))
    with pytest.raises(CannotStart, match="is not a sort key of type"):
        Sentinel.of(table_of(dynamodb, table_name).space, place)


def test_a_number_is_the_same_place_in_all_its_forms(dynamodb: Database, table_name: str) -> None:
    dynamodb.create(table_name, ("pk", "S"), ("sk", "N"))
    space = table_of(dynamodb, table_name).space
    assert Sentinel.of(space, "5.0") == Sentinel.of(space, "5") == Sentinel.of(space, "+5"[1:])
    known = Sentinel.of(space, "100")
    state = {**known.to_json(), "place": {"sk": {"N": "100"}}}
    assert Sentinel.from_json(state) == known
    assert Sentinel.of(space).place == LEAST_SORT_KEY["N"]


@pytest.mark.prove
def test_a_stream_holds_images_only_if_that_is_asked_for(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
) -> None:
    filled(dynamodb, table_name, keys=4)
    images = {"table": table_name, **QUICK, "streamView": "NEW_AND_OLD_IMAGES"}
    machines.start("build", images)
    view = description(dynamodb, table_name)["StreamSpecification"]["StreamViewType"]
    assert view == "NEW_AND_OLD_IMAGES"
    machines.start("build", {"table": table_name, **QUICK})
    with pytest.raises(CannotStart, match="cannot change"):
        machines.start("build", {**images, "streamView": "KEYS_ONLY"})
    with pytest.raises(InvalidInput, match="streamView must be one of KEYS_ONLY"):
        Order.parse("build", {"table": "Orders", "streamView": "OLD_IMAGE"})
    machines.start("remove", {"table": table_name})
    machines.start("build", {"table": table_name, **QUICK})
    view = description(dynamodb, table_name)["StreamSpecification"]["StreamViewType"]
    assert view == "KEYS_ONLY"


@pytest.mark.prove
def test_a_stream_that_somebody_turned_on_anew_stays_on(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
) -> None:
    """Keyhop turned one on; this is another one, at another time."""
    filled(dynamodb, table_name, keys=4)
    machines.start("build", {"table": table_name, **QUICK})
    registry = machines.machine.indexes.registry(table_of(dynamodb, table_name))
    registry.take("a test", "build", lambda lease, age: False)
    registry.change("a test", stream="arn:of/an/earlier/stream", lease=None)
    assert machines.start("remove", {"table": table_name})["stream"] is not None
    assert description(dynamodb, table_name)["StreamSpecification"]["StreamEnabled"]


@pytest.mark.prove
def test_one_region_of_a_global_table_writes_sentinels(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from keyhop.key_index import index as module

    filled(dynamodb, table_name, keys=4)
    look_up = module.look_up

    def with_replicas(connection: Any, name: str) -> Any:
        table = look_up(connection, name)
        replicas = [{"RegionName": "us-east-1"}]
        told = {**table.description, "Replicas": replicas}
        return type(table)(table.name, told)

    monkeypatch.setattr(module, "look_up", with_replicas)
    given = {"table": table_name, **QUICK}
    for refused in (given, {**given, "region": "us-east-1"}):
        with pytest.raises(CannotStart, match="global table, with replicas in us-east-1"):
            machines.start("build", refused)
    machines.start("build", {**given, "region": "ddblocal"})
    assert machines.start("verify", given)["verification"]["drift"] == 0
    assert machines.start("remove", {"table": table_name})["as_before"]


def large(sort: str, kilobytes: int = 300) -> dict[str, Any]:
    return item("one", sort, x={"S": "x" * 1000 * kilobytes})


def test_an_insert_beside_an_item_in_the_sentinels_place_is_one_read_and_no_write(
    dynamodb: Database, table_name: str
) -> None:
    """It was three reads of the large item, and a refused write of its size."""
    dynamodb.create(table_name, **STREAM)
    stream = Stream(dynamodb, table_name)
    dynamodb.client.put_item(TableName=table_name, Item=large("!keyhop"))
    keep(stream.new(), collections_of(dynamodb, table_name), withdraw=lambda: None)
    dynamodb.client.put_item(TableName=table_name, Item=item("one", "z"))
    collections = collections_of(dynamodb, table_name)
    keep(stream.new(), collections, withdraw=lambda: None)
    usage = collections.usage
    assert (usage.requests, usage.counters["writes"], usage.counters["occupied"]) == (1, 0, 1)
    assert usage.read_units <= 300_100 / 4096 + 1


def test_where_items_are_large_a_look_reads_one_of_them(
    dynamodb: Database, table_name: str
) -> None:
    """Two items of 390 KB before the sentinel cost a delete 192 read units."""
    dynamodb.create(table_name, **STREAM)
    for sort in (" a", " b", "z"):
        dynamodb.client.put_item(TableName=table_name, Item=large(sort, 390))
    collections_of(dynamodb, table_name).put({"pk": {"S": "one"}})
    stream = Stream(dynamodb, table_name)
    stream.new()
    dynamodb.client.delete_item(TableName=table_name, Key=item("one", "z"))
    records = stream.new()
    connection = connect(Endpoint(url=dynamodb.url))
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    small, told = (
        Collections(connection, table_name, sentinel, item_bytes=size) for size in (100, 390_000)
    )
    for collections in (small, told):
        assert keep(records, collections, withdraw=lambda: None).failed == ()
    assert small.usage.read_units > 190
    assert told.usage.read_units < 98


DIMENSION = "ScalableDimension"
DENIED = {"Code": "ValidationException", "Message": "Insufficient permissions, PutMetricAlarm"}


class FakeAutoScaling:
    """Application Auto Scaling of one table; it refuses policies while `is_denied`."""

    def __init__(self, table: str) -> None:
        dimension = "dynamodb:table:WriteCapacityUnits"
        self.targets = {(f"table/{table}", dimension): {"MaxCapacity": 400}}
        configuration = "TargetTrackingScalingPolicyConfiguration"
        self.policies = {(f"table/{table}", dimension): {configuration: {"TargetValue": 70.0}}}
        self.is_denied = True

    def describe_scalable_targets(self, **given: Any) -> dict[str, Any]:
        return {"ScalableTargets": self._of(self.targets, given["ResourceIds"][0])}

    def describe_scaling_policies(self, **given: Any) -> dict[str, Any]:
        return {"ScalingPolicies": self._of(self.policies, given["ResourceId"])}

    def register_scalable_target(self, **given: Any) -> None:
        self.targets[given["ResourceId"], given[DIMENSION]] = given

    def put_scaling_policy(self, **given: Any) -> None:
        if self.is_denied:
            raise ClientError({"Error": DENIED}, "PutScalingPolicy")
        self.policies[given["ResourceId"], given[DIMENSION]] = given

    def deregister_scalable_target(self, **given: Any) -> None:
        if self.is_denied:
            raise ClientError({"Error": DENIED}, "DeregisterScalableTarget")
        del self.targets[given["ResourceId"], given[DIMENSION]]

    @staticmethod
    def _of(found: dict[tuple[str, str], dict[str, Any]], resource: str) -> list[dict[str, Any]]:
        return [{**one, DIMENSION: at[1]} for at, one in found.items() if at[0] == resource]


def test_a_build_and_a_removal_report_what_auto_scaling_refuses(
    dynamodb: Database, table_name: str, machines: Machines
) -> None:
    """A later build sets the auto scaling up that was refused to an earlier one."""
    dynamodb.client.create_table(
        TableName=table_name,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
        ],
        ProvisionedThroughput={"ReadCapacityUnits": 100, "WriteCapacityUnits": 100},
    )
    dynamodb.fill(table_name, [item("a", "x"), item("b", "y")])
    fake = FakeAutoScaling(table_name)
    machines.scaling = Scaling(lambda: fake)
    given = {"table": table_name, **QUICK}
    refused = machines.start("build", given)["capacity"]
    assert (refused["write"], refused["scaled"]) == (5, False)
    assert DENIED["Message"] in refused["refused"]
    assert machines.start("build", given)["capacity"]["refused"] == refused["refused"]

    fake.is_denied = False
    capacity = machines.start("build", given)["capacity"]
    assert capacity == {"read": 5, "write": 5, "scaled": True, "refused": None}

    fake.is_denied = True
    removed = machines.start("remove", {"table": table_name})
    assert removed["as_before"]
    assert "would scale a later index of this name" in removed["refused"]
