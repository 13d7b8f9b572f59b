"""Creation and filling of tables in a local database, and runs of the command on them."""

import io
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from botocore.credentials import ReadOnlyCredentials
from keyhop.cli.main import main
from keyhop.dynamodb.transport import Connections, Signer
from keyhop.dynamodb.values import Key, from_json, typed_json

from testing.servers import LOCAL_CREDENTIALS, local_client

EXTREMES: dict[str, list[Any]] = {
    "S": [
        "a",
        "\x01",
        "~",
        "\uffff",
        "\ufffd" * 5,
        "\U0001f600 emoji",
        "\U0010ffff",
        "\U0010ffff" * 256,
        "\U0010ffff" * 255 + "zzzz",
        "x" * 1024,
    ],
    "N": [
        "0",
        "-1",
        "3.14",
        "1E-130",
        "-9.9999999999999999999999999999999999999E+125",
        "9.9999999999999999999999999999999999999E+125",
        "12345678901234567890123456789012345678",
        "0.12345678901234567890123456789012345678",
    ],
    "B": [b"\x00", b"a", b"\xff", b"\xff" * 1023, b"\xff" * 1024, b"\x00" * 1024],
}
"""Sort keys at and near the ends of their types' ranges."""


BATCH = 25
THREADS = 4
"""The number of batches in flight; DynamoDB Local is not faster with more."""


def index_of(name: str, *keys: str, projection: str = "KEYS_ONLY") -> dict[str, Any]:
    """Return an index of a table with these attributes as partition key and perhaps sort key."""
    kinds = zip(keys, ("HASH", "RANGE"), strict=False)
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": key, "KeyType": kind} for key, kind in kinds],
        "Projection": {"ProjectionType": projection},
    }


def by_day(name: str = "by-day") -> dict[str, Any]:
    """Return the arguments of `Database.create` for an index of attribute `day`."""
    return {
        "AttributeDefinitions": [{"AttributeName": "day", "AttributeType": "S"}],
        "GlobalSecondaryIndexes": [index_of(name, "day")],
    }


BY_DAY = by_day()
CANARY_KEY, CANARY_VALUE = "canary-key-7f3a", "canary-value-91cc"
"""Texts in an item of a table, which no output about the table may contain."""


def partition_value(type_: str, number: int) -> Any:
    """Return the partition key with this number, in one of several shapes."""
    if type_ == "N":
        shapes = ["{n}", "-{n}.5", "{n}E+20", "-{n:03}.{digits}"]
        return shapes[number % 4].format(n=number + 100, digits="1234567" * 5)
    text = ["k{n}", "{n}/a b\tc", "\U0001f511{n}", "{n}" + "x" * 2000][number % 4].format(n=number)
    return text if type_ == "S" else text.encode()


@dataclass
class Result:
    """The result of a run of the command."""

    status: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode().split("\n")[:-1]

    @property
    def keys(self) -> list[Key]:
        """The keys of an output in typed JSON."""
        return [from_json(json.loads(line)) for line in self.lines]


def resuming(*arguments: str) -> list[str]:
    """Return the arguments of a command that continues the run of these arguments."""
    return ["--resume" if word in ("--output", "-o") else word for word in arguments]


