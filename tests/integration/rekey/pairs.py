"""A pair of tables, and `keyhop rekey` on it, for tests of the command."""

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.rekey.control import Control
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.table import SideTable, table_request

from testing.databases import Database, Result, keyhop

REGION = "us-east-1"
MACHINES = f"arn:aws:states:{REGION}:111122223333:stateMachine:Keyhop-"

BY_DAY = """
items:
- match: {customer: "{customer}", order: "{order}"}
  set: {day: "{day}", order: "{customer}#{order}"}
"""

NEVER_ASK = ("status", "throttle", "pause", "resume")


@dataclass
class Pairs:
    """A pair of tables in a database, and `keyhop rekey` on it."""

    database: Database
    source: str = field(default_factory=lambda: f"old-{uuid.uuid4().hex[:12]}")
    destination: str = field(default_factory=lambda: f"new-{uuid.uuid4().hex[:12]}")

    def rekey(self, action: str, *arguments: Any, yes: bool = True) -> Result:
        words = [str(argument) for argument in arguments]
        numbers = [word for word in words[:1] if word[:1].isdigit() or word == "none"]
        answer = [] if not yes or action in NEVER_ASK else ["--yes"]
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("AWS_ENDPOINT_URL_DYNAMODB", self.database.url)
            return keyhop(
                *("rekey", action, self.source, *numbers, "--to", self.destination),
                *("--region", REGION, *words[len(numbers) :], *answer),
            )

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.rekey("status", "-f", "json").out)
        return status

    @property
    def side(self) -> SideTable:
        endpoint = Endpoint(url=self.database.url, region=REGION)
        return SideTable(connect(endpoint), f"{self.destination}.rekey")

    def begun(self, control: Control | None = None) -> "Pairs":
        """Create a side table and an empty source, and return this pair."""
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        self.database.create(self.source, StreamSpecification=stream)
        self.database.client.create_table(**table_request(f"{self.destination}.rekey"))
        side = self.side
        assert side.put_plan(Pair(self.source, self.destination, {"items": []}))
        assert side.swap(None, control or Control())
        return self


class States:
    """Step Functions whose executions end at once, with the outputs of their state machines."""

    def __init__(self) -> None:
        self.meta = SimpleNamespace(endpoint_url="http://127.0.0.1:1")
        self.outputs: dict[str, Any] = {}
        self.started: list[tuple[str, dict[str, Any]]] = []

    def start_execution(self, *, stateMachineArn: str, input: str, name: str) -> dict[str, Any]:  # noqa: N803
        machine = stateMachineArn.removeprefix(MACHINES)
        self.started.append((machine, json.loads(input)))
        return {"executionArn": f"{stateMachineArn.replace('stateMachine', 'execution')}:{name}"}

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:  # noqa: N803
        machine, values = self.started[-1]
        return {
            "executionArn": executionArn,
            "status": "SUCCEEDED",
            "startDate": datetime.now(UTC),
            "stopDate": datetime.now(UTC),
            "input": json.dumps(values),
            "output": json.dumps(self.outputs[machine]),
        }


def orders(pairs: Pairs, count: int = 30, **more: Any) -> list[dict[str, Any]]:
    """Create a table of orders by customer, and return its items."""
    pairs.database.create(pairs.source, ("customer", "S"), ("order", "S"), **more)
    items = [
        {
            "customer": {"S": f"c{number % 7}"},
            "order": {"S": f"{number:04}"},
            "day": {"S": f"2026-11-{1 + number % 5:02}"},
        }
        for number in range(count)
    ]
    pairs.database.fill(pairs.source, items)
    return items


def create_rekey(pairs: Pairs, template: Path, **more: Any) -> list[dict[str, Any]]:
    items = orders(pairs, **more)
    assert pairs.rekey("create", "--template", template, "--partition-key", "day").status == 0
    return items


def items_of(pairs: Pairs, table: str) -> list[dict[str, Any]]:
    return in_order(pairs.database.client.scan(TableName=table, ConsistentRead=True)["Items"])


def in_order(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
