"""`keyhop index` on DynamoDB Local: build, read, audit, break it, repair it, remove it."""

import itertools
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from keyhop.cli import index_actions
from keyhop.errors import CannotStart
from keyhop.key_index.collections import Collections
from keyhop.key_index.registry import local_registry
from keyhop.key_index.sentinel import INDEX, LEAST_SORT_KEY, MARKER, Sentinel

from testing.databases import Database, Result, keyhop, partition_value
from testing.key_index_tables import drift, scanned, table_of
from testing.marks import prove

SORT_KEYS: dict[str, list[Any]] = {
    "S": [" before", "!", "a", "\U0010ffff" * 256],
    "N": ["-9.99E+125", "-1", "0", "9.99E+125"],
    "B": [b"\x00", b"\x00k", b"a", b"\xff" * 1024],
}


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def index(database: Database, action: str, table: str, *more: str) -> Result:
    return keyhop("index", action, table, "--endpoint-url", database.url, *more)


def keys_from(database: Database, table: str, *more: str) -> tuple[Result, set[str]]:
    place = ("--endpoint-url", database.url, "--format", "jsonl")
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


def report_of(database: Database, action: str, table: str, path: Path, *more: str) -> Any:
    result = index(database, action, table, "--report", str(path), *more)
    return result.status, json.loads(path.read_bytes())


@pytest.mark.parametrize("type_", ["S", prove("N"), prove("B")])
def test_build_read_break_audit_remove(
    dynamodb: Database, table_name: str, tmp_path: Path, type_: str
) -> None:
    filled(dynamodb, table_name, type_)
    before = list(scanned(dynamodb, table_name))
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    status, built = report_of(dynamodb, "build", table_name, tmp_path / "r")
    assert (status, built["build"]["put"], built["audit"]["drift"]) == (0, 60, 0)
    assert built["audit"]["collections"] == 60
    assert drift(dynamodb, table_name, sentinel) == (set(), set())

    _, by_hops = keys_from(dynamodb, table_name, "--method", "skip")
    read, by_index = keys_from(dynamodb, table_name, "--method", "index")
    assert by_hops == by_index
    assert len(read.keys) == 60
    by_auto, keys = keys_from(dynamodb, table_name)
    assert keys == by_index
    assert "skip: " in by_auto.err
    assert "not its key index: no keeper followed" in by_auto.err

    key = {"pk": {type_: partition_value(type_, 3)}}
    dynamodb.client.delete_item(TableName=table_name, Key=sentinel.key_of(key))
    alone = {"pk": {type_: partition_value(type_, 1_000)}}
    dynamodb.client.put_item(TableName=table_name, Item=sentinel.item_of(alone))
    missing_and_surplus = drift(dynamodb, table_name, sentinel)
    assert [len(names) for names in missing_and_surplus] == [1, 1]
    status, looked = report_of(dynamodb, "audit", table_name, tmp_path / "r", "--no-repair")
    assert (status, looked["missing"], looked["surplus"], looked["repaired"]) == (3, 1, 1, 0)
    assert drift(dynamodb, table_name, sentinel) == missing_and_surplus
    assert len(looked["examples"]["missing"]) == 1
    status, repaired = report_of(dynamodb, "audit", table_name, tmp_path / "r")
    assert (status, repaired["drift"], repaired["repaired"]) == (3, 2, 2)
    assert drift(dynamodb, table_name, sentinel) == (set(), set())
    assert index(dynamodb, "audit", table_name).status == 0

    assert index(dynamodb, "remove", table_name).status == 0
    assert sorted(map(repr, scanned(dynamodb, table_name))) == sorted(map(repr, before))
    told = dynamodb.client.describe_table(TableName=table_name)["Table"]
    assert not told.get("GlobalSecondaryIndexes")
    assert "there is none" in index(dynamodb, "status", table_name).out.decode()


