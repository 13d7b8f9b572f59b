"""`keyhop each` on large tables, tables with sentinels and sharded tables."""

import json
from pathlib import Path

import pytest

from testing.databases import Database, keyhop
from testing.key_index_tables import scanned
from testing.marks import prove, prove_long

ITEM = {"sk": "#feature", "run": "${run}"}


@pytest.fixture
def item(tmp_path: Path) -> str:
    path = tmp_path / "item.json"
    path.write_text(json.dumps(ITEM))
    return str(path)


def test_impossible_conditions_are_refused_before_the_keys_are_listed(
    dynamodb: Database, table_name: str, tmp_path: Path, item: str
) -> None:
    dynamodb.create(table_name, ("outcome", "N"))
    where = ("--endpoint-url", dynamodb.url, "-o", str(tmp_path / "run"), "--yes")
    result = keyhop("each", table_name, "--put", item, *where)
    assert (result.status, "is called 'outcome'" in result.err) == (2, True)
    dynamodb.client.delete_table(TableName=table_name)
    dynamodb.create(table_name, ("pk", "N"))
    result = keyhop("each", table_name, "--put", item, "--where", "begins_with(1)", *where)
    assert (result.status, "these keys are numbers" in result.err) == (2, True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("guard", "outcome"), [("look", "guarded"), ("transaction", "gone")])
def test_a_sentinel_is_not_a_witness(
    dynamodb: Database, table_name: str, tmp_path: Path, item: str, guard: str, outcome: str
) -> None:
    keys = dynamodb.collections(table_name, [1] * 12)
    sentinels = [
        {"pk": {"S": key}, "sk": {"S": "!keyhop"}, "keyhop": {"N": "1"}} for key in sorted(keys)
    ]
    dynamodb.fill(table_name, sentinels)
    listed = dynamodb.keys(table_name, "-o", str(tmp_path / "list"))
    assert (listed.status, len(keys)) == (0, 12)
    dynamodb.client.delete_item(
        TableName=table_name, Key={"pk": {"S": "k3"}, "sk": {"S": "000000"}}
    )
    where = ("--endpoint-url", dynamodb.url, "--keys", str(tmp_path / "list"), "--yes")
    result = keyhop(
        *("each", table_name, *where, "--put", item, "--guard", guard, "-f", "json"),
        *("-o", str(tmp_path / "run")),
    )
    assert result.status == 0, result.err
    assert json.loads(result.out)["outcomes"] == {"put": 11, outcome: 1}
    k3_items = [each for each in scanned(dynamodb, table_name) if each["pk"]["S"] == "k3"]
    assert k3_items == [sentinel for sentinel in sentinels if sentinel["pk"]["S"] == "k3"]


def test_items_are_not_put_into_a_sharded_table(
    dynamodb: Database, table_name: str, tmp_path: Path, item: str
) -> None:
    dynamodb.create(table_name)
    shards = [{"pk": {"S": key}, "sk": {"S": "1"}} for key in ("/f", "/f_1", "/f_2", "/g")]
    dynamodb.fill(table_name, shards)
    listed = dynamodb.keys(
        table_name, "-o", str(tmp_path / "list"), "--logical", "--separator", "_"
    )
    assert listed.status == 0, listed.err
    where = ("--endpoint-url", dynamodb.url, "--keys", str(tmp_path / "list"), "--yes")
    result = keyhop("each", table_name, *where, "--put", item, "-o", str(tmp_path / "run"))
    assert result.status == 2
    assert "write with ShardedTable there" in result.err
    assert all(each["sk"] == {"S": "1"} for each in scanned(dynamodb, table_name))


@pytest.mark.parametrize("count", [prove(500), prove(10_000), prove_long(100_000)])
@pytest.mark.timeout(1800)
def test_many_collections_cost_what_the_guard_says(
    dynamodb: Database, table_name: str, tmp_path: Path, item: str, count: int
) -> None:
    dynamodb.collections(table_name, [2] * count)
    where = ("--endpoint-url", dynamodb.url, "-f", "json", "--yes", "-q")
    rate = ("--max-write-rate", "1000000")
    put = ("--put", item, "-o", str(tmp_path / "run"), *rate)
    result = keyhop("each", table_name, *where, *put)
    assert result.status == 0, result.err
    report = json.loads(result.out)
    assert report["outcomes"] == {"put": count}
    assert report["write_units"] == count
    assert report["read_units"] == count, "one look per collection"
    undo = ("--undo", str(tmp_path / "run"), *rate)
    result = keyhop("each", table_name, *where, *undo)
    assert result.status == 0, result.err
    assert json.loads(result.out)["outcomes"] == {"deleted": count}
