"""The environment of sessions: tables with data, AWS on loopback, and a recorder of calls.

Orders has 120 customers with 6 orders each, and an index by-day. Audit is sharded, and has logical
keys that end like the names of shards.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import click
import pytest
from keyhop.cli.main import command, main
from keyhop.public.rekey import Rekey
from keyhop.public.shards import Shards
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.manage import add_shards
from keyhop.sharding.table import ShardedTable

from testing.databases import BY_DAY, Database
from testing.rekey_tasks import at_once
from tests.docs.sessions import Result, Run, blocks
from tests.infra.template import ACCOUNT
from tests.recording.calls import Kinds
from tests.recording.proxy import Answer, Request
from tests.recording.recorder import Recorder

CALLER_PREFIX = "Person-"
"""The prefix of a command's session token, which names the caller."""

TABLES = ("Orders", "Audit", "Audit-shards")
CREATED = ("OrdersByDay", "OrdersByDay.rekey")
"""The tables that sessions create."""

NAMES = (*TABLES, *CREATED)
KINDS = Kinds(dict(zip(NAMES, NAMES, strict=True)), "Orders", frozenset(NAMES))
REGION = "us-east-1"
"""A region whose prices Keyhop has."""

HOT_KEY = "/srv/budget.xlsx"
START_TIME = 1_795_000_000.0
"""The start time of the sessions of sharded tables."""

EXTRA_OPTIONS = ("--index", "--logical", "--metadata", "--stack", "--remote")
"""Options with which a command makes more kinds of calls."""


class ManualClock:
    """A clock that advances only when the code sleeps."""

    def __init__(self) -> None:
        self.now = START_TIME

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class CommandRecorder(Recorder):
    """A recorder of the calls of commands."""

    def __init__(self) -> None:
        super().__init__(KINDS, CALLER_PREFIX)


class LocalRecorder(CommandRecorder):
    """A recorder before DynamoDB Local, which answers for other services and rewrites ARNs."""

    def before(self, request: Request) -> Answer | None:
        answer = super().before(request)
        if answer is None and "DynamoDB" not in request.headers.get("x-amz-target", ""):
            return self.after(request, Answer(200, b'{"EventSourceMappings": []}'))
        return answer

    def after(self, request: Request, answer: Answer) -> Answer:
        answer = super().after(request, answer)
        body = answer.body.replace(b"ddblocal:000000000000", f"{REGION}:{ACCOUNT}".encode())
        headers = {k: v for k, v in answer.headers.items() if k.lower() != "x-amz-crc32"}
        return Answer(answer.status, body, headers)


def command_names() -> dict[str, click.Command]:
    """Return each command by its words, for example `keyhop index build`."""
    return dict(_below(command, "keyhop"))


