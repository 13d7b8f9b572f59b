"""Check the partition model: budgets by the clock, and throttles in the service's format."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from keyhop.dynamodb.throttling import reason_names

from testing.databases import Database
from testing.partitions import (
    ALL_REASONS,
    HOT_KEY,
    PROVISIONED,
    TABLE_TOO_SMALL,
    THROTTLING,
    Fault,
    Partitions,
    Place,
    partitions,
)
from testing.servers import local_client
from testing.virtual_time import EPOCH, VirtualClock

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/T"
SECOND = int(EPOCH)


def model_of(**settings: Any) -> Partitions:
    """Return a model without a database."""
    settings = {"rate": 2.0, "clock": VirtualClock(), **settings}
    return Partitions("", schemas={"T": ("pk", ARN), "U": ("id", ARN)}, **settings)


def put(key: str, size: int = 10, table: str = "T") -> dict[str, Any]:
    name = "id" if table == "U" else "pk"
    return {
        "TableName": table,
        "Item": {name: {"S": key}, "sk": {"S": "1"}, "d": {"S": "x" * size}},
    }


def is_passed(model: Partitions, operation: str, request: dict[str, Any]) -> bool:
    return model.judge(operation, request).body is None


def test_a_key_may_write_its_budget_and_gets_more_by_the_clock() -> None:
    model = model_of(rate=2.0, burst=4.0)
    clock = model.clock
    assert [is_passed(model, "PutItem", put("a")) for _ in range(5)] == [True] * 4 + [False]
    clock.sleep(0.4)
    assert not is_passed(model, "PutItem", put("a"))
    clock.sleep(0.1)
    assert [is_passed(model, "PutItem", put("a")) for _ in range(2)] == [True, False]
    clock.sleep(1000)
    assert [is_passed(model, "PutItem", put("a")) for _ in range(5)] == [True] * 4 + [False]
    assert model.by_second("T") == {SECOND: 5, SECOND + 1000: 4}
    assert model.units[Place("T", "a", SECOND)] == 5
    assert model.refused == {Place("T", "a", SECOND): 2 + 1, Place("T", "a", SECOND + 1000): 1}


def test_each_key_of_each_table_has_a_separate_budget() -> None:
    model = model_of(tables={"T"})
    assert [is_passed(model, "PutItem", put("a")) for _ in range(3)] == [True, True, False]
    assert is_passed(model, "PutItem", put("b"))
    assert all(is_passed(model, "PutItem", put("a", table="U")) for _ in range(9))
    assert is_passed(model, "Query", {"TableName": "T"})


def test_items_cost_a_unit_for_each_kilobyte() -> None:
    model = model_of(rate=10.0)
    model.judge("PutItem", put("a", size=1000))
    model.judge("PutItem", put("b", size=1100))
    model.judge("PutItem", put("c", size=9_000))
    update = {
        "TableName": "T",
        "Key": {"pk": {"S": "d"}, "sk": {"S": "1"}},
        "ExpressionAttributeValues": {":v": {"S": "x" * 2000}},
    }
    model.judge("UpdateItem", update)
    model.judge("DeleteItem", {"TableName": "T", "Key": {"pk": {"S": "e"}, "sk": {"S": "1"}}})
    assert model.by_key("T") == {"a": 1, "b": 2, "c": 9, "d": 2, "e": 1}
    assert not is_passed(model, "PutItem", put("a", size=9_500))
    assert is_passed(model, "PutItem", put("f", size=90_000))  # otherwise it could never be written


@pytest.mark.parametrize(
    ("code", "space", "name"),
    [
        (THROTTLING, "com.amazon.coral.availability", "throttlingReasons"),
        (PROVISIONED, "com.amazonaws.dynamodb.v20120810", "ThrottlingReasons"),
        ("RequestLimitExceeded", "com.amazonaws.dynamodb.v20120810", "ThrottlingReasons"),
    ],
)
def test_a_throttle_has_the_format_of_the_service(code: str, space: str, name: str) -> None:
    model = model_of(code=code, rate=1.0)
    model.judge("PutItem", put("a"))
    body = model.judge("PutItem", put("a")).body
    assert body.pop("message")
    assert body == {
        "__type": f"{space}#{code}",
        name: [{"reason": HOT_KEY, "resource": ARN}],
    }
    model.reason = None
    assert set(model.judge("PutItem", put("a")).body or ()) == {"__type", "message"}
    assert model.throttles == {HOT_KEY: 1, "unknown": 1}


def test_any_of_the_reasons_can_be_given() -> None:
    for reason in ALL_REASONS:
        model = model_of(rate=0.0, burst=0.5, reason=reason)
        is_passed(model, "PutItem", put("a"))
        body = model.judge("PutItem", put("a")).body
        assert body["throttlingReasons"][0]["reason"] == reason


def test_a_table_has_a_total_budget_that_update_table_changes() -> None:
    model = model_of(rate=100.0, provisioned={"T": 3.0}, code=PROVISIONED)
    assert [is_passed(model, "PutItem", put(f"k{n}")) for n in range(4)] == [True] * 3 + [False]
    body = model.judge("PutItem", put("z")).body
    assert body["ThrottlingReasons"] == [{"reason": TABLE_TOO_SMALL, "resource": ARN}]
    throughput = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 5}
    model.judge("UpdateTable", {"TableName": "T", "ProvisionedThroughput": throughput})
    model.clock.sleep(1)
    assert [is_passed(model, "PutItem", put(f"k{n}")) for n in range(6)] == [True] * 5 + [False]


def test_unprocessed_items_of_a_batch_have_no_reason() -> None:
    model = model_of(tables={"T"})
    entries = [{"PutRequest": {"Item": put("a")["Item"]}} for _ in range(3)]
    entries.append({"DeleteRequest": {"Key": {"pk": {"S": "b"}, "sk": {"S": "1"}}}})
    free = [{"PutRequest": {"Item": put("a", table="U")["Item"]}}] * 5
    answer = model.judge("BatchWriteItem", {"RequestItems": {"T": entries, "U": free}})
    assert answer.body is None
    assert answer.leftovers == {"T": [entries[2]]}
    assert answer.request == {"RequestItems": {"T": [*entries[:2], entries[3]], "U": free}}


def test_a_batch_without_any_success_is_throttled() -> None:
    model = model_of(rate=1.0)
    model.judge("PutItem", put("a"))
    request = {"RequestItems": {"T": [{"PutRequest": {"Item": put("a")["Item"]}}] * 2}}
    body = model.judge("BatchWriteItem", request).body
    assert body["__type"].endswith("#ThrottlingException")
    assert model.throttles == {HOT_KEY: 2}


def test_a_transaction_costs_double_and_is_atomic() -> None:
    model = model_of(rate=2.0)
    check = {
        "TableName": "T",
        "Key": {"pk": {"S": "b"}, "sk": {"S": "1"}},
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    request = {"TransactItems": [{"Put": put("a")}, {"ConditionCheck": check}]}
    assert is_passed(model, "TransactWriteItems", request)
    assert model.by_key("T") == {"a": 2, "b": 2}
    model.clock.sleep(1)
    model.judge("PutItem", put("a"))
    body = model.judge("TransactWriteItems", request).body
    message = body["CancellationReasons"][0].pop("Message")
    assert message.startswith("Throughput exceeds the current capacity of your table or index.")
    assert body == {
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "CancellationReasons": [{"Code": "ThrottlingError"}, {"Code": "None"}],
        "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[ThrottlingError, None]",
    }
    assert model.by_key("T") == {"a": 3, "b": 2}  # b paid nothing


@pytest.fixture
def model(dynamodb: Database, table_name: str) -> Iterator[Partitions]:
    dynamodb.create(table_name)
    with partitions(dynamodb.url, rate=2.0, tables={table_name}, clock=VirtualClock()) as model:
        yield model


def attempt(call: Any, **parameters: Any) -> Any:
    try:
        return call(**parameters)
    except ClientError as error:
        return error.response


def test_boto3_reads_the_model(model: Partitions, dynamodb: Database, table_name: str) -> None:
    client = local_client(model.url)
    request = {**put("a"), "TableName": table_name}
    answers = [attempt(client.put_item, **request) for _ in range(3)]
    assert reason_names(answers[2]) == (HOT_KEY,)
    assert answers[2]["Error"]["Code"] == "ThrottlingException"
    (reason,) = answers[2]["throttlingReasons"]
    assert reason["resource"].endswith(f":table/{table_name}")
    model.clock.sleep(1)
    refused = attempt(client.put_item, **request, ConditionExpression="attribute_not_exists(pk)")
    assert refused["Error"]["Code"] == "ConditionalCheckFailedException"  # it still cost a unit
    entries = [{"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"S": f"b{n}"}}}} for n in range(3)]
    batch = client.batch_write_item(RequestItems={table_name: entries})
    assert batch["UnprocessedItems"] == {table_name: entries[1:]}
    cancelled = attempt(
        client.transact_write_items,
        TransactItems=[{"Put": request}, {"Put": {**put("b"), "TableName": table_name}}],
    )
    assert cancelled["Error"]["Code"] == "TransactionCanceledException"
    codes = [reason["Code"] for reason in cancelled["CancellationReasons"]]
    assert codes == ["ThrottlingError", "None"]
    items = dynamodb.client.scan(TableName=table_name)["Items"]
    assert sorted(item["sk"]["S"] for item in items) == ["1", "b0"]
    assert model.requests["PutItem"] == 4
    assert model.by_key(table_name) == {"a": 4}


@pytest.mark.parametrize("fault", Fault)
def test_requests_fail_before_and_after_they_take_effect(
    model: Partitions, dynamodb: Database, table_name: str, fault: Fault
) -> None:
    model.fault = lambda operation, request: fault if operation == "PutItem" else None
    client = local_client(model.url)
    with pytest.raises((ClientError, BotoCoreError)) as raised:
        client.put_item(TableName=table_name, Item=put("a")["Item"])
    passed_on, answered = fault.value
    assert dynamodb.client.scan(TableName=table_name)["Count"] == passed_on
    if answered:
        assert raised.value.response["Error"]["Code"] == "InternalServerError"
        assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert model.faults == {fault: 1}
    assert client.scan(TableName=table_name)["Count"] == passed_on


def test_shares_of_the_writes_fail(model: Partitions, table_name: str) -> None:
    model.failing, model.losing, model.rate = 0.3, 0.3, 1000.0
    client = local_client(model.url)
    for number in range(60):
        item = {"pk": {"S": "a"}, "sk": {"S": f"{number:03}"}}
        attempt(client.put_item, TableName=table_name, Item=item)
    failed, lost = model.faults[Fault.REFUSED], model.faults[Fault.LOST]
    assert 8 < failed < 30
    assert 8 < lost < 30
    assert client.scan(TableName=table_name)["Count"] == 60 - failed
