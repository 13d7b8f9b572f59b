"""The members of the service's answers about a table that Keyhop knows how to deal with. Pure.

`create` must not silently leave out a setting that DynamoDB has learnt since Keyhop was written. So
each member of an answer that is not in this list is reported. tests/unit/test_service_model.py
compares the list with botocore's model. Keyhop knows a member if `create` copies it, lists it for a
person or refuses the table because of it, or if it is a figure or state that no table takes over.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Union

Members = Mapping[str, Union["Members", None]]
"""The names of the members of a structure, or of each structure in a list. The value None means
that Keyhop deals with the member as a whole, whatever is in it."""


def _names(text: str) -> dict[str, None]:
    return dict.fromkeys(text.split())


_THROUGHPUT = _names(
    "ReadCapacityUnits WriteCapacityUnits LastIncreaseDateTime LastDecreaseDateTime "
    "NumberOfDecreasesToday"
)
_CAPACITY: Members = {
    "ProvisionedThroughput": _THROUGHPUT,
    "OnDemandThroughput": _names("MaxReadRequestUnits MaxWriteRequestUnits"),
    "WarmThroughput": _names("ReadUnitsPerSecond WriteUnitsPerSecond Status"),
}
_INDEX: Members = {
    **_names("IndexName IndexSizeBytes ItemCount IndexArn"),
    "KeySchema": _names("AttributeName KeyType"),
    "Projection": _names("ProjectionType NonKeyAttributes"),
}
VECTOR_INDEX: Members = {
    **_names("IndexName IndexStatus Backfilling IndexSizeBytes ItemCount IndexArn"),
    **_names("Dimensions DistanceFunction"),
    "SearchSchema": _names("AttributeName SearchSchemaElementType"),
    "Projection": _names("ProjectionType NonKeyAttributes"),
    "VectorAttribute": _names("AttributeName"),
}

TABLE: Members = {
    **_names("TableName TableStatus CreationDateTime TableSizeBytes ItemCount TableArn TableId"),
    **_names("LatestStreamLabel LatestStreamArn DeletionProtectionEnabled"),
    "AttributeDefinitions": _names("AttributeName AttributeType"),
    "KeySchema": _names("AttributeName KeyType"),
    **_CAPACITY,
    "BillingModeSummary": _names("BillingMode LastUpdateToPayPerRequestDateTime"),
    "LocalSecondaryIndexes": _INDEX,
    "GlobalSecondaryIndexes": {**_INDEX, **_names("IndexStatus Backfilling"), **_CAPACITY},
    "VectorIndexes": VECTOR_INDEX,
    "StreamSpecification": _names("StreamEnabled StreamViewType"),
    "SSEDescription": _names("Status SSEType KMSMasterKeyArn InaccessibleEncryptionDateTime"),
    "TableClassSummary": _names("TableClass LastUpdateDateTime"),
    # A global table is refused as a whole. These settings mean something only on a global table.
    **_names("GlobalTableVersion Replicas GlobalTableWitnesses MultiRegionConsistency"),
    **_names("GlobalTableSettingsReplicationMode DisassociationProtectionEnabled"),
    # Where the source came from, and a state in which no table can be read.
    **_names("RestoreSummary ArchivalSummary"),
}
"""Members of the table in the answer of DescribeTable."""

BESIDE: Mapping[str, Members] = {
    "describe_time_to_live": {
        "TimeToLiveDescription": _names("TimeToLiveStatus AttributeName"),
    },
    "describe_continuous_backups": {
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": None,
            "PointInTimeRecoveryDescription": _names(
                "PointInTimeRecoveryStatus RecoveryPeriodInDays EarliestRestorableDateTime "
                "LatestRestorableDateTime"
            ),
        },
    },
    "describe_contributor_insights": _names(
        "TableName IndexName ContributorInsightsRuleList ContributorInsightsStatus "
        "LastUpdateDateTime FailureException ContributorInsightsMode"
    ),
    "describe_kinesis_streaming_destination": {
        "TableName": None,
        "KinesisDataStreamDestinations": _names(
            "StreamArn DestinationStatus DestinationStatusDescription "
            "ApproximateCreationDateTimePrecision"
        ),
    },
    "get_resource_policy": _names("Policy RevisionId"),
    "list_tags_of_resource": {"Tags": _names("Key Value"), "NextToken": None},
}
"""Members of the other answers of DynamoDB about a table, by boto3's name of the operation."""

SCALING: Mapping[str, Members] = {
    "ScalableTargets": _names(
        "ServiceNamespace ResourceId ScalableDimension MinCapacity MaxCapacity PredictedCapacity "
        "RoleARN CreationTime SuspendedState ScalableTargetARN"
    ),
    "ScalingPolicies": _names(
        "PolicyARN PolicyName ServiceNamespace ResourceId ScalableDimension PolicyType "
        "TargetTrackingScalingPolicyConfiguration Alarms CreationTime"
    ),
    "ScheduledActions": _names(
        "ScheduledActionName ScheduledActionARN ServiceNamespace Schedule Timezone ResourceId "
        "ScalableDimension StartTime EndTime ScalableTargetAction CreationTime"
    ),
}
"""Members of Application Auto Scaling's answers. Only policies that track a target are copied."""


def unknown_members(answer: Mapping[str, Any], members: Members) -> tuple[str, ...]:
    """Return the members of an answer that Keyhop does not know, as paths such as "Tags.Scope". One
    that holds nothing (None, an empty text, list or structure) is not reported. One that is false
    or 0 is reported, because its default is not known.
    """
    return tuple(sorted(set(_unknown(answer, members, ""))))


def _unknown(answer: Mapping[str, Any], members: Members, before: str) -> Iterator[str]:
    for name, value in answer.items():
        if value is None or value in ("", [], {}):
            continue
        if name not in members:
            yield before + name
            continue
        inner = members[name]
        if inner is not None:
            for element in value if isinstance(value, list) else [value]:
                yield from _unknown(element, inner, f"{before}{name}.")
