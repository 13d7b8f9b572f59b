"""Check how the index is added and deleted while DynamoDB refuses, and its provisioned capacity.

Auto scaling is stubbed by its model in boto3.
"""

from collections.abc import Mapping
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.errors import CannotStart
from keyhop.key_index.index import step_towards_built, step_towards_removed, table_with_index
from keyhop.key_index.provisioned import (
    READ,
    WRITE,
    Scaling,
    capacity_for,
    capacity_now,
    capacity_of,
    capacity_plan,
    settle,
)
from keyhop.key_index.report import capacity_text
from keyhop.key_index.sentinel import INDEX, MARKER

from testing.life_cycle_explorer import World, described

ONE_AT_A_TIME = "Subscriber limit exceeded: Only 1 online index can be created or deleted "
ONE_AT_A_TIME += "simultaneously per table"
KEPT = {READ: 5, WRITE: 5}
MUCH = {READ: 5, WRITE: 500}
TOO_OFTEN = "Subscriber limit exceeded: Provisioned throughput decreases are limited within a day"


class Client:
    """DynamoDB with one table. `refusal` is the code and text of its answer to UpdateTable."""

    def __init__(
        self, *indexes: dict[str, Any], refusal: tuple[str, str] | None = None, **billing: Any
    ) -> None:
        self.indexes, self.refusal, self.billing = indexes, refusal, billing
        self.updates: list[dict[str, Any]] = []

    def describe_table(self, **arguments: Any) -> Any:
        description = described(World((), stream=1)) | {"TableName": "Orders"} | self.billing
        return {"Table": {**description, "GlobalSecondaryIndexes": list(self.indexes)}}

    def update_table(self, **arguments: Any) -> Any:
        self.updates.append(arguments)
        if self.refusal is not None:
            code, text = self.refusal
            raise ClientError({"Error": {"Code": code, "Message": text}}, "UpdateTable")
        return {}


def index(name: str, status: str) -> dict[str, Any]:
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}]
    schema += [{"AttributeName": MARKER, "KeyType": "RANGE"}]
    return {"IndexName": name, "IndexStatus": status, "KeySchema": schema}


def build_step(client: Client) -> str | None:
    """Return the next step of a build, or what it waits for."""
    return step_towards_built(Connection(client), "Orders", with_stream=True)[1]  # type: ignore[arg-type]


def removal_step(client: Client) -> str | None:
    """Return the next step of a removal, or what it waits for."""
    return step_towards_removed(Connection(client), "Orders", with_stream=False)[1]  # type: ignore[arg-type]


@pytest.mark.parametrize("status", ["CREATING", "DELETING"])
def test_no_request_is_sent_while_another_index_is_added_or_deleted(status: str) -> None:
    client = Client(index("by-day", status))
    assert build_step(client) == f"waiting for the index by-day, which is {status}"
    client.indexes = (index("by-day", status), index(INDEX, "ACTIVE"))
    assert removal_step(client) == f"waiting for the index by-day, which is {status}"
    assert client.updates == []


@pytest.mark.parametrize("code", ["LimitExceededException", "ResourceInUseException"])
def test_a_request_that_lost_a_race_waits(code: str) -> None:
    client = Client(refusal=(code, ONE_AT_A_TIME))
    assert build_step(client) == "adding the index"
    client.indexes = (index(INDEX, "ACTIVE"),)
    assert removal_step(client) == "deleting the index"
    assert len(client.updates) == 2


def test_another_refusal_is_reported() -> None:
    with pytest.raises(CannotStart, match="too many attributes"):
        build_step(Client(refusal=("ValidationException", "too many attributes")))


@pytest.mark.parametrize(
    ("code", "waits"), [("LimitExceededException", False), ("ResourceInUseException", True)]
)
def test_capacity_that_cannot_be_lowered_again_today_is_not_awaited(code: str, waits: bool) -> None:
    key_index = {**index(INDEX, "ACTIVE"), "ProvisionedThroughput": MUCH}
    client = Client(
        key_index,
        refusal=(code, TOO_OFTEN),
        BillingModeSummary={"BillingMode": "PROVISIONED"},
        ProvisionedThroughput=MUCH,
    )
    connection = Connection(client)  # type: ignore[arg-type]
    table = table_with_index(connection, "Orders")
    _, awaited, refused = settle(connection, table, KEPT, Scaling())
    assert bool(awaited) is waits
    assert waits or TOO_OFTEN in (refused or "")


