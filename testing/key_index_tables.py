"""Tables with sentinels, their drift, and their streams."""

from collections import defaultdict
from collections.abc import Iterator
from threading import Event
from typing import Any

import boto3
from keyhop.dynamodb.client import Connection, DynamoDB, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import Table, look_up
from keyhop.dynamodb.values import canonical, to_json
from keyhop.key_index.keeper import Collections
from keyhop.key_index.sentinel import INDEX, Sentinel

from testing.databases import Database
from testing.servers import LOCAL_CREDENTIALS

STREAM = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}


def table_of(database: Database, table: str) -> Table:
    return look_up(connect(Endpoint(url=database.url)), table)


def delete_index(database: Database, table: str) -> None:
    """Delete the key index, and wait until it is gone."""
    change = [{"Delete": {"IndexName": INDEX}}]
    database.client.update_table(TableName=table, GlobalSecondaryIndexUpdates=change)
    while table_of(database, table).index(INDEX) is not None:
        Event().wait(0.05)


def collections_of(database: Database, table: str, client: DynamoDB | None = None) -> Collections:
    endpoint = Endpoint(url=database.url)
    connection = connect(endpoint) if client is None else Connection(client, endpoint)
    sentinel = Sentinel.of(look_up(connection, table).space)
    return Collections(connection, table, sentinel, patience=60)


def scanned(database: Database, table: str) -> Iterator[dict[str, Any]]:
    """Yield all items of a table."""
    request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
    while True:
        page = database.client.scan(**request)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def drift(database: Database, table: str, sentinel: Sentinel) -> tuple[set[Any], set[Any]]:
    """Return the names of collections without a sentinel, and of those with a sentinel only."""
    collections: dict[Any, list[bool]] = defaultdict(list)
    for item in scanned(database, table):
        name = canonical(item[sentinel.partition.name])
        collections[name].append(sentinel.is_one(item))
    missing = {name for name, marks in collections.items() if not any(marks)}
    surplus = {name for name, marks in collections.items() if all(marks)}
    return missing, surplus


class Stream:
    """The records of a table's stream in the form that Lambda receives."""

    def __init__(self, database: Database, table: str) -> None:
        self._client = boto3.client(
            "dynamodbstreams", endpoint_url=database.url, **LOCAL_CREDENTIALS
        )
        self._arn = database.client.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        self._places: dict[str, str] = {}

    def new(self) -> list[dict[str, Any]]:
        """Return the records since the last call."""
        stream = self._client.describe_stream(StreamArn=self._arn)["StreamDescription"]
        records = []
        for shard in stream["Shards"]:
            name = shard["ShardId"]
            if name not in self._places:
                self._places[name] = self._client.get_shard_iterator(
                    StreamArn=self._arn, ShardId=name, ShardIteratorType="TRIM_HORIZON"
                )["ShardIterator"]
            while self._places[name]:
                page = self._client.get_records(ShardIterator=self._places[name])
                self._places[name] = page.get("NextShardIterator") or ""
                records += page["Records"]
                if not page["Records"]:
                    break
        return [as_lambda_gets(record, self._arn) for record in records]


def as_lambda_gets(record: dict[str, Any], arn: str) -> dict[str, Any]:
    change = {**record["dynamodb"], "Keys": to_json(record["dynamodb"]["Keys"])}
    change["ApproximateCreationDateTime"] = 0
    return {**record, "dynamodb": change, "eventSourceARN": arn}