def _below(group: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    children = getattr(group, "commands", {})
    if not children:
        yield name, group
    for child, sub in children.items():
        yield from _below(sub, f"{name} {child}")


def caller_of(arguments: list[str]) -> str:
    """Return the name of a caller: the command's words, and its options in EXTRA_OPTIONS."""
    words = ["keyhop", *arguments]
    names = [name for name in command_names() if words[: len(name.split())] == name.split()]
    options = [option for option in EXTRA_OPTIONS if option in arguments]
    return " ".join((max(names, default="keyhop"), *options))


@contextmanager
def command_in(folder: Path, **environment: str) -> Iterator[Run]:
    """Yield a runner of `keyhop` in a folder, with the given environment variables."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AWS_", "KEYHOP_"))]:
            patch.delenv(name)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, os.devnull)
        patch.setenv("AWS_REGION", REGION)
        patch.setenv("AWS_ACCESS_KEY_ID", "ana")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setenv("XDG_STATE_HOME", str(folder / ".local" / "state"))
        patch.setenv("COLUMNS", "100")
        patch.chdir(folder)
        patch.setattr(Shards, "_clock", ManualClock())
        patch.setattr(Rekey, "_tasks", staticmethod(at_once))

        def keyhop(arguments: list[str], is_redirected: bool) -> Result:
            patch.setenv("AWS_SESSION_TOKEN", CALLER_PREFIX + caller_of(arguments))
            stdout, stderr = io.BytesIO(), io.BytesIO()
            stdout_text, stderr_text = _text(stdout), _text(stderr if is_redirected else stdout)
            with redirect_stdout(stdout_text), redirect_stderr(stderr_text):
                status = main(arguments)
            return Result(status, stderr.getvalue().decode(), stdout.getvalue())

        yield keyhop


def _text(stream: io.BytesIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding="utf-8", write_through=True)


@contextmanager
def tables(database: Database, names: set[str]) -> Iterator[None]:
    """Create the tables of TABLES with these names or prefixes, and delete them afterwards."""
    created = [name for name in TABLES if any(n.startswith(name.split("-")[0]) for n in names)]
    try:
        if "Orders" in created:
            database.create("Orders", ("customer", "S"), ("order", "S"), **BY_DAY)
            database.fill("Orders", _orders())
        if "Audit" in created:
            database.create("Audit", ("path", "S"), ("accessed", "S"))
            database.create("Audit-shards", ("path", "S"), None)
            _write_audit_log(database)
        yield
    finally:
        for name in set(database.tables()) & {*created, *CREATED}:
            database.client.delete_table(TableName=name)


def _orders() -> Iterator[dict[str, Any]]:
    for customer in range(120):
        for order in range(6):
            day = {"day": {"S": f"2026-11-{1 + order:02}"}}
            key = {"customer": {"S": f"customer-{customer:04}"}, "order": {"S": f"{order:06}"}}
            yield {**key, **day, "items": {"S": "x" * 3500}}


def _write_audit_log(database: Database) -> None:
    clock = ManualClock()
    clock.now -= 86_400
    table = ShardedTable(
        "Audit",
        metadata="Audit-shards",
        placement="random",
        append_only=True,
        policy=Policy(),
        clock=clock,
        endpoint_url=database.url,
    )
    for second in range(40):
        for path in (HOT_KEY, f"/srv/photo_{second % 4}"):
            table.put_item(Item={"path": path, "accessed": f"{second:05}", "who": "ana"})
    table.close()
    for shard in (1, 2, 3):  # of a key whose metadata has been deleted
        item = {"path": {"S": f"/srv/lost.txt_{shard}"}, "accessed": {"S": "00001"}}
        database.client.put_item(TableName="Audit", Item=item)


def use_library(url: str) -> None:
    """Call the methods of a ShardedTable on the table Audit, as `writer` and as `reader`."""
    clock = ManualClock()
    shared = {"metadata": "Audit-shards", "endpoint_url": url, "clock": clock}
    shared |= {"placement": "random", "append_only": True}  # as in _write_audit_log
    key = {"path": "/srv/notes.txt", "accessed": "00001"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "ana")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_SESSION_TOKEN", f"{CALLER_PREFIX}writer")
        table = ShardedTable("Audit", **shared)
        table.put_item(Item={**key, "who": "ana"})
        table.put_item(Item={**key, "path": "/srv/other.txt"})
        clock.sleep(60)
        add_shards(table, key["path"], 7)
        clock.sleep(60)
        table.update_item(
            Key=key, UpdateExpression="SET who = :w", ExpressionAttributeValues={":w": "bea"}
        )
        table.batch_write({**key, "accessed": f"{number:05}"} for number in range(5))
        table.delete_item(Key=key)
        table.close()
        patch.setenv("AWS_SESSION_TOKEN", f"{CALLER_PREFIX}reader")
        table = ShardedTable("Audit", **shared)
        assert "Item" not in table.get_item(Key=key)
        assert table.get_item(Key={**key, "path": "/srv/other.txt"})
        assert len([*table.query(key["path"])]) == 4
        table.close()


def tables_of(page: str) -> set[str]:
    """Return the tables that a page's sessions name."""
    commands = " ".join(step.command for block in blocks(page) for step in block.steps)
    return {name for name in TABLES if name in commands}
