"""The capacity of a key index on a provisioned table, by the service as boto3's models have it."""

from collections.abc import Mapping
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from keyhop.dynamodb.tables import Table
from keyhop.key_index.provisioned import (
    READ,
    WRITE,
    Scaling,
    capacity_for,
    capacity_now,
    capacity_of,
    capacity_plan,
)
from keyhop.key_index.report import capacity_text

INDEX = {"ServiceNamespace": "dynamodb", "ResourceId": "table/Orders/index/keyhop-keys"}
KEPT = {READ: 5, WRITE: 5}
POLICY = {
    "TargetValue": 70.0,
    "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"},
}


def units(read: int, write: int) -> dict[str, int]:
    return {READ: read, WRITE: write}


def table(throughput: Mapping[str, int] | None, of_index: Mapping[str, int] | None = None) -> Table:
    described: dict[str, Any] = {
        "TableName": "Orders",
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
        ],
    }
    if throughput is None:
        described["BillingModeSummary"] = {"BillingMode": "PAY_PER_REQUEST"}
    else:
        described["ProvisionedThroughput"] = throughput
    if of_index is not None:
        key_index = {"IndexName": "keyhop-keys", "ProvisionedThroughput": of_index}
        described["GlobalSecondaryIndexes"] = [key_index]
    return Table("Orders", described)


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
    assert plan is not None
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
        which = {**INDEX, "ScalableDimension": f"dynamodb:index:{kind}"}
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
    answer_targets(service, INDEX["ResourceId"], "index", WRITE)
    which = {**INDEX, "ScalableDimension": f"dynamodb:index:{WRITE}"}
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
    assert capacity is not None
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
    assert refused is not None
    assert refused.startswith("The index may not scale as its table does: ")
    assert DENIED in refused


def test_a_target_without_a_policy_does_not_scale_the_index(service: Stubber) -> None:
    """The service keeps the registered target when it refuses the policy."""
    provisioned = table(units(100, 100), {READ: 5, WRITE: 5})
    answer_targets(service, INDEX["ResourceId"], "index", READ)
    answer_targets(service, INDEX["ResourceId"], "index", READ, WRITE)
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
