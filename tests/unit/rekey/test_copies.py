"""The settings of the source are copied to the destination.

moto knows tags, recovery, policies and auto scaling; it proves no order and no validation.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import StepResult, Table, look_up
from keyhop.errors import CannotStart
from keyhop.rekey.life_cycle.create import Creation
from keyhop.rekey.life_cycle.end import Ending
from keyhop.rekey.life_cycle.features import Features, gather
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.table import SideTable
from moto import mock_aws

REGION = "us-east-1"
KEYS = KeySpace((KeyAttribute("tenant", "S"),), None)
PAIR = Pair("Orders", "OrdersByTenant", {"items": []})
TARGET = {"ServiceNamespace": "dynamodb", "ScalableDimension": "dynamodb:table:WriteCapacityUnits"}
TRACKING = {
    "TargetValue": 70.0,
    "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"},
}


class Amended:
    """moto's DynamoDB, with contributor insights and Kinesis data streams, which moto lacks.

    `insights` has the mode of contributor insights for each pair of table and index.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.insights: dict[tuple[str, str], str] = {}

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        names = parameters.get("TableName", ""), parameters.get("IndexName", "")
        match operation:
            case "describe_kinesis_streaming_destination":
                return {"TableName": names[0], "KinesisDataStreamDestinations": []}
            case "update_contributor_insights":
                self.insights[names] = parameters["ContributorInsightsMode"]
                return {}
            case "describe_contributor_insights":
                mode = self.insights.get(names)
                status = {"ContributorInsightsStatus": "ENABLED" if mode else "DISABLED"}
                return {**status, **({"ContributorInsightsMode": mode} if mode else {})}
        response: dict[str, Any] = getattr(self.client, operation)(**parameters)
        return response


def client_of(service: str) -> Any:
    return boto3.client(service, region_name=REGION)  # type: ignore[call-overload]


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield Connection(Amended(client_of("dynamodb")))


def make(cloud: Connection, **more: Any) -> Table:
    """Create the source."""
    client = client_of("dynamodb")
    client.create_table(
        TableName="Orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        **{"BillingMode": "PAY_PER_REQUEST", **more},
    )
    return look_up(cloud, "Orders")


