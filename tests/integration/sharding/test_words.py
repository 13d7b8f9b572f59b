"""boto3's Table and ShardedTable have the same arguments, responses and errors."""

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
"""Items that were written before the shards were added. A put moves most of them."""


@pytest.fixture(params=["boto3", "calculated", "random"])
def table(request: pytest.FixtureRequest, place: Place) -> Iterator[Any]:
    """A new table. A sharded table has four shards."""
    if request.param == "boto3":
        yield place.boto3().Table(place.name)
        return
    table = place.table(placement=request.param)
    place.grow(table, "/f", 3)
    yield table
    table.close()


def test_each_response_has_the_metadata_of_the_service(table: Any) -> None:
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


@pytest.mark.parametrize("level", ["NONE", "TOTAL", "INDEXES"])
def test_the_capacity_is_returned_on_request(table: Any, level: str) -> None:
    option: dict[str, Any] = {"ReturnConsumedCapacity": level}
    responses = [
        table.put_item(Item=ITEM, **option),
        table.get_item(Key=KEY, ConsistentRead=True, **option),
        table.delete_item(Key=KEY, **option),
    ]
    if level == "NONE":
        assert not any("ConsumedCapacity" in response for response in responses)
        return
    for response in responses:
        capacity = response["ConsumedCapacity"]
        assert capacity["TableName"] == table.name
        assert capacity["CapacityUnits"] >= 1
        assert ("Table" in capacity) == (level == "INDEXES")
    if level == "INDEXES":
        capacity = responses[1]["ConsumedCapacity"]
        assert capacity["Table"]["CapacityUnits"] == capacity["CapacityUnits"]


def test_a_failed_condition_has_its_class_and_may_return_the_item(table: Any) -> None:
    table.put_item(Item=ITEM)
    condition_failed = table.meta.client.exceptions.ConditionalCheckFailedException
    condition = {"ConditionExpression": Attr("v").eq(7)}
    return_item = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    update = {"UpdateExpression": "REMOVE m"}
    calls: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (table.put_item, {"Item": ITEM}),
        (table.update_item, {"Key": KEY, **update}),
        (table.delete_item, {"Key": KEY}),
    ]
    for call, arguments in calls:
        for options in ({}, return_item):
            with pytest.raises(condition_failed) as error:
                call(**arguments, **condition, **options)
            response = error.value.response
            assert isinstance(error.value, ClientError)
            assert response["Error"]["Code"] == "ConditionalCheckFailedException"
            assert response["Error"]["Message"] == "The conditional request failed"
            assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
            assert ("Item" in response) == bool(options)
            if options:  # typed, also by boto3's Table
                assert response["Item"]["path"] == {"S": "/f"}
                assert response["Item"].keys() == ITEM.keys()
        missing = {name: {**KEY, "at": "none"} for name in ("Key", "Item") if name in arguments}
        with pytest.raises(condition_failed) as error:
            call(**{**arguments, **missing}, **condition, **return_item)
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
    """Keyhop must add no redundant parentheses, because the service refuses them."""
    table.put_item(Item=ITEM)
    values = {name: int(name == ":two") + 1 for name in (":one", ":two") if name in condition}
    arguments = {"ConditionExpression": condition, "ExpressionAttributeValues": values}
    table.put_item(Item=ITEM, **arguments)
    table.update_item(Key=KEY, UpdateExpression="REMOVE m", **arguments)
    either = (Attr("v").eq(1) | Attr("v").eq(2)) & Attr("tags").exists()
    table.update_item(Key=KEY, UpdateExpression="REMOVE m", ConditionExpression=either)
    table.delete_item(Key=KEY, **arguments)
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
    """A table with the items of OLD. A sharded table then gets three more shards."""
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
FOR_ALL_WRITES: list[dict[str, Any]] = [
    {"ReturnValues": "BOGUS"},
    {"ReturnValues": ""},
    {"ReturnValuesOnConditionCheckFailure": "BOGUS"},
    {"ReturnConsumedCapacity": "BOGUS"},
    {"ConditionExpression": ""},
]
NOT_FOR_PUTS: list[dict[str, Any]] = [
    {"ReturnValues": name} for name in ("ALL_NEW", "UPDATED_NEW", "UPDATED_OLD")
]


