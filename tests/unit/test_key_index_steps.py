"""Adding and deleting the index where DynamoDB says: not now; its capacity on a provisioned table.

Auto scaling is the service as boto3's models have it.
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
    """DynamoDB, with one table. refusal: code and text of what it answers to UpdateTable."""

    def __init__(
        self, *indexes: dict[str, Any], refusal: tuple[str, str] | None = None, **billing: Any
    ) -> None:
        self.indexes, self.refusal, self.billing = indexes, refusal, billing
        self.updates: list[dict[str, Any]] = []

    def describe_table(self, **given: Any) -> Any:
        told = described(World((), stream=1)) | {"TableName": "Orders"} | self.billing
        return {"Table": {**told, "GlobalSecondaryIndexes": list(self.indexes)}}

    def update_table(self, **given: Any) -> Any:
        self.updates.append(given)
        if self.refusal is not None:
            code, text = self.refusal
            raise ClientError({"Error": {"Code": code, "Message": text}}, "UpdateTable")
        return {}


def index(name: str, status: str) -> dict[str, Any]:
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}]
    schema += [{"AttributeName": MARKER, "KeyType": "RANGE"}]
    return {"IndexName": name, "IndexStatus": status, "KeySchema": schema}


def built(client: Client) -> str | None:
    """What a build does or waits for next."""
    return step_towards_built(Connection(client), "Orders", with_stream=True)[1]  # type: ignore[arg-type]


def removed(client: Client) -> str | None:
    """What a removal does or waits for next."""
    return step_towards_removed(Connection(client), "Orders", with_stream=False)[1]  # type: ignore[arg-type]


@pytest.mark.parametrize("status", ["CREATING", "DELETING"])
def test_while_another_index_is_made_or_deleted_nothing_is_asked(status: str) -> None:
    client = Client(index("by-day", status))
    assert built(client) == f"waiting for the index by-day, which is {status}"
    client.indexes = (index("by-day", status), index(INDEX, "ACTIVE"))
    assert removed(client) == f"waiting for the index by-day, which is {status}"
    assert client.updates == []


@pytest.mark.parametrize("code", ["LimitExceededException", "ResourceInUseException"])
def test_somebody_who_was_quicker_is_waited_for(code: str) -> None:
    client = Client(refusal=(code, ONE_AT_A_TIME))
    assert built(client) == "adding the index"
    client.indexes = (index(INDEX, "ACTIVE"),)
    assert removed(client) == "deleting the index"
    assert len(client.updates) == 2


def test_another_refusal_is_told() -> None:
    with pytest.raises(CannotStart, match="too many attributes"):
        built(Client(refusal=("ValidationException", "too many attributes")))


@pytest.mark.parametrize(
    ("code", "waits"), [("LimitExceededException", False), ("ResourceInUseException", True)]
)
def test_capacity_that_may_not_be_lowered_again_today_is_no_reason_to_wait(
    code: str, waits: bool
) -> None:
    kept = {**index(INDEX, "ACTIVE"), "ProvisionedThroughput": MUCH}
    client = Client(
        kept,
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
    told = described(World(())) | {"TableName": "Orders"}
    if throughput is not None:
        del told["BillingModeSummary"]
        told["ProvisionedThroughput"] = throughput
    if of_index is not None:
        key_index = {"IndexName": "keyhop-keys", "ProvisionedThroughput": of_index}
        told["GlobalSecondaryIndexes"] = [key_index]
    return Table("Orders", told)


@pytest.mark.parametrize(
    ("own", "rate", "sentinel", "building", "kept"),
    [
        # The table's own 5,000 and 10,000 would cost $5,220 a month.
        (units(5_000, 10_000), 1_000, 2, units(5, 500), KEPT),
        (units(5_000, 10_000), 1_000, 4, units(5, 250), KEPT),
        # More than the table takes would be idle; less than it keeps would be none.
        (units(50, 100), 1_000, 2, units(5, 100), KEPT),
        (units(50, 100), 2, 2, KEPT, KEPT),
        (units(1, 2), 1_000, 2, units(1, 2), units(1, 2)),
    ],
)
def test_the_index_gets_what_the_build_may_write_and_then_little(
    own: dict[str, int], rate: float, sentinel: float, building: Any, kept: Any
) -> None:
    capacity = capacity_for(own, sentinel, rate, {})
    assert (capacity.building, capacity.kept) == (building, kept)


def test_a_table_that_scales_is_taken_at_its_most() -> None:
    """At night it has little, and grows when the build writes."""
    capacity = capacity_for(units(5, 5), 2, 1_000, {WRITE: (400, ())})
    assert capacity.building == units(5, 400)


def test_on_demand_there_is_nothing_to_decide_or_to_ask() -> None:
    def nobody() -> Any:
        raise AssertionError("asked")

    scaling = Scaling(nobody)
    assert capacity_of(table(None), 1_000, scaling) is None
    assert scaling.follow(table(None), KEPT) is None
    assert scaling.forget(table(None)) is None
    assert capacity_plan(None, 10) is None


def test_a_plan_tells_the_capacity_and_its_price() -> None:
    plan = capacity_plan(capacity_for(units(5_000, 10_000), 2, 1_000, {}), 3600)
    assert (plan["building"], plan["kept"]) == ({"read": 5, "write": 500}, {"read": 5, "write": 5})
    assert plan["dollars_while_building"] == round(500 * 0.00065 + 5 * 0.00013, 6)
    assert plan["dollars_a_month"] == 2.85
    told = capacity_text(plan)
    assert "500 WCU and 5 RCU while it is built" in told
    assert "then 5 and 5: $2.85 a month" in told
    assert "no auto scaling: raise" in told
    assert "that can be seen" in capacity_text({**plan, "scaled": None})
    assert "scales as the table does" in capacity_text({**plan, "scaled": True})


@pytest.fixture
def service() -> Stubber:
    """Answers in the order given, each to a request that is valid by the service's model."""
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
    asked = {"ServiceNamespace": "dynamodb", "ResourceIds": [resource]}
    service.add_response("describe_scalable_targets", {"ScalableTargets": targets}, asked)
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
    asked_of = {"ServiceNamespace": "dynamodb", "ResourceId": resource}
    service.add_response("describe_scaling_policies", {"ScalingPolicies": policies}, asked_of)


