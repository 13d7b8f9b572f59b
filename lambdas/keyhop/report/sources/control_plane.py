"""The control plane (T): what DescribeTable and its relatives say of a table. Free of charge."""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import indexes_of
from keyhop.dynamodb.tables import Table, look_up, request
from keyhop.report.facts import Absent, IndexFacts, TableFacts
from keyhop.report.findings import Spent
from keyhop.report.sources.absence import FAILURES, INDEX_ARN, TABLE_ARN, why_absent

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "dynamodb:DescribeTable": (TABLE_ARN,),
    "dynamodb:DescribeTimeToLive": (TABLE_ARN,),
    "dynamodb:DescribeContinuousBackups": (TABLE_ARN,),
    "dynamodb:DescribeContributorInsights": (TABLE_ARN, INDEX_ARN),
}
PATIENCE_SECONDS = 10.0
"""For what the report can do without."""

T = TypeVar("T")


def look(connection: Connection, table: str) -> tuple[TableFacts, Spent, Table]:
    """What is known of a table without reading it; table: its name or ARN.

    Raises CannotStart, NotPermitted and others where DescribeTable does not answer, or the table
    cannot be read now. What else cannot be had is in `untold`.
    """
    described = look_up(connection, table)
    described.source()
    asked = _Asked(connection, table)
    ttl = asked.what("ttl", "describe_time_to_live", _ttl)
    pitr = asked.what("pitr", "describe_continuous_backups", _pitr)
    insights = {
        index: asked.what("insights", "describe_contributor_insights", _status, **where)
        for index, where in _targets(described)
    }
    facts = facts_of(described, ttl, pitr, insights, asked.untold)
    return facts, Spent(0.0, asked.requests + 1, 0.0, 0.0), described


class _Asked:
    """Requests about the table that the report can do without."""

    def __init__(self, connection: Connection, table: str) -> None:
        self._connection = connection
        self._table = table
        self.requests = 0
        self.untold: dict[str, Absent] = {}

    def what(self, name: str, operation: str, of: Any, **parameters: str) -> Any:
        """`of` the answer; None, and a reason in `untold`, if there is none."""
        if operation == "describe_contributor_insights" and name in self.untold:
            return None  # refused for the table, it would be for each of its indexes
        self.requests += 1
        try:
            return of(
                request(self._connection, self._table, operation, PATIENCE_SECONDS, **parameters)
            )
        except FAILURES as error:
            title = "".join(part.title() for part in operation.split("_"))
            self.untold[name] = why_absent(error, "DynamoDB", f"dynamodb:{title}")
            return None


def _targets(table: Table) -> list[tuple[str, dict[str, str]]]:
    named = [(name, {"IndexName": name}) for name in table.global_indexes]
    return [("", {}), *named]


def _ttl(answer: Mapping[str, Any]) -> str | None:
    told = answer["TimeToLiveDescription"]
    is_on = told.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return told.get("AttributeName") if is_on else None


def _pitr(answer: Mapping[str, Any]) -> bool:
    told = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    return bool(told.get("PointInTimeRecoveryStatus") == "ENABLED")


def _status(answer: Mapping[str, Any]) -> str:
    return str(answer["ContributorInsightsStatus"])


def facts_of(
    table: Table,
    ttl: str | None = None,
    pitr: bool | None = None,
    insights: Mapping[str, str | None] | None = None,
    untold: Mapping[str, Absent] | None = None,
) -> TableFacts:
    """From DescribeTable's answer, and what was asked beside it. insights: by index, "" the table.

    Pure.
    """
    told = table.description
    statuses = insights or {}
    (partition,) = table.space.partition
    sort = table.space.sort
    made = told.get("CreationDateTime")
    return TableFacts(
        name=table.bare_name,
        arn=table.arn,
        region=table.arn.split(":")[3] if table.arn else "",
        partition=partition.name,
        sort=sort.name if sort else None,
        types={one["AttributeName"]: one["AttributeType"] for one in told["AttributeDefinitions"]},
        items=int(told.get("ItemCount", 0)),
        bytes=int(told.get("TableSizeBytes", 0)),
        created=made.timestamp() if made else 0.0,
        throughput=_units(table.throughput, "CapacityUnits"),
        maximum=_units(told.get("OnDemandThroughput"), "RequestUnits", "Max"),
        table_class=str(told.get("TableClassSummary", {}).get("TableClass", "STANDARD")),
        warm=_units(told.get("WarmThroughput"), "UnitsPerSecond"),
        ttl=ttl,
        stream=table.stream,
        stream_view=table.stream_view,
        indexes=tuple(
            _index(entry, table, statuses.get(entry["IndexName"])) for entry in indexes_of(told)
        ),
        insights=statuses.get(""),
        deletion_protection=bool(told.get("DeletionProtectionEnabled")),
        pitr=pitr,
        replicas=len(told.get("Replicas", ())),
        untold=untold or {},
        by_arn=table.name.startswith("arn:"),
        vector_indexes=table.vector_indexes,
    )


def _index(entry: Mapping[str, Any], table: Table, insights: str | None) -> IndexFacts:
    kind: Literal["GSI", "LSI"] = "GSI" if entry["IndexName"] in table.global_indexes else "LSI"
    names: dict[str, list[str]] = {"HASH": [], "RANGE": []}
    for one in entry["KeySchema"]:
        names[one["KeyType"]].append(one["AttributeName"])
    own = None if table.throughput is None else entry.get("ProvisionedThroughput")
    projection = entry.get("Projection", {})
    return IndexFacts(
        name=entry["IndexName"],
        kind=kind,
        partition=",".join(names["HASH"]),
        sort=",".join(names["RANGE"]) or None,
        projection=projection.get("ProjectionType", "ALL"),
        projected=tuple(projection.get("NonKeyAttributes", ())),
        items=int(entry.get("ItemCount", 0)),
        bytes=int(entry.get("IndexSizeBytes", 0)),
        status=str(entry.get("IndexStatus", "ACTIVE")),
        throughput=_units(own, "CapacityUnits"),
        insights=insights,
        warm=_units(entry.get("WarmThroughput"), "UnitsPerSecond"),
    )


def _units(given: Mapping[str, Any] | None, unit: str, most: str = "") -> tuple[int, int] | None:
    """Reads and writes; None if neither is given, or both are -1: no maximum (API Reference,
    OnDemandThroughput).
    """
    read, write = (int((given or {}).get(f"{most}{kind}{unit}", -1)) for kind in ("Read", "Write"))
    return None if read < 0 and write < 0 else (read, write)
