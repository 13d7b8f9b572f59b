"""A ShardedTable without shards, for tests of the handlers that use one, and their environment."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from handlers import sharding
from keyhop.dynamodb.schema import KeyAttribute
from keyhop.dynamodb.usage import Usage
from keyhop.sharding.io.batch import BatchResult
from keyhop.sharding.key.schema import Names, Schema

SECRET = "/a/partition/key"
SHARDED = {
    "metadata": "Keyhop-shards-Audit",
    "placement": "calculated",
    "hash": "jump",
    "appendOnly": False,
    "separator": "_",
    "mostShards": 64,
    "startShards": {"/logs/*": 8},
}
MACHINE = "arn:aws:states:us-east-1:111122223333:stateMachine:Keyhop-DrainShards"
THROTTLED = "TableWriteKeyRangeThroughputExceeded"


def refusal(code: str, status: int = 400) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": "no"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "PutItem")


class FakeTable:
    """What handlers use of ShardedTable, without the shards."""

    name = "Audit"
    endpoint = sharding.Endpoint()

    def __init__(self) -> None:
        self.usage = Usage()
        self.schema = Schema(
            "Audit", KeyAttribute("path", "S"), KeyAttribute("at", "N"), Names("S", "_")
        )
        self.stored: list[dict[str, Any]] = []
        self.errors: dict[int, Exception] = {}
        self.asked: dict[str, Any] = {}
        self.given_away = self.paused = 0

    def pause(self) -> None:
        self.paused += 1

    def batch_write(self, items: list[dict[str, Any]]) -> BatchResult:
        result = BatchResult()
        for place, item in enumerate(items):
            if place in self.errors:
                result.failed.append((place, item, self.errors[place]))
            else:
                self.stored.append(item)
                result.written += 1
        return result

    def query(self, **asked: Any) -> Iterator[dict[str, Any]]:
        self.asked = asked
        for item in self.stored[: asked["limit"]]:
            self.given_away += 1
            yield item

    def page_token(self, key: Any, last: Any, **asked: Any) -> str:
        return f"behind {last}"


def stand_in(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    """One fake table for all invocations of a test."""
    fake = FakeTable()
    client = SimpleNamespace(ends_at=0.0)
    monkeypatch.setattr(sharding, "warm", lambda name, writes: (fake, client))
    return fake


def set_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the stack would set, and the metrics' names."""
    for name, value in {
        "KEYHOP_TABLES": '["Audit"]',
        "KEYHOP_SHARDING": json.dumps({"Audit": SHARDED}),
        "KEYHOP_DRAIN_MACHINE": MACHINE,
        "KEYHOP_START_DRAINS": "false",
        "AWS_DEFAULT_REGION": "us-east-1",
        "POWERTOOLS_METRICS_NAMESPACE": "Keyhop",
        "POWERTOOLS_SERVICE_NAME": "enumerate-keys",
    }.items():
        monkeypatch.setenv(name, value)


def item(at: int, **more: Any) -> dict[str, Any]:
    return {"path": SECRET, "at": at, **more}
