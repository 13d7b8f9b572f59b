"""Tables, settings and calls that a sharded table refuses."""

import math
from typing import Any

import pytest
from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError
from keyhop.errors import CannotStart
from keyhop.sharding.key.policy import Policy

from testing.databases import Database
from tests.integration.sharding.single import Place


def test_tables_and_items_that_cannot_be_sharded_are_refused(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name, partition=("id", "N"), sort=("at", "S"))
    dynamodb.create(f"{table_name}-flat", partition=("id", "S"), sort=None)
    place = Place(dynamodb, f"{table_name}-good")
    numbers = place.table()
    numbers.name = table_name
    with pytest.raises(CannotStart, match="number"):
        numbers.put_item(Item={"id": 1, "at": "a"})
    flat = place.table()
    flat.name = f"{table_name}-flat"
    with pytest.raises(CannotStart, match="no sort key"):
        flat.put_item(Item={"id": "a"})
    table = place.table()
    for item, message in (
        ({"path": "/f"}, "no key attribute at"),
        ({"path": "", "at": "a"}, "bytes"),
        ({"path": "/f", "at": 5}, "type S"),
    ):
        with pytest.raises(CannotStart, match=message):
            table.put_item(Item=item)
    with pytest.raises(CannotStart, match="type S"):
        list(table.query("/f", between=(1, 2)))
    for limit in (0, -1, True, 2.0):
        with pytest.raises(CannotStart, match=f"limit is {limit};"):
            list(table.query("/f", limit=limit))
        with pytest.raises(CannotStart, match=f"limit is {limit};"):
            table.query_page("/f", limit=limit)
    assert list(table.query("/unknown")) == []
    assert "Item" not in table.get_item(Key={"path": "/unknown", "at": "a"})


@pytest.mark.parametrize("seconds", [1, math.nan, math.inf, "5", True])
def test_settle_seconds_must_be_finite(place: Place, seconds: Any) -> None:
    with pytest.raises(CannotStart, match=r"settle_seconds is .* a number of at least 2"):
        place.table(settle_seconds=seconds)


def test_a_key_has_no_more_shards_than_allowed(place: Place) -> None:
    table = place.table(policy=Policy(most=8, most_in_all=3))
    place.grow(table, "/f", 2)
    with pytest.raises(CannotStart, match="8 are the maximum"):
        place.grow(table, "/f", 7)
    with pytest.raises(CannotStart, match="Keyhop uses it"):
        table.put_item(Item={"path": "!keyhop-total", "at": "a"})


def test_a_partition_key_called_like_metadata_is_refused(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name, partition=("phase", "S"), sort=("at", "S"))
    place = Place(dynamodb, f"{table_name}-other")
    table = place.table()
    table.name = table_name
    with pytest.raises(CannotStart, match="partition key is called phase"):
        table.put_item(Item={"phase": "a", "at": "b"})


def test_a_missing_or_wrong_metadata_table_is_refused(place: Place) -> None:
    place.metadata = "nowhere"
    with pytest.raises(CannotStart, match=r"table 'nowhere' does not exist.* path \(S\)"):
        place.table().put_item(Item={"path": "/f", "at": "a"})
    place.metadata = place.name
    with pytest.raises(CannotStart, match="is not a shard-metadata table"):
        list(place.table().query("/f"))


@pytest.mark.parametrize(
    "condition",
    [
        Attr("path").eq("/f"),
        "path = :p",
        "#p = :p AND attribute_exists(v)",
        "begins_with(path, :p)",
    ],
)
def test_a_condition_on_the_partition_keys_value_is_refused(place: Place, condition: Any) -> None:
    more: dict[str, Any] = {}
    if isinstance(condition, str):
        more["ExpressionAttributeValues"] = {":p": "/f"}
        if "#p" in condition:
            more["ExpressionAttributeNames"] = {"#p": "path"}
    with pytest.raises(CannotStart, match="cannot compare the partition key path"):
        place.table().put_item(
            Item={"path": "/f", "at": "a"}, ConditionExpression=condition, **more
        )


def test_a_condition_may_check_that_the_partition_key_exists(place: Place) -> None:
    table = place.table()
    item = {"path": "/f", "at": "a", "the_path": 1}
    table.put_item(Item=item, ConditionExpression=Attr("path").not_exists())
    both = Attr("path").exists() & Attr("the_path").eq(1)
    table.put_item(Item=item, ConditionExpression=both)


