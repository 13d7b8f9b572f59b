"""`query` by boto3's Table and by ShardedTable: the same words, the same answers."""

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
    """Of four shards, if it is sharded. It is only read."""
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


def pages(table: Any, **words: Any) -> list[dict[str, Any]]:
    found = [table.query(**words)]
    while "LastEvaluatedKey" in found[-1]:
        found.append(table.query(**words, ExclusiveStartKey=found[-1]["LastEvaluatedKey"]))
        assert len(found) < 50
    return found


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 7, prove(30), prove(100)])
def test_pages_by_limit(table: Any, limit: int, forward: bool) -> None:
    for condition, expected in [*RANGES[1:5], (None, ALL)]:
        key = Key("path").eq("/f")
        words = {
            "KeyConditionExpression": key & condition if condition else key,
            "ScanIndexForward": forward,
            "Limit": limit,
        }
        found = pages(table, **words)
        assert [one["Count"] for one in found[:-1]] == [limit] * (len(found) - 1)
        read = [one["at"] for page in found for one in page["Items"]]
        assert read == (expected if forward else expected[::-1])
        for page in found[:-1]:
            assert page["LastEvaluatedKey"] == {"path": "/f", "at": page["Items"][-1]["at"]}


@pytest.mark.parametrize("limit", [None, 1, 4])
def test_a_filter_leaves_out_what_was_read(table: Any, limit: int | None) -> None:
    """What it cannot: that a page of several shards has read as many items as Limit says."""
    words: dict[str, Any] = {
        "KeyConditionExpression": "#p = :p AND begins_with(#at, :month)",
        "FilterExpression": "n >= :n AND (who = :who OR #size = :n)",
        "ExpressionAttributeNames": {"#p": "path", "#at": "at", "#size": "size"},
        "ExpressionAttributeValues": {":p": "/f", ":month": "b", ":n": 13, ":who": "ana"},
        **({"Limit": limit} if limit else {}),
    }
    found = pages(table, **words)
    read = [one for page in found for one in page["Items"]]
    assert read == [
        item(at) for at in ALL[10:20] if item(at)["n"] >= 13 and item(at)["who"] == "ana"
    ]
    assert sum(page["Count"] for page in found) == len(read)
    assert all(page["Count"] <= (limit or 100) for page in found)
    if limit is None:
        assert [page["ScannedCount"] for page in found] == [10]


def test_a_filter_that_nothing_meets_ends(table: Any) -> None:
    words = {
        "KeyConditionExpression": Key("path").eq("/f"),
        "FilterExpression": Attr("no").exists(),
    }
    assert table.query(**words)["Count"] == 0
    assert table.query(**words)["ScannedCount"] == 30
    found = pages(table, **words, Limit=3)
    assert sum(page["Count"] for page in found) == 0


@pytest.mark.parametrize(
    ("projection", "names", "shown"),
    [
        ("n", {}, ["n"]),
        ("#at, who", {"#at": "at"}, ["at", "who"]),
        ("#p, n", {"#p": "path"}, ["path", "n"]),
    ],
)
def test_a_projection_shows_what_it_names(
    table: Any, projection: str, names: dict[str, str], shown: list[str]
) -> None:
    more: dict[str, Any] = {"ExpressionAttributeNames": names} if names else {}
    answer = table.query(
        KeyConditionExpression=Key("path").eq("/f") & Key("at").begins_with("a"),
        ProjectionExpression=projection,
        FilterExpression=Attr("who").eq("ana"),
        **more,
    )
    wanted = [item(at) for at in ALL[:10] if item(at)["who"] == "ana"]
    assert answer["Items"] == [{name: one[name] for name in shown} for one in wanted]
    key = {"path": "/f", "at": "b-01"}
    got = table.get_item(Key=key, ProjectionExpression=projection, **more)["Item"]
    assert got == {name: item("b-01")[name] for name in shown}


def test_a_count_has_no_items(table: Any) -> None:
    answer = table.query(
        KeyConditionExpression=Key("path").eq("/f") & Key("at").gte("b"), Select="COUNT"
    )
    assert (answer["Count"], answer["ScannedCount"]) == (20, 20)
    assert "Items" not in answer


@pytest.mark.parametrize("wanted", ["TOTAL", "INDEXES"])
def test_the_capacity_of_all_shards_is_told(table: Any, wanted: str) -> None:
    answer = table.query(KeyConditionExpression=Key("path").eq("/f"), ReturnConsumedCapacity=wanted)
    capacity = answer["ConsumedCapacity"]
    assert capacity["TableName"] == table.name
    assert capacity["CapacityUnits"] >= 0.5
    assert ("Table" in capacity) == (wanted == "INDEXES")


