"""The construction and the closing of a ShardedTable."""

import threading
from decimal import Decimal
from typing import Any

import boto3
import keyhop
import pytest
from boto3.dynamodb.conditions import Attr, Key
from keyhop.errors import CannotStart, Unreachable

from testing.databases import Database
from testing.standin.server import StandIn
from tests.integration.sharding.single import Place
from tests.public.conftest import boto3s_table

NOWHERE = "http://127.0.0.1:9"
ITEM = {"path": "/f", "at": "b", "n": Decimal("1.5"), "data": {"list": [1, None, {b"x"}]}}


def test_a_table_by_its_arn(strict: Database, stand_in: StandIn, table_name: str) -> None:
    """Only real DynamoDB accepts ARNs, so the stand-in replaces them with names."""
    Place(strict, table_name)
    arns = [
        f"arn:aws:dynamodb:eu-west-1:111122223333:table/{table_name}{n}" for n in ("", "-shards")
    ]
    names, answer = set(), stand_in.answer

    def by_arn(operation: str, request: Any) -> Any:
        parts = [part for item in request.get("TransactItems", ()) for part in item.values()]
        for part in parts or [request]:
            names.add(part["TableName"])
            part["TableName"] = part["TableName"].rpartition("/")[2]
        return answer(operation, request)

    stand_in.answer = by_arn  # type: ignore[method-assign]
    with keyhop.ShardedTable(arns[0], metadata=arns[1], endpoint_url=strict.url) as table:
        table.put_item(Item=ITEM)
        assert table.get_item(Key={"path": "/f", "at": "b"})["Item"] == ITEM
        assert table.requests.client.region == "eu-west-1"
    assert names == {*arns}


def test_boto3s_table_sends_the_requests(dynamodb: Database, table_name: str) -> None:
    place = Place(dynamodb, table_name)
    with place.table(table=boto3s_table(dynamodb, table_name)) as table:
        table.put_item(Item=ITEM)
        assert table.get_item(Key={"path": "/f", "at": "b"})["Item"] == ITEM
        assert table.batch_write([{"path": "/f", "at": f"c{n}"} for n in range(30)]).written == 30
        page = table.query(
            KeyConditionExpression=Key("path").eq("/f"),
            FilterExpression=Attr("n").not_exists(),
        )
        assert page["Count"] == 30
        assert len([*table.query("/f")]) == 31
        keyhop.ShardedCounter(table).add("/n", 2, token="t")
        assert keyhop.ShardedCounter(table).value("/n", consistent=True) == 2
        table.delete_item(Key={"path": "/f", "at": "b"})
        assert "Item" not in table.get_item(Key={"path": "/f", "at": "b"})
    with place.table() as table:
        assert len([*table.query("/f")]) == 30


def test_a_local_database_needs_no_credentials(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", dynamodb.url)
    Place(dynamodb, table_name)
    shards = f"{table_name}-shards"
    with keyhop.ShardedTable(table_name, metadata=shards) as table:
        table.put_item(Item=ITEM)
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
    with keyhop.ShardedTable(table_name, metadata=shards, endpoint_url=dynamodb.url) as table:
        assert [*table.query("/f")]
    table = keyhop.ShardedTable(table_name, metadata=shards, patience=0.1)
    with pytest.raises(Unreachable, match=NOWHERE):
        table.put_item(Item=ITEM)


def test_wrong_arguments_are_refused(dynamodb: Database) -> None:
    table = boto3s_table(dynamodb, "T")
    for value in (None, 7, ""):
        with pytest.raises(CannotStart, match="must be the name or the ARN of a table, or boto3's"):
            keyhop.ShardedTable(value, metadata="T-shards")
    with pytest.raises(CannotStart, match="leave session and endpoint_url out"):
        keyhop.ShardedTable(table, metadata="T-shards", endpoint_url=dynamodb.url)
    for arguments in ({"session": boto3.Session()}, {"endpoint_url": dynamodb.url}):
        with pytest.raises(CannotStart, match="client"):
            keyhop.ShardedTable("T", metadata="T-shards", client=table.meta.client, **arguments)
    with pytest.raises(CannotStart, match="separator"):
        keyhop.ShardedTable("T", metadata="T-shards", separator="1", endpoint_url=dynamodb.url)


def test_the_end_of_the_with_block_closes_the_table(dynamodb: Database, table_name: str) -> None:
    place = Place(dynamodb, table_name)
    before = threading.active_count()
    with place.table() as table:
        table.put_item(Item=ITEM)
        assert [*table.query("/f")]
    assert threading.active_count() <= before  # one of an earlier test may have ended
    assert [*table.query("/f")], "a later call opens it again"
    table.close()
