"""`keyhop index` on DynamoDB Local: build, read, verify, break it, repair it, remove it."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb import tables
from keyhop.key_index import provisioned
from keyhop.key_index.registry import local_registry
from keyhop.key_index.sentinel import INDEX, LEAST_SORT_KEY, MARKER, Sentinel

from testing.databases import Database, keyhop, partition_value
from testing.keepers import FakeLambda
from testing.key_index_tables import drift, scanned, table_of
from testing.marks import prove
from tests.integration.key_index.command import (
    STALE,
    filled,
    index,
    keys_from,
    report_of,
)


@pytest.mark.parametrize("type_", ["S", prove("N"), prove("B")])
def test_build_read_break_verify_remove(
    dynamodb: Database, table_name: str, tmp_path: Path, type_: str
) -> None:
    filled(dynamodb, table_name, type_)
    before = list(scanned(dynamodb, table_name))
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    status, built = report_of(dynamodb, "build", table_name)
    assert (status, built["build"]["put"], built["verification"]["drift"]) == (0, 60, 0)
    assert built["verification"]["collections"] == 60
    assert drift(dynamodb, table_name, sentinel) == (set(), set())

    _, by_hops = keys_from(dynamodb, table_name, "--method", "skip")
    read, by_index = keys_from(dynamodb, table_name, *STALE)
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
    status, looked = report_of(dynamodb, "verify", table_name, "--no-repair")
    assert (status, looked["missing"], looked["surplus"], looked["repaired"]) == (3, 1, 1, 0)
    assert drift(dynamodb, table_name, sentinel) == missing_and_surplus
    assert len(looked["examples"]["missing"]) == 1
    status, repaired = report_of(dynamodb, "verify", table_name)
    assert (status, repaired["drift"], repaired["repaired"]) == (3, 2, 2)
    assert drift(dynamodb, table_name, sentinel) == (set(), set())
    assert index(dynamodb, "verify", table_name).status == 0

    assert index(dynamodb, "remove", table_name).status == 0
    assert sorted(map(repr, scanned(dynamodb, table_name))) == sorted(map(repr, before))
    told = dynamodb.client.describe_table(TableName=table_name)["Table"]
    assert not told.get("GlobalSecondaryIndexes")
    assert "there is none" in index(dynamodb, "status", table_name).out.decode()


@pytest.mark.prove
def test_a_build_that_is_repeated_writes_nothing(
    dynamodb: Database, table_name: str, tmp_path: Path
) -> None:
    dynamodb.collections(table_name, [1, 5, 20] * 30)
    assert index(dynamodb, "build", table_name).status == 0
    status, again = report_of(dynamodb, "build", table_name)
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
    verification = index(dynamodb, "verify", table_name)
    assert verification.status == 3
    assert b"an item of yours" in verification.out
    _, keys = keys_from(dynamodb, table_name, *STALE)
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
    assert len(keys_from(dynamodb, table_name, *STALE)[1]) == 1


@pytest.mark.parametrize("more", [("--stack", "None such"), ("--stack", "")])
def test_a_stack_that_is_none_is_told(
    dynamodb: Database, table_name: str, lambdas: FakeLambda, more: tuple[str, ...]
) -> None:
    dynamodb.collections(table_name, [2] * 2)
    refused = index(dynamodb, "status", table_name, *more)
    assert (refused.status, "stack" in refused.err) == (2, True)


@pytest.mark.parametrize("action", ["build", "verify", "remove"])
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


@pytest.mark.prove
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
    registry.take("a removal", "remove", lambda *_: False)
    registry.change("a removal", emptied=True, lease=None)
    dynamodb.client.update_table(
        TableName=table_name,
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": INDEX}}],
    )
    assert index(dynamodb, "remove", table_name).status == 0
    assert registry.entry().sentinel is None
    assert index(dynamodb, "build", table_name, "--sentinel", "#x").status == 0
    assert len(keys_from(dynamodb, table_name, *STALE)[1]) == 20


def test_items_with_the_marker_attribute_are_refused(dynamodb: Database, table_name: str) -> None:
    """Of another type than a number, DynamoDB would refuse them once there is an index."""
    dynamodb.create(table_name)
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}, MARKER: {"S": "mine"}}
    dynamodb.client.put_item(TableName=table_name, Item=item)
    refused = index(dynamodb, "build", table_name)
    assert refused.status == 2
    assert "have an attribute 'keyhop'" in refused.err


@pytest.mark.prove
def test_a_refused_build_names_what_stands_in_its_way(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than the first on the screen, all in the report; the sample did not see them."""
    dynamodb.collections(table_name, [3] * 150)
    mine = [{"pk": {"S": f"k{n}"}, "sk": LEAST_SORT_KEY["S"]} for n in range(100, 112)]
    dynamodb.fill(table_name, mine)
    monkeypatch.setattr("keyhop.key_index.life_cycle.check_items", lambda *_: None)
    refused = index(dynamodb, "build", table_name, "--format", "typed-json")
    brief = index(dynamodb, "build", table_name)
    assert (refused.status, brief.status) == (2, 2)
    assert "12 collections have an item of yours" in refused.err
    assert "verification.json" not in refused.err
    report = json.loads(refused.out)
    assert {key["pk"]["S"] for key in report["examples"]["occupied"]} == {
        item["pk"]["S"] for item in mine
    }
    assert brief.err.count("'pk'") == 10
    assert "and 2 more; --format json names all" in brief.err


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
    assert "cannot have a key index" in refused.err