def keyhop(*arguments: str) -> Result:
    """Run the command in this process."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as end:
            status = int(end.code or 0)
    assert isinstance(out.buffer, io.BytesIO)
    if err.getvalue() and status:
        print(err.getvalue(), file=sys.stderr)
    return Result(status, out.buffer.getvalue(), err.getvalue())


@dataclass
class Database:
    """A local database by its address."""

    kind: str
    url: str
    client: Any = field(init=False)

    def __post_init__(self) -> None:
        self.client = local_client(self.url)

    def create(
        self,
        table: str,
        partition: tuple[str, str] = ("pk", "S"),
        sort: tuple[str, str] | None = ("sk", "S"),
        **more: Any,
    ) -> None:
        """Create an empty table; `more` has parameters of CreateTable or extends the attributes."""
        attributes = [a for a in (partition, sort) if a is not None]
        keys = [{"AttributeName": partition[0], "KeyType": "HASH"}]
        if sort is not None:
            keys.append({"AttributeName": sort[0], "KeyType": "RANGE"})
        definitions = [
            *more.pop("AttributeDefinitions", ()),
            *({"AttributeName": name, "AttributeType": type_} for name, type_ in attributes),
        ]
        self.client.create_table(
            TableName=table,
            KeySchema=keys,
            AttributeDefinitions=definitions,
            **({"BillingMode": "PAY_PER_REQUEST"} | more),
        )
        while self.client.describe_table(TableName=table)["Table"]["TableStatus"] != "ACTIVE":
            pass

    def tables(self) -> list[str]:
        """Return the names of all tables."""
        pages = self.client.get_paginator("list_tables").paginate()  # pages of a hundred names
        return list(pages.search("TableNames[]"))

    def fill(self, table: str, items: Iterable[Mapping[str, Any]]) -> None:
        """Write items with a fifth of the CPU that boto3's client would use."""
        load(PlainWrites(self.url), (dict(item) for item in items), table)

    def collections(
        self, table: str, sizes: Sequence[int], filling: int = 0, name: str = "k"
    ) -> set[str]:
        """Create a table (pk S, sk S) with collections of these sizes, and return its keys."""
        self.create(table)
        padding = {"data": {"S": "x" * filling}} if filling else {}
        self.fill(
            table,
            (
                {"pk": {"S": f"{name}{number}"}, "sk": {"S": f"{item:06}"}, **padding}
                for number, size in enumerate(sizes)
                for item in range(size)
            ),
        )
        return {f"{name}{number}" for number in range(len(sizes))}

    def keys(self, table: str, *arguments: str) -> Result:
        """Run `keyhop keys` on a table, with output in typed JSON."""
        where = ("--endpoint-url", self.url, "--format", "typed-json")
        return keyhop("keys", table, *where, *arguments)

    def report(self, table: str, folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run `keys`, and return its status, and its --summary with the keys as `out`."""
        path = folder / "report.json"
        result = self.keys(table, "--summary", str(path), *arguments)
        return result.status, json.loads(path.read_bytes()) | {"out": result.keys}


class PlainWrites:
    """A client of a local database that sends BatchWriteItem as plain JSON without validation."""

    def __init__(self, url: str) -> None:
        self._connections = Connections(url)
        self._signer = Signer(self._connections.host, LOCAL_CREDENTIALS["region_name"], "testing")
        names = ("aws_access_key_id", "aws_secret_access_key")
        self._credentials = ReadOnlyCredentials(*(LOCAL_CREDENTIALS[name] for name in names), None)

    def batch_write_item(self, **request: Any) -> dict[str, Any]:
        body = typed_json(request).encode()
        target = "DynamoDB_20120810.BatchWriteItem"
        head = self._signer.head(self._credentials, target, body, time.time())
        answer = self._connections.ask(head + body)
        assert answer.status == 200, answer.content
        return dict(json.loads(answer.content))


def load(
    client: Any,
    items: Iterable[dict[str, Any]],
    table: str,
    progress: Callable[[int], None] = lambda loaded: None,
) -> int:
    """Write items with distinct keys in parallel batches, and return their number."""
    loaded = 0
    with ThreadPoolExecutor(THREADS) as pool:
        rest = iter(items)
        batches = iter(lambda: list(islice(rest, BATCH)), [])
        while wave := list(islice(batches, 64)):
            for written in pool.map(lambda batch: _write(client, table, batch), wave):
                loaded += written
            progress(loaded)
    return loaded


def _write(client: Any, table: str, batch: list[dict[str, Any]]) -> int:
    waiting = {table: [{"PutRequest": {"Item": item}} for item in batch]}
    pause = 0.05
    while waiting:
        waiting = client.batch_write_item(RequestItems=waiting).get("UnprocessedItems") or {}
        if waiting:
            time.sleep(pause)
            pause = min(2.0, 2 * pause)
    return len(batch)


def hashable(keys: Iterable[Key]) -> list[Any]:
    """Return typed keys as comparable values, in which equal numbers are equal in any notation."""
    return sorted(
        (tuple((name, *_comparable(value)) for name, value in sorted(key.items())) for key in keys),
        key=repr,
    )


def _comparable(value: Mapping[str, Any]) -> tuple[str, Any]:
    ((type_, content),) = value.items()
    return type_, Decimal(content).normalize() if type_ == "N" else content
