"""The same words, answers and errors by boto3's Table and by ShardedTable; on DynamoDB Local."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from boto3.dynamodb.conditions import Attr
from botocore.exceptions import ClientError, ParamValidationError
from keyhop.errors import CannotStart

from tests.integration.sharding.single import Place, index

KEY = {"path": "/f", "at": "a"}
ITEM = {**KEY, "v": 1, "tags": {"x", "y"}, "m": {"n": [1]}}


OLD = [{"path": "/f", "at": f"old-{n}", "v": n} for n in range(6)]
"""Items from before the shards were added: a put moves most of them to another shard."""


@pytest.fixture(params=["boto3", "calculated", "random"])
def table(request: pytest.FixtureRequest, place: Place) -> Iterator[Any]:
    """Of four shards, if it is sharded."""
    if request.param == "boto3":
        yield place.boto3().Table(place.name)
        return
    table = place.table(placement=request.param)
    place.grow(table, "/f", 3)
    yield table
    table.close()


def test_each_answer_has_the_service_s_metadata(table: Any) -> None:
    answers = [
        table.put_item(Item=ITEM),
        table.put_item(Item=ITEM),  # in place
        table.update_item(
            Key=KEY, UpdateExpression="SET v = :v", ExpressionAttributeValues={":v": 2}
        ),
        table.get_item(Key=KEY),
        table.get_item(Key={**KEY, "at": "none"}, ConsistentRead=True),
        table.delete_item(Key=KEY),
    ]
    for answer in answers:
        metadata = answer.pop("ResponseMetadata")
        assert metadata["HTTPStatusCode"] == 200
        assert metadata["RequestId"]
        assert metadata["RetryAttempts"] == 0
        assert metadata["HTTPHeaders"]["x-amzn-requestid"] == metadata["RequestId"]
    item = {**ITEM, "v": 2}
    assert answers == [{}, {}, {}, {"Item": item}, {}, {}]


@pytest.mark.parametrize("wanted", ["NONE", "TOTAL", "INDEXES"])
def test_the_capacity_is_told_if_asked_for(table: Any, wanted: str) -> None:
    how: dict[str, Any] = {"ReturnConsumedCapacity": wanted}
    put = table.put_item(Item=ITEM, **how)
    got = table.get_item(Key=KEY, ConsistentRead=True, **how)
    deleted = table.delete_item(Key=KEY, **how)
    if wanted == "NONE":
        assert not any("ConsumedCapacity" in answer for answer in (put, got, deleted))
        return
    for answer in (put, got, deleted):
        capacity = answer["ConsumedCapacity"]
        assert capacity["TableName"] == table.name
        assert capacity["CapacityUnits"] >= 1
        assert ("Table" in capacity) == (wanted == "INDEXES")
    if wanted == "INDEXES":
        told = got["ConsumedCapacity"]
        assert told["Table"]["CapacityUnits"] == told["CapacityUnits"]


def test_a_condition_that_fails_is_caught_by_its_class_and_shows_the_item(table: Any) -> None:
    table.put_item(Item=ITEM)
    failed = table.meta.client.exceptions.ConditionalCheckFailedException
    condition = {"ConditionExpression": Attr("v").eq(7)}
    show = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    update = {"UpdateExpression": "REMOVE m"}
    calls: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (table.put_item, {"Item": ITEM}),
        (table.update_item, {"Key": KEY, **update}),
        (table.delete_item, {"Key": KEY}),
    ]
    for call, words in calls:
        for shows in ({}, show):
            with pytest.raises(failed) as error:
                call(**words, **condition, **shows)
            response = error.value.response
            assert isinstance(error.value, ClientError)
            assert response["Error"]["Code"] == "ConditionalCheckFailedException"
            assert response["Error"]["Message"] == "The conditional request failed"
            assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
            assert ("Item" in response) == bool(shows)
            if shows:  # typed, also by boto3's Table
                assert response["Item"]["path"] == {"S": "/f"}
                assert response["Item"].keys() == ITEM.keys()
        missing = {name: {**KEY, "at": "none"} for name in ("Key", "Item") if name in words}
        with pytest.raises(failed) as error:
            call(**{**words, **missing}, **condition, **show)
        assert "Item" not in error.value.response
    assert table.get_item(Key=KEY)["Item"] == ITEM


@pytest.mark.parametrize(
    "condition",
    [
        "v = :one",
        "(v = :one)",
        "(v = :one) OR (v = :two)",
        "attribute_exists(v) AND (v = :one OR v = :two)",
        "size(tags) > :one",
    ],
)
def test_a_condition_may_have_parentheses(table: Any, condition: str) -> None:
    """The service refuses redundant ones, which those of ours must not make."""
    table.put_item(Item=ITEM)
    used = {name: int(name == ":two") + 1 for name in (":one", ":two") if name in condition}
    words = {"ConditionExpression": condition, "ExpressionAttributeValues": used}
    table.put_item(Item=ITEM, **words)
    table.update_item(Key=KEY, UpdateExpression="REMOVE m", **words)
    either = (Attr("v").eq(1) | Attr("v").eq(2)) & Attr("tags").exists()
    table.update_item(Key=KEY, UpdateExpression="REMOVE m", ConditionExpression=either)
    table.delete_item(Key=KEY, **words)
    assert "Item" not in table.get_item(Key=KEY)


@pytest.mark.parametrize(
    "key", [{**KEY, "v": 1}, {"path": "/f"}, {"path": "/f", "at": 1}, {"path": "/f", "v": "a"}]
)
def test_a_key_is_exactly_the_key(table: Any, key: dict[str, Any]) -> None:
    for call in (
        lambda: table.get_item(Key=key),
        lambda: table.delete_item(Key=key),
        lambda: table.update_item(Key=key, UpdateExpression="REMOVE m"),
    ):
        with pytest.raises(ClientError) as error:
            call()
        assert error.value.response["Error"]["Code"] == "ValidationException"


def test_an_error_of_the_service_has_its_class(table: Any) -> None:
    with pytest.raises(table.meta.client.exceptions.ClientError) as error:
        table.update_item(Key=KEY, UpdateExpression="NO EXPRESSION")
    assert error.value.response["Error"]["Code"] == "ValidationException"


@pytest.fixture
def grown(request: pytest.FixtureRequest, place: Place) -> Iterator[Any]:
    """A table with the items of OLD, which then got three more shards if it is sharded."""
    if request.param == "boto3":
        table = place.boto3().Table(place.name)
        for item in OLD:
            table.put_item(Item=item)
        yield table
        return
    with place.table(placement=request.param) as table:
        for item in OLD:
            table.put_item(Item=item)
        place.grow(table, "/f", 3)
        yield table


UPDATE = {"UpdateExpression": "SET v = v"}
OF_ALL_WRITES: list[dict[str, Any]] = [
    {"ReturnValues": "BOGUS"},
    {"ReturnValues": ""},
    {"ReturnValuesOnConditionCheckFailure": "BOGUS"},
    {"ReturnConsumedCapacity": "BOGUS"},
    {"ConditionExpression": ""},
]
NOT_OF_PUTS: list[dict[str, Any]] = [
    {"ReturnValues": name} for name in ("ALL_NEW", "UPDATED_NEW", "UPDATED_OLD")
]


@pytest.mark.parametrize("grown", ["boto3", "calculated", "random"], indirect=True)
def test_a_wrong_parameter_is_refused_and_the_item_stays(grown: Any) -> None:
    """Also where a lookup or a transaction would not have the parameter."""

    def refused(call: Callable[..., Any], **words: Any) -> None:
        with pytest.raises(grown.meta.client.exceptions.ClientError) as error:
            call(**words)
        assert error.value.response["Error"]["Code"] == "ValidationException", words
        operation = "".join(map(str.capitalize, call.__name__.split("_")))
        assert error.value.operation_name == operation, words

    for item in OLD:
        key = {name: item[name] for name in ("path", "at")}
        for more in OF_ALL_WRITES + NOT_OF_PUTS:
            refused(grown.put_item, Item={**key, "new": 1}, **more)
            refused(grown.delete_item, Key=key, **more)
        for more in [*({**UPDATE, **more} for more in OF_ALL_WRITES), {"UpdateExpression": ""}]:
            refused(grown.update_item, Key=key, **more)
        for more in ({"ReturnConsumedCapacity": "BOGUS"}, {"ProjectionExpression": ""}):
            refused(grown.get_item, Key=key, **more)
        assert grown.get_item(Key=key, ConsistentRead=True)["Item"] == item
    missing = {"path": "/f", "at": "none"}
    refused(grown.update_item, Key=missing, UpdateExpression="")
    assert "Item" not in grown.get_item(Key=missing, ConsistentRead=True)
    for returns in ("NONE", "ALL_OLD"):
        grown.put_item(Item=OLD[0], ReturnValues=returns)
        grown.delete_item(Key=missing, ReturnValues=returns)
    for returns in ("NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"):
        key = {name: OLD[0][name] for name in ("path", "at")}
        grown.update_item(Key=key, **UPDATE, ReturnValues=returns)
    assert grown.get_item(Key=key, ConsistentRead=True)["Item"] == OLD[0]


@pytest.mark.parametrize("grown", ["boto3", "calculated", "random"], indirect=True)
@pytest.mark.parametrize("place", [index("by-size", "size", size="N")], indirect=True)
@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"size": "text"}, "Type mismatch for Index Key"),
        ({"text": "x" * 450_000}, "Item size"),
    ],
    ids=["type", "size"],
)
def test_an_invalid_item_is_refused_in_the_same_words(grown: Any, more: Any, told: str) -> None:
    """Also of an item that the put would move, which takes a transaction."""
    for item in OLD:
        with pytest.raises(ClientError, match=told) as error:
            grown.put_item(Item={**item, **more})
        assert error.value.response["Error"]["Code"] == "ValidationException"
        assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
        assert error.value.operation_name == "PutItem"


def test_names_without_a_use_are_refused(table: Any) -> None:
    table.put_item(Item=ITEM)
    for more in ({}, {"ProjectionExpression": "v"}):
        with pytest.raises(ClientError, match="ExpressionAttributeNames") as error:
            table.get_item(Key=KEY, ExpressionAttributeNames={"#t": "tags"}, **more)
        assert error.value.response["Error"]["Code"] == "ValidationException"
        assert error.value.operation_name == "GetItem"


@pytest.mark.parametrize("table", ["boto3", "calculated"], indirect=True)
@pytest.mark.parametrize("value", [None, False, 0, 5, ["v = v"]])
def test_an_expression_of_another_type_is_refused(table: Any, value: Any) -> None:
    """boto3 does not send it."""
    table.put_item(Item=ITEM)
    for call, words in (
        (table.put_item, {"Item": {**KEY, "new": 1}, "ConditionExpression": value}),
        (table.update_item, {"Key": KEY, "UpdateExpression": value}),
        (table.delete_item, {"Key": KEY, "ConditionExpression": value}),
        (table.get_item, {"Key": KEY, "ProjectionExpression": value}),
        (table.query, {"KeyConditionExpression": value}),
    ):
        name = next(name for name in words if name.endswith("Expression"))
        with pytest.raises((CannotStart, ParamValidationError), match=name):
            call(**words)
    assert table.get_item(Key=KEY, ConsistentRead=True)["Item"] == ITEM


@pytest.mark.parametrize("table", ["calculated"], indirect=True)
def test_what_cannot_be_is_refused_with_a_sentence(table: Any) -> None:
    with pytest.raises(CannotStart, match=r"a text, or a condition .* <class 'int'>"):
        table.delete_item(Key=KEY, ConditionExpression=1)
    with pytest.raises(CannotStart, match="ProjectionExpression must be a text, but is of"):
        table.get_item(Key=KEY, ProjectionExpression=Attr("v").exists())
    for words in ({"Expected": {}}, {"ReturnItemCollectionMetrics": "SIZE"}):
        with pytest.raises(CannotStart, match=f"{next(iter(words))} is .*[.]"):
            table.put_item(Item=ITEM, **words)
    with pytest.raises(TypeError, match="'Ittem'"):
        table.put_item(Item=ITEM, Ittem=1)
    with pytest.raises(AttributeError, match="Transactions are not possible here"):
        table.meta.client.transact_write_items(TransactItems=[])
    with pytest.raises(AttributeError, match="make a client of boto3's own"):
        table.meta.client.list_tables()
    assert not hasattr(table.meta.client, "scan")
