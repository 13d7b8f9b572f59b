"""The command `keyhop index` for a table, with a deployment whose services are fake."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from testing.databases import Database, Result, keyhop, partition_value
from testing.keepers import QUEUE, FakeLambda
from testing.key_index_tables import STREAM
from tests.integration.key_index.on_table import OnTable

SORT_KEYS: dict[str, list[Any]] = {
    "S": [" before", "!", "a", "\U0010ffff" * 256],
    "N": ["-9.99E+125", "-1", "0", "9.99E+125"],
    "B": [b"\x00", b"\x00k", b"a", b"\xff" * 1024],
}
STACK = ("--stack", "Keyhop")
STALE = ("--method", "index", "--accept", "stale-index")
"""Options that read an index without a keeper."""


class Index(OnTable):
    """The commands `keyhop index` and `keyhop keys` for one table."""

    def __init__(self, database: Database, table: str) -> None:
        self.database, self.table = database, table

    def __call__(self, action: str, *more: str) -> Result:
        yes = () if action == "status" else ("--yes",)
        return keyhop("index", action, self.table, "--endpoint-url", self.database.url, *yes, *more)

    def built(self, *more: str) -> None:
        assert self("build", *more).status == 0

    def create_with_keeper(
        self, lambdas: FakeLambda, sizes: Sequence[int], filling: int = 0
    ) -> None:
        """Create a table with collections of these sizes, its keeper and its index."""
        self.collections(sizes, filling)
        self.attach(lambdas)
        self.built(*STACK)

    def refuses(self, message: str, action: str, *more: str) -> None:
        """Assert that the command fails with status 2 and this message."""
        refused = self(action, *more)
        assert (refused.status, message in refused.err) == (2, True), refused.err

    def report(self, action: str, *more: str) -> Any:
        """Run an action, and return its status and its report."""
        result = self(action, "--format", "typed-json", *more)
        return result.status, json.loads(result.out)

    def keys(self, *more: str) -> tuple[Result, set[str]]:
        result = self.database.keys(self.table, *more)
        return result, {json.dumps(key, default=repr, sort_keys=True) for key in result.keys}

    def attach(self, lambdas: FakeLambda) -> None:
        """Let a keeper follow the table."""
        self.update(**STREAM)
        queue = {"DestinationConfig": {"OnFailure": {"Destination": QUEUE}}}
        stream = self.described()["LatestStreamArn"]
        lambdas.create_event_source_mapping(EventSourceArn=stream, **queue)


def fill_table(index: Index, type_: str, keys: int = 60) -> None:
    """Create a table with collections of 1 to 4 items, some of which sort before the sentinel."""
    index.create(("pk", type_), ("sk", type_))
    sorts = SORT_KEYS[type_]
    index.fill(
        (
            {"pk": {type_: partition_value(type_, number)}, "sk": {type_: sort}}
            for number in range(keys)
            for sort in (sorts[: 1 + number % 4] if number % 2 else sorts[-1 - number % 4 :])
        ),
    )


class Stacks:
    """A CloudFormation client that describes one stack, and may not list stacks."""

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


def failing_after(times: int, call: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    remaining = iter(range(times))

    def counted(*arguments: Any) -> Any:
        if next(remaining, None) is None:
            raise error
        return call(*arguments)

    return counted


def listed(walk: Path) -> Counter[str]:
    """Return the collections in the parts of a walk."""
    parts = (walk / "parts").iterdir()
    return Counter(key for part in parts for key in part.read_text().splitlines())
