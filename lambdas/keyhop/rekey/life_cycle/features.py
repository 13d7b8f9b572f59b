"""Read the features of a table, apart from its items, and copy them to another table.

Reading costs nothing but requests. A feature that is not accessible is reported with the reason.
CreateTable accepts most of them (likeness.py); `copy_settings` copies the others.

`create` must not silently leave out a setting that DynamoDB has learnt since Keyhop was written. So
each member of an answer that is not in the lists of this module is reported, and
tests/unit/test_service_model.py compares the lists with botocore's model. Keyhop knows a member if
`create` copies it, lists it for a person or refuses the table because of it, or if it is a figure
or state that no table takes over.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, Union

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import error_code, explained
from keyhop.dynamodb.tables import NOT_NOW, Table, ask, request
from keyhop.errors import KeyhopError

T = TypeVar("T")
ClientOf = Callable[[str], Any]
"""Makes boto3's client of an AWS service."""

Objects = tuple[Mapping[str, Any], ...]
"""Descriptions of objects, as the services return them."""

Members = Mapping[str, Union["Members", None]]
"""The names of the members of a structure, or of each structure in a list. The value None means
that Keyhop deals with the member as a whole, whatever is in it."""

FAILURES = (BotoCoreError, ClientError, KeyhopError)
PATIENCE_SECONDS = 10.0
NO_POLICY = "PolicyNotFoundException"
NOT_YET = "ContinuousBackupsUnavailableException"
"""The error of a table that was created a moment ago."""

TARGET = ("MinCapacity", "MaxCapacity", "SuspendedState")
ACTION = ("Schedule", "Timezone", "StartTime", "EndTime", "ScalableTargetAction")
NOWHERE = "000000000000"
"""The account in the ARNs of local databases; it does not exist in AWS."""

NAMESPACE = "dynamodb"
"""The name of DynamoDB in Application Auto Scaling."""

OF_SCALING = "TargetTracking-table/"
"""The beginning of the names of auto scaling's alarms."""


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a table.

    Attributes:
        ttl: The attribute by which items expire; None if they do not.
        recovery_days: The days of point-in-time recovery; None if it is disabled.
        insights: The mode by index, with "" for the table; "" for an unspecified mode.
        kinesis: The ARNs of streams; `plans` are the identifiers of backup plans.
        targets: Those of auto scaling, of the table and its indexes, as are `policies` and
            `schedules`.
        aws_key: Whether the table's KMS key is the one that AWS keeps for DynamoDB.
        unseen: By the names of these fields, why one is not accessible.
        unknown: Members of the answers other than DescribeTable's that Keyhop does not know.
    """

    table: Table
    ttl: str | None = None
    recovery_days: int | None = None
    tags: tuple[tuple[str, str], ...] = ()
    policy: str | None = None
    insights: Mapping[str, str] = field(default_factory=dict)
    kinesis: tuple[str, ...] = ()
    targets: Objects = ()
    policies: Objects = ()
    schedules: Objects = ()
    alarms: Objects = ()
    plans: tuple[str, ...] = ()
    aws_key: bool = False
    unseen: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Return whether the table is outside of AWS, where many of these features do not exist."""
        parts = self.table.arn.split(":")
        return len(parts) < 5 or parts[4] == NOWHERE


def cause_code(error: BaseException) -> str:
    """Return the service's error code of an error that `ask` raised."""
    return error_code(error.__cause__ if isinstance(error, KeyhopError) else error)  # type: ignore[arg-type]


