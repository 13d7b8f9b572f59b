"""The sources on DynamoDB Local: what it has is read, what it has not is said."""

import time
from typing import Any

import pytest
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.values import plain
from keyhop.report.facts import Absent, TableFacts
from keyhop.report.sources import control_plane, insights, metrics, stream
from keyhop.report.sources.absence import client_beside
from keyhop.report.sources.places import Places

from testing.databases import Database

BOTH = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}


def described(database: Database, table: str) -> TableFacts:
    facts, _, _ = control_plane.look(connect(Endpoint(url=database.url)), table)
    return facts


def test_what_a_local_database_has_not_is_untold_and_absent(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
):
    dynamodb.create(table_name, **BOTH)
    connection = connect(Endpoint(url=dynamodb.url))
    table = described(dynamodb, table_name)
    assert (table.partition, table.sort) == ("pk", "sk")
    assert table.stream_view == "NEW_AND_OLD_IMAGES"
    assert set(table.untold) >= {"insights"}
    assert "ttl" not in table.untold
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_CLOUDWATCH"):
        monkeypatch.delenv(name, raising=False)
    client = client_beside("cloudwatch", connection.endpoint)
    assert isinstance(client, Absent)
    assert client.reason == f"{dynamodb.url} has no cloudwatch"
    now = time.time()
    assert metrics.look(client, table, now, 86_400).facts == client
    assert isinstance(insights.look(client, connection, table, now, str).facts, Absent)


def test_a_stream_is_read(dynamodb: Database, table_name: str):
    dynamodb.create(table_name, **BOTH)
    for number in range(30):
        key = {"pk": {"S": f"order-{number}"}, "sk": {"S": "a"}}
        dynamodb.client.put_item(TableName=table_name, Item=key)
    counter = {"pk": {"S": "totals"}, "sk": {"S": "all"}}
    for _ in range(30):
        dynamodb.client.update_item(
            TableName=table_name,
            Key=counter,
            UpdateExpression="ADD hits :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )
    endpoint = Endpoint(url=dynamodb.url)
    table = described(dynamodb, table_name)
    heard: list[Any] = []
    waited: list[float] = []
    looked = stream.look(
        client_beside("dynamodbstreams", endpoint),
        table,
        time.time() + 2,
        900,
        lambda key: str(plain(key["pk"])),
        listeners=[heard.append],
        most_seconds=30,
        pause=waited.append,
    )
    facts = looked.facts
    assert (facts.records, facts.inserts, facts.keys) == (60, 31, 31)
    assert len(heard) == 60
    assert facts.traffic[0].key == "totals"
    assert facts.counter.value == pytest.approx(29 / 60)
    assert facts.counter_attribute == "hits"
    assert facts.tau.value == 1.0


def test_places_are_those_of_segments_and_cost_no_more_than_they_may(
    dynamodb: Database, table_name: str
):
    dynamodb.create(table_name, **BOTH)
    names = [f"key-{number}" for number in range(40)]
    dynamodb.fill(table_name, ({"pk": {"S": name}, "sk": {"S": "a"}} for name in names))
    connection = connect(Endpoint(url=dynamodb.url))
    table = look_up(connection, table_name)
    places = Places(connection, table)
    usage = places.usage
    found = {name: places({"pk": {"S": name}}) for name in names[:5]}
    for name, place in found.items():
        assert place is not None
        page = dynamodb.client.scan(
            TableName=table_name, Segment=int(place * 256), TotalSegments=256
        )
        assert name in {item["pk"]["S"] for item in page["Items"]}
    assert 0 < usage.read_units <= 5 * 8 * 0.5
    spent = usage.read_units
    assert [places({"pk": {"S": name}}) for name in found] == list(found.values())
    assert usage.read_units == spent
    poor = Places(connection, table, units=3.0)
    several = [poor({"pk": {"S": name}}) for name in names]
    assert several[0] is not None
    assert several[-1] is None
    assert poor.usage.read_units <= 3.5


def test_a_copy_in_scan_order_shows_in_the_stream_with_its_key_map(
    dynamodb: Database, table_name: str
):
    dynamodb.create(f"{table_name}-source")
    dynamodb.create(table_name, **BOTH)
    items = ({"pk": {"S": f"key-{number}"}, "sk": {"S": "a"}} for number in range(60))
    dynamodb.fill(f"{table_name}-source", items)
    for item in dynamodb.client.scan(TableName=f"{table_name}-source")["Items"]:
        dynamodb.client.put_item(TableName=table_name, Item=item)
    endpoint = Endpoint(url=dynamodb.url)
    connection = connect(endpoint)
    facts = stream.look(
        client_beside("dynamodbstreams", endpoint),
        described(dynamodb, table_name),
        time.time() + 2,
        900,
        str,
        place=Places(connection, look_up(connection, table_name)),
        pause=lambda seconds: None,
    ).facts
    assert facts.hash_rho.against(0.5) == "above"
    assert sum(units for _, _, units in facts.heat) == 60