def test_an_update_cannot_copy_the_partition_key(place: Place) -> None:
    """The copy would be the physical key."""
    with pytest.raises(CannotStart, match="cannot use the partition key path"):
        place.table().update_item(
            Key={"path": "/f", "at": "a"},
            UpdateExpression="SET a_copy = #p",
            ExpressionAttributeNames={"#p": "path"},
        )


def test_an_update_may_use_similar_names(place: Place) -> None:
    table = place.table()
    key = {"path": "/f", "at": "a"}
    table.put_item(Item={**key, "in_it": {"path": 1, "the-path": 2}, "path_2": 1})
    table.update_item(
        Key=key,
        UpdateExpression="SET in_it.#p = :path, path_2 = path_2 + :path, b = in_it.#the, a=:path",
        ExpressionAttributeNames={"#p": "path", "#the": "the-path"},
        ExpressionAttributeValues={":path": 5},
    )
    item = table.get_item(Key=key)["Item"]
    assert item["in_it"] == {"path": 5, "the-path": 2}
    assert (item["path_2"], item["a"], item["b"]) == (6, 5, 2)


def test_attributes_of_keyhop_are_refused(place: Place) -> None:
    table = place.table()
    item = {"path": "/f", "at": "a", "keyhop_fence": "mine"}
    with pytest.raises(CannotStart, match="Keyhop's own"):
        table.put_item(Item=item)
    counter = {"path": "/f", "at": "!keyhop-count"}
    result = table.batch_write([item, counter, {"path": "/f", "at": "b"}])
    assert [place for place, _, _ in result.failed] == [0, 1]
    for update in ("SET keyhop_fence = :v", "SET v = :v REMOVE #f", "ADD n :v SET keyhop_fence=:v"):
        with pytest.raises(CannotStart, match="Keyhop's own: an update cannot use it"):
            table.update_item(
                Key={"path": "/f", "at": "b"},
                UpdateExpression=update,
                ExpressionAttributeNames={"#f": "keyhop_fence"},
                ExpressionAttributeValues={":v": 1},
            )
    with pytest.raises(CannotStart, match="use ShardedCounter"):
        table.put_item(Item=counter)
    with pytest.raises(CannotStart, match="use ShardedCounter"):
        table.update_item(Key=counter)
    assert [item["at"] for item in table.query("/f", consistent=True)] == ["b"]


def test_an_error_in_a_property_is_not_hidden(place: Place) -> None:
    table = place.table()
    with pytest.raises(CannotStart, match=r"policy must be a Policy .* <class 'int'>"):
        place.table(policy=5)
    table.policy = None  # type: ignore[assignment]
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute"):
        table.put_item(Item={"path": "/f", "at": "a"})


@pytest.mark.parametrize("between", ["2026", ("a", "b", "c"), ("z", "a"), (1, 2)])
def test_invalid_ends_of_a_range_are_refused(place: Place, between: Any) -> None:
    with pytest.raises(CannotStart, match="between"):
        list(place.table().query("/f", between=between))


def test_a_typed_value_in_a_key_condition_gets_a_sentence(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a"})
    for condition in (
        Key("path").eq({"S": "/f"}),
        Key("path").eq("/f") & Key("at").begins_with({"S": "a"}),
    ):
        with pytest.raises(CannotStart, match="Write values as for boto3's Table"):
            table.query(KeyConditionExpression=condition)


@pytest.mark.parametrize("shards", [1, 4])
def test_a_refusal_names_the_operation_of_the_user(place: Place, shards: int) -> None:
    """A look at several shards is a BatchGetItem, which the user has not called."""
    table, key = place.table(), {"path": "/f", "at": ""}
    if shards > 1:
        place.grow(table, "/f", shards - 1)
    for operation, call in (
        ("GetItem", table.get_item),
        ("UpdateItem", table.update_item),
        ("DeleteItem", table.delete_item),
    ):
        with pytest.raises(ClientError) as caught:
            call(Key=key)
        assert caught.value.operation_name == operation
        assert f"calling the {operation} operation" in str(caught.value)
