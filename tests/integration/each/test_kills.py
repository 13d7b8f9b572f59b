"""Puts, undos and deletions on DynamoDB Local that are killed anywhere have exact counts."""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.each.task import EachTask, effect_of
from keyhop.each.template import template_json
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob, opened
from keyhop.jobs.request import Request
from keyhop.storage.local import Directory

from testing.databases import Database
from testing.key_index_tables import scanned
from testing.marks import prove
from tests.integration.crashing import Crash
from tests.integration.each.meddling import Meddling, Params

ITEM = {"sk": "#feature", "run": "${run}", "of": "${key}"}
KEYS = 400
THERE, GONE = 40, 30
"""The number of keys that have an item of a user, and of those that are deleted after the list."""


class Kill:
    """The simulated end of a process, with all threads, before or after its n-th call is served."""

    def __init__(self, at: int, after: bool) -> None:
        self.remaining, self.after = at, after
        self.lock = Lock()

    def step(self, after: bool) -> None:
        with self.lock:
            if after is self.after:
                self.remaining -= 1
            if self.remaining <= 0:
                raise Crash


class Runs:
    def __init__(self, database: Database, table: str, path: Path) -> None:
        self.database, self.table, self.path = database, table, path
        listed = database.keys(table, "-o", str(path / "list"), "--segments", "9")
        assert listed.status == 0

    def job(self, effect: Any, over: str, folder: str, kill: Kill | None):
        connection = connect(Endpoint(region="us-east-1", url=self.database.url), 8)
        client = Meddling(connection.client)
        if kill is not None:

            def before(operation: str, parameters: Params) -> None:
                kill.step(after=False)

            def after(operation: str, parameters: Params) -> None:
                kill.step(after=True)

            client.before, client.after = before, after
        connection = Connection(client, connection.endpoint)  # type: ignore[arg-type]

        def each(connection: Connection, options: Any) -> EachTask:
            return EachTask(
                connection, options, lambda name: Journal(Directory(self.path / name)), effect_of
            )

        limits = {"max_write_rate": None, "max_write_units": None}
        options = {"effect": effect, "keys": over, **limits}
        journal = opened(self.path / folder, (self.path / folder / "run.json").exists())
        request = Request(self.table, "each", options, format="jsonl")
        job = LocalJob(request, {"each": each}, connection, journal)
        try:
            job.prepare(look_up(connection, self.table))
            job.begin()
        finally:
            journal.store.unlock()  # type: ignore[attr-defined]
        return job

    def counts(self, effect: Any, over: str, folder: str, next_kill: Callable[[], Kill]) -> Any:
        """Return the outcomes of a run that is killed and resumed repeatedly."""
        for _ in range(6):
            with suppress(Crash):
                if self.job(effect, over, folder, next_kill()).work():
                    break
        job = self.job(effect, over, folder, None)
        assert job.work()
        return job.finish()[1]["counts"]


@pytest.fixture
def runs(dynamodb: Database, table_name: str, tmp_path: Path) -> Runs:
    dynamodb.collections(table_name, [1 + number % 3 for number in range(KEYS)])
    runs = Runs(dynamodb, table_name, tmp_path)
    user_items = [
        {"pk": {"S": f"k{number}"}, "sk": {"S": "#feature"}, "run": {"S": "another"}}
        for number in range(THERE)
    ]
    dynamodb.fill(table_name, user_items)
    for number in range(KEYS - GONE, KEYS):
        for item in range(1 + number % 3):
            key = {"pk": {"S": f"k{number}"}, "sk": {"S": f"{item:06}"}}
            dynamodb.client.delete_item(TableName=table_name, Key=key)
    return runs


def features(runs: Runs) -> Counter[str]:
    items = scanned(runs.database, runs.table)
    return Counter(
        "ours" if "of" in item else "theirs" for item in items if item["sk"]["S"] == "#feature"
    )


@pytest.mark.prove
@pytest.mark.parametrize(
    ("guard", "seed"),
    [(guard, seed) for guard in ("none", "look", "transaction") for seed in range(1, 8)],
)
def test_a_killed_put_and_its_killed_undo_count_each_key_once(
    runs: Runs, guard: str, seed: int
) -> None:
    chance = random.Random(seed)

    def next_kill() -> Kill:
        return Kill(chance.randint(3, 500), chance.random() < 0.5)

    put = {"kind": "put", "item": template_json(ITEM), "guard": guard, "overwrite": False}
    counts = runs.counts(put, "list", "run", next_kill)
    missing = {"none": "put", "look": "guarded", "transaction": "gone"}[guard]
    expected = Counter({"there": THERE, "put": KEYS - THERE - GONE}) + Counter({missing: GONE})
    assert counts == expected
    assert features(runs) == {"ours": expected["put"], "theirs": THERE}

    changed = {"pk": {"S": "k100"}, "sk": {"S": "#feature"}, "of": {"S": "a user's"}}
    runs.database.client.put_item(TableName=runs.table, Item=changed)
    deleted = {"pk": {"S": "k101"}, "sk": {"S": "#feature"}}
    runs.database.client.delete_item(TableName=runs.table, Key=deleted)
    counts = runs.counts({"kind": "undo"}, "run", "undo", next_kill)
    assert counts == {"deleted": expected["put"] - 2, "changed": 1, "gone": 1}
    assert features(runs) == {"ours": 1, "theirs": THERE}, "the changed item remains"


@pytest.mark.parametrize("seed", [1, *map(prove, range(2, 6))])
def test_a_killed_deletion_counts_each_key_once(runs: Runs, seed: int) -> None:
    chance = random.Random(seed)
    delete = {"kind": "delete", "item": template_json({"sk": "#feature"})}

    def next_kill() -> Kill:
        return Kill(chance.randint(3, 30), chance.random() < 0.5)

    counts = runs.counts(delete, "list", "run", next_kill)
    assert counts == {"deleted": THERE, "gone": KEYS - THERE}
    assert not features(runs)