def test_a_build_that_is_repeated_writes_nothing(
    dynamodb: Database, table_name: str, tmp_path: Path
) -> None:
    dynamodb.collections(table_name, [1, 5, 20] * 30)
    assert index(dynamodb, "build", table_name).status == 0
    status, again = report_of(dynamodb, "build", table_name, tmp_path / "r")
    assert (status, again["build"]["put"], again["build"]["write_units"]) == (0, 0, 0)


def test_a_users_items_are_never_changed(dynamodb: Database, table_name: str) -> None:
    dynamodb.collections(table_name, [3] * 20)
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    mine = {
        "pk": {"S": "mine"},
        "sk": LEAST_SORT_KEY["S"],
        "note": {"S": "of a user"},
    }
    marked = {"pk": {"S": "marked"}, "sk": {"S": "x"}, MARKER: {"N": "7"}}
    assert index(dynamodb, "build", table_name).status == 0
    dynamodb.client.put_item(TableName=table_name, Item=mine)
    dynamodb.client.put_item(TableName=table_name, Item=marked)
    before = [item for item in scanned(dynamodb, table_name) if not sentinel.is_one(item)]
    audit = index(dynamodb, "audit", table_name)
    assert audit.status == 3
    assert "an item of yours" in audit.err
    _, keys = keys_from(dynamodb, table_name, "--method", "index")
    assert len(keys) == 21, "the marked item is no sentinel, and its collection has one by now"
    assert index(dynamodb, "remove", table_name).status == 0
    after = list(scanned(dynamodb, table_name))
    assert sorted(map(repr, after)) == sorted(map(repr, before))


def test_a_place_that_is_taken_is_refused(dynamodb: Database, table_name: str) -> None:
    dynamodb.create(table_name)
    dynamodb.client.put_item(
        TableName=table_name, Item={"pk": {"S": "a"}, "sk": LEAST_SORT_KEY["S"]}
    )
    refused = index(dynamodb, "build", table_name)
    assert refused.status == 2
    assert "--sentinel" in refused.err
    assert len(list(scanned(dynamodb, table_name))) == 1
    other = index(dynamodb, "build", table_name, "--sentinel", "!another")
    assert other.status == 0
    assert {item["sk"]["S"] for item in scanned(dynamodb, table_name)} == {"!keyhop", "!another"}
    assert len(keys_from(dynamodb, table_name, "--method", "index")[1]) == 1


