"""The behaviour of DynamoDB that Keyhop relies on, tested on each database, also on the stand-in.

Where a local database is known to differ from the service, the test says so and leaves it out.
"""

import socket
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError
from keyhop.dynamodb.schema import GREATEST_SORT_KEY

from testing.databases import EXTREMES, Database, partition_value
from testing.marks import on_every_database


def scan(database: Database, table: str, **parameters):
    return database.client.scan(TableName=table, ReturnConsumedCapacity="TOTAL", **parameters)


def segments_of(database: Database, table: str, total: int):
    return [
        [item["pk"]["S"] for item in scan(database, table, Segment=s, TotalSegments=total)["Items"]]
        for s in range(total)
    ]


@on_every_database
@pytest.mark.parametrize("total", [1, 3, 16, 100])
def test_segments_are_disjoint_and_complete_and_contain_whole_collections(
    database: Database, table_name: str, total: int
) -> None:
    keys = database.collections(table_name, [3] * 60)
    segments = segments_of(database, table_name, total)
    assert sorted(key for segment in segments for key in segment) == sorted([*keys] * 3)
    for segment in segments:
        assert all(segment.count(key) == 3 for key in segment)


@on_every_database
def test_the_items_of_a_collection_are_adjacent(database: Database, table_name: str) -> None:
    database.collections(table_name, [5] * 40)
    (keys,) = segments_of(database, table_name, 1)
    assert all(keys[at : at + 5] == [keys[at]] * 5 for at in range(0, 200, 5))


@on_every_database
@pytest.mark.parametrize("sort", ["S", "N", "B"])
@pytest.mark.parametrize("total", [1, 8])
def test_a_synthetic_start_key_lands_on_the_next_collection(
    database: Database, table_name: str, sort: str, total: int
) -> None:
    database.create(table_name, ("pk", "S"), ("sk", sort))
    values = EXTREMES[sort]
    keys = [partition_value("S", number) for number in range(24)]
    database.fill(
        table_name,
        ({"pk": {"S": key}, "sk": {sort: value}} for key in keys for value in values),
    )
    collections = []
    for segment in range(total):
        part = {"Segment": segment, "TotalSegments": total} if total > 1 else {}
        page = scan(database, table_name, Limit=1, **part)
        while page["Items"]:
            collections.append(page["Items"][0]["pk"]["S"])
            start = {"pk": {"S": collections[-1]}, "sk": GREATEST_SORT_KEY[sort]}
            page = scan(database, table_name, Limit=1, ExclusiveStartKey=start, **part)
    assert sorted(collections) == sorted(keys)


@on_every_database
def test_a_page_of_exactly_the_limit_has_a_last_key_even_at_the_end(
    database: Database, table_name: str
) -> None:
    database.collections(table_name, [2] * 5)
    assert "LastEvaluatedKey" in scan(database, table_name, Limit=10)
    assert "LastEvaluatedKey" not in scan(database, table_name, Limit=11)


@on_every_database
def test_a_start_key_of_another_segment_is_refused(database: Database, table_name: str) -> None:
    database.collections(table_name, [1] * 40)
    segments = segments_of(database, table_name, 2)
    foreign = {"pk": {"S": segments[1][0]}, "sk": GREATEST_SORT_KEY["S"]}
    with pytest.raises(ClientError) as refused:
        scan(database, table_name, Segment=0, TotalSegments=2, ExclusiveStartKey=foreign)
    assert refused.value.response["Error"]["Code"] == "ValidationException"


@on_every_database
def test_a_start_key_without_its_sort_key_is_refused(database: Database, table_name: str) -> None:
    database.collections(table_name, [1] * 3)
    with pytest.raises(ClientError) as refused:
        scan(database, table_name, ExclusiveStartKey={"pk": {"S": "k1"}})
    assert refused.value.response["Error"]["Code"] == "ValidationException"


@on_every_database
@pytest.mark.parametrize(
    ("filling", "limit", "units"), [(100, 1, 0.5), (1_100, 4, 1.0), (1_250, 20, 3.5)]
)
def test_a_page_costs_half_a_unit_for_each_started_4_kb(
    database: Database, table_name: str, filling: int, limit: int, units: float
) -> None:
    """A projection does not lower the cost."""
    database.collections(table_name, [20], filling=filling)
    for more in ({}, {"ProjectionExpression": "pk"}):
        page = scan(database, table_name, Limit=limit, **more)
        assert page["ConsumedCapacity"]["CapacityUnits"] == units
        assert page["ScannedCount"] == limit


@on_every_database
def test_a_page_ends_at_one_megabyte(database: Database, table_name: str) -> None:
    database.collections(table_name, [20], filling=100_000)
    page = scan(database, table_name, ProjectionExpression="pk")
    assert 9 <= page["ScannedCount"] <= 11
    assert "LastEvaluatedKey" in page


def test_an_empty_read_costs_half_a_unit(strict: Database, table_name: str) -> None:
    """The service charges it, as does the stand-in; DynamoDB Local and dynalite report 0."""
    strict.create(table_name)
    assert scan(strict, table_name)["ConsumedCapacity"]["CapacityUnits"] == 0.5


@on_every_database
def test_there_are_at_most_a_million_segments(database: Database, table_name: str) -> None:
    """The database dynalite accepts more segments."""
    database.create(table_name)
    scan(database, table_name, Segment=999_999, TotalSegments=1_000_000)
    if database.kind != "dynalite":
        with pytest.raises(ClientError):
            scan(database, table_name, Segment=0, TotalSegments=1_000_001)


@on_every_database
def test_a_database_listens_on_one_loopback_address_only(database: Database) -> None:
    """A server that listens everywhere would also answer at 127.0.0.2."""
    port = urlsplit(database.url).port
    with pytest.raises((ConnectionRefusedError, TimeoutError)):
        socket.create_connection(("127.0.0.2", port), timeout=1)