def gather(connection: Connection, table: Table, client_of: ClientOf | None = None) -> Features:
    """Return all features; `client_of` is None without other services."""
    reader = _Reader(connection, table, client_of)
    nothing: tuple[Objects, Objects, Objects] = ((), (), ())
    scaled = reader.beside("application-autoscaling", "targets", _scaling, nothing)
    for kind, described in zip(SCALING, scaled, strict=True):
        reader.compare({kind: list(described)}, SCALING)
    features = Features(
        table,
        ttl=reader.table("ttl", reader.ttl, None),
        recovery_days=reader.table("recovery_days", reader.recovery, None),
        tags=reader.table("tags", reader.tags, ()),
        policy=reader.table("policy", reader.policy, None),
        insights=reader.table("insights", reader.insights, {}),
        kinesis=reader.table("kinesis", reader.kinesis, ()),
        targets=scaled[0],
        policies=scaled[1],
        schedules=scaled[2],
        alarms=reader.beside("cloudwatch", "alarms", _alarms, ()),
        plans=reader.beside("backup", "plans", _plans, ()),
        aws_key=reader.aws_key(),
        unseen=reader.unseen,
    )
    return replace(features, unknown=tuple(sorted(reader.unknown)))


def ttl_of(connection: Connection, table: str) -> str | None:
    """Return the attribute by which items of a table expire; None if they do not."""
    return _ttl_in(request(connection, table, "describe_time_to_live", PATIENCE_SECONDS))


def _ttl_in(answer: Mapping[str, Any]) -> str | None:
    description = answer["TimeToLiveDescription"]
    is_on = description.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return description.get("AttributeName") if is_on else None


def copy_settings(
    connection: Connection,
    features: Features,
    destination: Table,
    indexes: Collection[str],
    client_of: ClientOf | None = None,
) -> bool:
    """Copy the settings that CreateTable does not accept to an ACTIVE table with these indexes.

    Each setting can be copied repeatedly. A refusal ends `create`, which can be run again.

    Returns:
        False if it is too early for some of the settings.
    """
    try:
        for index, mode in features.insights.items():
            if not index or index in indexes:
                where = {"IndexName": index} if index else {}
                how = {"ContributorInsightsMode": mode} if mode else {}
                action = {"ContributorInsightsAction": "ENABLE", **where, **how}
                parameters = {"TableName": destination.name, **action}
                ask(connection, destination.name, "update_contributor_insights", parameters)
        if features.policy is not None:
            text = moved_policy(features.policy, features.table.arn, destination.arn)
            parameters = {"ResourceArn": destination.arn, "Policy": text}
            ask(connection, destination.name, "put_resource_policy", parameters)
        if features.targets and client_of is not None:
            try:
                client = client_of("application-autoscaling")
                _copy_scaling(client, features, destination.bare_name, indexes)
            except (BotoCoreError, ClientError) as error:
                endpoint, service = connection.endpoint, "Application Auto Scaling"
                name = destination.bare_name
                raise explained(error, endpoint, name, service=service) from error
        return _copy_recovery(connection, destination.name, features.recovery_days)
    except ClientError as error:
        if error_code(error) not in NOT_NOW:
            raise
        return False


def _copy_recovery(connection: Connection, table: str, days: int | None) -> bool:
    if days is None:
        return True
    recovery = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": days}
    parameters = {"TableName": table, "PointInTimeRecoverySpecification": recovery}
    try:
        ask(connection, table, "update_continuous_backups", parameters)
    except KeyhopError as error:
        if cause_code(error) == NOT_YET:
            return False
        raise
    return True


def _copy_scaling(client: Any, features: Features, table: str, indexes: Collection[str]) -> None:
    def for_table(described: Objects) -> Iterator[dict[str, Any]]:
        """Yield the descriptions for the table, without those of indexes that it lacks."""
        for description in described:
            _, _, index = description["ResourceId"].partition("/index/")
            if not index or index in indexes:
                resource = f"table/{table}" + (f"/index/{index}" if index else "")
                yield {**description, "ResourceId": resource}

    for target in for_table(features.targets):
        client.register_scalable_target(**_which(target), **_of(target, TARGET))
    how = "TargetTrackingScalingPolicyConfiguration"
    for policy in for_table(features.policies):
        # likeness names a policy of another kind, which somebody has accepted.
        if how in policy:
            client.put_scaling_policy(
                **_which(policy), **_of(policy, ("PolicyName", "PolicyType", how))
            )
    for action in for_table(features.schedules):
        client.put_scheduled_action(
            **_which(action), **_of(action, ("ScheduledActionName", *ACTION))
        )


