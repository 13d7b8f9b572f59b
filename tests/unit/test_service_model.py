"""Keyhop's lists of what DynamoDB offers are those of the installed botocore.

If an upgrade of boto3 breaks a test here, the service has something new. Read what it is, decide
what each part of Keyhop does about it (docs/reference/limits.md), and then add it to the list.
"""

from collections.abc import Iterator

import botocore.session
import pytest
from botocore.model import ServiceModel, Shape
from keyhop.rekey.life_cycle.features import BESIDE, SCALING, TABLE, Members

USED = """
BatchGetItem BatchWriteItem CreateTable DeleteItem DeleteTable DescribeContinuousBackups
DescribeContributorInsights DescribeKinesisStreamingDestination DescribeTable DescribeTimeToLive
ExportTableToPointInTime GetItem GetResourcePolicy ListTables ListTagsOfResource PutItem
PutResourcePolicy Query Scan TransactGetItems TransactWriteItems UpdateContinuousBackups
UpdateContributorInsights UpdateItem UpdateTable UpdateTimeToLive
"""
"""Operations that Keyhop requests, or has the router guard, or shows as a command."""

BULK = "StartBulkPutItems DescribeBulkOperation ListBulkOperations CancelBulkOperation"
"""Bulk puts from S3: see docs/reference/limits.md."""

ELSEWHERE = """
BatchExecuteStatement ExecuteStatement ExecuteTransaction SearchVectors
CreateBackup DeleteBackup DescribeBackup ListBackups RestoreTableFromBackup
RestoreTableToPointInTime DescribeExport ListExports DescribeImport ImportTable ListImports
CreateGlobalTable DescribeGlobalTable DescribeGlobalTableSettings ListGlobalTables
UpdateGlobalTable UpdateGlobalTableSettings DescribeTableReplicaAutoScaling
UpdateTableReplicaAutoScaling DescribeEndpoints DescribeLimits ListContributorInsights
DeleteResourcePolicy TagResource UntagResource EnableKinesisStreamingDestination
DisableKinesisStreamingDestination UpdateKinesisStreamingDestination
"""
"""Operations that Keyhop knows of and does not use."""

ASKED = """
AttributeDefinitions TableName KeySchema LocalSecondaryIndexes GlobalSecondaryIndexes BillingMode
ProvisionedThroughput StreamSpecification SSESpecification Tags TableClass
DeletionProtectionEnabled WarmThroughput OnDemandThroughput
"""
"""What `rekey create` asks CreateTable for."""

NOT_ASKED = "ResourcePolicy GlobalTableSourceArn GlobalTableSettingsReplicationMode VectorIndexes"
"""What CreateTable also takes. The resource policy is put afterwards; the others are refused."""

RECORD = "eventID eventName eventVersion eventSource awsRegion dynamodb userIdentity"
IN_RECORD = """
ApproximateCreationDateTime Keys NewImage OldImage SequenceNumber SizeBytes StreamViewType
"""


def model(service: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(service)


def answer(operation: str) -> Shape:
    name = "".join(word.title() for word in operation.split("_"))
    return model("dynamodb").operation_model(name).output_shape


def differences(shape: Shape, members: Members, before: str = "") -> Iterator[str]:
    """Yield the members that one of the two has, marked by + if only botocore's model has them."""
    if shape.type_name == "list":
        shape = shape.member
    assert shape.type_name == "structure", before
    yield from (f"+{before}{name}" for name in shape.members.keys() - members.keys())
    yield from (f"-{before}{name}" for name in members.keys() - shape.members.keys())
    for name in shape.members.keys() & members.keys():
        inner = members[name]
        if inner is not None:
            yield from differences(shape.members[name], inner, f"{before}{name}.")


def test_keyhop_knows_all_members_of_a_table_and_no_others() -> None:
    assert not [*differences(answer("describe_table").members["Table"], TABLE)]


@pytest.mark.parametrize("operation", BESIDE)
def test_keyhop_knows_all_members_of_the_answers_about_a_table(operation: str) -> None:
    assert not [*differences(answer(operation), BESIDE[operation])]


def test_keyhop_knows_all_of_auto_scaling_but_policies_that_tables_do_not_have() -> None:
    shapes = {
        "ScalableTargets": "ScalableTarget",
        "ScalingPolicies": "ScalingPolicy",
        "ScheduledActions": "ScheduledAction",
    }
    scaling = model("application-autoscaling")
    found = {
        difference
        for kind, members in SCALING.items()
        for difference in differences(scaling.shape_for(shapes[kind]), members or {})
    }
    assert found == {"+StepScalingPolicyConfiguration", "+PredictiveScalingPolicyConfiguration"}


def test_keyhop_knows_each_operation_of_the_service() -> None:
    known = [*USED.split(), *BULK.split(), *ELSEWHERE.split()]
    assert len(known) == len(set(known))
    assert set(known) == set(model("dynamodb").operation_names)


def test_keyhop_knows_each_setting_of_a_new_table() -> None:
    shape = model("dynamodb").operation_model("CreateTable").input_shape
    assert shape.members.keys() == {*ASKED.split(), *NOT_ASKED.split()}


def test_keyhop_knows_what_a_record_of_a_stream_holds() -> None:
    streams = model("dynamodbstreams")
    assert streams.shape_for("Record").members.keys() == {*RECORD.split()}
    assert streams.shape_for("StreamRecord").members.keys() == {*IN_RECORD.split()}


def test_a_member_that_an_upgrade_brings_is_found_at_any_depth() -> None:
    without = {**TABLE, "GlobalSecondaryIndexes": {"IndexName": None}}
    del without["VectorIndexes"]
    found = {*differences(answer("describe_table").members["Table"], without)}
    assert {"+VectorIndexes", "+GlobalSecondaryIndexes.KeySchema"} <= found