@pytest.mark.parametrize("limit", [None, prove(1), 3, prove(100)])
@pytest.mark.parametrize("forward", [True, False])
def test_an_index_that_carries_the_shard_is_merged(
    table: Any, forward: bool, limit: int | None
) -> None:
    """Many items have the same sort key there; in which order they come is not promised."""
    sizes: list[tuple[Any, set[int]]] = [
        (None, {0, 1, 2, 3}),
        (Key("size").eq(2), {2}),
        (Key("size").gt(1), {2, 3}),
        (Key("size").lt(2), {0, 1}),
        (Key("size").between(1, 2), {1, 2}),
    ]
    for condition, wanted in sizes:
        key = Key("path").eq("/f")
        found = pages(
            table,
            IndexName="by-size",
            KeyConditionExpression=key & condition if condition else key,
            ScanIndexForward=forward,
            **({"Limit": limit} if limit else {}),
        )
        read = [one for page in found for one in page["Items"]]
        assert [one["size"] for one in read] == sorted(
            (item(at)["size"] for at in ALL if item(at)["size"] in wanted), reverse=not forward
        )
        expected = [item(at) for at in ALL if item(at)["size"] in wanted]
        assert sorted(read, key=lambda one: one["n"]) == expected
        assert all(page["Count"] <= (limit or 100) for page in found)


def test_an_index_that_does_not_carry_the_shard_is_one_query(table: Any) -> None:
    for limit in (None, 4):
        found = pages(
            table,
            IndexName="by-who",
            KeyConditionExpression=Key("who").eq("ben") & Key("size").lte(2),
            FilterExpression=Attr("path").exists(),
            **({"Limit": limit} if limit else {}),
        )
        read = [one for page in found for one in page["Items"]]
        assert [one["size"] for one in read] == sorted(one["size"] for one in read)
        expected = [item(at) for at in ALL if item(at)["who"] == "ben" and item(at)["size"] <= 2]
        expected.append({**item("a-01"), "path": "/g"})
        order = lambda one: (one["path"], one["n"])  # noqa: E731
        assert sorted(read, key=order) == expected
    names = {"#at": "at", "#p": "path"}
    both = table.query(
        IndexName="inverted",
        KeyConditionExpression="#at = :at",
        ExpressionAttributeNames=names,
        ExpressionAttributeValues={":at": "a-01"},
        ProjectionExpression="#p",
        ReturnConsumedCapacity="TOTAL",
    )
    assert sorted(one["path"] for one in both["Items"]) == ["/f", "/g"]
    assert both["ConsumedCapacity"]["CapacityUnits"] >= 0.5
    answer = table.query(
        IndexName="by-who", KeyConditionExpression=Key("who").eq("ana"), Select="COUNT"
    )
    assert (answer["Count"], answer["ScannedCount"]) == (20, 20)
    assert "Items" not in answer


def test_an_index_with_the_tables_own_keys(table: Any) -> None:
    found = pages(table, IndexName="same", KeyConditionExpression=Key("path").eq("/f"), Limit=7)
    assert [one["at"] for page in found for one in page["Items"]] == ALL


def test_what_the_service_refuses_is_refused(table: Any) -> None:
    for words in (
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
            table.query(**words)
        assert error.value.response["Error"]["Code"] == "ValidationException"


@pytest.mark.parametrize("table", ["calculated"], indirect=True)
def test_what_cannot_be_is_refused_with_a_sentence(table: Any) -> None:
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
    for words, told in refused:
        with pytest.raises(CannotStart, match=told):
            table.query(**words)
    with pytest.raises(TypeError, match="KeyConditionExpression"):
        table.query()


@pytest.mark.parametrize("how", ["table", "filtered", "by-size", "backwards"])
def test_pages_go_on_while_shards_come_and_go(
    dynamodb: Database, table_name: str, how: str
) -> None:
    place = Place(dynamodb, table_name, **INDEXES)
    table = place.table()
    for at in ALL:
        table.put_item(Item=item(at))
    words: dict[str, Any] = {"KeyConditionExpression": Key("path").eq("/f"), "Limit": 4}
    words |= {
        "filtered": {"FilterExpression": Attr("who").eq("ana"), "ConsistentRead": True},
        "by-size": {"IndexName": "by-size"},
        "backwards": {"ScanIndexForward": False, "ConsistentRead": True},
    }.get(how, {})
    found: list[str] = []
    for number in range(60):
        page = table.query(**words)
        found += [one["at"] for one in page["Items"]]
        if number in (0, 3):
            place.grow(table, "/f", 2)
            for at in ALL[::3]:
                table.put_item(Item=item(at))  # to their new places
        if number == 1:
            place.drain(table, "/f", 2)
        if "LastEvaluatedKey" not in page:
            break
        words["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    expected = [at for at in ALL if how != "filtered" or item(at)["who"] == "ana"]
    assert sorted(found) == expected
    if how != "by-size":
        assert found == (expected[::-1] if how == "backwards" else expected)
    table.close()