def moved_policy(policy: str, source: str, destination: str) -> str:
    """Return a resource policy with the source's ARN replaced by the destination's."""
    for end in ('"', "/"):  # not a longer name that begins alike
        policy = policy.replace(source + end, destination + end)
    return policy


def forget_scaling(client_of: ClientOf | None, table: Table) -> None:
    """Remove auto scaling from a table before its deletion, because it would remain otherwise."""
    if client_of is None or table.throughput is None:
        return
    client = client_of("application-autoscaling")
    for target in _scalable_targets(client, table):
        client.deregister_scalable_target(**_which(target))


def _which(description: Mapping[str, Any]) -> dict[str, Any]:
    return _of(description, ("ServiceNamespace", "ResourceId", "ScalableDimension"))


def _of(description: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: description[name] for name in names if name in description}


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


class _Reader:
    def __init__(self, connection: Connection, table: Table, client_of: ClientOf | None) -> None:
        self._connection = connection
        self._table = table
        self._client_of = client_of
        self.unseen: dict[str, str] = {}
        self.unknown: set[str] = set()

    def compare(self, answer: Mapping[str, Any], members: Members) -> None:
        """Collect the members of an answer that Keyhop does not know."""
        answer = {name: value for name, value in answer.items() if name != "ResponseMetadata"}
        self.unknown.update(unknown_members(answer, members))

    def table(self, name: str, read: Callable[[], T], otherwise: T) -> T:
        """Return a feature that DynamoDB describes."""
        return self._try(name, "DynamoDB", read, otherwise)

    def beside(self, service: str, name: str, read: Callable[[Any, Table], T], otherwise: T) -> T:
        """Return a feature that another service describes."""
        if self._client_of is None:
            self.unseen[name] = f"this database has no {service} beside it"
            return otherwise
        client_of = self._client_of
        return self._try(name, service, lambda: read(client_of(service), self._table), otherwise)

    def _try(self, name: str, service: str, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except FAILURES as error:
            table, endpoint = self._table, self._connection.endpoint
            explanation = explained(error, endpoint, table.bare_name, table.arn, service)
            self.unseen[name] = str(explanation)
            return otherwise

    def _about(self, operation: str, **parameters: Any) -> dict[str, Any]:
        return self._ask(operation, {"TableName": self._table.name, **parameters})

    def _by_arn(self, operation: str, **parameters: Any) -> dict[str, Any]:
        return self._ask(operation, {"ResourceArn": self._table.arn, **parameters})

    def _ask(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        name = self._table.name
        answer = ask(self._connection, name, operation, parameters, PATIENCE_SECONDS)
        self.compare(answer, BESIDE[operation])
        return answer

    def ttl(self) -> str | None:
        return _ttl_in(self._about("describe_time_to_live"))

    def recovery(self) -> int | None:
        description = self._about("describe_continuous_backups")["ContinuousBackupsDescription"]
        recovery = description.get("PointInTimeRecoveryDescription", {})
        is_on = recovery.get("PointInTimeRecoveryStatus") == "ENABLED"
        return int(recovery.get("RecoveryPeriodInDays", 35)) if is_on else None

    def tags(self) -> tuple[tuple[str, str], ...]:
        tags: list[tuple[str, str]] = []
        more: dict[str, str] = {}
        while True:
            answer = self._by_arn("list_tags_of_resource", **more)
            tags += [(tag["Key"], tag["Value"]) for tag in answer.get("Tags", ())]
            if not answer.get("NextToken"):
                return tuple(tags)
            more = {"NextToken": answer["NextToken"]}

    def policy(self) -> str | None:
        try:
            return str(self._by_arn("get_resource_policy")["Policy"])
        except KeyhopError as error:
            if cause_code(error) == NO_POLICY:
                return None
            raise

    def insights(self) -> dict[str, str]:
        modes = {}
        for index in ("", *self._table.global_indexes):
            where = {"IndexName": index} if index else {}
            answer = self._about("describe_contributor_insights", **where)
            if answer.get("ContributorInsightsStatus") in ("ENABLED", "ENABLING"):
                modes[index] = str(answer.get("ContributorInsightsMode", ""))
        return modes

    def kinesis(self) -> tuple[str, ...]:
        answer = self._about("describe_kinesis_streaming_destination")
        return tuple(
            destination["StreamArn"]
            for destination in answer.get("KinesisDataStreamDestinations", ())
            if destination.get("DestinationStatus") in ("ACTIVE", "ENABLING", "UPDATING")
        )

    def aws_key(self) -> bool:
        key = self._table.description.get("SSEDescription", {}).get("KMSMasterKeyArn")
        if key is None:
            return False
        return self.beside(
            "kms",
            "aws_key",
            lambda kms, table: kms.describe_key(KeyId=key)["KeyMetadata"]["KeyManager"] == "AWS",
            False,
        )


def _scaling(client: Any, table: Table) -> tuple[Objects, Objects, Objects]:
    targets = _scalable_targets(client, table)
    policies: list[Mapping[str, Any]] = []
    schedules: list[Mapping[str, Any]] = []
    for name in sorted({target["ResourceId"] for target in targets}):
        which = {"ResourceId": name}
        policies += _scaling_objects(client, "describe_scaling_policies", "ScalingPolicies", which)
        schedules += _scaling_objects(
            client, "describe_scheduled_actions", "ScheduledActions", which
        )
    return tuple(targets), tuple(policies), tuple(schedules)


def _scalable_targets(client: Any, table: Table) -> list[Mapping[str, Any]]:
    """Return what auto scaling scales of a table and its indexes."""
    names = [f"table/{table.bare_name}"]
    names += [f"{names[0]}/index/{index}" for index in table.global_indexes]
    which = {"ResourceIds": names}
    return _scaling_objects(client, "describe_scalable_targets", "ScalableTargets", which)


def _scaling_objects(
    client: Any, operation: str, result: str, which: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    pages = client.get_paginator(operation).paginate(ServiceNamespace=NAMESPACE, **which)
    return list(pages.search(f"{result}[]"))


def _alarms(client: Any, table: Table) -> Objects:
    pages = client.get_paginator("describe_alarms").paginate(AlarmTypes=["MetricAlarm"])
    return tuple(a for a in pages.search("MetricAlarms[]") if names_table(a, table.bare_name))


def names_table(alarm: Mapping[str, Any], table: str) -> bool:
    """Return whether an alarm watches a metric of the table, also in an expression. The alarms that
    auto scaling makes are excluded.
    """
    if alarm.get("AlarmName", "").startswith(OF_SCALING):
        return False
    metrics: Sequence[Mapping[str, Any]] = [
        alarm,
        *(metric.get("MetricStat", {}).get("Metric", {}) for metric in alarm.get("Metrics", ())),
    ]
    return any(
        metric.get("Namespace") == "AWS/DynamoDB"
        and {"Name": "TableName", "Value": table} in metric.get("Dimensions", ())
        for metric in metrics
    )


def _plans(client: Any, table: Table) -> tuple[str, ...]:
    """Return the backup plans that have made recovery points of the table."""
    pages = client.get_paginator("list_recovery_points_by_resource")
    points = pages.paginate(ResourceArn=table.arn).search("RecoveryPoints[]")
    plans = {point.get("CreatedBy", {}).get("BackupPlanId", "") for point in points}
    return tuple(sorted(plans - {""}))


def words(text: str) -> dict[str, None]:
    """Return the words of a text, each as a member that has no members itself (Members)."""
    return dict.fromkeys(text.split())


_THROUGHPUT = words(
    "ReadCapacityUnits WriteCapacityUnits LastIncreaseDateTime LastDecreaseDateTime "
    "NumberOfDecreasesToday"
)
_CAPACITY: Members = {
    "ProvisionedThroughput": _THROUGHPUT,
    "OnDemandThroughput": words("MaxReadRequestUnits MaxWriteRequestUnits"),
    "WarmThroughput": words("ReadUnitsPerSecond WriteUnitsPerSecond Status"),
}
_INDEX: Members = {
    **words("IndexName IndexSizeBytes ItemCount IndexArn"),
    "KeySchema": words("AttributeName KeyType"),
    "Projection": words("ProjectionType NonKeyAttributes"),
}
VECTOR_INDEX: Members = {
    **words("IndexName IndexStatus Backfilling IndexSizeBytes ItemCount IndexArn"),
    **words("Dimensions DistanceFunction"),
    "SearchSchema": words("AttributeName SearchSchemaElementType"),
    "Projection": words("ProjectionType NonKeyAttributes"),
    "VectorAttribute": words("AttributeName"),
}

TABLE: Members = {
    **words("TableName TableStatus CreationDateTime TableSizeBytes ItemCount TableArn TableId"),
    **words("LatestStreamLabel LatestStreamArn DeletionProtectionEnabled"),
    "AttributeDefinitions": words("AttributeName AttributeType"),
    "KeySchema": words("AttributeName KeyType"),
    **_CAPACITY,
    "BillingModeSummary": words("BillingMode LastUpdateToPayPerRequestDateTime"),
    "LocalSecondaryIndexes": _INDEX,
    "GlobalSecondaryIndexes": {**_INDEX, **words("IndexStatus Backfilling"), **_CAPACITY},
    "VectorIndexes": VECTOR_INDEX,
    "StreamSpecification": words("StreamEnabled StreamViewType"),
    "SSEDescription": words("Status SSEType KMSMasterKeyArn InaccessibleEncryptionDateTime"),
    "TableClassSummary": words("TableClass LastUpdateDateTime"),
    # A global table is refused as a whole. These settings mean something only on a global table.
    **words("GlobalTableVersion Replicas GlobalTableWitnesses MultiRegionConsistency"),
    **words("GlobalTableSettingsReplicationMode DisassociationProtectionEnabled"),
    # Where the source came from, and a state in which no table can be read.
    **words("RestoreSummary ArchivalSummary"),
}
"""Members of the table in the answer of DescribeTable."""

BESIDE: Mapping[str, Members] = {
    "describe_time_to_live": {
        "TimeToLiveDescription": words("TimeToLiveStatus AttributeName"),
    },
    "describe_continuous_backups": {
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": None,
            "PointInTimeRecoveryDescription": words(
                "PointInTimeRecoveryStatus RecoveryPeriodInDays EarliestRestorableDateTime "
                "LatestRestorableDateTime"
            ),
        },
    },
    "describe_contributor_insights": words(
        "TableName IndexName ContributorInsightsRuleList ContributorInsightsStatus "
        "LastUpdateDateTime FailureException ContributorInsightsMode"
    ),
    "describe_kinesis_streaming_destination": {
        "TableName": None,
        "KinesisDataStreamDestinations": words(
            "StreamArn DestinationStatus DestinationStatusDescription "
            "ApproximateCreationDateTimePrecision"
        ),
    },
    "get_resource_policy": words("Policy RevisionId"),
    "list_tags_of_resource": {"Tags": words("Key Value"), "NextToken": None},
}
"""Members of the other answers of DynamoDB about a table, by boto3's name of the operation."""

SCALING: Mapping[str, Members] = {
    "ScalableTargets": words(
        "ServiceNamespace ResourceId ScalableDimension MinCapacity MaxCapacity PredictedCapacity "
        "RoleARN CreationTime SuspendedState ScalableTargetARN"
    ),
    "ScalingPolicies": words(
        "PolicyARN PolicyName ServiceNamespace ResourceId ScalableDimension PolicyType "
        "TargetTrackingScalingPolicyConfiguration Alarms CreationTime"
    ),
    "ScheduledActions": words(
        "ScheduledActionName ScheduledActionARN ServiceNamespace Schedule Timezone ResourceId "
        "ScalableDimension StartTime EndTime ScalableTargetAction CreationTime"
    ),
}
"""Members of Application Auto Scaling's answers. Only policies that track a target are copied."""
