"""The control plane (T): the description of a table, which is free of charge."""

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
    "dynamodb:DescribeContributorInsights": (TABLE_ARN, INDEX_ARN),
}
PATIENCE_SECONDS = 5.0
"""The patience for requests that the report can do without."""

T = TypeVar("T")


def look(connection: Connection, table: str) -> tuple[TableFacts, Spent, Table]:
    """Return the settings of a table, which is named by its name or ARN, without reading it.

    The reasons for settings that cannot be read are in `untold`.

    Raises:
        CannotStart, NotPermitted and others: DescribeTable has no answer, or the table cannot be
            read now.
    """
    described = look_up(connection, table)
    described.source()
    optional = _Optional(connection, table)
    ttl = optional.read("ttl", "describe_time_to_live", _ttl)
    insights = {
        index: optional.read("insights", "describe_contributor_insights", _status, **where)
        for index, where in _targets(described)
    }
    facts = facts_of(described, ttl, insights, optional.untold)
    return facts, Spent(0.0, optional.requests + 1, 0.0, 0.0), described


class _Optional:
    """Requests about the table that the report can do without."""

    def __init__(self, connection: Connection, table: str) -> None:
        self._connection = connection
        self._table = table
        self.requests = 0
        self.untold: dict[str, Absent] = {}

    def read(self, name: str, operation: str, value_of: Any, **parameters: str) -> Any:
        """Return the value of an answer; None, with a reason in `untold`, without an answer."""
        if operation == "describe_contributor_insights" and name in self.untold:
            return None  # refused for the table, it would be for each of its indexes
        self.requests += 1
        try:
            return value_of(
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
    description = answer["TimeToLiveDescription"]
    is_on = description.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return description.get("AttributeName") if is_on else None


def _status(answer: Mapping[str, Any]) -> str:
    return str(answer["ContributorInsightsStatus"])


def facts_of(
    table: Table,
    ttl: str | None = None,
    insights: Mapping[str, str | None] | None = None,
    untold: Mapping[str, Absent] | None = None,
) -> TableFacts:
    """Return the facts of a table, with the status of Contributor Insights by index."""
    description = table.description
    statuses = insights or {}
    (partition,) = table.space.partition
    sort = table.space.sort
    created = description.get("CreationDateTime")
    return TableFacts(
        name=table.bare_name,
        arn=table.arn,
        region=table.arn.split(":")[3] if table.arn else "",
        partition=partition.name,
        sort=sort.name if sort else None,
        types={
            attribute["AttributeName"]: attribute["AttributeType"]
            for attribute in description["AttributeDefinitions"]
        },
        items=int(description.get("ItemCount", 0)),
        bytes=int(description.get("TableSizeBytes", 0)),
        created=created.timestamp() if created else 0.0,
        throughput=_units(table.throughput, "CapacityUnits"),
        maximum=_units(description.get("OnDemandThroughput"), "RequestUnits", "Max"),
        table_class=str(description.get("TableClassSummary", {}).get("TableClass", "STANDARD")),
        warm=_units(description.get("WarmThroughput"), "UnitsPerSecond"),
        ttl=ttl,
        stream=table.stream,
        stream_view=table.stream_view,
        indexes=tuple(
            _index(entry, table, statuses.get(entry["IndexName"]))
            for entry in indexes_of(description)
        ),
        insights=statuses.get(""),
        untold=untold or {},
        by_arn=table.name.startswith("arn:"),
        vector_indexes=table.vector_indexes,
    )


def _index(entry: Mapping[str, Any], table: Table, insights: str | None) -> IndexFacts:
    kind: Literal["GSI", "LSI"] = "GSI" if entry["IndexName"] in table.global_indexes else "LSI"
    names: dict[str, list[str]] = {"HASH": [], "RANGE": []}
    for key in entry["KeySchema"]:
        names[key["KeyType"]].append(key["AttributeName"])
    throughput = None if table.throughput is None else entry.get("ProvisionedThroughput")
    return IndexFacts(
        name=entry["IndexName"],
        kind=kind,
        partition=tuple(names["HASH"]),
        sort=tuple(names["RANGE"]),
        projection=entry.get("Projection", {}).get("ProjectionType", "ALL"),
        items=int(entry.get("ItemCount", 0)),
        bytes=int(entry.get("IndexSizeBytes", 0)),
        status=str(entry.get("IndexStatus", "ACTIVE")),
        throughput=_units(throughput, "CapacityUnits"),
        insights=insights,
        warm=_units(entry.get("WarmThroughput"), "UnitsPerSecond"),
    )


def _units(
    throughput: Mapping[str, Any] | None, unit: str, prefix: str = ""
) -> tuple[int, int] | None:
    """Return reads and writes; None without both, or if both are -1.

    -1 means that there is not a maximum (API Reference, OnDemandThroughput).
    """
    read, write = (
        int((throughput or {}).get(f"{prefix}{kind}{unit}", -1)) for kind in ("Read", "Write")
    )
    return None if read < 0 and write < 0 else (read, write)