def test_auto_reads_an_index_that_is_kept_and_was_audited(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb.collections(table_name, [2] * 5)
    monkeypatch.setattr(index_actions, "keepers_of", lambda stream, endpoint: ["Keyhop-KeepIndex"])
    assert index(dynamodb, "build", table_name).status == 0
    assert "index: the key index is ACTIVE" in keys_from(dynamodb, table_name)[0].err
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    alone = sentinel.item_of({"pk": {"S": "nobody"}})
    dynamodb.client.put_item(TableName=table_name, Item=alone)
    assert index(dynamodb, "audit", table_name, "--grace", "0").status == 3
    assert "not its key index: its last audit" in keys_from(dynamodb, table_name)[0].err
    assert index(dynamodb, "audit", table_name, "--grace", "0").status == 0
    told, keys = keys_from(dynamodb, table_name)
    assert "found no drift" in told.err
    assert len(keys) == 5
    refused = index(dynamodb, "remove", table_name)
    assert (refused.status, "RemoveKeyIndex" in refused.err) == (2, True)
    monkeypatch.setattr(index_actions, "keepers_of", lambda stream, endpoint: None)
    assert "--no-keeper" in index(dynamodb, "remove", table_name).err
    assert index(dynamodb, "remove", table_name, "--no-keeper").status == 0


@pytest.mark.parametrize("action", ["build", "audit", "remove"])
def test_sentinels_are_not_put_beside_those_of_another_place(
    dynamodb: Database,
    table_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
) -> None:
    dynamodb.collections(table_name, [2] * 5)
    assert index(dynamodb, "build", table_name, "--sentinel", "!other").status == 0
    before = sorted(map(repr, scanned(dynamodb, table_name)))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of somebody else"))
    refused = index(dynamodb, action, table_name)
    assert refused.status == 2
    assert "built with another sort key" in refused.err
    assert sorted(map(repr, scanned(dynamodb, table_name))) == before
    assert index(dynamodb, "remove", table_name, "--sentinel", "!other").status == 0
    assert len(list(scanned(dynamodb, table_name))) == 10


def test_an_index_that_somebody_has_deleted_leaves_no_sentinel_behind(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.collections(table_name, [1, 3] * 20)
    before = sorted(map(repr, scanned(dynamodb, table_name)))
    dynamodb.client.put_item(
        TableName=table_name, Item={"pk": {"S": "early"}, "sk": {"S": " before"}}
    )
    assert index(dynamodb, "build", table_name).status == 0
    dynamodb.client.update_table(
        TableName=table_name,
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": INDEX}}],
    )
    assert index(dynamodb, "remove", table_name).status == 0
    assert len(list(scanned(dynamodb, table_name))) == len(before) + 1


def test_a_removal_goes_on_where_it_was_interrupted(dynamodb: Database, table_name: str) -> None:
    dynamodb.collections(table_name, [2] * 20)
    assert index(dynamodb, "build", table_name).status == 0
    table = table_of(dynamodb, table_name)
    registry = local_registry(table)
    sentinel = Sentinel.of(table.space)
    for item in scanned(dynamodb, table_name):
        if sentinel.is_one(item):
            key = {name: item[name] for name in ("pk", "sk")}
            dynamodb.client.delete_item(TableName=table_name, Key=key)
    registry.note_emptied()
    dynamodb.client.update_table(
        TableName=table_name,
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": INDEX}}],
    )
    assert index(dynamodb, "remove", table_name).status == 0
    assert registry.setup() is None
    assert index(dynamodb, "build", table_name, "--sentinel", "#x").status == 0
    assert len(keys_from(dynamodb, table_name, "--method", "index")[1]) == 20


def test_an_index_that_is_being_removed_is_not_read(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removal that cannot go on has deleted some sentinels, and the audit was before that."""
    dynamodb.collections(table_name, [2] * 20)
    monkeypatch.setattr(index_actions, "keepers_of", lambda stream, endpoint: ["Keyhop-KeepIndex"])
    assert index(dynamodb, "build", table_name).status == 0
    assert "index: the key index is ACTIVE" in keys_from(dynamodb, table_name)[0].err
    monkeypatch.setattr(index_actions, "keepers_of", lambda stream, endpoint: [])
    delete = Collections.delete
    monkeypatch.setattr(
        Collections, "delete", failing_after(7, delete, CannotStart("this far and no further"))
    )
    assert index(dynamodb, "remove", table_name).status == 2
    monkeypatch.setattr(index_actions, "keepers_of", lambda stream, endpoint: ["Keyhop-KeepIndex"])
    told, keys = keys_from(dynamodb, table_name)
    assert "no audit of it is on record" in told.err
    assert len(keys) == 20


def failing_after(times: int, call: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    left = iter(range(times))

    def counted(*arguments: Any) -> Any:
        if next(left, None) is None:
            raise error
        return call(*arguments)

    return counted


def test_items_with_the_marker_attribute_are_refused(dynamodb: Database, table_name: str) -> None:
    """Of another type than a number, DynamoDB would refuse them once there is an index."""
    dynamodb.create(table_name)
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}, MARKER: {"S": "mine"}}
    dynamodb.client.put_item(TableName=table_name, Item=item)
    refused = index(dynamodb, "build", table_name)
    assert refused.status == 2
    assert "have an attribute 'keyhop'" in refused.err


@pytest.mark.parametrize(
    ("type_", "place"), [("N", "nan"), ("N", "1e200"), ("B", "$$$$"), ("S", "")]
)
def test_a_place_that_is_no_sort_key_is_refused(
    dynamodb: Database, table_name: str, type_: str, place: str
) -> None:
    dynamodb.create(table_name, ("pk", "S"), ("sk", type_))
    refused = index(dynamodb, "build", table_name, "--sentinel", place)
    assert refused.status == 2
    assert "sort key" in refused.err


def test_a_key_called_like_the_marker_is_refused(dynamodb: Database, table_name: str) -> None:
    dynamodb.create(table_name, ("pk", "S"), (MARKER, "N"))
    refused = index(dynamodb, "build", table_name)
    assert refused.status == 2
    assert "can have no key index" in refused.err


def test_a_state_folder_that_cannot_be_written_is_told_before_the_walk(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb.collections(table_name, [2] * 5)
    assert index(dynamodb, "build", table_name).status == 0
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    refused = index(dynamodb, "audit", table_name)
    assert refused.status == 2
    assert "cannot be made" in refused.err
    assert len(keys_from(dynamodb, table_name)[1]) == 5, "then it hops"


def test_an_interrupted_walk_says_so_and_can_be_repeated(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb.collections(table_name, [2] * 30)
    put = Collections.put
    calls: list[int] = []

    def interrupting(self: Collections, partition: Any) -> bool:
        calls.append(1)
        if len(calls) == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return put(self, partition)

    monkeypatch.setattr(Collections, "put", interrupting)
    interrupted = index(dynamodb, "build", table_name)
    assert (interrupted.status, "Interrupted" in interrupted.err) == (130, True)
    monkeypatch.setattr(Collections, "put", put)
    assert index(dynamodb, "build", table_name).status == 0
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    assert drift(dynamodb, table_name, sentinel) == (set(), set())


def test_a_walk_in_a_directory_goes_on_where_it_was_interrupted(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is settled is not read again: each collection is listed once over both starts."""
    expected = dynamodb.collections(table_name, [2, 1, 3] * 80, filling=4_000)
    where = ("--output", str(tmp_path / "walks"))
    put = Collections.put
    calls = itertools.count()

    def interrupting(self: Collections, partition: Any) -> bool:
        if next(calls) == 160:
            os.kill(os.getpid(), signal.SIGINT)
        return put(self, partition)

    monkeypatch.setattr(Collections, "put", interrupting)
    assert index(dynamodb, "build", table_name, *where).status == 130
    monkeypatch.setattr(Collections, "put", put)
    assert 0 < listed(tmp_path / "walks" / "build").total() < len(expected)
    refused = index(dynamodb, "build", table_name, *where)
    assert (refused.status, "add --resume" in refused.err) == (2, True)
    more = (*where, "--resume")
    status, built = report_of(dynamodb, "build", table_name, tmp_path / "r", *more)
    assert (status, built["audit"]["drift"]) == (0, 0)
    assert built["build"]["collections"] == built["audit"]["collections"] == len(expected)
    for walk in ("build", "audit"):
        assert listed(tmp_path / "walks" / walk) == Counter(expected)
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    assert drift(dynamodb, table_name, sentinel) == (set(), set())
    again = index(dynamodb, "build", table_name, *where)
    assert (again.status, "holds a finished run" in again.err) == (2, True)


def test_what_an_interrupted_audit_has_repaired_is_in_its_report(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages are visited again, when nothing is wrong with them any more."""
    dynamodb.collections(table_name, [2] * 30)
    assert index(dynamodb, "build", table_name).status == 0
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    for number in range(9):
        key = sentinel.key_of({"pk": {"S": f"k{number}"}})
        dynamodb.client.delete_item(TableName=table_name, Key=key)
    where = ("--output", str(tmp_path / "walks"))
    put = Collections.put
    interrupted = CannotStart("this far and no further")
    monkeypatch.setattr(Collections, "put", failing_after(4, put, interrupted))
    assert index(dynamodb, "audit", table_name, *where).status == 2
    monkeypatch.setattr(Collections, "put", put)
    more = (*where, "--resume")
    status, audit = report_of(dynamodb, "audit", table_name, tmp_path / "r", *more)
    assert (status, audit["missing"], audit["repaired"], audit["put"]) == (3, 9, 9, 9)
    assert audit["collections"] == 30


def test_a_page_that_waits_for_the_keeper_is_settled_in_one_slice(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the keeper may need: else the page is read, and waits, again and again."""
    dynamodb.collections(table_name, [2] * 5)
    assert index(dynamodb, "build", table_name).status == 0
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    key = sentinel.key_of({"pk": {"S": "k3"}})
    dynamodb.client.delete_item(TableName=table_name, Key=key)
    monkeypatch.setattr(index_actions, "keepers_of", lambda stream, endpoint: ["Keyhop-KeepIndex"])
    more = ("--grace", "0.4", "--output", str(tmp_path / "walks"))
    status, audit = report_of(dynamodb, "audit", table_name, tmp_path / "r", *more)
    assert (status, audit["missing"], audit["repaired"]) == (3, 1, 1)
    assert len(list((tmp_path / "walks" / "audit" / "commits").iterdir())) == 1


def listed(walk: Path) -> Counter[str]:
    """The collections in the parts of a walk."""
    parts = (walk / "parts").iterdir()
    return Counter(key for part in parts for key in part.read_text().splitlines())


def test_rows_at_another_place_are_not_an_empty_list(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb.collections(table_name, [2] * 5)
    assert index(dynamodb, "build", table_name, "--sentinel", "!other").status == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of somebody else"))
    read = keyhop("keys", table_name, "--endpoint-url", dynamodb.url, "--method", "index")
    assert read.status == 2
    assert "none with the sentinels' sort key" in read.err


def test_a_table_without_a_sort_key_is_refused(dynamodb: Database, table_name: str) -> None:
    dynamodb.create(table_name, ("pk", "S"), None)
    refused = index(dynamodb, "build", table_name)
    assert refused.status == 2
    assert "each item is a collection of its own" in refused.err


@pytest.mark.parametrize(("action", "advice"), [("audit", "index build"), ("remove", "--sweep")])
def test_without_an_index_there_is_nothing_to_do(
    dynamodb: Database, table_name: str, action: str, advice: str
) -> None:
    dynamodb.collections(table_name, [2] * 5)
    refused = index(dynamodb, action, table_name)
    assert refused.status == 2
    assert advice in refused.err
    read = keyhop("keys", table_name, "--endpoint-url", dynamodb.url, "--method", "index")
    assert (read.status, read.out) == (2, b"")


def test_another_index_of_that_name_is_refused(dynamodb: Database, table_name: str) -> None:
    dynamodb.create(
        table_name,
        AttributeDefinitions=[{"AttributeName": "day", "AttributeType": "S"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": INDEX,
                "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    refused = index(dynamodb, "build", table_name)
    assert refused.status == 2
    assert "another shape" in refused.err


def test_a_plan_says_what_a_build_costs_and_writes_nothing(
    dynamodb: Database, table_name: str, tmp_path: Path
) -> None:
    dynamodb.collections(table_name, [3] * 200, filling=200)
    status, told = report_of(dynamodb, "build", table_name, tmp_path / "p", "--plan")
    assert status == 0
    _, built = report_of(dynamodb, "build", table_name, tmp_path / "r")
    assert told["keys"]["exact"]
    assert told["write_units"] == 2 * 200
    written = sum(built[part]["put"] for part in ("build", "audit"))
    assert written == 200
    read = sum(built[part]["read_units"] for part in ("build", "audit"))
    assert read / 1.6 <= told["read_units"] <= read * 1.6


def test_an_index_of_a_provisioned_table_gets_throughput(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.client.create_table(
        TableName=table_name,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 9},
    )
    dynamodb.client.put_item(TableName=table_name, Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    assert index(dynamodb, "build", table_name).status == 0
    (found,) = dynamodb.client.describe_table(TableName=table_name)["Table"][
        "GlobalSecondaryIndexes"
    ]
    assert found["ProvisionedThroughput"]["WriteCapacityUnits"] == 9
