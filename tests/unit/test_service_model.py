"""Check that Keyhop's lists of DynamoDB's features equal those of the installed botocore.

If an upgrade of boto3 breaks a test here, the service has a new feature. Read about it, decide what
each part of Keyhop does with it (docs/reference/limits.md), and then add it to the list.
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
"""Operations that Keyhop sends, that the router guards, or that a message shows as a command."""

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

SET_ON_CREATE = """
AttributeDefinitions TableName KeySchema LocalSecondaryIndexes GlobalSecondaryIndexes BillingMode
ProvisionedThroughput StreamSpecification SSESpecification Tags TableClass
DeletionProtectionEnabled WarmThroughput OnDemandThroughput
"""
"""Parameters of CreateTable that `rekey create` sets."""

NOT_SET_ON_CREATE = (
    "ResourcePolicy GlobalTableSourceArn GlobalTableSettingsReplicationMode VectorIndexes"
)
"""Other parameters of CreateTable. The resource policy is put later; the others are refused."""

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
    """Yield members that only one side has; + marks those that only botocore has."""
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


def test_keyhop_knows_auto_scaling_except_policies_that_tables_lack() -> None:
    shapes = {
        "ScalableTargets": "ScalableTarget",
        "ScalingPolicies": "ScalingPolicy",
        "ScheduledActions": "ScheduledAction",
    }
    scaling = model("application-autoscaling")
    unknown = {
        difference
        for kind, members in SCALING.items()
        for difference in differences(scaling.shape_for(shapes[kind]), members or {})
    }
    assert unknown == {"+StepScalingPolicyConfiguration", "+PredictiveScalingPolicyConfiguration"}


def test_keyhop_knows_each_operation_of_the_service() -> None:
    operations = [*USED.split(), *BULK.split(), *ELSEWHERE.split()]
    assert len(operations) == len(set(operations))
    assert set(operations) == set(model("dynamodb").operation_names)


def test_keyhop_knows_each_setting_of_a_new_table() -> None:
    shape = model("dynamodb").operation_model("CreateTable").input_shape
    assert shape.members.keys() == {*SET_ON_CREATE.split(), *NOT_SET_ON_CREATE.split()}


def test_keyhop_knows_each_field_of_a_stream_record() -> None:
    streams = model("dynamodbstreams")
    assert streams.shape_for("Record").members.keys() == {*RECORD.split()}
    assert streams.shape_for("StreamRecord").members.keys() == {*IN_RECORD.split()}


def test_a_new_member_is_found_at_any_depth() -> None:
    known_members = {**TABLE, "GlobalSecondaryIndexes": {"IndexName": None}}
    del known_members["VectorIndexes"]
    unknown = {*differences(answer("describe_table").members["Table"], known_members)}
    assert {"+VectorIndexes", "+GlobalSecondaryIndexes.KeySchema"} <= unknown
