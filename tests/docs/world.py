"""Where sessions are played: tables with data, AWS on loopback, and who asks for what.

Orders has 120 customers with 6 orders each, and an index by-day; Audit is sharded, and has keys
that themselves end like shards.
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
from tests.docs.sessions import Ended, Run, blocks
from tests.infra.template import ACCOUNT
from tests.recording.calls import Kinds
from tests.recording.proxy import Answer, Request
from tests.recording.recorder import Recorder

PEOPLE = "Person-"
"""Begins the session token of a command: it names who asks."""

TABLES = ("Orders", "Audit", "Audit-shards")
NEW = ("OrdersByDay", "OrdersByDay.rekey")
"""Made by sessions."""

KINDS = Kinds({name: name for name in (*TABLES, *NEW)}, "Orders", frozenset((*TABLES, *NEW)))
OUR_REGION = "us-east-1"
"""Its prices are known."""

HOT = "/srv/budget.xlsx"
BEGAN = 1_795_000_000.0
"""When the sessions of sharded tables happen; their clock goes on when somebody waits."""

TELLING = ("--index", "--logical", "--metadata", "--stack", "--remote")
"""Options by which a command asks for more than without them."""


class Time:
    """A clock that goes on when somebody waits, and only then."""

    def __init__(self) -> None:
        self.now = BEGAN

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class People(Recorder):
    """Takes down what commands ask for."""

    def __init__(self) -> None:
        super().__init__(KINDS, PEOPLE)


class Alone(People):
    """Of DynamoDB Local alone: answers for other services, and gives its ARNs an account."""

    def before(self, request: Request) -> Answer | None:
        answer = super().before(request)
        if answer is None and "DynamoDB" not in request.headers.get("x-amz-target", ""):
            return self.after(request, Answer(200, b'{"EventSourceMappings": []}'))
        return answer

    def after(self, request: Request, answer: Answer) -> Answer:
        answer = super().after(request, answer)
        body = answer.body.replace(b"ddblocal:000000000000", f"{OUR_REGION}:{ACCOUNT}".encode())
        kept = {k: v for k, v in answer.headers.items() if k.lower() != "x-amz-crc32"}
        return Answer(answer.status, body, kept)


def ways() -> dict[str, click.Command]:
    """Each command, by its words."""
    return dict(_below(command, "keyhop"))


def _below(group: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    children = getattr(group, "commands", {})
    if not children:
        yield name, group
    for child, sub in children.items():
        yield from _below(sub, f"{name} {child}")


def way_of(arguments: list[str]) -> str:
    """Who asks: the command's words, and the options that make a difference."""
    told = ["keyhop", *arguments]
    name = max((way for way in ways() if told[: len(way.split())] == way.split()), default="keyhop")
    return " ".join((name, *(option for option in TELLING if option in arguments)))


@contextmanager
def at_home(folder: Path, **environment: str) -> Iterator[Run]:
    """`keyhop` as somebody has it in whose environment stands where his AWS is."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AWS_", "KEYHOP_"))]:
            patch.delenv(name)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, os.devnull)
        patch.setenv("AWS_REGION", OUR_REGION)
        patch.setenv("AWS_ACCESS_KEY_ID", "ana")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setenv("XDG_STATE_HOME", str(folder / ".local" / "state"))
        patch.setenv("COLUMNS", "100")
        patch.chdir(folder)
        patch.setattr(Shards, "_clock", Time())
        patch.setattr(Rekey, "_tasks", staticmethod(at_once))

        def keyhop(arguments: list[str], apart: bool) -> Ended:
            patch.setenv("AWS_SESSION_TOKEN", PEOPLE + way_of(arguments))
            out, said = io.BytesIO(), io.BytesIO()
            to_out, to_said = _text(out), _text(said if apart else out)
            with redirect_stdout(to_out), redirect_stderr(to_said):
                status = main(arguments)
            return Ended(status, said.getvalue().decode(), out.getvalue())

        yield keyhop


def _text(stream: io.BytesIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding="utf-8", write_through=True)


@contextmanager
def tables(database: Database, wanted: set[str]) -> Iterator[None]:
    """Those of TABLES that are wanted, until the block ends."""
    made = [
        name for name in TABLES if any(one.startswith(name.partition("-")[0]) for one in wanted)
    ]
    try:
        if "Orders" in made:
            database.create("Orders", ("customer", "S"), ("order", "S"), **BY_DAY)
            database.fill("Orders", _orders())
        if "Audit" in made:
            database.create("Audit", ("path", "S"), ("accessed", "S"))
            database.create("Audit-shards", ("path", "S"), None)
            _write_audit_log(database)
        yield
    finally:
        for name in set(database.tables()) & {*made, *NEW}:
            database.client.delete_table(TableName=name)


def _orders() -> Iterator[dict[str, Any]]:
    for customer in range(120):
        for order in range(6):
            day = {"day": {"S": f"2026-11-{1 + order:02}"}}
            key = {"customer": {"S": f"customer-{customer:04}"}, "order": {"S": f"{order:06}"}}
            yield {**key, **day, "items": {"S": "x" * 3500}}


def _write_audit_log(database: Database) -> None:
    clock = Time()
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
        for path in (HOT, f"/srv/photo_{second % 4}"):
            table.put_item(Item={"path": path, "accessed": f"{second:05}", "who": "ana"})
    table.close()
    for shard in (1, 2, 3):  # of a key whose metadata somebody has deleted
        item = {"path": {"S": f"/srv/lost.txt_{shard}"}, "accessed": {"S": "00001"}}
        database.client.put_item(TableName="Audit", Item=item)


def use_library(url: str) -> None:
    """What users of a ShardedTable do, as `writer` and as `reader`, on the table Audit."""
    clock = Time()
    shared = {"metadata": "Audit-shards", "endpoint_url": url, "clock": clock}
    shared |= {"placement": "random", "append_only": True}  # as the table's log is written
    key = {"path": "/srv/notes.txt", "accessed": "00001"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "ana")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_SESSION_TOKEN", f"{PEOPLE}writer")
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
        patch.setenv("AWS_SESSION_TOKEN", f"{PEOPLE}reader")
        table = ShardedTable("Audit", **shared)
        assert "Item" not in table.get_item(Key=key)
        assert table.get_item(Key={**key, "path": "/srv/other.txt"})
        assert len([*table.query(key["path"])]) == 4
        table.close()


def named(page: str) -> set[str]:
    """The tables that a page's sessions name."""
    told = " ".join(step.command for block in blocks(page) for step in block.steps)
    return {name for name in TABLES if name in told}
