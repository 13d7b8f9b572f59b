"""Tests of the sources on DynamoDB Local, which lacks some of them."""

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


def table_facts(database: Database, table: str) -> TableFacts:
    facts, _, _ = control_plane.look(connect(Endpoint(url=database.url)), table)
    return facts


def test_settings_and_sources_that_a_local_database_lacks_are_absent(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
):
    dynamodb.create(table_name, **BOTH)
    connection = connect(Endpoint(url=dynamodb.url))
    table = table_facts(dynamodb, table_name)
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
    table = table_facts(dynamodb, table_name)
    records: list[Any] = []
    facts = stream.look(
        client_beside("dynamodbstreams", endpoint),
        table,
        time.time() + 2,
        900,
        lambda key: str(plain(key["pk"])),
        listeners=[records.append],
        most_seconds=30,
        pause=lambda seconds: None,
    ).facts
    assert (facts.records, facts.inserts, facts.keys) == (60, 31, 31)
    assert len(records) == 60
    assert facts.traffic[0].key == "totals"
    assert facts.counter.value == pytest.approx(29 / 60)
    assert facts.counter_attribute == "hits"
    assert facts.tau.value == 1.0


def test_places_are_those_of_segments_and_stay_within_their_budget(
    dynamodb: Database, table_name: str
):
    dynamodb.create(table_name, **BOTH)
    names = [f"key-{number}" for number in range(40)]
    dynamodb.fill(table_name, ({"pk": {"S": name}, "sk": {"S": "a"}} for name in names))
    connection = connect(Endpoint(url=dynamodb.url))
    table = look_up(connection, table_name)
    places = Places(connection, table)
    usage = places.usage
    by_name = {name: places({"pk": {"S": name}}) for name in names[:5]}
    for name, place in by_name.items():
        assert place is not None
        page = dynamodb.client.scan(
            TableName=table_name, Segment=int(place * 256), TotalSegments=256
        )
        assert name in {item["pk"]["S"] for item in page["Items"]}
    assert 0 < usage.read_units <= 5 * 8 * 0.5
    spent = usage.read_units
    assert [places({"pk": {"S": name}}) for name in by_name] == list(by_name.values())
    assert usage.read_units == spent
    limited = Places(connection, table, units=3.0)
    with_limit = [limited({"pk": {"S": name}}) for name in names]
    assert with_limit[0] is not None
    assert with_limit[-1] is None
    assert limited.usage.read_units <= 3.5


def test_a_copy_in_scan_order_is_recognized_in_the_stream(dynamodb: Database, table_name: str):
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
        table_facts(dynamodb, table_name),
        time.time() + 2,
        900,
        str,
        place=Places(connection, look_up(connection, table_name)),
        pause=lambda seconds: None,
    ).facts
    assert facts.hash_rho.against(0.5) == "above"
    assert sum(units for _, _, units in facts.heat) == 60
