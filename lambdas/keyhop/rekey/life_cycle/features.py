"""Read the features of a table, apart from its items, in order to make another table like it.

This costs nothing but requests. A feature that is not accessible is reported with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import error_code, explained
from keyhop.dynamodb.tables import Table, ask, request
from keyhop.errors import KeyhopError
from keyhop.rekey.life_cycle.known import BESIDE, Members, unknown_members
from keyhop.rekey.life_cycle.known import SCALING as OF_SCALABLE_TABLES

T = TypeVar("T")
ClientOf = Callable[[str], Any]
"""Makes boto3's client of an AWS service."""

Objects = tuple[Mapping[str, Any], ...]
"""Descriptions of objects, as the services return them."""

FAILURES = (BotoCoreError, ClientError, KeyhopError)
PATIENCE_SECONDS = 10.0
NO_POLICY = "PolicyNotFoundException"
NOWHERE = "000000000000"
"""The account in the ARNs of local databases; it does not exist in AWS."""

SCALING = "dynamodb"
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
        unknown: Members of the answers other than DescribeTable's that known.py does not have.
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
        return is_local(self.table)


def is_local(table: Table) -> bool:
    """Return whether a table is in a local database."""
    parts = table.arn.split(":")
    return len(parts) < 5 or parts[4] == NOWHERE


def cause_code(error: BaseException) -> str:
    """Return the service's error code of an error that `ask` raised."""
    return error_code(error.__cause__ if isinstance(error, KeyhopError) else error)  # type: ignore[arg-type]


def gather(connection: Connection, table: Table, client_of: ClientOf | None = None) -> Features:
    """Return all features; `client_of` is None without other services."""
    reader = _Asked(connection, table, client_of)
    nothing: tuple[Objects, Objects, Objects] = ((), (), ())
    scaled = reader.beside("application-autoscaling", "targets", _scaling, nothing)
    for kind, described in zip(OF_SCALABLE_TABLES, scaled, strict=True):
        reader.compare({kind: list(described)}, OF_SCALABLE_TABLES)
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


class _Asked:
    def __init__(self, connection: Connection, table: Table, client_of: ClientOf | None) -> None:
        self._connection = connection
        self._table = table
        self._client_of = client_of
        self.unseen: dict[str, str] = {}
        self.unknown: set[str] = set()

    def compare(self, answer: Mapping[str, Any], members: Members) -> None:
        """Collect the members of an answer that Keyhop does not know."""
        members_found = {
            name: value for name, value in answer.items() if name != "ResponseMetadata"
        }
        self.unknown.update(unknown_members(members_found, members))

    def table(self, name: str, read: Callable[[], T], otherwise: T) -> T:
        """Return a feature that DynamoDB describes."""
        return self._try(name, "DynamoDB", read, otherwise)

    def beside(self, service: str, name: str, read: Callable[[Any, Table], T], otherwise: T) -> T:
        """Return a feature that another service describes."""
        if self._client_of is None:
            self.unseen[name] = f"there is no {service} beside this database"
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
    names = [f"table/{table.bare_name}"]
    names += [f"{names[0]}/index/{index}" for index in table.global_indexes]

    def all_of(operation: str, result: str, **which: Any) -> list[Mapping[str, Any]]:
        pages = client.get_paginator(operation).paginate(ServiceNamespace=SCALING, **which)
        return list(pages.search(f"{result}[]"))

    targets = all_of("describe_scalable_targets", "ScalableTargets", ResourceIds=names)
    policies: list[Mapping[str, Any]] = []
    schedules: list[Mapping[str, Any]] = []
    for name in sorted({target["ResourceId"] for target in targets}):
        policies += all_of("describe_scaling_policies", "ScalingPolicies", ResourceId=name)
        schedules += all_of("describe_scheduled_actions", "ScheduledActions", ResourceId=name)
    return tuple(targets), tuple(policies), tuple(schedules)


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