@pytest.mark.parametrize("grown", ["boto3", "calculated", "random"], indirect=True)
def test_a_wrong_parameter_is_refused_and_the_item_stays(grown: Any) -> None:
    """It is also refused where a lookup or a transaction would not have the parameter."""

    def check_refused(call: Callable[..., Any], **arguments: Any) -> None:
        with pytest.raises(grown.meta.client.exceptions.ClientError) as error:
            call(**arguments)
        assert error.value.response["Error"]["Code"] == "ValidationException", arguments
        operation = "".join(map(str.capitalize, call.__name__.split("_")))
        assert error.value.operation_name == operation, arguments

    for item in OLD:
        key = {name: item[name] for name in ("path", "at")}
        for more in FOR_ALL_WRITES + NOT_FOR_PUTS:
            check_refused(grown.put_item, Item={**key, "new": 1}, **more)
            check_refused(grown.delete_item, Key=key, **more)
        for more in [*({**UPDATE, **more} for more in FOR_ALL_WRITES), {"UpdateExpression": ""}]:
            check_refused(grown.update_item, Key=key, **more)
        for more in ({"ReturnConsumedCapacity": "BOGUS"}, {"ProjectionExpression": ""}):
            check_refused(grown.get_item, Key=key, **more)
        assert grown.get_item(Key=key, ConsistentRead=True)["Item"] == item
    missing = {"path": "/f", "at": "none"}
    check_refused(grown.update_item, Key=missing, UpdateExpression="")
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
    ("more", "message"),
    [
        ({"size": "text"}, "Type mismatch for Index Key"),
        ({"text": "x" * 450_000}, "Item size"),
    ],
    ids=["type", "size"],
)
def test_an_invalid_item_is_refused_in_the_same_words(grown: Any, more: Any, message: str) -> None:
    """It is also refused where the put would move an item in a transaction."""
    for item in OLD:
        with pytest.raises(ClientError, match=message) as error:
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
    """boto3 does not send it either."""
    table.put_item(Item=ITEM)
    for call, arguments in (
        (table.put_item, {"Item": {**KEY, "new": 1}, "ConditionExpression": value}),
        (table.update_item, {"Key": KEY, "UpdateExpression": value}),
        (table.delete_item, {"Key": KEY, "ConditionExpression": value}),
        (table.get_item, {"Key": KEY, "ProjectionExpression": value}),
        (table.query, {"KeyConditionExpression": value}),
    ):
        name = next(name for name in arguments if name.endswith("Expression"))
        with pytest.raises((CannotStart, ParamValidationError), match=name):
            call(**arguments)
    assert table.get_item(Key=KEY, ConsistentRead=True)["Item"] == ITEM


@pytest.mark.parametrize("table", ["calculated"], indirect=True)
def test_unsupported_calls_are_refused_with_a_sentence(table: Any) -> None:
    with pytest.raises(CannotStart, match=r"a text, or a condition .* <class 'int'>"):
        table.delete_item(Key=KEY, ConditionExpression=1)
    with pytest.raises(CannotStart, match="ProjectionExpression must be a text, but is of"):
        table.get_item(Key=KEY, ProjectionExpression=Attr("v").exists())
    for arguments in ({"Expected": {}}, {"ReturnItemCollectionMetrics": "SIZE"}):
        with pytest.raises(CannotStart, match=f"{next(iter(arguments))} is .*[.]"):
            table.put_item(Item=ITEM, **arguments)
    with pytest.raises(TypeError, match="'Ittem'"):
        table.put_item(Item=ITEM, Ittem=1)
    with pytest.raises(AttributeError, match="Transactions are not possible here"):
        table.meta.client.transact_write_items(TransactItems=[])
    with pytest.raises(AttributeError, match="make a client of boto3's own"):
        table.meta.client.list_tables()
    assert not hasattr(table.meta.client, "scan")