OF_INDEX = {"ServiceNamespace": "dynamodb", "ResourceId": "table/Orders/index/keyhop-keys"}
POLICY = {
    "TargetValue": 70.0,
    "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"},
}


def units(read: int, write: int) -> dict[str, int]:
    return {READ: read, WRITE: write}


def table(throughput: Mapping[str, int] | None, of_index: Mapping[str, int] | None = None) -> Table:
    description = described(World(())) | {"TableName": "Orders"}
    if throughput is not None:
        del description["BillingModeSummary"]
        description["ProvisionedThroughput"] = throughput
    if of_index is not None:
        key_index = {"IndexName": "keyhop-keys", "ProvisionedThroughput": of_index}
        description["GlobalSecondaryIndexes"] = [key_index]
    return Table("Orders", description)


@pytest.mark.parametrize(
    ("table_units", "rate", "sentinel", "building", "afterwards"),
    [
        # The table's 5,000 and 10,000 units would cost $5,220 a month.
        (units(5_000, 10_000), 1_000, 2, units(5, 500), KEPT),
        (units(5_000, 10_000), 1_000, 4, units(5, 250), KEPT),
        # The index gets neither more than the table can use nor less than the minimum.
        (units(50, 100), 1_000, 2, units(5, 100), KEPT),
        (units(50, 100), 2, 2, KEPT, KEPT),
        (units(1, 2), 1_000, 2, units(1, 2), units(1, 2)),
    ],
)
def test_the_index_gets_the_capacity_of_the_build_and_then_the_minimum(
    table_units: dict[str, int], rate: float, sentinel: float, building: Any, afterwards: Any
) -> None:
    capacity = capacity_for(table_units, sentinel, rate, {})
    assert (capacity.building, capacity.kept) == (building, afterwards)


def test_a_table_that_scales_counts_with_its_maximum() -> None:
    """Its capacity is low at night, and grows when the build writes."""
    capacity = capacity_for(units(5, 5), 2, 1_000, {WRITE: (400, ())})
    assert capacity.building == units(5, 400)


def test_an_on_demand_table_needs_no_decision_and_no_request() -> None:
    def nobody() -> Any:
        raise AssertionError("asked")

    scaling = Scaling(nobody)
    assert capacity_of(table(None), 1_000, scaling) is None
    assert scaling.follow(table(None), KEPT) is None
    assert scaling.forget(table(None)) is None
    assert capacity_plan(None, 10) is None


def test_a_plan_contains_the_capacity_and_its_price() -> None:
    plan = capacity_plan(capacity_for(units(5_000, 10_000), 2, 1_000, {}), 3600)
    assert (plan["building"], plan["kept"]) == ({"read": 5, "write": 500}, {"read": 5, "write": 5})
    assert plan["dollars_while_building"] == round(500 * 0.00065 + 5 * 0.00013, 6)
    assert plan["dollars_a_month"] == 2.85
    text = capacity_text(plan)
    assert "500 WCU and 5 RCU while it is built" in text
    assert "then 5 and 5: $2.85 a month" in text
    assert "no auto scaling: raise" in text
    assert "that can be seen" in capacity_text({**plan, "scaled": None})
    assert "scales as the table does" in capacity_text({**plan, "scaled": True})


