"""Large tables, tables with sentinels, and sharded ones: done, or refused with a sentence."""

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


def test_what_cannot_be_asked_of_keys_is_refused_before_they_are_listed(
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
def test_a_sentinel_is_no_witness(
    dynamodb: Database, table_name: str, tmp_path: Path, item: str, guard: str, outcome: str
) -> None:
    keys = dynamodb.collections(table_name, [1] * 12)
    sentinels = [
        {"pk": {"S": key}, "sk": {"S": "!keyhop"}, "keyhop": {"N": "1"}} for key in sorted(keys)
    ]
    dynamodb.fill(table_name, sentinels)
    listed = dynamodb.keys(table_name, "-o", str(tmp_path / "list"))
    assert (listed.status, len(keys)) == (0, 12)
    gone = {"pk": {"S": "k3"}, "sk": {"S": "000000"}}
    dynamodb.client.delete_item(TableName=table_name, Key=gone)
    where = ("--endpoint-url", dynamodb.url, "--keys", str(tmp_path / "list"), "--yes")
    result = keyhop(
        *("each", table_name, *where, "--put", item, "--guard", guard, "-f", "json"),
        *("-o", str(tmp_path / "run")),
    )
    assert result.status == 0, result.err
    assert json.loads(result.out)["outcomes"] == {"put": 11, outcome: 1}
    of_k3 = [one for one in scanned(dynamodb, table_name) if one["pk"]["S"] == "k3"]
    assert of_k3 == [one for one in sentinels if one["pk"]["S"] == "k3"]


def test_items_are_not_put_where_sharded_tables_would_not_find_them(
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
    assert all(one["sk"] == {"S": "1"} for one in scanned(dynamodb, table_name))


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
    told = json.loads(result.out)
    assert told["outcomes"] == {"put": count}
    assert told["write_units"] == count
    assert told["read_units"] == count, "a look at one item, each"
    undo = ("--undo", str(tmp_path / "run"), *rate)
    result = keyhop("each", table_name, *where, *undo)
    assert result.status == 0, result.err
    assert json.loads(result.out)["outcomes"] == {"deleted": count}
