"""Puts and undos that are killed anywhere, on DynamoDB Local: the same result, and exact counts."""

import random
from collections import Counter
from collections.abc import Callable
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
"""Keys whose collections have such an item of a user's; and whose collections are deleted after
they were listed."""


class Killed:
    """Ends a process at its n-th call, before it is served or after; and all of its threads."""

    def __init__(self, at: int, after: bool) -> None:
        self.left, self.after = at, after
        self.lock = Lock()

    def step(self, after: bool) -> None:
        with self.lock:
            if after is self.after:
                self.left -= 1
            if self.left <= 0:
                raise Crash


class Runs:
    def __init__(self, database: Database, table: str, path: Path) -> None:
        self.database, self.table, self.path = database, table, path
        listed = database.keys(table, "-o", str(path / "list"), "--segments", "9")
        assert listed.status == 0

    def job(self, effect: Any, over: str, folder: str, resume: bool, killed: Killed | None):
        connection = connect(Endpoint(region="us-east-1", url=self.database.url), 8)
        client = Meddling(connection.client)
        if killed is not None:

            def before(operation: str, parameters: Params) -> None:
                killed.step(after=False)

            def after(operation: str, parameters: Params) -> None:
                killed.step(after=True)

            client.before, client.after = before, after
        connection = Connection(client, connection.endpoint)  # type: ignore[arg-type]

        def each(connection: Connection, options: Any) -> EachTask:
            return EachTask(
                connection, options, lambda name: Journal(Directory(self.path / name)), effect_of
            )

        options = {
            "effect": effect,
            "keys": over,
            "max_write_rate": None,
            "max_write_units": None,
        }
        journal = opened(self.path / folder, resume)
        job = LocalJob(
            Request(self.table, "each", options, format="jsonl"),
            {"each": each},
            connection,
            journal,
        )
        try:
            job.prepare(look_up(connection, self.table))
            job.begin()
        finally:
            journal.store.unlock()  # type: ignore[attr-defined]
        return job

    def counts(self, effect: Any, over: str, folder: str, kills: Callable[[int], Killed]) -> Any:
        """Of a run that is killed again and again, and gone on with."""
        for number in range(6):
            try:
                begun = (self.path / folder / "run.json").exists()
                if self.job(effect, over, folder, begun, kills(number)).work():
                    break
            except Crash:
                continue
        job = self.job(effect, over, folder, (self.path / folder / "run.json").exists(), None)
        assert job.work()
        return job.finish()[1]["counts"]


@pytest.fixture
def runs(dynamodb: Database, table_name: str, tmp_path: Path) -> Runs:
    dynamodb.collections(table_name, [1 + number % 3 for number in range(KEYS)])
    made = Runs(dynamodb, table_name, tmp_path)
    theirs = [
        {"pk": {"S": f"k{number}"}, "sk": {"S": "#feature"}, "run": {"S": "another"}}
        for number in range(THERE)
    ]
    dynamodb.fill(table_name, theirs)
    for number in range(KEYS - GONE, KEYS):
        for item in range(1 + number % 3):
            key = {"pk": {"S": f"k{number}"}, "sk": {"S": f"{item:06}"}}
            dynamodb.client.delete_item(TableName=table_name, Key=key)
    return made


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
def test_a_put_and_its_undo_killed_anywhere_count_each_key_once(
    runs: Runs, guard: str, seed: int
) -> None:
    chance = random.Random(seed)

    def kills(number: int) -> Killed:
        return Killed(chance.randint(3, 500), chance.random() < 0.5)

    put = {"kind": "put", "item": template_json(ITEM), "guard": guard, "overwrite": False}
    counts = runs.counts(put, "list", "run", kills)
    missing = {"none": "put", "look": "guarded", "transaction": "gone"}[guard]
    expected = Counter({"there": THERE, "put": KEYS - THERE - GONE}) + Counter({missing: GONE})
    assert counts == expected
    assert features(runs) == {"ours": expected["put"], "theirs": THERE}

    changed = {"pk": {"S": "k100"}, "sk": {"S": "#feature"}, "of": {"S": "a user's"}}
    runs.database.client.put_item(TableName=runs.table, Item=changed)
    gone = {"pk": {"S": "k101"}, "sk": {"S": "#feature"}}
    runs.database.client.delete_item(TableName=runs.table, Key=gone)
    counts = runs.counts({"kind": "undo"}, "run", "undo", kills)
    assert counts == {"deleted": expected["put"] - 2, "changed": 1, "gone": 1}
    assert features(runs) == {"ours": 1, "theirs": THERE}, "the one that was changed"


@pytest.mark.parametrize("seed", [1, *map(prove, range(2, 6))])
def test_a_deletion_killed_anywhere_counts_each_key_once(runs: Runs, seed: int) -> None:
    chance = random.Random(seed)
    delete = {"kind": "delete", "item": template_json(ITEM and {"sk": "#feature"})}
    counts = runs.counts(
        delete,
        "list",
        "run",
        lambda number: Killed(chance.randint(3, 30), chance.random() < 0.5),
    )
    assert counts == {"deleted": THERE, "gone": KEYS - THERE}
    assert not features(runs)