@pytest.fixture
def service() -> Stubber:
    """Return a stub that answers in order, and checks each request against the service's model."""
    session = botocore.session.get_session()
    client = session.create_client(
        "application-autoscaling",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    stubber = Stubber(client)
    stubber.activate()
    return stubber


def answer_targets(service: Stubber, resource: str, kind: str, *dimensions: str) -> None:
    targets = [
        {
            "ServiceNamespace": "dynamodb",
            "ResourceId": resource,
            "ScalableDimension": f"dynamodb:{kind}:{dimension}",
            "MinCapacity": 100,
            "MaxCapacity": 4_000,
            "RoleARN": "arn:aws:iam::111122223333:role/aws-service-role/dynamodb",
            "CreationTime": 0,
        }
        for dimension in dimensions
    ]
    parameters = {"ServiceNamespace": "dynamodb", "ResourceIds": [resource]}
    service.add_response("describe_scalable_targets", {"ScalableTargets": targets}, parameters)
    if not targets:
        return
    policies = [
        {
            "PolicyARN": "arn:aws:autoscaling:us-east-1:111122223333:scalingPolicy:1",
            "PolicyName": "theirs",
            "ServiceNamespace": "dynamodb",
            "ResourceId": resource,
            "ScalableDimension": f"dynamodb:{kind}:{WRITE}",
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": POLICY,
            "CreationTime": 0,
        }
    ]
    parameters = {"ServiceNamespace": "dynamodb", "ResourceId": resource}
    service.add_response("describe_scaling_policies", {"ScalingPolicies": policies}, parameters)


def test_the_index_scales_as_the_table_does_but_from_the_minimum(service: Stubber) -> None:
    answer_targets(service, "table/Orders", "table", READ, WRITE)
    for kind in (READ, WRITE):
        target = {**OF_INDEX, "ScalableDimension": f"dynamodb:index:{kind}"}
        bounds = {"MinCapacity": 5, "MaxCapacity": 4_000}
        service.add_response("register_scalable_target", {}, {**target, **bounds})
        if kind == WRITE:
            policy = {
                "PolicyName": f"keyhop-{WRITE}-0",
                "PolicyType": "TargetTrackingScaling",
                "TargetTrackingScalingPolicyConfiguration": POLICY,
            }
            service.add_response("put_scaling_policy", {"PolicyARN": "p"}, {**target, **policy})
    assert Scaling(lambda: service.client).follow(table(units(100, 100)), KEPT) is None
    service.assert_no_pending_responses()


def test_auto_scaling_of_the_index_is_removed_with_it(service: Stubber) -> None:
    """DynamoDB keeps it without the index, and it would scale a later index of the same name."""
    answer_targets(service, OF_INDEX["ResourceId"], "index", WRITE)
    target = {**OF_INDEX, "ScalableDimension": f"dynamodb:index:{WRITE}"}
    service.add_response("deregister_scalable_target", {}, target)
    assert Scaling(lambda: service.client).forget(table(units(100, 100))) is None
    service.assert_no_pending_responses()


def test_the_index_of_a_table_without_auto_scaling_has_none(service: Stubber) -> None:
    answer_targets(service, "table/Orders", "table")
    Scaling(lambda: service.client).follow(table(units(100, 100)), KEPT)
    service.assert_no_pending_responses()


def test_auto_scaling_that_cannot_be_read_is_reported_and_stops_nothing(service: Stubber) -> None:
    for _ in range(4):
        service.add_client_error("describe_scalable_targets", "AccessDeniedException")
    scaling, provisioned = Scaling(lambda: service.client), table(units(100, 100))
    assert scaling.targets("table/Orders") is None
    capacity = capacity_of(provisioned, 1_000, scaling)
    assert capacity.is_scaled is None
    assert "AccessDenied" in str(scaling.follow(provisioned, KEPT))
    assert "would scale a later index" in str(scaling.forget(provisioned))
    assert Scaling().targets("table/Orders") is None


DENIED = (
    "Failed to create or update scaling policy: Insufficient permissions, cloudwatch:PutMetricAlarm"
)


def test_a_refusal_to_scale_is_reported(service: Stubber) -> None:
    answer_targets(service, "table/Orders", "table", WRITE)
    service.add_response("register_scalable_target", {})
    service.add_client_error("put_scaling_policy", "ValidationException", DENIED)
    refused = Scaling(lambda: service.client).follow(table(units(100, 100)), KEPT)
    assert refused.startswith("The index may not scale as its table does: ")
    assert DENIED in refused


def test_a_target_without_a_policy_does_not_scale_the_index(service: Stubber) -> None:
    """The service keeps the registered target when it refuses the policy."""
    provisioned = table(units(100, 100), {READ: 5, WRITE: 5})
    answer_targets(service, OF_INDEX["ResourceId"], "index", READ)
    answer_targets(service, OF_INDEX["ResourceId"], "index", READ, WRITE)
    scaling = Scaling(lambda: service.client)
    capacities = [capacity_now(provisioned, scaling, refused) for refused in ("why", None)]
    assert capacities == [
        {"read": 5, "write": 5, "scaled": False, "refused": "why"},
        {"read": 5, "write": 5, "scaled": True, "refused": None},
    ]


def test_client_errors_are_what_the_stub_raises(service: Stubber) -> None:
    """Otherwise the tests above would prove nothing."""
    service.add_client_error("describe_scalable_targets", "AccessDeniedException")
    with pytest.raises(ClientError):
        service.client.describe_scalable_targets(ServiceNamespace="dynamodb")
