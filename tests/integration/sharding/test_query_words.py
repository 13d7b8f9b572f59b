"""`query` of boto3's Table and of ShardedTable: the same arguments give the same responses."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError
from keyhop.errors import CannotStart

from testing.databases import Database
from testing.marks import prove
from tests.integration.sharding.single import Place, index

INDEXES: dict[str, Any] = {
    "AttributeDefinitions": index("", who="S", size="N")["AttributeDefinitions"],
    "GlobalSecondaryIndexes": [
        *index("by-who", "who", "size")["GlobalSecondaryIndexes"],
        *index("by-size", "path", "size")["GlobalSecondaryIndexes"],
        *index("inverted", "at", "path")["GlobalSecondaryIndexes"],
        *index("same", "path", "at")["GlobalSecondaryIndexes"],
        *index("no-sort", "path")["GlobalSecondaryIndexes"],
    ],
}
ALL = [f"{month}-{day:02}" for month in ("a", "b", "c") for day in range(1, 11)]


def item(at: str) -> dict[str, Any]:
    n = ALL.index(at)
    return {"path": "/f", "at": at, "n": n, "who": "ana" if n % 3 else "ben", "size": n % 4}


@pytest.fixture(scope="module", params=["boto3", "one shard", "calculated", "random"])
def table(request: pytest.FixtureRequest, dynamodb_local_url: str) -> Iterator[Any]:
    """A table that is only read. A sharded table has four shards."""
    table_name = f"t-{uuid.uuid4().hex}"
    place = Place(Database("dynamodb_local", dynamodb_local_url), table_name, **INDEXES)
    if request.param == "boto3":
        table = place.boto3().Table(table_name)
    else:
        placement = "random" if request.param == "random" else "calculated"
        table = place.table(placement=placement)
    for number, at in enumerate(ALL):
        if number == 10 and "boto3" not in request.param and "one" not in request.param:
            place.grow(table, "/f", 3)
        table.put_item(Item=item(at))
    table.put_item(Item={**item("a-01"), "path": "/g"})
    yield table
    if request.param != "boto3":
        table.close()


RANGES: list[tuple[Any, list[str]]] = [
    (Key("at").eq("b-03"), ["b-03"]),
    (Key("at").lt("a-03"), ALL[:2]),
    (Key("at").lte("a-03"), ALL[:3]),
    (Key("at").gt("c-08"), ALL[-2:]),
    (Key("at").gte("c-08"), ALL[-3:]),
    (Key("at").between("a-09", "b-02"), ALL[8:12]),
    (Key("at").begins_with("b-"), ALL[10:20]),
    (Key("at").begins_with("none"), []),
]


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("forward", [True, False])
def test_each_condition_on_the_sort_key(table: Any, forward: bool, consistent: bool) -> None:
    for condition, expected in RANGES:
        answer = table.query(
            KeyConditionExpression=Key("path").eq("/f") & condition,
            ScanIndexForward=forward,
            ConsistentRead=consistent,
        )
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
        del answer["ResponseMetadata"]
        items = [item(at) for at in (expected if forward else expected[::-1])]
        assert answer == {"Items": items, "Count": len(items), "ScannedCount": len(items)}


def query_pages(table: Any, **arguments: Any) -> list[dict[str, Any]]:
    pages = [table.query(**arguments)]
    while "LastEvaluatedKey" in pages[-1]:
        pages.append(table.query(**arguments, ExclusiveStartKey=pages[-1]["LastEvaluatedKey"]))
        assert len(pages) < 50
    return pages


def items_of(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for page in pages for item in page["Items"]]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 7, prove(30), prove(100)])
def test_pages_by_limit(table: Any, limit: int, forward: bool) -> None:
    for condition, expected in [*RANGES[1:5], (None, ALL)]:
        key = Key("path").eq("/f")
        pages = query_pages(
            table,
            KeyConditionExpression=key & condition if condition else key,
            ScanIndexForward=forward,
            Limit=limit,
        )
        assert [page["Count"] for page in pages[:-1]] == [limit] * (len(pages) - 1)
        ats = [item["at"] for item in items_of(pages)]
        assert ats == (expected if forward else expected[::-1])
        for page in pages[:-1]:
            assert page["LastEvaluatedKey"] == {"path": "/f", "at": page["Items"][-1]["at"]}


@pytest.mark.parametrize("limit", [None, 1, 4])
def test_a_filter_leaves_out_items_that_were_read(table: Any, limit: int | None) -> None:
    """Unlike with boto3, a page of several shards may have read more items than its Limit."""
    arguments: dict[str, Any] = {
        "KeyConditionExpression": "#p = :p AND begins_with(#at, :month)",
        "FilterExpression": "n >= :n AND (who = :who OR #size = :n)",
        "ExpressionAttributeNames": {"#p": "path", "#at": "at", "#size": "size"},
        "ExpressionAttributeValues": {":p": "/f", ":month": "b", ":n": 13, ":who": "ana"},
        **({"Limit": limit} if limit else {}),
    }
    pages = query_pages(table, **arguments)
    items = items_of(pages)
    assert items == [
        item(at) for at in ALL[10:20] if item(at)["n"] >= 13 and item(at)["who"] == "ana"
    ]
    assert sum(page["Count"] for page in pages) == len(items)
    assert all(page["Count"] <= (limit or 100) for page in pages)
    if limit is None:
        assert [page["ScannedCount"] for page in pages] == [10]


def test_a_filter_without_matches_ends(table: Any) -> None:
    arguments = {
        "KeyConditionExpression": Key("path").eq("/f"),
        "FilterExpression": Attr("no").exists(),
    }
    assert table.query(**arguments)["Count"] == 0
    assert table.query(**arguments)["ScannedCount"] == 30
    assert sum(page["Count"] for page in query_pages(table, **arguments, Limit=3)) == 0


@pytest.mark.parametrize(
    ("projection", "names", "attributes"),
    [
        ("n", {}, ["n"]),
        ("#at, who", {"#at": "at"}, ["at", "who"]),
        ("#p, n", {"#p": "path"}, ["path", "n"]),
    ],
)
def test_a_projection_returns_the_attributes_that_it_names(
    table: Any, projection: str, names: dict[str, str], attributes: list[str]
) -> None:
    more: dict[str, Any] = {"ExpressionAttributeNames": names} if names else {}
    answer = table.query(
        KeyConditionExpression=Key("path").eq("/f") & Key("at").begins_with("a"),
        ProjectionExpression=projection,
        FilterExpression=Attr("who").eq("ana"),
        **more,
    )
    matches = [item(at) for at in ALL[:10] if item(at)["who"] == "ana"]
    assert answer["Items"] == [{name: match[name] for name in attributes} for match in matches]
    key = {"path": "/f", "at": "b-01"}
    projected = table.get_item(Key=key, ProjectionExpression=projection, **more)["Item"]
    assert projected == {name: item("b-01")[name] for name in attributes}


def test_a_count_has_no_items(table: Any) -> None:
    answer = table.query(
        KeyConditionExpression=Key("path").eq("/f") & Key("at").gte("b"), Select="COUNT"
    )
    assert (answer["Count"], answer["ScannedCount"]) == (20, 20)
    assert "Items" not in answer


@pytest.mark.parametrize("level", ["TOTAL", "INDEXES"])
def test_the_capacity_of_all_shards_is_returned(table: Any, level: str) -> None:
    answer = table.query(KeyConditionExpression=Key("path").eq("/f"), ReturnConsumedCapacity=level)
    capacity = answer["ConsumedCapacity"]
    assert capacity["TableName"] == table.name
    assert capacity["CapacityUnits"] >= 0.5
    assert ("Table" in capacity) == (level == "INDEXES")


@pytest.mark.parametrize("limit", [None, prove(1), 3, prove(100)])
@pytest.mark.parametrize("forward", [True, False])
def test_an_index_that_carries_the_shard_is_merged(
    table: Any, forward: bool, limit: int | None
) -> None:
    """Many items have the same sort key in the index; their order is not promised."""
    sizes: list[tuple[Any, set[int]]] = [
        (None, {0, 1, 2, 3}),
        (Key("size").eq(2), {2}),
        (Key("size").gt(1), {2, 3}),
        (Key("size").lt(2), {0, 1}),
        (Key("size").between(1, 2), {1, 2}),
    ]
    for condition, expected_sizes in sizes:
        key = Key("path").eq("/f")
        pages = query_pages(
            table,
            IndexName="by-size",
            KeyConditionExpression=key & condition if condition else key,
            ScanIndexForward=forward,
            **({"Limit": limit} if limit else {}),
        )
        items = items_of(pages)
        expected = [item(at) for at in ALL if item(at)["size"] in expected_sizes]
        assert [item["size"] for item in items] == sorted(
            (item["size"] for item in expected), reverse=not forward
        )
        assert sorted(items, key=lambda item: item["n"]) == expected
        assert all(page["Count"] <= (limit or 100) for page in pages)


def test_an_index_that_does_not_carry_the_shard_is_one_query(table: Any) -> None:
    for limit in (None, 4):
        pages = query_pages(
            table,
            IndexName="by-who",
            KeyConditionExpression=Key("who").eq("ben") & Key("size").lte(2),
            FilterExpression=Attr("path").exists(),
            **({"Limit": limit} if limit else {}),
        )
        items = items_of(pages)
        assert [item["size"] for item in items] == sorted(item["size"] for item in items)
        expected = [item(at) for at in ALL if item(at)["who"] == "ben" and item(at)["size"] <= 2]
        expected.append({**item("a-01"), "path": "/g"})
        assert sorted(items, key=lambda item: (item["path"], item["n"])) == expected
    both = table.query(
        IndexName="inverted",
        KeyConditionExpression="#at = :at",
        ExpressionAttributeNames={"#at": "at", "#p": "path"},
        ExpressionAttributeValues={":at": "a-01"},
        ProjectionExpression="#p",
        ReturnConsumedCapacity="TOTAL",
    )
    assert sorted(item["path"] for item in both["Items"]) == ["/f", "/g"]
    assert both["ConsumedCapacity"]["CapacityUnits"] >= 0.5
    answer = table.query(
        IndexName="by-who", KeyConditionExpression=Key("who").eq("ana"), Select="COUNT"
    )
    assert (answer["Count"], answer["ScannedCount"]) == (20, 20)
    assert "Items" not in answer


def test_an_index_with_the_tables_own_keys(table: Any) -> None:
    key = Key("path").eq("/f")
    pages = query_pages(table, IndexName="same", KeyConditionExpression=key, Limit=7)
    assert [item["at"] for item in items_of(pages)] == ALL


def test_requests_that_the_service_refuses_are_refused(table: Any) -> None:
    for arguments in (
        {"IndexName": "none", "KeyConditionExpression": Key("path").eq("/f")},
        {"KeyConditionExpression": Key("path").eq("/f"), "Select": "SPECIFIC_ATTRIBUTES"},
        {
            "KeyConditionExpression": Key("path").eq("/f"),
            "ExclusiveStartKey": {"path": "/g", "at": "a"},
        },
        {"KeyConditionExpression": Key("path").eq("/f"), "ExclusiveStartKey": {"path": "/f"}},
        {
            "KeyConditionExpression": Key("path").eq("/f"),
            "ExpressionAttributeValues": {":unused": 1},
        },
        {"KeyConditionExpression": ""},
        {"KeyConditionExpression": "", "IndexName": "by-who"},
        {"KeyConditionExpression": Key("path").eq("/f"), "FilterExpression": ""},
        {"KeyConditionExpression": Key("path").eq("/f"), "ProjectionExpression": ""},
        {"KeyConditionExpression": Key("path").eq("/f"), "Select": "BOGUS"},
        {"KeyConditionExpression": Key("path").eq("/f"), "ReturnConsumedCapacity": "BOGUS"},
    ):
        with pytest.raises(ClientError) as error:
            table.query(**arguments)
        assert error.value.response["Error"]["Code"] == "ValidationException"


@pytest.mark.parametrize("table", ["calculated"], indirect=True)
def test_unsupported_arguments_are_refused_with_a_sentence(table: Any) -> None:
    key = Key("path").eq("/f")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"KeyConditionExpression": key, "QueryFilter": {}}, "use FilterExpression"),
        ({"KeyConditionExpression": Key("at").eq("a")}, "path = one value"),
        ({"KeyConditionExpression": key, "FilterExpression": Attr("path").eq("/f")}, "suffix"),
        ({"KeyConditionExpression": key, "IndexName": "no-sort"}, "needs exactly one sort key"),
        (
            {"KeyConditionExpression": key, "IndexName": "by-size", "ConsistentRead": True},
            "ConsistentRead",
        ),
        (
            {"KeyConditionExpression": Key("at").eq("a") & key, "IndexName": "inverted"},
            "suffix",
        ),
        ({"KeyConditionExpression": key, "Limit": 0}, "Limit is 0"),
        ({"KeyConditionExpression": key, "Limit": True}, "Limit is True"),
        ({"KeyConditionExpression": key, "Limit": 2.0}, "Limit is 2.0"),
        ({"KeyConditionExpression": key, "Select": "COUNT", "ProjectionExpression": "n"}, "COUNT"),
    ]
    for arguments, message in refused:
        with pytest.raises(CannotStart, match=message):
            table.query(**arguments)
    with pytest.raises(TypeError, match="KeyConditionExpression"):
        table.query()


@pytest.mark.parametrize("query", ["table", "filtered", "by-size", "backwards"])
def test_pages_continue_while_the_shards_change(
    dynamodb: Database, table_name: str, query: str
) -> None:
    place = Place(dynamodb, table_name, **INDEXES)
    table = place.table()
    for at in ALL:
        table.put_item(Item=item(at))
    arguments: dict[str, Any] = {"KeyConditionExpression": Key("path").eq("/f"), "Limit": 4}
    arguments |= {
        "filtered": {"FilterExpression": Attr("who").eq("ana"), "ConsistentRead": True},
        "by-size": {"IndexName": "by-size"},
        "backwards": {"ScanIndexForward": False, "ConsistentRead": True},
    }.get(query, {})
    ats: list[str] = []
    for number in range(60):
        page = table.query(**arguments)
        ats += [item["at"] for item in page["Items"]]
        if number in (0, 3):
            place.grow(table, "/f", 2)
            for at in ALL[::3]:
                table.put_item(Item=item(at))  # to their new places
        if number == 1:
            place.drain(table, "/f", 2)
        if "LastEvaluatedKey" not in page:
            break
        arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    expected = [at for at in ALL if query != "filtered" or item(at)["who"] == "ana"]
    assert sorted(ats) == expected
    if query != "by-size":
        assert ats == (expected[::-1] if query == "backwards" else expected)
    table.close()