def test_the_index_scales_as_the_table_does_but_from_little(service: Stubber) -> None:
    answer_targets(service, "table/Orders", "table", READ, WRITE)
    for kind in (READ, WRITE):
        which = {**OF_INDEX, "ScalableDimension": f"dynamodb:index:{kind}"}
        bounds = {"MinCapacity": 5, "MaxCapacity": 4_000}
        service.add_response("register_scalable_target", {}, {**which, **bounds})
        if kind == WRITE:
            policy = {
                "PolicyName": f"keyhop-{WRITE}-0",
                "PolicyType": "TargetTrackingScaling",
                "TargetTrackingScalingPolicyConfiguration": POLICY,
            }
            service.add_response("put_scaling_policy", {"PolicyARN": "p"}, {**which, **policy})
    assert Scaling(lambda: service.client).follow(table(units(100, 100)), KEPT) is None
    service.assert_no_pending_responses()


def test_what_scales_the_index_goes_with_it(service: Stubber) -> None:
    """DynamoDB deletes it with no index, and it would scale the next one of the name."""
    answer_targets(service, OF_INDEX["ResourceId"], "index", WRITE)
    which = {**OF_INDEX, "ScalableDimension": f"dynamodb:index:{WRITE}"}
    service.add_response("deregister_scalable_target", {}, which)
    assert Scaling(lambda: service.client).forget(table(units(100, 100))) is None
    service.assert_no_pending_responses()


def test_a_table_that_does_not_scale_has_an_index_that_does_not(service: Stubber) -> None:
    answer_targets(service, "table/Orders", "table")
    Scaling(lambda: service.client).follow(table(units(100, 100)), KEPT)
    service.assert_no_pending_responses()


def test_what_cannot_be_seen_is_said_and_stops_nothing(service: Stubber) -> None:
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
    found = [capacity_now(provisioned, scaling, refused) for refused in ("why", None)]
    assert found == [
        {"read": 5, "write": 5, "scaled": False, "refused": "why"},
        {"read": 5, "write": 5, "scaled": True, "refused": None},
    ]


def test_client_errors_are_what_the_stub_raises(service: Stubber) -> None:
    """Else the two tests above would show nothing."""
    service.add_client_error("describe_scalable_targets", "AccessDeniedException")
    with pytest.raises(ClientError):
        service.client.describe_scalable_targets(ServiceNamespace="dynamodb")