def test_a_state_folder_that_cannot_be_written_is_told_before_the_walk(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb.collections(table_name, [2] * 5)
    assert index(dynamodb, "build", table_name).status == 0
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    refused = index(dynamodb, "verify", table_name)
    assert refused.status == 2
    assert "cannot be made" in refused.err
    assert len(keys_from(dynamodb, table_name)[1]) == 5, "then it hops"


def test_rows_at_another_place_are_not_an_empty_list(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb.collections(table_name, [2] * 5)
    assert index(dynamodb, "build", table_name, "--sentinel", "!other").status == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of somebody else"))
    read = keyhop("keys", table_name, "--endpoint-url", dynamodb.url, *STALE)
    assert read.status == 2
    assert "none with the sort key of sentinels" in read.err


def test_a_table_without_a_sort_key_is_refused(dynamodb: Database, table_name: str) -> None:
    dynamodb.create(table_name, ("pk", "S"), None)
    refused = index(dynamodb, "build", table_name)
    assert refused.status == 2
    assert "each item is a separate collection" in refused.err


@pytest.mark.parametrize(
    ("action", "advice"), [("verify", "build one first"), ("remove", "--sweep")]
)
def test_without_an_index_there_is_nothing_to_do(
    dynamodb: Database, table_name: str, action: str, advice: str
) -> None:
    dynamodb.collections(table_name, [2] * 5)
    refused = index(dynamodb, action, table_name)
    assert refused.status == 2
    assert advice in refused.err
    read = keyhop("keys", table_name, "--endpoint-url", dynamodb.url, *STALE)
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


@pytest.mark.prove
def test_a_plan_says_what_a_build_costs_and_writes_nothing(
    dynamodb: Database, table_name: str, tmp_path: Path
) -> None:
    dynamodb.collections(table_name, [3] * 200, filling=200)
    status, told = report_of(dynamodb, "build", table_name, "--dry-run")
    assert status == 0
    _, built = report_of(dynamodb, "build", table_name)
    assert told["keys"]["exact"]
    assert told["write_units"] == 2 * 200
    written = sum(built[part]["put"] for part in ("build", "verification"))
    assert written == 200
    read = sum(built[part]["read_units"] for part in ("build", "verification"))
    assert read / 1.6 <= told["read_units"] <= read * 1.6


def test_an_index_of_a_provisioned_table_gets_little_throughput_and_not_the_tables(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates = []

    def remember(*about: Any, **changes: Any) -> dict[str, Any]:
        updates.extend([changes] if "update_table" in about else [])
        return request(*about, **changes)

    request = tables.request
    for module in (tables, provisioned):
        monkeypatch.setattr(module, "request", remember)
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
        ProvisionedThroughput={"ReadCapacityUnits": 5000, "WriteCapacityUnits": 10000},
    )
    dynamodb.client.put_item(TableName=table_name, Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    planned = index(dynamodb, "build", table_name, "--max-write-rate", "800", "--dry-run")
    said = " ".join((planned.out.decode() + planned.err).split())
    assert "400 WCU and 5 RCU while it is built" in said
    assert index(dynamodb, "build", table_name, "--max-write-rate", "800").status == 0
    (created,), (lowered,) = (one["GlobalSecondaryIndexUpdates"] for one in updates)
    kept = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    assert created["Create"]["ProvisionedThroughput"] == {**kept, "WriteCapacityUnits": 400}
    assert lowered["Update"]["ProvisionedThroughput"] == kept
    (found,) = dynamodb.client.describe_table(TableName=table_name)["Table"][
        "GlobalSecondaryIndexes"
    ]
    assert kept.items() <= found["ProvisionedThroughput"].items()


def test_every_action_puts_its_result_out_as_asked(dynamodb: Database, table_name: str) -> None:
    """Text or JSON or CSV on standard output; keys in DynamoDB's form, or plain."""
    dynamodb.create(table_name)
    dynamodb.fill(table_name, [{"pk": {"S": "a"}, "sk": {"S": "x"}}])
    built = index(dynamodb, "build", table_name, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(built.out.decode())))
    assert [(row["kind"], row["collections"]) for row in rows] == [("build", "1"), ("verify", "1")]
    assert index(dynamodb, "verify", table_name).out.startswith(b"No drift: 1 ")
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    dynamodb.client.delete_item(TableName=table_name, Key=sentinel.key_of({"pk": {"S": "a"}}))
    look = ("verify", table_name, "--no-repair", "--quiet", "--format")
    for format_, key in (("typed-json", {"pk": {"S": "a"}}), ("json", {"pk": "a"})):
        told = json.loads(index(dynamodb, *look, format_).out)
        assert (told["missing"], told["examples"]["missing"]) == (1, [key])
    assert index(dynamodb, *look[:-1]).out == b""
    assert json.loads(index(dynamodb, "status", table_name, "-f", "json").out)["index"] == "ACTIVE"
    assert json.loads(index(dynamodb, "remove", table_name, "-f", "json").out)["deleted"] == 0
