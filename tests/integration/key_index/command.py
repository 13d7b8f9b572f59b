"""The command on the key index of a table, beside a deployment whose services are fake."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from testing.databases import Database, Result, keyhop, partition_value
from testing.keepers import QUEUE, FakeLambda
from testing.key_index_tables import STREAM

SORT_KEYS: dict[str, list[Any]] = {
    "S": [" before", "!", "a", "\U0010ffff" * 256],
    "N": ["-9.99E+125", "-1", "0", "9.99E+125"],
    "B": [b"\x00", b"\x00k", b"a", b"\xff" * 1024],
}


STALE = ("--method", "index", "--accept", "stale-index")
"""Where no keeper follows the table."""


def index(database: Database, action: str, table: str, *more: str) -> Result:
    yes = () if action == "status" else ("--yes",)
    return keyhop("index", action, table, "--endpoint-url", database.url, *yes, *more)


def keys_from(database: Database, table: str, *more: str) -> tuple[Result, set[str]]:
    place = ("--endpoint-url", database.url, "--format", "typed-json")
    result = keyhop("keys", table, *place, *more)
    return result, {json.dumps(key, default=repr, sort_keys=True) for key in result.keys}


def filled(database: Database, table: str, type_: str, keys: int = 60) -> None:
    """Collections of 1 to 4 items, some of which sort before the sentinel."""
    database.create(table, ("pk", type_), ("sk", type_))
    sorts = SORT_KEYS[type_]
    database.fill(
        table,
        (
            {"pk": {type_: partition_value(type_, number)}, "sk": {type_: sort}}
            for number in range(keys)
            for sort in (sorts[: 1 + number % 4] if number % 2 else sorts[-1 - number % 4 :])
        ),
    )


def report_of(database: Database, action: str, table: str, *more: str) -> Any:
    result = index(database, action, table, "--format", "typed-json", *more)
    return result.status, json.loads(result.out)


class Stacks:
    """CloudFormation, which knows one stack, and does not list them."""

    meta = SimpleNamespace(region_name="us-east-1")

    def get_paginator(self, operation: str) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, operation)

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803
        if StackName != "Keyhop":
            message = f"Stack with id {StackName} does not exist"
            error = {"Code": "ValidationError", "Message": message}
            raise ClientError({"Error": error}, "DescribeStacks")
        output = {"OutputKey": "ResultsBucketName", "OutputValue": "results"}
        return {"Stacks": [{"Outputs": [output]}]}


def attach(database: Database, table: str, lambdas: FakeLambda) -> None:
    """A keeper follows the table."""
    database.client.update_table(TableName=table, **STREAM)
    stream = database.client.describe_table(TableName=table)["Table"]["LatestStreamArn"]
    queue = {"DestinationConfig": {"OnFailure": {"Destination": QUEUE}}}
    lambdas.create_event_source_mapping(EventSourceArn=stream, **queue)


def failing_after(times: int, call: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    left = iter(range(times))

    def counted(*arguments: Any) -> Any:
        if next(left, None) is None:
            raise error
        return call(*arguments)

    return counted


def listed(walk: Path) -> Counter[str]:
    """The collections in the parts of a walk."""
    parts = (walk / "parts").iterdir()
    return Counter(key for part in parts for key in part.read_text().splitlines())
