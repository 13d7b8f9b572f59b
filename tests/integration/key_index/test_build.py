"""Builds of a key index: their checks, the items that they do not touch, and drift."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.errors import CannotStart, InvalidInput
from keyhop.key_index import index
from keyhop.key_index.keeper import Collections, keep
from keyhop.key_index.provisioned import Scaling
from keyhop.key_index.request import Order
from keyhop.key_index.sentinel import INDEX, LEAST_SORT_KEY, MARKER, Sentinel

from testing.databases import by_day, index_of
from testing.key_index_tables import STREAM
from testing.marks import prove
from tests.integration.key_index.machines import Machines


def item(key: str, sort: str, **more: Any) -> dict[str, Any]:
    return {"pk": {"S": key}, "sk": {"S": sort}, **more}


FEW = [1, 4] * 10


@pytest.mark.parametrize(
    ("user_item", "message"),
    [
        (item("zz", "!keyhop", x={"S": "mine"}), "1 collection has an item of yours with"),
        prove(
            item("zz", "!keyhop", **{MARKER: {"N": "5"}}), "1 collection has an item of yours with"
        ),
        prove(item("zz", "later", **{MARKER: {"S": "mine"}}), "an attribute 'keyhop'"),
        (item("zz", "later", **{MARKER: {"N": "5"}}), "an attribute 'keyhop'"),
    ],
)
def test_a_build_checks_every_collection_before_it_adds_anything(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, user_item: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr("keyhop.key_index.index.SAMPLE_ITEMS", 1)
    machines.collections([1, 4] * 65)  # more than a sample contains
    machines.put(user_item)
    before = machines.in_order()
    with pytest.raises(CannotStart, match=message) as refused:
        machines.build()
    assert "verification.json" in str(refused.value), "the file that lists the collections"
    assert machines.in_order() == before
    table = machines.described()
    assert "GlobalSecondaryIndexes" not in table
    assert not table.get("StreamSpecification", {}).get("StreamEnabled")
    assert machines.registry.entry().lease is None


def test_a_build_finds_an_item_in_the_sentinels_place_after_a_full_page(machines: Machines) -> None:
    machines.create()
    machines.fill([item("k", f" {number:04}", x={"S": "x" * 3000}) for number in range(400)])
    machines.put(item("k", "!keyhop"))
    with pytest.raises(CannotStart, match="1 collection has an item of yours with"):
        machines.build()


def test_a_users_item_that_resembles_a_sentinel_is_not_deleted(machines: Machines) -> None:
    """The item is alone in its collection, and has another number as its marker."""
    machines.built(FEW)
    user_item = item("zz", "!keyhop", data={"S": "mine"}, **{MARKER: {"N": "5"}})
    machines.put(user_item)
    verification = machines.verify()["verification"]
    counts = [verification[name] for name in ("occupied", "surplus", "remaining")]
    assert counts == [1, 0, 1]
    assert user_item in machines.items()
    read = machines.read()
    assert read["method"] == "skip", "a collection that cannot be in the index is drift"
    assert machines.remove()["sentinels"] == 0
    assert user_item in machines.items()


def test_a_delete_requires_the_value_of_the_marker(machines: Machines) -> None:
    machines.create()
    collections = machines.keeper()
    user_item = item("k", "!keyhop", **{MARKER: {"N": "5"}})
    machines.put(user_item)
    collections.delete({"pk": {"S": "k"}})
    assert machines.items() == [user_item]
    machines.put({**user_item, MARKER: {"N": "1"}})
    collections.delete({"pk": {"S": "k"}})
    assert machines.items() == []


@pytest.mark.prove
def test_an_index_is_trusted_after_its_drift_was_repaired(machines: Machines) -> None:
    machines.built(FEW)
    machines.put_sentinels("nobody")
    unrepaired = machines.verify(repair=False)["verification"]
    assert (unrepaired["drift"], unrepaired["remaining"]) == (1, 1)
    assert machines.read()["method"] == "skip"
    machines.steps.clear()
    repaired = machines.verify(graceSeconds=1)["verification"]
    assert (repaired["drift"], repaired["remaining"]) == (1, 0)
    assert machines.steps[-2:] == ["wait", "end"], "the keeper gets time"
    assert machines.read()["method"] == "index"


@pytest.mark.prove
def test_drift_beyond_the_number_of_rechecked_collections_remains(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhop.key_index.task.MOST_NAMED", 3)
    machines.built(FEW)
    machines.put_sentinels(*(f"nobody {number}" for number in range(4)))
    verification = machines.verify()["verification"]
    assert [verification[name] for name in ("drift", "repaired", "remaining")] == [4, 4, 4]


@pytest.mark.prove
def test_a_plan_counts_every_index_that_a_sentinel_enters(machines: Machines) -> None:
    indexes = [
        index_of("inverted", "sk", "pk", projection="ALL"),
        index_of("by-day", "day", projection="ALL"),
    ]
    machines.create(**by_day() | {"GlobalSecondaryIndexes": indexes})
    machines.fill([item(f"k{number}", "a") for number in range(10)])
    plan = machines.build(dryRun=True)
    assert plan["write_units"] == 30
    assert (plan["enters"], plan["hot"]) == (["inverted"], ["inverted"])
    assert machines.build()["build"]["put"] == 10


def test_an_index_of_another_shape_is_not_read(machines: Machines) -> None:
    machines.create(**by_day(INDEX))
    machines.fill([item(f"k{number}", "a") for number in range(3)])
    read = machines.read()
    assert read["method"] == "skip"
    assert "another shape" in machines.reason(read)
    with pytest.raises(CannotStart, match="another shape"):
        machines.read(method="index")


@pytest.mark.parametrize(
    ("type_", "place"),
    [("N", "1_000"), ("N", " 5"), ("N", "1" * 46), ("N", "1e-131"), ("N", "٣"), ("S", "\ud800")],
)
def test_a_bad_sort_key_for_sentinels_is_refused(
    machines: Machines, type_: str, place: str
) -> None:
    machines.create(("pk", "S"), ("sk", type_))
    with pytest.raises(CannotStart, match="is not a sort key of type"):
        Sentinel.of(machines.looked_up().space, place)


def test_all_forms_of_a_number_are_the_same_place(machines: Machines) -> None:
    machines.create(("pk", "S"), ("sk", "N"))
    space = machines.looked_up().space
    assert Sentinel.of(space, "5.0") == Sentinel.of(space, "5") == Sentinel.of(space, "+5"[1:])
    sentinel = Sentinel.of(space, "100")
    state = {**sentinel.to_json(), "place": {"sk": {"N": "100"}}}
    assert Sentinel.from_json(state) == sentinel
    assert Sentinel.of(space).place == LEAST_SORT_KEY["N"]


@pytest.mark.prove
def test_a_stream_contains_images_only_on_request(machines: Machines) -> None:
    machines.collections([1, 4])
    machines.build(streamView="NEW_AND_OLD_IMAGES")
    view = machines.described()["StreamSpecification"]["StreamViewType"]
    assert view == "NEW_AND_OLD_IMAGES"
    machines.build()
    with pytest.raises(CannotStart, match="cannot change"):
        machines.build(streamView="KEYS_ONLY")
    with pytest.raises(InvalidInput, match="streamView must be one of KEYS_ONLY"):
        Order.parse("build", {"table": "Orders", "streamView": "OLD_IMAGE"})
    machines.remove()
    machines.build()
    view = machines.described()["StreamSpecification"]["StreamViewType"]
    assert view == "KEYS_ONLY"


@pytest.mark.prove
def test_a_removal_leaves_a_stream_on_that_keyhop_did_not_turn_on(machines: Machines) -> None:
    """Keyhop turned on an earlier stream of the table."""
    machines.built([1, 4])
    registry = machines.registry
    registry.take("a test", "build", lambda lease, age: False)
    registry.change("a test", stream="arn:of/an/earlier/stream", lease=None)
    assert machines.remove()["stream"] is not None
    assert machines.described()["StreamSpecification"]["StreamEnabled"]


@pytest.mark.prove
def test_one_region_of_a_global_table_writes_sentinels(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.collections([1, 4])
    look_up = index.look_up

    def with_replicas(connection: Any, name: str) -> Any:
        table = look_up(connection, name)
        description = {**table.description, "Replicas": [{"RegionName": "us-east-1"}]}
        return type(table)(table.name, description)

    monkeypatch.setattr(index, "look_up", with_replicas)
    for region in ({}, {"region": "us-east-1"}):
        with pytest.raises(CannotStart, match="global table, with replicas in us-east-1"):
            machines.build(**region)
    machines.build(region="ddblocal")
    assert machines.verify()["verification"]["drift"] == 0
    assert machines.remove()["as_before"]


def large(sort: str, kilobytes: int = 300) -> dict[str, Any]:
    return item("one", sort, x={"S": "x" * 1000 * kilobytes})


def test_an_insert_beside_an_item_in_the_sentinels_place_takes_one_read(
    machines: Machines,
) -> None:
    """An earlier version took three reads and a refused write of the large item."""
    machines.create(**STREAM)
    stream = machines.stream()
    machines.put(large("!keyhop"))
    keep(stream.new(), machines.keeper(), withdraw=lambda: None)
    machines.put(item("one", "z"))
    collections = machines.keeper()
    keep(stream.new(), collections, withdraw=lambda: None)
    usage = collections.usage
    assert (usage.requests, usage.counters["writes"], usage.counters["occupied"]) == (1, 0, 1)
    assert usage.read_units <= 300_100 / 4096 + 1


@pytest.mark.prove
def test_a_look_at_a_collection_of_large_items_reads_one_of_them(machines: Machines) -> None:
    """Two items of 390 KB before the sentinel cost 192 read units if their size is unknown."""
    machines.create(**STREAM)
    machines.put(*(large(sort, 390) for sort in (" a", " b", "z")))
    machines.keeper().put({"pk": {"S": "one"}})
    stream = machines.stream()
    stream.new()
    machines.delete(item("one", "z"))
    records = stream.new()
    connection = connect(Endpoint(url=machines.database.url))
    sentinel = machines.sentinel
    underestimated, estimated = (
        Collections(connection, machines.table, sentinel, item_bytes=size)
        for size in (100, 390_000)
    )
    for collections in (underestimated, estimated):
        assert keep(records, collections, withdraw=lambda: None).failed == ()
    assert underestimated.usage.read_units > 190
    assert estimated.usage.read_units < 98


DIMENSION = "ScalableDimension"
DENIED = {"Code": "ValidationException", "Message": "Insufficient permissions, PutMetricAlarm"}


class FakeAutoScaling:
    """Application Auto Scaling for one table, which refuses policies while `is_denied` is true."""

    def __init__(self, table: str) -> None:
        dimension = "dynamodb:table:WriteCapacityUnits"
        self.targets = {(f"table/{table}", dimension): {"MaxCapacity": 400}}
        configuration = "TargetTrackingScalingPolicyConfiguration"
        self.policies = {(f"table/{table}", dimension): {configuration: {"TargetValue": 70.0}}}
        self.is_denied = True

    def describe_scalable_targets(self, **request: Any) -> dict[str, Any]:
        return {"ScalableTargets": self._select(self.targets, request["ResourceIds"][0])}

    def describe_scaling_policies(self, **request: Any) -> dict[str, Any]:
        return {"ScalingPolicies": self._select(self.policies, request["ResourceId"])}

    def register_scalable_target(self, **request: Any) -> None:
        self.targets[request["ResourceId"], request[DIMENSION]] = request

    def put_scaling_policy(self, **request: Any) -> None:
        if self.is_denied:
            raise ClientError({"Error": DENIED}, "PutScalingPolicy")
        self.policies[request["ResourceId"], request[DIMENSION]] = request

    def deregister_scalable_target(self, **request: Any) -> None:
        if self.is_denied:
            raise ClientError({"Error": DENIED}, "DeregisterScalableTarget")
        del self.targets[request["ResourceId"], request[DIMENSION]]

    @staticmethod
    def _select(entries: dict[tuple[str, str], dict[str, Any]], resource_id: str) -> list[Any]:
        return [
            {**entry, DIMENSION: dimension}
            for (id_, dimension), entry in entries.items()
            if id_ == resource_id
        ]


@pytest.mark.prove
def test_a_build_and_a_removal_report_refusals_of_auto_scaling(machines: Machines) -> None:
    """A later build sets up the auto scaling that was refused to an earlier one."""
    throughput = {"ReadCapacityUnits": 100, "WriteCapacityUnits": 100}
    machines.create(BillingMode="PROVISIONED", ProvisionedThroughput=throughput)
    machines.fill([item("a", "x"), item("b", "y")])
    fake = FakeAutoScaling(machines.table)
    machines.scaling = Scaling(lambda: fake)
    refused = machines.build()["capacity"]
    assert (refused["write"], refused["scaled"]) == (5, False)
    assert DENIED["Message"] in refused["refused"]
    assert machines.build()["capacity"]["refused"] == refused["refused"]

    fake.is_denied = False
    capacity = machines.build()["capacity"]
    assert capacity == {"read": 5, "write": 5, "scaled": True, "refused": None}

    fake.is_denied = True
    removed = machines.remove()
    assert removed["as_before"]
    assert "would scale a later index of this name" in removed["refused"]
