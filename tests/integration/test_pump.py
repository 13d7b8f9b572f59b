"""The stream pump on the streams of DynamoDB Local, with a function in this process."""

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import boto3
import pytest

from local.mapping import Trouble
from local.pump import Pump
from testing.databases import Database
from testing.servers import LOCAL_CREDENTIALS

SECONDS = 60
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


class Functions:
    """Lambda with one mapping; what is delivered is kept by item, in order."""

    def __init__(self, stream: str, **more: Any) -> None:
        self.mapping = {
            "UUID": "one",
            "FunctionArn": "keeper",
            "EventSourceArn": stream,
            "State": "Enabled",
            "StartingPosition": "TRIM_HORIZON",
            "BatchSize": 50,
            **more,
        }
        self.handler: Callable[[dict[str, Any]], None] = lambda record: None
        self.of_item: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def get_paginator(self, operation: str) -> "Functions":
        return self

    def paginate(self) -> Iterator[Any]:
        yield {"EventSourceMappings": [self.mapping]}

    def invoke(self, FunctionName: str, Payload: bytes) -> Any:  # noqa: N803
        for record in json.loads(Payload)["Records"]:
            self.of_item[json.dumps(record["dynamodb"]["Keys"])].append(record)
            self.handler(record)
        return {"Payload": BytesIO(b"null")}


def stream_of(dynamodb: Database, table: str, sort: str = "S") -> str:
    dynamodb.create(table, sort=("sk", sort), StreamSpecification=STREAM)
    return str(dynamodb.client.describe_table(TableName=table)["Table"]["LatestStreamArn"])


def pump_on(dynamodb: Database, functions: Functions, trouble: Trouble | None = None) -> Pump:
    streams = boto3.client("dynamodbstreams", endpoint_url=dynamodb.url, **LOCAL_CREDENTIALS)
    return Pump(functions, streams, None, trouble)


@pytest.mark.parametrize("trouble", [None, Trouble(shuffled=True, seed=1)])
def test_every_change_arrives_once_and_in_the_order_of_its_item(
    dynamodb: Database, table_name: str, trouble: Trouble | None
) -> None:
    functions = Functions(stream_of(dynamodb, table_name), ParallelizationFactor=4)
    with pump_on(dynamodb, functions, trouble) as pump:
        for version in range(12):
            dynamodb.fill(
                table_name,
                (
                    {"pk": {"S": f"k{n % 10}"}, "sk": {"S": str(n)}, "v": {"N": str(version)}}
                    for n in range(100)
                ),
            )
        pump.settle(SECONDS)
        assert len(functions.of_item) == 100
        for records in functions.of_item.values():
            versions = [int(each["dynamodb"]["NewImage"]["v"]["N"]) for each in records]
            assert versions == list(range(12))
        assert pump.counts.delivered == 1200


def test_what_a_function_writes_itself_is_waited_for(dynamodb: Database, table_name: str) -> None:
    functions = Functions(stream_of(dynamodb, table_name))

    def handler(record: dict[str, Any]) -> None:
        number = int(record["dynamodb"]["Keys"]["sk"]["S"])
        if number < 30:
            item = {"pk": {"S": "k"}, "sk": {"S": str(number + 1)}}
            dynamodb.client.put_item(TableName=table_name, Item=item)

    functions.handler = handler
    with pump_on(dynamodb, functions) as pump:
        dynamodb.client.put_item(TableName=table_name, Item={"pk": {"S": "k"}, "sk": {"S": "0"}})
        pump.settle(SECONDS)
        assert len(functions.of_item) == 31


def test_filters_names_and_binary_keys(dynamodb: Database, table_name: str) -> None:
    pattern = json.dumps({"eventName": ["INSERT", "REMOVE"]})
    functions = Functions(
        stream_of(dynamodb, table_name, "B"), FilterCriteria={"Filters": [{"Pattern": pattern}]}
    )
    key = {"pk": {"S": "k"}, "sk": {"B": b"\xff\x00"}}
    with pump_on(dynamodb, functions) as pump:
        for number in range(3):
            dynamodb.client.put_item(TableName=table_name, Item={**key, "n": {"N": str(number)}})
        dynamodb.client.delete_item(TableName=table_name, Key=key)
        pump.settle(SECONDS)
        ((keys, records),) = functions.of_item.items()
        assert json.loads(keys)["sk"] == {"B": base64.b64encode(b"\xff\x00").decode()}
        assert [record["eventName"] for record in records] == ["INSERT", "REMOVE"]
        assert "NewImage" not in records[1]["dynamodb"]
        assert pump.counts.filtered == 2


def test_latest_leaves_out_what_was_there_before(dynamodb: Database, table_name: str) -> None:
    functions = Functions(stream_of(dynamodb, table_name), StartingPosition="LATEST")
    dynamodb.fill(table_name, ({"pk": {"S": "old"}, "sk": {"S": str(n)}} for n in range(5)))
    with pump_on(dynamodb, functions) as pump:
        pump.settle(SECONDS)
        dynamodb.client.put_item(TableName=table_name, Item={"pk": {"S": "new"}, "sk": {"S": "0"}})
        pump.settle(SECONDS)
        (keys,) = functions.of_item
        assert json.loads(keys)["pk"] == {"S": "new"}
        # A stream that ends with its table is no reason to wait.
        dynamodb.client.delete_table(TableName=table_name)
        pump.settle(SECONDS)