def everything(cloud: Connection) -> Table:
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    table = make(cloud, BillingMode="PROVISIONED", ProvisionedThroughput=units)
    client = client_of("dynamodb")
    client.tag_resource(ResourceArn=table.arn, Tags=[{"Key": "team", "Value": "orders"}])
    client.update_continuous_backups(
        TableName="Orders", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    expires = {"Enabled": True, "AttributeName": "expires"}
    client.update_time_to_live(TableName="Orders", TimeToLiveSpecification=expires)
    allowed = {"Effect": "Allow", "Principal": "*", "Action": "dynamodb:GetItem"}
    statement = {**allowed, "Resource": [table.arn, f"{table.arn}/index/*"]}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client.put_resource_policy(ResourceArn=table.arn, Policy=policy)
    mode = {"ContributorInsightsMode": "THROTTLED_KEYS", "ContributorInsightsAction": "ENABLE"}
    cloud.client.call("update_contributor_insights", TableName="Orders", **mode)
    scaling = client_of("application-autoscaling")
    which = {**TARGET, "ResourceId": "table/Orders"}
    scaling.register_scalable_target(**which, MinCapacity=5, MaxCapacity=50)
    scaling.put_scaling_policy(
        **which,
        PolicyName="writes",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration=TRACKING,
    )
    return look_up(cloud, "Orders")


def until_done(step: Callable[[], StepResult]) -> None:
    while not step().done:
        pass  # moto is never busy


def creation(cloud: Connection) -> Creation:
    return Creation(cloud, PAIR, KEYS, client_of, accepted=("unseen",))


def features_of(cloud: Connection, name: str) -> Features:
    return gather(cloud, look_up(cloud, name), client_of)


def test_the_destination_gets_the_settings_of_the_source(cloud: Connection) -> None:
    everything(cloud)
    until_done(creation(cloud).step)
    source, destination = features_of(cloud, "Orders"), features_of(cloud, "OrdersByTenant")
    assert (destination.tags, destination.recovery_days) == (source.tags, source.recovery_days)
    assert source.tags == (("team", "orders"),) == features_of(cloud, PAIR.side).tags
    assert destination.insights == source.insights == {"": "THROTTLED_KEYS"}
    (target,) = destination.targets
    _, policy = destination.policies  # moto returns those of all tables
    assert policy["ResourceId"] == "table/OrdersByTenant"
    assert (target["MinCapacity"], target["MaxCapacity"]) == (5, 50)
    assert policy["TargetTrackingScalingPolicyConfiguration"] == TRACKING
    assert destination.table.throughput == source.table.throughput
    arn = destination.table.arn
    assert destination.policy is not None
    resource = json.loads(destination.policy)["Statement"][0]["Resource"]
    assert resource == [arn, f"{arn}/index/*"], "and no other table"
    assert (source.ttl, destination.ttl) == ("expires", None), "not before the cutover"
    assert source.alarms == (), "auto scaling makes its own"


def test_an_alarm_on_the_table_is_listed_with_the_command_that_makes_its_twin(
    cloud: Connection,
) -> None:
    make(cloud)
    client_of("cloudwatch").put_metric_alarm(
        AlarmName="it's late",
        Namespace="AWS/DynamoDB",
        MetricName="ThrottledRequests",
        Dimensions=[{"Name": "TableName", "Value": "Orders"}],
        Period=60,
        EvaluationPeriods=1,
        Threshold=1.0,
        Statistic="Sum",
        ComparisonOperator="GreaterThanThreshold",
    )
    (row,) = [row for row in creation(cloud).look().rows if row.what == "alarm"]
    assert row.fate == "listed"
    assert '"Value": "OrdersByTenant"' in row.command
    assert "it'\"'\"'s late-OrdersByTenant" in row.command  # quoted for a shell


def test_a_key_that_aws_keeps_is_not_named(cloud: Connection) -> None:
    key = client_of("kms").create_key()["KeyMetadata"]["Arn"]
    make(cloud, SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key})
    encryption = creation(cloud).look().request["SSESpecification"]
    assert encryption == {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}


def test_cancel_removes_auto_scaling_of_the_destination(cloud: Connection) -> None:
    everything(cloud)
    until_done(creation(cloud).step)
    delete = "OrdersByTenant"
    until_done(Ending(cloud, delete, "cancel", None, client_of, delete=delete).step)
    targets = client_of("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="dynamodb"
    )["ScalableTargets"]
    assert [target["ResourceId"] for target in targets] == ["table/Orders"]


def completing(cloud: Connection, **options: Any) -> Ending:
    side = SideTable(cloud, PAIR.side)
    control = side.control()
    side.swap(control, control.changed(serving="destination"))
    side.tell("turned", {"at": 0.0, "serving": "destination"})
    return Ending(cloud, "OrdersByTenant", "complete", None, client_of, **options)


def test_a_last_export_is_made_once_and_waited_for(cloud: Connection) -> None:
    arn = everything(cloud).arn
    client_of("s3").create_bucket(Bucket="exports")
    until_done(creation(cloud).step)
    until_done(completing(cloud, export="exports", delete="Orders").step)
    (export,) = client_of("dynamodb").list_exports(TableArn=arn)["ExportSummaries"]
    assert export["ExportStatus"] == "COMPLETED"
    assert client_of("dynamodb").list_tables()["TableNames"] == ["OrdersByTenant"]


def test_without_recovery_there_is_no_export_and_the_source_stays(cloud: Connection) -> None:
    make(cloud)
    client_of("s3").create_bucket(Bucket="exports")
    until_done(creation(cloud).step)
    with pytest.raises(CannotStart, match="point-in-time recovery"):
        until_done(completing(cloud, export="exports", delete="Orders").step)
    assert "Orders" in client_of("dynamodb").list_tables()["TableNames"]
