"""Tables and responses as AWS documents them."""

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


class RecordedClient:
    """A DynamoDB client with recorded responses. Keyword arguments replace the response or
    give the error of an operation."""

    def __init__(self, **changes: dict[str, Any] | ClientError) -> None:
        self.changes = changes
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        self.requests.append((operation, parameters))
        response = self.changes.get(operation)
        if isinstance(response, ClientError):
            raise response
        return response or recorded(operation, "dynamodb", OPERATIONS[operation])


def connection(**changes: dict[str, Any] | ClientError) -> Connection:
    return Connection(RecordedClient(**changes))


def orders(**changes: Any) -> TableFacts:
    """Return the facts of the recorded table, with changes to its description."""
    description = recorded("describe_table", "dynamodb", "DescribeTable")["Table"]
    return facts_of(Table("Orders", {**description, **changes}), insights={"": "ENABLED"})


def full_key(key: Key) -> str:
    return " ".join(f"{name}={plain(value)}" for name, value in sorted(key.items()))
