"""Tables and answers as AWS documents them."""

from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import Key, plain
from keyhop.report.facts import TableFacts
from keyhop.report.sources.control_plane import facts_of

from testing.report_cloud import as_recorded

NOW = 1_795_338_000.0
"""2026-11-22T09:00:00Z."""
DAY = 86_400.0

OPERATIONS = {
    "describe_table": "DescribeTable",
    "describe_time_to_live": "DescribeTimeToLive",
    "describe_contributor_insights": "DescribeContributorInsights",
}


def recorded(name: str, service: str, operation: str) -> dict[str, Any]:
    path = Path(__file__).parent / "recorded" / f"{name}.json"
    return as_recorded(path.read_text(), service, operation)


class Answers:
    """A DynamoDB client that answers as recorded; others by `refused`, or the changed ones."""

    def __init__(self, **other: dict[str, Any] | ClientError) -> None:
        self.other = other
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        self.asked.append((operation, parameters))
        found = self.other.get(operation)
        if isinstance(found, ClientError):
            raise found
        return found or recorded(operation, "dynamodb", OPERATIONS[operation])


def connection(**other: dict[str, Any] | ClientError) -> Connection:
    return Connection(Answers(**other))


def orders(**changed: Any) -> TableFacts:
    """The recorded table, on 2026-01-10; `changed` fields of its description."""
    told = recorded("describe_table", "dynamodb", "DescribeTable")["Table"]
    return facts_of(Table("Orders", {**told, **changed}), insights={"": "ENABLED"})


def whole(key: Key) -> str:
    return " ".join(f"{name}={plain(value)}" for name, value in sorted(key.items()))
