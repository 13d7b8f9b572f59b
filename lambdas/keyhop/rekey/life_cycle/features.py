"""What a table has beside its items, as far as it can be seen: for a table that is to be like it.

Nothing here costs anything but requests. What cannot be seen is told with the reason.
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
"""As the services describe them."""

FAILURES = (BotoCoreError, ClientError, KeyhopError)
PATIENCE_SECONDS = 10.0
NO_POLICY = "PolicyNotFoundException"
NOWHERE = "000000000000"
"""The account in the ARNs of local databases; no account of AWS is called so."""

SCALING = "dynamodb"
"""Auto scaling's name for the service."""

OF_SCALING = "TargetTracking-table/"
"""How the names of its alarms begin."""


@dataclass(frozen=True, slots=True)
class Features:
    """ttl: the attribute, None if it is off. recovery_days: of point-in-time recovery, None if that
    is off. insights: by index, "" the table, the mode ("" where it is not told). kinesis: ARNs of
    streams. targets, policies, schedules: auto scaling's, of the table and its indexes. plans: ids
    of backup plans. aws_key: whether the table's KMS key is the one that AWS keeps for DynamoDB.
    unseen: by the names of these fields, why one cannot be seen. unknown: members of the answers
    beside DescribeTable's that Keyhop does not know (known.py).
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
        """Whether the table is none of AWS's: then much of this does not exist there."""
        return is_local(self.table)


def is_local(table: Table) -> bool:
    """Whether a table is in a local database."""
    parts = table.arn.split(":")
    return len(parts) < 5 or parts[4] == NOWHERE


def cause_code(error: BaseException) -> str:
    """The service's error code of what `ask` raised."""
    return error_code(error.__cause__ if isinstance(error, KeyhopError) else error)  # type: ignore[arg-type]


def gather(connection: Connection, table: Table, client_of: ClientOf | None = None) -> Features:
    """All of them. client_of: None where there are no other services beside the table."""
    asked = _Asked(connection, table, client_of)
    nothing: tuple[Objects, Objects, Objects] = ((), (), ())
    scaled = asked.beside("application-autoscaling", "targets", _scaling, nothing)
    for kind, described in zip(OF_SCALABLE_TABLES, scaled, strict=True):
        asked.compare({kind: list(described)}, OF_SCALABLE_TABLES)
    found = Features(
        table,
        ttl=asked.table("ttl", asked.ttl, None),
        recovery_days=asked.table("recovery_days", asked.recovery, None),
        tags=asked.table("tags", asked.tags, ()),
        policy=asked.table("policy", asked.policy, None),
        insights=asked.table("insights", asked.insights, {}),
        kinesis=asked.table("kinesis", asked.kinesis, ()),
        targets=scaled[0],
        policies=scaled[1],
        schedules=scaled[2],
        alarms=asked.beside("cloudwatch", "alarms", _alarms, ()),
        plans=asked.beside("backup", "plans", _plans, ()),
        aws_key=asked.aws_key(),
        unseen=asked.unseen,
    )
    return replace(found, unknown=tuple(sorted(asked.unknown)))


def ttl_of(connection: Connection, table: str) -> str | None:
    """Return the attribute that items of a table expire by; None if they do not."""
    return _ttl_in(request(connection, table, "describe_time_to_live", PATIENCE_SECONDS))


def _ttl_in(answer: Mapping[str, Any]) -> str | None:
    told = answer["TimeToLiveDescription"]
    is_on = told.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return told.get("AttributeName") if is_on else None


class _Asked:
    def __init__(self, connection: Connection, table: Table, client_of: ClientOf | None) -> None:
        self._connection = connection
        self._table = table
        self._client_of = client_of
        self.unseen: dict[str, str] = {}
        self.unknown: set[str] = set()

    def compare(self, answer: Mapping[str, Any], members: Members) -> None:
        """Remember the members of an answer that Keyhop does not know."""
        own = {name: value for name, value in answer.items() if name != "ResponseMetadata"}
        self.unknown.update(unknown_members(own, members))

    def table(self, name: str, read: Callable[[], T], otherwise: T) -> T:
        """What DynamoDB tells."""
        return self._try(name, "DynamoDB", read, otherwise)

    def beside(self, service: str, name: str, read: Callable[[Any, Table], T], otherwise: T) -> T:
        """What another service tells."""
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
            told = explained(error, endpoint, table.bare_name, table.arn, service)
            self.unseen[name] = str(told)
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
        told = self._about("describe_continuous_backups")["ContinuousBackupsDescription"]
        recovery = told.get("PointInTimeRecoveryDescription", {})
        is_on = recovery.get("PointInTimeRecoveryStatus") == "ENABLED"
        return int(recovery.get("RecoveryPeriodInDays", 35)) if is_on else None

    def tags(self) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        more: dict[str, str] = {}
        while True:
            answer = self._by_arn("list_tags_of_resource", **more)
            found += [(tag["Key"], tag["Value"]) for tag in answer.get("Tags", ())]
            if not answer.get("NextToken"):
                return tuple(found)
            more = {"NextToken": answer["NextToken"]}

    def policy(self) -> str | None:
        try:
            return str(self._by_arn("get_resource_policy")["Policy"])
        except KeyhopError as error:
            if cause_code(error) == NO_POLICY:
                return None
            raise

    def insights(self) -> dict[str, str]:
        found = {}
        for index in ("", *self._table.global_indexes):
            where = {"IndexName": index} if index else {}
            told = self._about("describe_contributor_insights", **where)
            if told.get("ContributorInsightsStatus") in ("ENABLED", "ENABLING"):
                found[index] = str(told.get("ContributorInsightsMode", ""))
        return found

    def kinesis(self) -> tuple[str, ...]:
        told = self._about("describe_kinesis_streaming_destination")
        return tuple(
            one["StreamArn"]
            for one in told.get("KinesisDataStreamDestinations", ())
            if one.get("DestinationStatus") in ("ACTIVE", "ENABLING", "UPDATING")
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
    """Whether an alarm watches a metric of the table, also in an expression; not those that auto
    scaling makes by itself.
    """
    if alarm.get("AlarmName", "").startswith(OF_SCALING):
        return False
    metrics: Sequence[Mapping[str, Any]] = [
        alarm,
        *(one.get("MetricStat", {}).get("Metric", {}) for one in alarm.get("Metrics", ())),
    ]
    return any(
        metric.get("Namespace") == "AWS/DynamoDB"
        and {"Name": "TableName", "Value": table} in metric.get("Dimensions", ())
        for metric in metrics
    )


def _plans(client: Any, table: Table) -> tuple[str, ...]:
    """Those that have made recovery points of the table."""
    pages = client.get_paginator("list_recovery_points_by_resource")
    found = pages.paginate(ResourceArn=table.arn).search("RecoveryPoints[]")
    plans = {point.get("CreatedBy", {}).get("BackupPlanId", "") for point in found}
    return tuple(sorted(plans - {""}))
